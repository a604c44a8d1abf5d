"""What the index on PostgreSQL does in its own way: packed words, signs, stops."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.errors import StoreProblem
from backstory.index import build
from backstory.store.base.history import Change
from backstory.store.base.index import UnitFilter, Words
from backstory.store.postgres import (
    erase,
    short_grams,
    term_uses,
    text_grams,
    text_search,
    word_rows,
)
from backstory.store.postgres.database import Database, Tenant
from backstory.store.postgres.embeddings import PostgresEmbeddings
from backstory.store.postgres.index import PostgresIndex
from backstory.store.postgres.index_states import IS_ERASE_DUE
from backstory.store.postgres.text_search import TextSearch
from backstory.store.postgres.vectors import PostgresVectors
from backstory.store.postgres.word_writer import WordWriter
from backstory.text.words import fold
from backstory.values.units import (
    NewChunk,
    NewUnit,
    SessionRef,
    UnitKind,
    first_session_unit_id,
)
from tests.chance import examples
from tests.index_builders import (
    ALL_KINDS,
    ANYTHING,
    a_unit,
    an_index,
    close_index,
    file_vectors,
    some_vectors,
    store_units,
)
from tests.postgres_server import ADMIN, OWNER, PostgresServer
from tests.processes import comes_true

pytestmark = pytest.mark.postgres


@pytest.fixture
def index(tenant: Tenant) -> PostgresIndex:
    return an_index_of(tenant)


def take_step(
    index: PostgresIndex, there: dict[int, NewUnit], step: tuple[str, object]
) -> None:
    """Change an index, and with it the units that should be there."""
    match step:
        case ("store", list(units)):
            store_units(index, *units)
            there |= {unit.unit_id: unit for unit in units}
        case ("delete", list(unit_ids)):
            with index.writing() as writer:
                writer.delete_units(unit_ids)
            for unit_id in unit_ids:
                there.pop(unit_id, None)
        case _:
            index.tidy()


def an_index_of(tenant: Tenant) -> PostgresIndex:
    return PostgresIndex(tenant, PostgresEmbeddings(tenant))


@pytest.fixture(autouse=True, scope="module")
def few_shared_rows() -> Iterator[None]:
    """Words that more than two units have get rows of their own; the others share."""
    with patch.multiple(term_uses, MAX_SHARING=2, SHARED_ROWS=3):
        yield


@contextmanager
def few_in_the_tail(most: int = 3) -> Iterator[None]:
    """Words are packed after so few units."""
    with patch.multiple(WordWriter, max_tail=most, latest=1):
        yield


# -- words ----------------------------------------------------------------------------

_WORDS = [
    "whale",
    "whales",
    "blue",
    "sea",
    "deep-sea",
    "parseJson",
    "日本語",
    "naïve",
    "x",
]
_texts = st.lists(st.sampled_from(_WORDS), max_size=9).map(" ".join)
# Numbers of two segments, and some in between.
_unit_ids = st.sampled_from([1, 2, 3, 4, 5, 16_383, 16_384, 16_385, 40_000])
_units = st.builds(
    lambda unit_id, text, around: a_unit(unit_id, text, around=around),
    _unit_ids,
    _texts,
    _texts,
)
_spellings = st.lists(
    st.sampled_from(["whale", "blue whale", "sea deep", "日本", "本語", "x", "!"]),
    min_size=1,
    max_size=2,
).map(tuple)
_spoken = st.lists(_spellings, min_size=1, max_size=3).map(tuple)


@settings(max_examples=examples(40))
@given(
    batches=st.lists(
        st.lists(_units, max_size=5, unique_by=lambda unit: unit.unit_id), max_size=6
    ),
    needed=_spoken,
    helpful=st.one_of(st.just(()), _spoken),
)
def test_words_rank_as_they_do_in_sqlite(
    postgres: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[NewUnit]],
    needed: tuple[tuple[str, ...], ...],
    helpful: tuple[tuple[str, ...], ...],
) -> None:
    database = Database(postgres.url())
    index = an_index_of(database.tenant(postgres.create_tenant()))
    written: dict[int, NewUnit] = {}
    with few_in_the_tail():
        for batch in batches:
            store_units(index, *batch)
            written |= {unit.unit_id: unit for unit in batch}
    # All at once: SQLite goes on counting what was replaced.
    other = an_index(tmp_path_factory.mktemp("same"))
    store_units(other, *written.values())
    words, unit_ids = Words(needed, helpful), list(written)

    ranked = index.match_words(words, ANYTHING, 20)

    expected = other.match_words(words, ANYTHING, 20)
    # Where two scores are equal but for rounding, either may come first.
    assert dict(ranked) == pytest.approx(dict(expected))
    assert [score for _, score in ranked] == pytest.approx([s for _, s in expected])
    assert index.score_words(words, unit_ids) == pytest.approx(
        other.score_words(words, unit_ids)
    )
    assert index.find_all_words(needed, ANYTHING, 9) == other.find_all_words(
        needed, ANYTHING, 9
    )
    assert index.having_words(needed, unit_ids) == sorted(
        other.having_words(needed, unit_ids)
    )
    assert index.verify() == []
    database.close()
    close_index(other)


_steps = st.one_of(
    st.tuples(
        st.just("store"), st.lists(_units, max_size=5, unique_by=lambda u: u.unit_id)
    ),
    st.tuples(st.just("delete"), st.lists(_unit_ids, max_size=3)),
    st.tuples(st.just("tidy"), st.none()),
)


@settings(max_examples=examples(40))
@given(steps=st.lists(_steps, max_size=10))
def test_packed_rows_have_the_words_of_what_is_there(
    postgres: PostgresServer, steps: list[tuple[str, object]]
) -> None:
    database = Database(postgres.url())
    index = an_index_of(database.tenant(postgres.create_tenant()))
    there: dict[int, NewUnit] = {}
    with few_in_the_tail(1):
        for step in steps:
            take_step(index, there, step)
            assert index.verify() == []

    found = {unit_id for unit_id, _ in index.match_words(_words("blue"), ANYTHING, 99)}
    assert found == {
        k for k, unit in there.items() if "blue" in f"{unit.text} {unit.around}"
    }
    database.close()


def _words(*words: str) -> Words:
    return Words(tuple((word,) for word in words))


def test_nothing_of_a_deleted_unit_is_left_in_packed_rows(
    postgres: PostgresServer, index: PostgresIndex, tenant: Tenant
) -> None:
    with few_in_the_tail():
        store_units(index, *(a_unit(n, f"walrus{n} sea") for n in range(1, 30)))
    with index.writing() as writer:
        writer.delete_units([7])
    hidden = index.match_words(_words("walrus7"), ANYTHING, 9)

    index.tidy()

    with tenant.reading() as db:
        rows = db.execute(
            "SELECT key, unit_count, shared_terms FROM word_rows"
        ).fetchall()
    terms = {term for _, _, shared in rows for term in (shared or "").split()}
    assert hidden == []
    assert "walrus6" in terms
    assert terms.isdisjoint({"walrus7", "7"})
    assert ("sea", 27, None) in rows
    assert index.verify() == []


def test_nothing_that_was_deleted_is_left_in_the_files_of_the_server(
    postgres: PostgresServer, index: PostgresIndex
) -> None:
    if postgres.version < 17:
        pytest.skip("up to version 16, only the owner of a table may vacuum it")
    with few_in_the_tail():
        store_units(index, *(a_unit(n, "a quokkaish sea") for n in range(1, 9)))
    with index.writing() as writer:
        writer.replace_chunks(SessionRef(1), [NewChunk(0, 9, 9, "a quokkaish sea")])
    before = postgres.find_in_files(b"quokkaish")

    with index.writing() as writer:
        writer.delete_container(SessionRef(1))
    index.tidy()

    assert before
    assert postgres.find_in_files(b"quokkaish") == []
    assert index.verify() == []


def test_large_tables_are_vacuumed_once_and_not_again_and_again(
    postgres: PostgresServer, index: PostgresIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erase, "_MAX_REWRITTEN_BYTES", 0)
    store_units(index, a_unit(1, "a quokkaish sea"))
    with index.writing() as writer:
        writer.delete_units([1])

    with psycopg.connect(postgres.url(ADMIN)) as reader:
        # As long as somebody may still see it, it is tried again.
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT 1")
        if postgres.version >= 17:
            index.tidy()
            assert index.get_state(IS_ERASE_DUE)
    index.tidy()

    assert not index.get_state(IS_ERASE_DUE)


def test_a_word_too_long_for_an_index_is_found(index: PostgresIndex) -> None:
    long, longer = "x" * 40_000, "x" * 40_001
    store_units(index, a_unit(1, long), a_unit(2, longer))

    assert [k for k, _ in index.match_words(_words(long), ANYTHING, 9)] == [1]


# -- any part of a text ---------------------------------------------------------------


# The first number after the first segment, all of which has grams then.
_NEXT_SEGMENT = 16_384


def test_of_a_large_index_few_texts_are_compared(index: PostgresIndex) -> None:
    store_units(
        index,
        *(a_unit(n, f"the whale {n} swims in a sea") for n in range(1, 500)),
        a_unit(500, "a blue whale dives in the sea"),
        a_unit(_NEXT_SEGMENT, "a blue whale sings"),
    )

    with patch.object(TextSearch, "small", 10):
        assert index.find_few("ue whale dives i", ANYTHING, 9) == [500]
        assert index.find_few("ale 7 swims", ANYTHING, 9) == [7]
        assert index.find_few("7 swims in a", ANYTHING, 2) == [497, 487]
        assert index.find_few("lue whal", ANYTHING, 9) == [_NEXT_SEGMENT, 500]
        assert index.find_few("nowhere", ANYTHING, 9) == []
        # Parts with grams of their own.
        assert index.find_few("he s", ANYTHING, 9) == [500]
        assert index.find_few("gs", ANYTHING, 9) == [_NEXT_SEGMENT]
        assert index.find_few("ue", ANYTHING, 9) == [_NEXT_SEGMENT, 500]
        assert index.find_few("sea", ANYTHING, 2) == [500, 499]
        assert index.find_few("zq", ANYTHING, 2) == []
        # Too short to have grams.
        assert index.find_few("w", ANYTHING, 9) is None
        assert index.find_text("w", ANYTHING, 2) == [_NEXT_SEGMENT, 500]
        with patch.object(text_search, "_MAX_COMPARED", 40):
            assert index.find_few("whale", ANYTHING, 9) is None
            assert index.find_few("sea", ANYTHING, 9) is None
            assert index.find_few("he s", ANYTHING, 9) == [500]
            assert index.find_text("7 swims in a", ANYTHING, 2) == [497, 487]
            with patch.object(text_search, "_MAX_COMPARED_AT_LAST", 40):
                assert index.find_text("7 swims in a", ANYTHING, 2) == [497, 487]
                assert index.find_text("sea", ANYTHING, 2) == [500, 499]


def test_of_short_parts_the_blocks_that_have_them_are_known(
    index: PostgresIndex,
) -> None:
    chance = random.Random(5)
    texts = ["".join(chance.choices("abcdeé日 ", k=chance.randrange(40)))] * 3
    texts += ["".join(chance.choices("abcdeé日 ", k=9)) for _ in range(400)]
    texts += ["", "z", "zy", "xzy", "a" * 300]
    needles = {text[at : at + size] for text in texts for at in (0, 5) for size in (2,)}
    needles |= {text[1:4] for text in texts} | {"é", "日", "zy", "xz", "aaaa", "yq"}
    needles = {each for each in needles if 2 <= len(each.encode()) <= 4}
    # Some grams have lists of blocks, others bits; and not all are packed at once.
    with patch.multiple(short_grams, _MANY=3, _AT_ONCE=50):
        store_units(
            index,
            *(a_unit(number, text) for number, text in enumerate(texts, start=1)),
            a_unit(_NEXT_SEGMENT, "q"),
        )
        with patch.object(TextSearch, "small", 0):
            found = {each: index.find_few(each, ANYTHING, 999) for each in needles}
        assert index.verify() == []

    assert len(needles) > 100
    assert {each: sorted(some or ()) for each, some in found.items()} == {
        each: [
            number
            for number, text in enumerate(texts, start=1)
            if fold(each) in fold(text)
        ]
        for each in needles
    }


def test_of_long_parts_the_units_that_have_their_grams_are_known(
    index: PostgresIndex,
) -> None:
    chance = random.Random(7)
    texts = [
        "".join(chance.choices("abé日 ", k=chance.randrange(60))) for _ in "ab" * 90
    ]
    # So many units have the same gram that they are stored as bits, and some are far
    # apart.
    numbers = [*range(1, 2_101), *range(2_400, 12_000, 100), 12_255, 12_510, 13_000]
    stored = dict.fromkeys(numbers, "a whale")
    stored |= dict(zip(range(13_100, 16_000, 7), texts, strict=False))
    needles = {
        text[at : at + size] for text in texts for at in (0, 9) for size in (5, 9)
    }
    needles = {each for each in needles if len(each.encode()) >= 5} | {"whale", "whole"}
    store_units(
        index,
        *(a_unit(number, text) for number, text in stored.items()),
        a_unit(_NEXT_SEGMENT, "q"),
    )

    with (
        patch.object(TextSearch, "small", 0),
        patch.object(text_search, "_MAX_COMPARED", 99_999),
    ):
        found = {each: index.find_few(each, ANYTHING, 9_999) for each in needles}

    assert len(needles) > 100
    assert {each: sorted(some or ()) for each, some in found.items()} == {
        each: [number for number, text in stored.items() if fold(each) in fold(text)]
        for each in needles
    }
    assert index.verify() == []


def test_titles_have_grams_as_soon_as_they_are_many(
    postgres: PostgresServer, tenant: Tenant, index: PostgresIndex
) -> None:
    def title(number: int, text: str) -> NewUnit:
        unit_id = first_session_unit_id() + number
        return a_unit(unit_id, text, kind=UnitKind.SESSION, said_at=number)

    def found() -> tuple[list[list[int] | None], int]:
        with patch.object(TextSearch, "small", 0):
            parts = ("ale 7 swims", "whale", "lake", "ha")
            some = [index.find_few(part, ANYTHING, 9) for part in parts]
        first = first_session_unit_id()
        return [[k - first for k in each or ()] for each in some], count_compared()

    def count_compared() -> int:
        """How many titles are compared in any case, as they have no grams."""
        rows = postgres.ask(
            f"""
            SELECT cardinality(changed_ids) FROM backstory.gram_segments
             WHERE tenant_id = {tenant.tenant_id}
            """,
            name="memory",
        )
        return sum(count for (count,) in rows) if rows else -1

    with patch.object(text_grams, "_MAX_CHANGED", 4):
        store_units(index, *(title(n, f"a whale {n} swims") for n in range(1, 5)))
        few = found()
        store_units(index, *(title(n, f"a whale {n} swims") for n in range(5, 9)))
        many = found()
        store_units(index, title(7, "a lake"), title(9, "a whale dives"))
        with index.writing() as writer:
            writer.delete_units([first_session_unit_id() + 1])
        changed = found()
        verified = index.verify()
        # Whatever is forgotten leaves no grams behind.
        store_units(index, a_unit(1, "a sea"))
        with index.writing() as writer:
            writer.delete_units([1])
        index.tidy()
        tidied = found()
        store_units(index, *(title(n, "a lake") for n in range(2, 7)))
        again = found()

    assert few == ([[], [4, 3, 2, 1], [], [4, 3, 2, 1]], -1)
    whales = [8, 7, 6, 5, 4, 3, 2, 1]
    assert many == ([[7], whales, [], whales], 0)
    whales = [9, 8, 6, 5, 4, 3, 2]
    assert changed == ([[], whales, [7], whales], 3)
    assert verified == []
    assert tidied == (changed[0], 0)
    assert again == ([[], [9, 8], [7, 6, 5, 4, 3, 2], [9, 8]], 0)
    assert index.verify() == []


def test_grams_that_programs_of_the_version_before_may_have_made_wrong_are_not_used(
    postgres: PostgresServer, tenant: Tenant, index: PostgresIndex
) -> None:
    def ask(statement: str) -> list[tuple[object, ...]]:
        return postgres.ask(
            statement.format(tenant=tenant.tenant_id), name="memory", role=ADMIN
        )

    def count_rows() -> tuple[object, ...]:
        (row,) = ask(
            """
            SELECT (SELECT count(*) FROM backstory.text_grams
                     WHERE tenant_id = {tenant}),
                   (SELECT count(*) FROM backstory.gram_segments
                     WHERE tenant_id = {tenant}),
                   (SELECT count(*) > 0 FROM backstory.gram_units
                     WHERE tenant_id = {tenant})
            """
        )
        return row

    def find() -> list[int] | None:
        with patch.object(TextSearch, "small", 0):
            return index.find_few("blue sea", ANYTHING, 9)

    store_units(index, a_unit(1, "a green sea"), a_unit(_NEXT_SEGMENT, "a lake"))
    before = count_rows()
    # What such a program does: it writes texts, grams and, at the end, the counters.
    ask("UPDATE backstory.units SET folded = 'a blue sea' WHERE tenant_id = {tenant}")
    ask(
        """
        INSERT INTO backstory.text_grams
        SELECT tenant_id, index_id, 0, '' FROM backstory.indexes
         WHERE tenant_id = {tenant}
        """
    )
    ask("UPDATE backstory.indexes SET word_count = 9 WHERE tenant_id = {tenant}")
    there = count_rows()
    found = find()
    index.tidy()

    assert before == (0, 1, True)
    assert (there, found) == ((1, 0, False), [_NEXT_SEGMENT, 1])
    assert (count_rows(), find()) == ((0, 1, True), [_NEXT_SEGMENT, 1])


def test_wrong_grams_are_noticed(
    postgres: PostgresServer, tenant: Tenant, index: PostgresIndex
) -> None:
    def change(table: str, value: str) -> list[str]:
        before = f"SELECT * FROM backstory.{table} WHERE tenant_id = {tenant.tenant_id}"
        rows = postgres.ask(before, name="memory")
        postgres.ask(
            f"""
            UPDATE backstory.{table} SET {value}
             WHERE tenant_id = {tenant.tenant_id}
            """,
            name="memory",
        )
        assert rows != postgres.ask(before, name="memory")
        return index.verify()

    store_units(index, a_unit(1, "a sea"), a_unit(_NEXT_SEGMENT, "a lake"))
    wrong = ["the grams of 1 segments are not those of their texts"]

    assert index.verify() == []
    assert change("gram_segments", "newest_at = 7") == wrong
    assert change("gram_segments", "newest_at = 0") == []
    assert change("gram_units", "units = '\\x02'") == wrong
    assert change("gram_units", "units = '\\x01'") == []
    short = "short_grams = set_byte(short_grams, 16400, 255)"
    assert change("gram_segments", short) == wrong


_needles = st.sampled_from(
    [
        *("whale", "whales", "ue whal", "deep-sea", "日本", "日本語 x", "x naïve"),
        *("sonja", "se", "sea", "日", "ï", "ha", "es b", "qz"),
    ]
)


@settings(max_examples=examples(40))
@given(steps=st.lists(_steps, max_size=8), needle=_needles)
def test_any_part_of_a_text_is_found(
    postgres: PostgresServer, steps: list[tuple[str, object]], needle: str
) -> None:
    database = Database(postgres.url())
    index = an_index_of(database.tenant(postgres.create_tenant()))
    there: dict[int, NewUnit] = {}
    for step in steps:
        take_step(index, there, step)

    with patch.object(TextSearch, "small", 0):
        found = index.find_few(fold(needle), ANYTHING, 99)

    having = {k for k, unit in there.items() if fold(needle) in fold(unit.text)}
    assert found is not None
    assert set(found) == having
    assert index.verify() == []
    database.close()


_said = st.none() | st.integers(1, 9)


@settings(max_examples=examples(40))
@given(
    segments=st.lists(st.lists(_said, max_size=4), max_size=5),
    since=_said,
    limit=st.integers(1, 6),
)
def test_the_newest_with_a_part_are_found_first_wherever_they_are(
    postgres: PostgresServer,
    segments: list[list[int | None]],
    since: int | None,
    limit: int,
) -> None:
    database = Database(postgres.url())
    index = an_index_of(database.tenant(postgres.create_tenant()))
    times = {
        segment * _NEXT_SEGMENT + 100 * place: said_at
        for segment, some in enumerate(segments)
        for place, said_at in enumerate(some, start=1)
    }
    units = [a_unit(each, "a wide sea", said_at=at) for each, at in times.items()]
    store_units(index, *units, a_unit(6 * _NEXT_SEGMENT, "a lake"))
    where = UnitFilter(ALL_KINDS, said_from=since)

    with (
        patch.object(TextSearch, "small", 0),
        patch.object(text_search, "_FIRST_RANGES", 1),
    ):
        found = [index.find_text(part, where, limit) for part in ("wide sea", "sea")]

    fitting = [
        each for each, at in times.items() if since is None or (at or 0) >= since
    ]
    newest = sorted(fitting, key=lambda each: (times[each] or 0, each), reverse=True)
    assert found == [newest[:limit]] * 2
    assert index.verify() == []
    database.close()


# -- vectors --------------------------------------------------------------------------


def test_nearly_all_of_the_nearest_are_found_by_their_signs(
    index: PostgresIndex,
) -> None:
    subjects = np.repeat(some_vectors(100, 64), 30, axis=0)
    vectors = subjects + some_vectors(3_000, 64, seed=1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    file_vectors(index, vectors)
    queries = vectors[::150]

    with patch.object(PostgresVectors, "few", 0):
        found = [
            {unit_id for unit_id, _ in index.nearest(query, ANYTHING, 10)}
            for query in queries
        ]
        late = index.nearest(queries[0], UnitFilter(ALL_KINDS, said_from=2_990), 99)

    nearest = [np.argsort(-(vectors @ query))[:10] + 1 for query in queries]
    hits = sum(len(a & {*b}) for a, b in zip(found, nearest, strict=True))
    assert hits / 200 >= 0.95
    assert {unit_id for unit_id, _ in late} == set(range(2_990, 3_001))


# -- several at once ------------------------------------------------------------------


def test_what_a_thread_reads_can_be_stopped(
    postgres: PostgresServer, index: PostgresIndex
) -> None:
    store_units(index, a_unit(1))
    raised: list[BaseException] = []
    begun: list[int] = []

    def read() -> None:
        begun.append(threading.get_ident())
        try:
            index.find_text("hello", ANYTHING, 5)
        except StoreProblem as exc:
            raised.append(exc)

    blocker = Database(postgres.url(OWNER)).server.connect()
    blocker.execute("LOCK TABLE backstory.units IN ACCESS EXCLUSIVE MODE")
    thread = threading.Thread(target=read)
    thread.start()

    def stops() -> bool:
        index.interrupt(begun)
        return not thread.is_alive()

    assert comes_true(stops)
    blocker.close()
    assert [type(each).__name__ for each in raised] == ["StoreLocked"]
    assert index.find_text("hello", ANYTHING, 5) == [1]


def test_a_writer_of_the_index_does_not_wait_for_one_of_the_history(
    tenant: Tenant, index: PostgresIndex, tmp_path: Path
) -> None:
    with tenant.writing():
        store_units(index, a_unit(1))
        file_vectors(index, some_vectors(3, 8))

    assert index.count_units() == 3


def test_what_begins_a_segment_is_packed_with_the_rest_of_it(
    index: PostgresIndex,
) -> None:
    first = term_uses.SEGMENT_SIZE
    store_units(index, *(a_unit(n, "whale") for n in range(first - 600, first + 200)))
    begun = list_packed_segments(index)

    store_units(index, *(a_unit(n, "whale") for n in range(first + 200, first + 900)))

    assert (begun, list_packed_segments(index)) == ([0], [0, 1])
    assert index.count_documents([("whale",)]) == [1_500]


def list_packed_segments(index: PostgresIndex) -> list[int]:
    with index._transactions.reading() as (db, counters):
        rows = db.execute(
            "SELECT segment_id FROM word_segments WHERE index_id = %s ORDER BY 1",
            (counters.index_id,),
        ).fetchall()
    return [segment_id for (segment_id,) in rows]


def test_the_messages_of_a_batch_are_packed_together() -> None:
    size = term_uses.SEGMENT_SIZE
    messages = [(1, 9_000), (9_001, size - 2), (size - 1, size + 60), (size + 61, 2e4)]
    changes = [
        Change(number, number, int(first), int(last), 0)
        for number, (first, last) in enumerate(messages, start=1)
    ]

    batches = [build._choose_batch(changes[begin:], 0) for begin in (0, 3)]

    assert [each.changes for each in batches] == [changes[:3], changes[3:]]


def test_titles_are_stored_beside_each_other(index: PostgresIndex) -> None:
    titles = [first_session_unit_id() + number for number in range(3)]
    mixed = [
        unit_id for pair in zip([1, 2, 3], titles, strict=True) for unit_id in pair
    ]

    store_units(index, *(a_unit(unit_id, "whale") for unit_id in mixed))

    with index._transactions.reading() as (db, counters):
        stored = db.execute(
            "SELECT unit_id FROM units WHERE index_id = %s ORDER BY ctid",
            (counters.index_id,),
        ).fetchall()
    assert [unit_id for (unit_id,) in stored] == [1, 2, 3, *titles]


@pytest.mark.parametrize("said_from", [0, 41, 280, 1_000])
def test_the_best_of_some_days_are_found_however_many_are_better(
    index: PostgresIndex, said_from: int
) -> None:
    # The later, the longer, and so the worse.
    store_units(
        index,
        *(a_unit(n, "whale" + " sea" * n, said_at=n) for n in range(1, 300)),
    )
    everything = index.match_words(_words("whale"), ANYTHING, 999)
    later = UnitFilter(ALL_KINDS, said_from=said_from)

    found = index.match_words(_words("whale"), later, 2)

    assert found == [each for each in everything if each[0] >= said_from][:2]


def test_counts_of_words_are_read_once_while_the_index_stays_the_same(
    index: PostgresIndex,
) -> None:
    store_units(index, a_unit(1, "a whale"))
    first = index.count_documents([("whale",), ("sea",)])
    with patch.object(word_rows, "count_units", side_effect=AssertionError):
        again = index.count_documents([("sea",), ("whale",)])

    store_units(index, a_unit(2, "whale and sea"))

    assert (first, again) == ([1, 0], [0, 1])
    assert index.count_documents([("whale",), ("sea",)]) == [2, 1]
