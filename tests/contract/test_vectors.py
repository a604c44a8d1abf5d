"""What every index must do with vectors: find the nearest, and never mix two models."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.store.base.index import MadeVector, SearchIndex, UnitFilter
from backstory.values.units import SessionRef, UnitKind
from tests.chance import examples
from tests.contract.indexes import VECTOR_INDEXES, OpenIndex
from tests.index_builders import (
    ALL_KINDS,
    ANYTHING,
    Vector,
    a_unit,
    close_index,
    file_vectors,
    set_vectors,
    some_vectors,
    store_units,
)


@pytest.fixture(scope="session", params=VECTOR_INDEXES)
def make(request: pytest.FixtureRequest) -> OpenIndex:
    opener: OpenIndex = request.param(request)
    return opener


def normalized(vectors: Vector) -> Vector:
    scaled: Vector = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled


def brute_force(vectors: Vector, query: Vector, limit: int) -> list[int]:
    cosines = vectors @ query
    order = sorted(range(len(vectors)), key=lambda n: (-cosines[n], n))
    return [n + 1 for n in order[:limit]]


def nearest_ids(
    index: SearchIndex, query: Vector, limit: int = 10, where: UnitFilter = ANYTHING
) -> list[int]:
    return [unit_id for unit_id, _ in index.nearest(query, where, limit)]


@pytest.mark.parametrize("dimensions", [1, 3, 8, 30, 384, 3072])
def test_few_vectors_are_compared_exactly(index: SearchIndex, dimensions: int) -> None:
    vectors = some_vectors(150, dimensions, seed=dimensions)
    file_vectors(index, vectors)
    query = some_vectors(1, dimensions, seed=99)[0]

    near = index.nearest(query, ANYTHING, 10)

    assert [unit_id for unit_id, _ in near] == brute_force(vectors, query, 10)
    assert [cosine for _, cosine in near] == pytest.approx(
        sorted((vectors @ query).tolist(), reverse=True)[:10], abs=1e-5
    )
    assert index.verify() == []


@pytest.mark.parametrize("dimensions", [64, 250])
def test_nearly_all_of_the_nearest_of_thousands_are_found(
    index: SearchIndex, dimensions: int
) -> None:
    # Texts come in subjects; what is spread evenly is near to nothing.
    subjects = np.repeat(some_vectors(100, dimensions), 30, axis=0)
    vectors = normalized(subjects + some_vectors(3_000, dimensions, seed=1))
    file_vectors(index, vectors)
    queries = normalized(subjects[::150] + some_vectors(20, dimensions, seed=7))

    hits = sum(
        len({*nearest_ids(index, query)} & {*brute_force(vectors, query, 10)})
        for query in queries
    )

    assert hits / 200 >= 0.95


def test_vectors_come_in_batches_over_the_borders_of_pages(index: SearchIndex) -> None:
    vectors = some_vectors(2_100, 16)
    for start in range(0, 2_100, 700):
        file_vectors(index, vectors[start : start + 700], first=start + 1)

    near = [nearest_ids(index, vectors[n], 1) for n in (0, 1_023, 1_024, 2_047, 2_099)]

    assert near == [[1], [1_024], [1_025], [2_048], [2_100]]
    assert index.counts().embedded == 2_100
    assert index.verify() == []


@pytest.mark.parametrize(
    "where",
    [
        UnitFilter(frozenset()),
        UnitFilter(frozenset({UnitKind.USER})),
        UnitFilter(ALL_KINDS, said_from=500, said_before=700),
        UnitFilter(ALL_KINDS, said_before=3),
        UnitFilter(ALL_KINDS, containers=frozenset({SessionRef(2), SessionRef(77)})),
        UnitFilter(ALL_KINDS, containers=frozenset()),
        UnitFilter(ALL_KINDS, without=frozenset(range(1, 1_000))),
        UnitFilter(
            frozenset({UnitKind.ASSISTANT}),
            said_from=10,
            containers=frozenset({SessionRef(1)}),
            without=frozenset({20}),
        ),
    ],
)
def test_filters_hold_for_meaning_as_for_text(
    index: SearchIndex, where: UnitFilter
) -> None:
    file_vectors(index, some_vectors(1_100, 8))

    found = index.nearest(some_vectors(1, 8, seed=3)[0], where, 5_000)

    expected = index.find_text("text", where, 5_000)
    assert sorted(unit_id for unit_id, _ in found) == sorted(expected)


def test_units_without_a_time_are_in_no_span(index: SearchIndex) -> None:
    store_units(index, a_unit(1, said_at=None, meaning="hello"))
    set_vectors(index, {1: some_vectors(1, 8)[0]})
    query = some_vectors(1, 8)[0]

    assert nearest_ids(index, query) == [1]
    assert (
        nearest_ids(index, query, where=UnitFilter(ALL_KINDS, said_from=-(2**62))) == []
    )
    assert nearest_ids(index, query, where=UnitFilter(ALL_KINDS, said_before=5)) == []


def test_cosines_are_those_of_nearest_and_leave_out_what_has_no_vector(
    index: SearchIndex,
) -> None:
    file_vectors(index, some_vectors(20, 30))
    store_units(index, a_unit(21, meaning="not yet"))
    query = some_vectors(1, 30, seed=5)[0]

    near = dict(index.nearest(query, ANYTHING, 50))

    assert index.cosines(query, [*range(1, 30)]) == pytest.approx(near, abs=1e-6)
    assert len(near) == 20


def test_a_unit_that_changes_loses_its_vector_until_it_gets_a_new_one(
    index: SearchIndex,
) -> None:
    vectors = some_vectors(3, 8)
    file_vectors(index, vectors)

    store_units(index, a_unit(2, "other", meaning="other"))

    assert 2 not in nearest_ids(index, vectors[1])
    assert [each.unit_id for each in index.list_to_embed(9)] == [2]
    assert index.verify() == []


def test_a_unit_that_only_has_other_words_around_it_keeps_its_vector(
    index: SearchIndex,
) -> None:
    store_units(index, a_unit(1, "yes", around="fly", meaning="yes"))
    set_vectors(index, {1: some_vectors(1, 8)[0]})

    store_units(index, a_unit(1, "yes", around="walk", meaning="yes"))

    assert nearest_ids(index, some_vectors(1, 8)[0]) == [1]
    assert index.verify() == []


def test_a_deleted_unit_is_near_to_nothing_for_all_who_have_the_index_open(
    index: SearchIndex, open_index: OpenIndex
) -> None:
    vectors = some_vectors(1_500, 8)
    file_vectors(index, vectors)
    other = open_index()
    assert nearest_ids(other, vectors[1_200], 1) == [1_201]

    with index.writing() as writer:
        writer.delete_units([1_201, 5])

    assert nearest_ids(other, vectors[1_200], 1) != [1_201]
    assert nearest_ids(index, vectors[4], 1) != [5]
    assert len(other.nearest(vectors[0], ANYTHING, 5_000)) == 1_498
    assert other.verify() == []


def test_the_cache_drops_what_no_unit_means_any_more(index: SearchIndex) -> None:
    store_units(
        index,
        a_unit(1, "same", meaning="same"),
        a_unit(2, "same", meaning="same"),
        a_unit(3, "other", meaning="other"),
    )
    one, other = some_vectors(2, 8)
    set_vectors(index, {1: one, 2: one, 3: other})

    with index.writing() as writer:
        writer.delete_units([1, 3])

    assert len(index.embeddings.list_hashes()) == 1
    assert nearest_ids(index, one) == [2]


def test_vectors_that_no_unit_needs_are_deleted(index: SearchIndex) -> None:
    file_vectors(index, some_vectors(2, 8))
    needed = index.embeddings.list_hashes()
    unused = {b"a" * 16: some_vectors(1, 8)[0], b"b" * 16: some_vectors(1, 8)[0]}
    index.embeddings.add("model", unused)

    index.delete_unused_vectors([b"a" * 16, *needed])
    after_some = index.embeddings.list_hashes()
    index.delete_unused_vectors()

    assert after_some == needed | {b"b" * 16}
    assert index.embeddings.list_hashes() == needed


# -- the cache ------------------------------------------------------------------------


def test_a_cache_keeps_vectors_by_model_and_hash(index: SearchIndex) -> None:
    cache = index.embeddings
    one, other = some_vectors(2, 8)

    numbers = cache.add("model", {b"1": one, b"2": other})
    again = cache.add("model", {b"1": other})

    assert cache.find("model", [b"1", b"2", b"3"]) == numbers
    assert cache.find("another", [b"1"]) == {}
    assert (cache.has_any("model"), cache.has_any("another")) == (True, False)
    assert again == {b"1": numbers[b"1"]}
    assert cache.read([numbers[b"1"], 99]) == {numbers[b"1"]: one.tobytes()}
    assert cache.size_bytes() > 0


def test_what_is_deleted_from_a_cache_is_gone_for_every_model(
    index: SearchIndex,
) -> None:
    cache = index.embeddings
    (vector,) = some_vectors(1, 8)
    cache.add("model", {b"1": vector, b"2": vector})
    cache.add("another", {b"1": vector})

    cache.delete([b"1"])

    assert cache.list_hashes() == {b"2"}
    assert cache.find("another", [b"1"]) == {}


def test_no_two_caches_have_the_same_identity(
    index: SearchIndex, open_index: OpenIndex
) -> None:
    again, another = open_index(), open_index(cache="another")

    assert again.embeddings.identity == index.embeddings.identity
    assert another.embeddings.identity != index.embeddings.identity


# -- another model --------------------------------------------------------------------


def test_vectors_of_another_model_go_before_any_new_one_comes(
    index: SearchIndex, open_index: OpenIndex
) -> None:
    file_vectors(index, some_vectors(1_100, 16))
    other = open_index()
    nearest_ids(other, some_vectors(1, 16)[0])

    with index.writing() as writer:
        writer.set_vectors("another", [])

    assert index.counts().embedded == 0
    assert (index.has_vectors_of("model"), index.has_vectors_of("another")) == (
        False,
        True,
    )
    new = some_vectors(1, 8, seed=4)[0]
    set_vectors(index, {7: new}, fingerprint="another")
    assert [nearest_ids(opened, new) for opened in (index, other)] == [[7], [7]]
    assert index.verify() == []


def test_an_index_has_vectors_once_a_model_has_set_them(index: SearchIndex) -> None:
    before = index.has_vectors()
    file_vectors(index, some_vectors(2, 16))

    assert (before, index.has_vectors()) == (False, True)


def test_going_back_to_a_model_takes_its_vectors_from_the_cache(
    index: SearchIndex,
) -> None:
    vectors = some_vectors(5, 16)
    file_vectors(index, vectors)
    with index.writing() as writer:
        writer.set_vectors("another", [])

    hashes = [each.meaning_hash for each in index.list_to_embed(10)]

    assert len(index.embeddings.find("model", hashes)) == 5
    assert index.embeddings.find("another", hashes) == {}


def test_another_cache_makes_all_vectors_foreign(
    index: SearchIndex, open_index: OpenIndex
) -> None:
    file_vectors(index, some_vectors(5, 16))
    close_index(index)

    second = open_index(cache="new")

    assert not second.has_vectors_of("model")
    # The numbers in the index are those of the old cache, which may mean others here.
    new = some_vectors(1, 16, seed=3)[0]
    set_vectors_of_all(second, new)
    assert second.has_vectors_of("model")
    assert [cosine for _, cosine in second.nearest(new, ANYTHING, 9)] == pytest.approx(
        [1] * 5, abs=1e-6
    )
    assert second.verify() == []


def set_vectors_of_all(index: SearchIndex, vector: Vector) -> None:
    with index.writing() as writer:
        writer.set_vectors("model", [])
    set_vectors(index, {each.unit_id: vector for each in index.list_to_embed(99)})


def test_a_vector_of_what_a_unit_no_longer_says_is_not_taken(
    index: SearchIndex,
) -> None:
    store_units(index, a_unit(1, "old", meaning="old"))
    (waiting,) = index.list_to_embed(5)
    store_units(index, a_unit(1, "new", meaning="new"))

    with index.writing() as writer:
        taken = writer.set_vectors(
            "model",
            [MadeVector(1, waiting.meaning_hash, 1, some_vectors(1, 8)[0])],
        )

    assert taken == 0
    assert index.counts().embedded == 0


def test_the_newest_are_first_in_line_for_a_vector(index: SearchIndex) -> None:
    store_units(
        index,
        a_unit(1, "a", said_at=5, meaning="a"),
        a_unit(2, "b", said_at=None, meaning="b"),
        a_unit(3, "c", said_at=9, meaning="c"),
        a_unit(4, "d", said_at=99),
    )

    assert [each.unit_id for each in index.list_to_embed(9)] == [3, 1, 2]
    assert [each.unit_id for each in index.list_to_embed(9, without=[1])] == [3, 2]


# -- several at once ------------------------------------------------------------------


def test_a_reader_meets_the_vectors_of_one_model_while_another_takes_its_place(
    index: SearchIndex, open_index: OpenIndex
) -> None:
    made = {"one": some_vectors(1_100, 16), "two": some_vectors(1_100, 24, seed=1)}
    file_vectors(index, made["one"])
    other = open_index()
    failures: list[BaseException] = []
    seen: set[int] = set()
    is_over = threading.Event()

    def read() -> None:
        try:
            while not is_over.is_set():
                for vectors in made.values():
                    near = other.nearest(vectors[1_050], ANYTHING, 1)
                    # Of the wrong model there is none; of its own, the very one.
                    seen.update(unit_id for unit_id, _ in near)
        except BaseException as exc:
            failures.append(exc)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for name in ("two", "one") * 4:
        with index.writing() as writer:
            writer.set_vectors(name, [])
        vectors = dict(zip(range(1, 1_101), made[name], strict=True))
        set_vectors(index, vectors, fingerprint=name)
    is_over.set()
    for reader in readers:
        reader.join()

    assert failures == []
    assert seen == {1_051}
    assert other.verify() == []


def test_vectors_that_come_late_fit_what_others_wrote_meanwhile(
    index: SearchIndex, open_index: OpenIndex
) -> None:
    store_units(index, *(a_unit(n, f"text {n}", meaning=f"{n}") for n in range(1, 200)))
    waiting = index.list_to_embed(500)
    vectors = some_vectors(200, 16)
    failures: list[BaseException] = []

    def change() -> None:
        other = open_index()
        try:
            for n in range(1, 200, 2):
                with other.writing() as writer:
                    writer.delete_units([n])
                    writer.replace_units([a_unit(n + 1, f"new {n}", meaning=f"new{n}")])
        except BaseException as exc:
            failures.append(exc)

    writing = threading.Thread(target=change)
    writing.start()
    for each in waiting:
        key, vector = each.meaning_hash, vectors[each.unit_id]
        (number,) = index.embeddings.add("model", {key: vector}).values()
        with index.writing() as writer:
            writer.set_vectors("model", [MadeVector(each.unit_id, key, number, vector)])
    writing.join()

    assert failures == []
    # What was given a vector before it changed lost it again.
    assert index.counts().embedded == 0
    assert nearest_ids(index, vectors[5]) == []
    assert index.verify() == []


# -- any sequence ---------------------------------------------------------------------

_steps = st.one_of(
    st.tuples(st.just("file"), st.lists(st.integers(1, 30), max_size=8, unique=True)),
    st.tuples(st.just("delete"), st.lists(st.integers(1, 30), max_size=8)),
    st.tuples(st.just("embed"), st.sampled_from(["one", "two"])),
    st.tuples(st.sampled_from(["clear", "look"]), st.none()),
)


@settings(max_examples=examples(30))
@given(steps=st.lists(_steps, max_size=10))
def test_after_any_sequence_the_nearest_are_those_that_are_there(
    make: OpenIndex,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, object]],
) -> None:
    opened = make(tmp_path_factory.mktemp("vectors"))
    vectors = {"one": some_vectors(31, 16), "two": some_vectors(31, 24, seed=1)}
    there: set[int] = set()
    embedded: set[int] = set()
    model = "one"
    for step in steps:
        match step:
            case ("file", list(numbers)):
                store_units(
                    opened, *(a_unit(n, f"{n}", meaning=f"{n}") for n in numbers)
                )
                there |= {*numbers}
            case ("delete", list(numbers)):
                with opened.writing() as writer:
                    writer.delete_units(numbers)
                there -= {*numbers}
                embedded -= {*numbers}
            case ("embed", str(name)):
                if name != model:
                    embedded = set()
                model = name
                with opened.writing() as writer:
                    writer.set_vectors(name, [])
                waiting = [each.unit_id for each in opened.list_to_embed(99)]
                set_vectors(
                    opened, {n: vectors[name][n] for n in waiting}, fingerprint=name
                )
                embedded |= there
            case ("clear", _):
                with opened.writing() as writer:
                    writer.clear()
                there, embedded = set(), set()
            case _:
                nearest_ids(opened, vectors[model][0])

        assert opened.verify() == []
        assert set(nearest_ids(opened, vectors[model][0], 99)) == embedded
    close_index(opened)
