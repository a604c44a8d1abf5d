"""What every search index must do, whatever database is behind it."""

import random
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backstory.errors import StoreLocked
from backstory.store.base.index import (
    ActiveSession,
    Chunk,
    IndexCounts,
    IndexedFile,
    Note,
    SearchIndex,
    TurnPart,
    Unit,
    UnitFilter,
    Words,
)
from backstory.text.words import fold
from backstory.values.structs import replace
from backstory.values.units import (
    MESSAGES,
    Container,
    FileRef,
    NewChunk,
    NewUnit,
    SessionRef,
    UnitKind,
    first_note_id,
    session_unit_id,
)
from tests.chance import examples
from tests.contract.indexes import OpenIndex
from tests.index_builders import (
    ALL_KINDS,
    ANYTHING,
    NOW,
    a_unit,
    close_index,
    set_vectors,
    some_vectors,
    store_units,
)


def text_ids(index: SearchIndex, text: str, where: UnitFilter = ANYTHING) -> list[int]:
    return index.find_text(fold(text), where, 100)


def word_ids(index: SearchIndex, *words: str, where: UnitFilter = ANYTHING) -> set[int]:
    matched = index.match_words(Words(tuple((word,) for word in words)), where, 100)
    return {unit_id for unit_id, _ in matched}


def fail_half_way(index: SearchIndex) -> None:
    """Begin to replace and delete things, and have to give up."""
    with suppress(RuntimeError), index.writing() as writer:
        writer.replace_units([a_unit(2, "lost"), a_unit(50, "lost")])
        writer.delete_units([1])
        raise RuntimeError


# -- storing --------------------------------------------------------------------------


def test_a_unit_comes_back_as_it_was_filed(index: SearchIndex) -> None:
    store_units(index, a_unit(7, "hello", container=SessionRef(3), said_at=99))

    assert index.get_units([7, 8]) == {
        7: Unit(7, UnitKind.USER, SessionRef(3), 7, 99, 5)
    }
    assert index.counts() == IndexCounts(units=1, messages=1)
    assert index.verify() == []


def test_sessions_with_tools_and_the_parts_of_turns_are_known(
    index: SearchIndex,
) -> None:
    def said(unit_id: int, kind: UnitKind, session: int, position: int) -> NewUnit:
        made = a_unit(unit_id, f"text {unit_id}", container=SessionRef(session))
        return replace(made, kind=kind, position=position)

    store_units(
        index,
        said(1, UnitKind.ASSISTANT, session=1, position=0),
        said(2, UnitKind.USER, session=1, position=1),
        said(3, UnitKind.OTHER, session=1, position=2),
        said(4, UnitKind.ASSISTANT, session=1, position=3),
        said(5, UnitKind.USER, session=1, position=4),
        said(6, UnitKind.ASSISTANT, session=1, position=5),
        said(9, UnitKind.OTHER, session=1, position=6),
        said(7, UnitKind.USER, session=2, position=0),
        said(8, UnitKind.ASSISTANT, session=2, position=1),
    )

    sessions = [SessionRef(1), SessionRef(2), SessionRef(3)]
    assert index.find_sessions_with_tools(sessions) == {SessionRef(1)}
    assert index.find_turn_parts([1, 4, 6, 8, 99]) == {
        1: TurnPart(None, is_step=False),
        4: TurnPart(2, is_step=False),
        6: TurnPart(5, is_step=True),
        8: TurnPart(7, is_step=False),
    }
    assert index.find_sessions_with_tools([]) == frozenset()
    store_units(index, said(10, UnitKind.OTHER, session=2, position=2))
    assert index.find_sessions_with_tools(sessions) == {SessionRef(1), SessionRef(2)}
    assert index.find_turn_parts([]) == {}


def test_a_unit_filed_again_takes_the_place_of_the_old_one(index: SearchIndex) -> None:
    store_units(index, a_unit(1, "red apples"), a_unit(2, "green pears"))

    store_units(index, a_unit(1, "blue plums"))

    assert (text_ids(index, "red apples"), word_ids(index, "apples")) == ([], set())
    assert (text_ids(index, "blue plums"), word_ids(index, "plums")) == ([1], {1})
    assert index.counts().units == 2
    assert index.verify() == []


def test_a_unit_filed_twice_in_one_transaction_is_the_second(
    index: SearchIndex,
) -> None:
    with index.writing() as writer:
        writer.replace_units([a_unit(1, "red apples")])
        writer.replace_units([a_unit(1, "blue plums")])

    assert (text_ids(index, "apples"), text_ids(index, "plums")) == ([], [1])
    assert index.verify() == []


def test_only_the_words_around_a_unit_change(index: SearchIndex) -> None:
    store_units(index, a_unit(1, "yes", around="shall we fly", meaning="yes"))

    store_units(index, a_unit(1, "yes", around="shall we walk", meaning="yes"))

    assert (word_ids(index, "fly"), word_ids(index, "walk")) == (set(), {1})
    assert index.verify() == []


def test_a_unit_that_moves_in_time_is_found_at_its_new_time(index: SearchIndex) -> None:
    store_units(index, a_unit(1, "hello", said_at=5, meaning="hello"))

    store_units(index, a_unit(1, "hello", said_at=50, meaning="hello"))

    late = UnitFilter(ALL_KINDS, said_from=40)
    assert (text_ids(index, "hello", late), word_ids(index, "hello", where=late)) == (
        [1],
        {1},
    )
    assert index.verify() == []


def test_a_deleted_source_is_found_by_nothing(index: SearchIndex) -> None:
    store_units(
        index, a_unit(1, "red apples"), a_unit(2, "red plums", container=SessionRef(2))
    )
    with index.writing() as writer:
        writer.replace_chunks(SessionRef(1), [NewChunk(0, 5, 10)])

    with index.writing() as writer:
        writer.delete_container(SessionRef(1))

    assert (text_ids(index, "red"), word_ids(index, "red")) == ([2], {2})
    assert index.find_chunks([(SessionRef(1), 3)]) == {}
    assert index.counts().units == 1
    assert index.verify() == []


def test_deleting_what_is_not_there_changes_nothing(index: SearchIndex) -> None:
    store_units(index, a_unit(1))

    with index.writing() as writer:
        writer.delete_units([5])
        writer.delete_container(SessionRef(9))
        writer.delete_file(9)

    assert index.counts().units == 1
    assert index.verify() == []


def test_a_cleared_index_is_empty_and_can_be_filled_again(index: SearchIndex) -> None:
    store_units(index, a_unit(1, "old", meaning="old"), a_unit(2, "older"))

    with index.writing() as writer:
        writer.clear()
        writer.replace_units([a_unit(3, "new")])

    assert (text_ids(index, "old"), text_ids(index, "new")) == ([], [3])
    assert (word_ids(index, "old"), word_ids(index, "new")) == (set(), {3})
    assert index.counts() == IndexCounts(units=1, messages=1)
    assert index.verify() == []
    assert not index.has_leftovers()


def test_the_counts_follow_what_is_stored_embedded_changed_and_deleted(
    index: SearchIndex,
) -> None:
    counted = []
    store_units(
        index,
        a_unit(1, "one", meaning="one"),
        a_unit(2, "two", meaning="two"),
        a_unit(3, "three"),
        a_unit(first_note_id(), "a note", meaning="a note", container=FileRef(9)),
    )
    counted.append(index.counts())
    one, two = some_vectors(2, 8)
    set_vectors(index, {1: one, 2: two})
    counted.append(index.counts())
    store_units(index, a_unit(2, "two"), a_unit(3, "three", meaning="three"))
    counted.append(index.counts())
    with index.writing() as writer:
        writer.delete_units([1, 1, 77])
    counted.append(index.counts())

    assert counted == [
        IndexCounts(units=4, with_meaning=3, messages=3),
        IndexCounts(units=4, with_meaning=3, embedded=2, messages=3),
        IndexCounts(units=4, with_meaning=3, embedded=1, messages=3),
        IndexCounts(units=3, with_meaning=2, messages=2),
    ]
    assert index.verify() == []


def test_what_fails_half_way_leaves_everything_as_it_was(index: SearchIndex) -> None:
    store_units(index, a_unit(1, "kept"))

    fail_half_way(index)

    assert (text_ids(index, "kept"), text_ids(index, "lost")) == ([1], [])
    assert index.verify() == []
    store_units(index, a_unit(2, "afterwards"))
    assert text_ids(index, "afterwards") == [2]
    assert index.verify() == []


def test_writing_says_so_when_another_goes_on_writing(
    index: SearchIndex, open_index: OpenIndex
) -> None:
    with (
        open_index().writing(),
        pytest.raises(StoreLocked),
        index.writing(timeout_s=0.05),
    ):
        pass

    store_units(index, a_unit(1))
    assert index.verify() == []


def test_state_is_kept_with_what_it_tells_of(index: SearchIndex) -> None:
    with index.writing() as writer:
        writer.set_state("done", "5")
        before = writer.get_state("done")

    assert (before, index.get_state("done"), index.get_state("x")) == ("5", "5", None)


def test_another_who_has_it_open_sees_what_is_new(
    index: SearchIndex, open_index: OpenIndex
) -> None:
    store_units(index, a_unit(1, "first"))
    other = open_index()
    text_ids(other, "first")

    store_units(index, a_unit(2, "second"))
    seen_then = text_ids(other, "second")
    with index.writing() as writer:
        writer.clear()
        writer.replace_units([a_unit(3, "third")])

    assert seen_then == [2]
    assert (text_ids(other, "second"), text_ids(other, "third")) == ([], [3])
    assert other.verify() == []


def test_an_index_takes_the_place_of_another(
    index: SearchIndex, open_index: OpenIndex
) -> None:
    store_units(index, a_unit(1, "old"))
    other = open_index("other")
    store_units(other, a_unit(2, "new"))

    index.replace_with(other)

    assert (text_ids(index, "old"), text_ids(index, "new")) == ([], [2])
    assert (word_ids(index, "old"), word_ids(index, "new")) == (set(), {2})
    assert index.verify() == []
    assert not index.has_leftovers()


def test_a_sound_index_passes_its_check_and_leaves_nothing_behind(
    index: SearchIndex,
) -> None:
    store_units(index, a_unit(1, "hello"))

    index.check()
    index.tidy()
    index.delete_leftovers()

    assert not index.has_leftovers()
    assert text_ids(index, "hello") == [1]
    assert index.size_bytes() > 0


# -- several at once ------------------------------------------------------------------


def at_once(*work: Callable[[], object]) -> list[BaseException]:
    """Run all at once, each in a thread of its own; returns what they failed with."""
    failures: list[BaseException] = []

    def run(each: Callable[[], object]) -> None:
        try:
            each()
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=run, args=(each,)) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_a_reader_sees_the_old_or_the_new_while_an_index_is_replaced(
    index: SearchIndex, open_index: OpenIndex
) -> None:
    store_units(index, *(a_unit(n, f"needle {n} of 0") for n in range(1, 30)))
    seen: set[int] = set()
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            seen.add(len(text_ids(index, "needle")))
            assert index.find_text("needle 7 of", ANYTHING, 5) == [7]

    def replace() -> None:
        try:
            for turn in range(1, 15):
                other = open_index("new")
                with other.writing() as writer:
                    writer.clear()
                    writer.replace_units(
                        a_unit(n, f"needle {n} of {turn}") for n in range(1, 30)
                    )
                index.replace_with(other)
                other.close()
        finally:
            is_over.set()

    failures = at_once(replace, read, read)

    assert failures == []
    assert seen == {29}
    assert text_ids(index, "of 14") == list(range(29, 0, -1))
    assert index.verify() == []


def test_a_reader_sees_the_old_or_the_new_while_an_index_is_cleared_and_filled(
    index: SearchIndex, open_index: OpenIndex
) -> None:
    store_units(index, *(a_unit(n, f"needle {n}") for n in range(1, 30)))
    other = open_index()
    seen: set[int] = set()
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            seen.add(len(text_ids(other, "needle")))
            seen.add(len(word_ids(other, "needle")))

    def clear_and_fill() -> None:
        try:
            for _ in range(30):
                with index.writing() as writer:
                    writer.clear()
                    writer.replace_units(a_unit(n, f"needle {n}") for n in range(1, 30))
        finally:
            is_over.set()

    failures = at_once(clear_and_fill, read, read)

    assert failures == []
    assert seen == {29}
    assert other.verify() == []


def test_a_reader_is_not_led_astray_by_texts_that_are_wiped_as_it_reads(
    index: SearchIndex, open_index: OpenIndex
) -> None:
    store_units(index, *(a_unit(n, f"needle {n} " * 50) for n in range(1, 400)))
    is_over = threading.Event()

    def read() -> None:
        # Opened again each time, so that everything is checked each time.
        while not is_over.is_set():
            other = open_index()
            assert text_ids(other, "needle 399 needle") == [399]
            close_index(other)

    def delete() -> None:
        try:
            for n in range(1, 350):
                with index.writing() as writer:
                    writer.delete_units([n])
        finally:
            is_over.set()

    failures = at_once(delete, read, read)

    assert failures == []
    assert index.verify() == []


# -- words ----------------------------------------------------------------------------


def test_words_are_found_and_the_better_fit_comes_first(index: SearchIndex) -> None:
    store_units(
        index,
        a_unit(1, "the pool timeout is thirty seconds, a long timeout"),
        a_unit(2, "timeout"),
        a_unit(3, "something else"),
        a_unit(4, "nothing here", around="the timeout"),
    )
    words = Words((("timeout",),))

    matched = index.match_words(words, ANYTHING, 10)

    assert [unit_id for unit_id, _ in matched] == [2, 1, 4]
    assert [score for _, score in matched] == sorted(
        (score for _, score in matched), reverse=True
    )
    assert index.score_words(words, [1, 2, 3, 4]) == pytest.approx(dict(matched))


def test_any_spelling_of_a_word_will_do_and_words_side_by_side(
    index: SearchIndex,
) -> None:
    store_units(
        index,
        a_unit(1, "parse json now"),
        a_unit(2, "parsejson"),
        a_unit(3, "json parse"),
    )

    matched = index.match_words(Words((("parse json", "parsejson"),)), ANYTHING, 10)

    assert {unit_id for unit_id, _ in matched} == {1, 2}


def test_helpful_words_lift_but_do_not_find(index: SearchIndex) -> None:
    store_units(
        index, a_unit(1, "apple pie"), a_unit(2, "apple tart"), a_unit(3, "cream tart")
    )

    matched = index.match_words(Words((("apple",),), (("tart",),)), ANYTHING, 10)

    assert [unit_id for unit_id, _ in matched] == [2, 1]


def test_words_that_are_nowhere_find_nothing(index: SearchIndex) -> None:
    store_units(index, a_unit(1, "apple"))

    assert index.match_words(Words(()), ANYTHING, 10) == []
    assert index.match_words(Words((("pear",),)), ANYTHING, 10) == []
    assert index.match_words(Words((("apple",),)), UnitFilter(frozenset()), 10) == []
    assert index.score_words(Words((("apple",),)), []) == {}


def test_all_words_are_looked_for_in_the_text_itself_the_newest_first(
    index: SearchIndex,
) -> None:
    store_units(
        index,
        a_unit(1, "blue whale", said_at=30),
        a_unit(2, "a whale that is blue", said_at=40),
        a_unit(3, "blue", around="whale", said_at=50),
        a_unit(4, "blue sky", said_at=60),
    )

    found = index.find_all_words([("blue",), ("whale", "whales")], ANYTHING, 10)

    assert found == [2, 1]
    assert index.find_all_words([], ANYTHING, 10) == []


def test_units_are_checked_for_all_words_of_their_own_text(index: SearchIndex) -> None:
    store_units(
        index,
        a_unit(1, "the token for auth of whales"),
        a_unit(2, "authtoken, whale"),
        a_unit(3, "auth whale", around="token"),
        a_unit(4, "auth token"),
        a_unit(5, "auth token whale"),
    )
    words = [("auth token", "authtoken"), ("whale",)]

    assert sorted(index.having_words(words, [1, 2, 3, 4, 9])) == [1, 2]
    assert index.having_words(words, []) == []
    assert index.having_words([], [1]) == []


def test_documents_are_counted_by_word(index: SearchIndex) -> None:
    store_units(index, a_unit(1, "red apple"), a_unit(2, "red"), a_unit(3, "blue"))

    assert index.count_documents([("red",), ("apple", "apples"), ("x",)]) == [2, 2, 0]


def test_a_word_that_was_nowhere_is_counted_once_it_is_there(
    index: SearchIndex,
) -> None:
    store_units(index, *(a_unit(number) for number in range(1, 40)))
    index.count_documents([("zanzibar",)])

    store_units(index, a_unit(40, "zanzibar"))

    assert index.count_documents([("zanzibar",)]) == [1]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(words=st.lists(st.text(max_size=12), min_size=1, max_size=3))
def test_any_spelling_is_safe(index: SearchIndex, words: list[str]) -> None:
    spellings = tuple((word.replace("\0", " "),) for word in words)

    index.match_words(Words(spellings[:1], spellings[1:]), ANYTHING, 5)
    index.find_all_words(spellings, ANYTHING, 5)
    index.having_words(spellings, [1])
    index.score_words(Words(spellings), [1])
    index.find_text("".join(words), ANYTHING, 5)
    index.count_documents(spellings)


# -- any part of a text ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "needle", "is_there"),
    [
        ("Hello World", "lo wo", True),
        ("Hello World", "HELLO", True),
        ("STRASSE", "straße", True),
        ("ΑΘΗΝΑΣ", "αθηνασ", True),
        ("Ångström", "ångstr\u006f\u0308m", True),
        ("İstanbul", "stanbul", True),
        ("100 %", "0 %", True),
        ("100 x", "0 %", False),
        ("a_b", "a_b", True),
        ("axb", "a_b", False),
        ("a\0b", "a\0b", True),
        ("a\0zb", "zb", True),
        ("🦜 parrot 👨‍👩‍👧", "👩‍👧", True),
        ("日本語の本", "語の", True),
        ("line\nbreak", "line\nbreak", True),
        ("a\\b", "a\\b", True),
        ("half \ud83d pair", "half", True),
        ("x" * 100_000 + "needle", "needle", True),
        ("short", "x" * 100_000, False),
    ],
)
def test_a_text_is_found_by_any_part_of_it_and_nothing_is_a_wildcard(
    index: SearchIndex, text: str, needle: str, is_there: bool
) -> None:
    store_units(index, a_unit(1, "before"), a_unit(2, text), a_unit(3, "after"))

    assert text_ids(index, needle) == [2] * is_there


_ODD_WORDS = """
the File ﬁle Straße parseJson C++ .NET naïve e\u0301te\u0301 İstanbul \u212aelvin x1 42
日本語 データベース ｶﾞか\u3099 한국어 \u1112\u1161\u11ab x界面y
ｆｕｌｌ ſharp \u0301 ᾳ ǰ a\u200db under_score _ — 🦜 \ue000
"""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(st.sampled_from(_ODD_WORDS.split()), min_size=3, max_size=6),
    gaps=st.lists(st.sampled_from([" ", " ", "  ", "\n", ", "]), min_size=6),
    data=st.data(),
)
def test_a_text_is_found_by_some_of_its_words(
    index: SearchIndex, words: list[str], gaps: list[str], data: st.DataObject
) -> None:
    text = "".join(each for pair in zip(words, gaps, strict=False) for each in pair)
    store_units(index, a_unit(1, "the file"), a_unit(2, text))
    start = data.draw(st.integers(0, len(fold(text)) - 1))
    part = fold(text)[start : data.draw(st.integers(start + 1, len(fold(text))))]

    assert 2 in index.find_text(part, ANYTHING, 10)


def test_no_part_reaches_from_one_text_into_the_next(index: SearchIndex) -> None:
    store_units(index, a_unit(1, "one"), a_unit(2, "two"))

    assert text_ids(index, "onetwo") == []
    assert text_ids(index, "one\0two") == []
    assert text_ids(index, "\0") == []
    assert text_ids(index, "") == []


def test_the_newest_come_first_and_those_without_a_time_last(
    index: SearchIndex,
) -> None:
    times = {1: 5, 2: None, 3: 9, 4: -3, 5: None, 6: 9}
    store_units(index, *(a_unit(each, said_at=at) for each, at in times.items()))

    assert index.find_text("hello", ANYTHING, 10) == [6, 3, 1, 4, 5, 2]
    assert index.find_text("hello", ANYTHING, 3) == [6, 3, 1]
    assert index.find_text("hello", ANYTHING, 0) == []


def test_what_was_deleted_is_not_found_through_its_neighbour(
    index: SearchIndex,
) -> None:
    store_units(
        index, a_unit(1, "alpha"), a_unit(2, "beta"), a_unit(3, "gamma"), a_unit(4, "x")
    )

    with index.writing() as writer:
        writer.delete_units([2, 3])

    assert [text_ids(index, text) for text in ("alpha", "beta", "gamma", "x")] == [
        [1],
        [],
        [],
        [4],
    ]


def test_many_matches_are_found_like_few(index: SearchIndex) -> None:
    chance = random.Random(1)
    units = [
        a_unit(
            number,
            chance.choice(["needle in hay", "hay"]),
            said_at=chance.choice([None, *range(20)]),
            kind=chance.choice([UnitKind.USER, UnitKind.OTHER]),
            container=SessionRef(chance.choice([1, 2])),
        )
        for number in range(1, 1_500)
    ]
    store_units(index, *units)
    wheres = [
        ANYTHING,
        UnitFilter(frozenset({UnitKind.USER}), said_from=3, said_before=9),
        UnitFilter(
            MESSAGES, containers=frozenset({SessionRef(2)}), without=frozenset({5, 77})
        ),
    ]

    def expected(where: UnitFilter) -> list[int]:
        fitting = [
            unit
            for unit in units
            if "needle" in unit.text
            and unit.kind in where.kinds
            and (where.containers is None or unit.container in where.containers)
            and unit.unit_id not in where.without
            and (where.said_from is None or (unit.said_at or -1) >= where.said_from)
            and (
                where.said_before is None
                or (unit.said_at is not None and unit.said_at < where.said_before)
            )
        ]
        fitting.sort(
            key=lambda u: (u.said_at is not None, u.said_at, u.unit_id), reverse=True
        )
        return [unit.unit_id for unit in fitting]

    for where in wheres:
        assert index.find_text("needle", where, 10_000) == expected(where)
        assert index.find_text("needle", where, 7) == expected(where)[:7]


_letters = st.text("abAß%_\0é\u0301日\n ", max_size=5)


@settings(max_examples=examples(30))
@given(texts=st.lists(_letters, max_size=12), needle=_letters)
def test_texts_are_found_as_a_plain_search_would(
    make: OpenIndex,
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    needle: str,
) -> None:
    opened = make(tmp_path_factory.mktemp("texts"))
    store_units(opened, *(a_unit(n, text) for n, text in enumerate(texts, start=1)))

    found = text_ids(opened, needle)

    assert sorted(found) == [
        n
        for n, text in enumerate(texts, start=1)
        if needle and fold(needle) in fold(text)
    ]
    close_index(opened)


# -- filters --------------------------------------------------------------------------

_TITLE = session_unit_id(2)
_FACT, _RULE = first_note_id() + 5, first_note_id() + 6
_FILTERED = (
    a_unit(1, kind=UnitKind.USER, container=SessionRef(1), said_at=10),
    a_unit(2, kind=UnitKind.ASSISTANT, container=SessionRef(1), said_at=20),
    a_unit(3, kind=UnitKind.OTHER, container=SessionRef(2), said_at=30),
    a_unit(_TITLE, kind=UnitKind.SESSION, container=SessionRef(2), said_at=None),
    a_unit(_FACT, kind=UnitKind.MEMORY, container=FileRef(1), said_at=20, heading=""),
    a_unit(
        _RULE, kind=UnitKind.GUIDANCE, container=FileRef(2), said_at=None, heading=""
    ),
)
_ALL_BUT_GUIDANCE = ALL_KINDS - {UnitKind.GUIDANCE}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (ANYTHING, {1, 2, 3, _TITLE, _FACT, _RULE}),
        (UnitFilter(frozenset()), set()),
        (UnitFilter(MESSAGES), {1, 2, 3}),
        (UnitFilter(frozenset({UnitKind.MEMORY})), {_FACT}),
        (UnitFilter(ALL_KINDS, said_from=20), {2, 3, _FACT}),
        (UnitFilter(ALL_KINDS, said_before=20), {1}),
        (UnitFilter(ALL_KINDS, said_from=10, said_before=11), {1}),
        (UnitFilter(ALL_KINDS, said_from=30, said_before=10), set()),
        (UnitFilter(ALL_KINDS, containers=frozenset({SessionRef(2)})), {3, _TITLE}),
        (UnitFilter(ALL_KINDS, containers=frozenset()), set()),
        (
            UnitFilter(ALL_KINDS, containers=frozenset({FileRef(1), SessionRef(7)})),
            {_FACT},
        ),
        (
            UnitFilter(ALL_KINDS, without=frozenset({1, _FACT, 99})),
            {2, 3, _TITLE, _RULE},
        ),
        (UnitFilter(_ALL_BUT_GUIDANCE), {1, 2, 3, _TITLE, _FACT}),
        (
            UnitFilter(_ALL_BUT_GUIDANCE, without=frozenset({1, _FACT})),
            {2, 3, _TITLE},
        ),
    ],
)
def test_filters_hold_for_every_way_of_finding(
    index: SearchIndex, where: UnitFilter, expected: set[int]
) -> None:
    store_units(index, *_FILTERED)

    assert word_ids(index, "hello", where=where) == expected
    assert set(index.find_text("hello", where, 10)) == expected
    assert set(index.find_all_words([("hello",)], where, 10)) == expected


# -- chunks, notes, files -------------------------------------------------------------


def test_a_position_belongs_to_the_chunk_that_begins_before_it(
    index: SearchIndex,
) -> None:
    with index.writing() as writer:
        writer.replace_chunks(
            SessionRef(1), [NewChunk(0, 3, 9), NewChunk(5, 8, 7, "text")]
        )
        starts = writer.list_chunks(1)

    one, other = SessionRef(1), SessionRef(2)
    found = index.find_chunks([(one, 0), (one, 4), (one, 5), (one, 100), (other, 0)])

    first, second = Chunk(1, one, 0, 3, 9, None), Chunk(2, one, 5, 8, 7, "text")
    assert starts == [(0, 3), (5, 8)]
    assert found == {
        (one, 0): first,
        (one, 4): first,
        (one, 5): second,
        (one, 100): second,
    }


def test_many_places_are_looked_up_at_once(index: SearchIndex) -> None:
    with index.writing() as writer:
        writer.replace_chunks(SessionRef(1), [NewChunk(0, 3, 9), NewChunk(5, 8, 7)])
        writer.replace_chunks(FileRef(1), [NewChunk(2, 4, 9, "text")])
    one, file, other = SessionRef(1), FileRef(1), SessionRef(2)
    places: list[tuple[Container, int]] = [
        (one, 0),
        (one, 4),
        (one, 100),
        (file, 1),
        (file, 3),
        (other, 0),
    ]

    found = index.find_chunks(places)

    assert {place: chunk.first_position for place, chunk in found.items()} == {
        (one, 0): 0,
        (one, 4): 0,
        (one, 100): 5,
        (file, 3): 2,
    }
    assert index.find_chunks([]) == {}


def test_chunks_are_replaced_between_two_positions(index: SearchIndex) -> None:
    with index.writing() as writer:
        writer.replace_chunks(
            SessionRef(1),
            [NewChunk(start, start + 9, 1) for start in range(0, 50, 10)],
        )
        writer.replace_chunks(SessionRef(1), [NewChunk(12, 29, 2)], first=10, before=30)
        replaced = writer.list_chunks(1)

    assert replaced == [(0, 9), (12, 29), (30, 39), (40, 49)]


def test_a_session_is_new_until_something_of_it_is_there(index: SearchIndex) -> None:
    with index.writing() as writer:
        writer.replace_units([a_unit(1, "sea", container=SessionRef(1))], are_new=True)
        writer.replace_chunks(SessionRef(2), [NewChunk(0, 9, 9)], are_new=True)
        in_the_same_transaction = writer.find_new_sessions([1, 2, 3])
        chunks = writer.list_chunks(2)
    with index.writing() as writer:
        later = writer.find_new_sessions([1, 2, 3])
        writer.delete_container(SessionRef(1))
        emptied = writer.find_new_sessions([1, 2, 3])

    assert in_the_same_transaction == later == {3}
    assert chunks == [(0, 9)]
    assert emptied == {1, 3}


def a_file(path: str = "/a.md", **more: object) -> IndexedFile:
    facts: dict[str, object] = {
        "file_id": 0,
        "kind": UnitKind.MEMORY,
        "path": path,
        "project": None,
        "signature": "1",
        "hash": "h",
        "modified_at": 5,
    }
    return IndexedFile(**(facts | more))  # type: ignore[arg-type]


def test_a_file_keeps_its_number_and_goes_with_all_that_is_in_it(
    index: SearchIndex,
) -> None:
    with index.writing() as writer:
        first = writer.replace_file(a_file(), NOW)
        again = writer.replace_file(a_file(signature="2", project="/p"), NOW)
        other = writer.replace_file(a_file("/b.md", kind=UnitKind.GUIDANCE), NOW)
        note_id = writer.next_note_id()
        writer.replace_units(
            [a_unit(note_id, "Kept", container=FileRef(first), heading="A > B")]
        )

    assert (first == again, note_id) == (True, first_note_id())
    assert index.list_files() == [
        a_file(file_id=first, signature="2", project="/p"),
        a_file("/b.md", file_id=other, kind=UnitKind.GUIDANCE),
    ]
    assert index.get_files([other]) == {
        other: a_file("/b.md", file_id=other, kind=UnitKind.GUIDANCE)
    }
    assert index.get_notes([note_id, 1]) == {note_id: Note("A > B", "Kept")}

    with index.writing() as writer:
        writer.delete_file(first)

    assert [file.path for file in index.list_files()] == ["/b.md"]
    assert index.get_notes([note_id]) == {}
    assert text_ids(index, "kept") == []
    assert index.verify() == []


# -- any sequence ---------------------------------------------------------------------

_units = st.builds(
    lambda unit_id, text, around, at, has_meaning: a_unit(
        unit_id,
        text,
        around=around,
        said_at=at,
        container=SessionRef(unit_id % 3 + 1),
        meaning=text if has_meaning else None,
    ),
    st.integers(1, 12),
    st.sampled_from(["", "one", "two words", "Ü\0x", "z" * 300]),
    st.sampled_from(["", "near", "near by"]),
    st.sampled_from([None, 5, 6]),
    st.booleans(),
)
_steps = st.one_of(
    st.tuples(
        st.just("file"), st.lists(_units, max_size=6, unique_by=lambda u: u.unit_id)
    ),
    st.tuples(st.just("delete"), st.lists(st.integers(1, 12), max_size=4)),
    st.tuples(st.just("delete_session"), st.integers(1, 3)),
    st.tuples(st.sampled_from(["clear", "tidy", "reopen", "fail"]), st.none()),
)


@settings(max_examples=examples(30))
@given(steps=st.lists(_steps, max_size=12))
def test_any_sequence_of_changes_leaves_a_sound_index_that_finds_what_is_there(
    make: OpenIndex,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, object]],
) -> None:
    opened = make(tmp_path_factory.mktemp("steps"))
    there: dict[int, tuple[str, str]] = {}
    for step in steps:
        match step:
            case ("file", list(units)):
                store_units(opened, *units)
                there |= {unit.unit_id: (unit.text, unit.around) for unit in units}
            case ("delete", list(unit_ids)):
                with opened.writing() as writer:
                    writer.delete_units(unit_ids)
                there = {k: text for k, text in there.items() if k not in unit_ids}
            case ("delete_session", int(session_id)):
                with opened.writing() as writer:
                    writer.delete_container(SessionRef(session_id))
                there = {
                    k: text for k, text in there.items() if k % 3 + 1 != session_id
                }
            case ("clear", _):
                with opened.writing() as writer:
                    writer.clear()
                there = {}
            case ("tidy", _):
                opened.tidy()
            case ("reopen", _):
                opened.close()
            case _:
                fail_half_way(opened)

        assert opened.verify() == []

    assert opened.counts().units == opened.count_units() == len(there)
    assert set(text_ids(opened, "o")) == {
        k for k, (text, _) in there.items() if "o" in text
    }
    assert word_ids(opened, "near") == {k for k, (_, near) in there.items() if near}
    assert word_ids(opened, "two") == {
        k for k, (text, _) in there.items() if "two" in text
    }
    close_index(opened)


def test_messages_are_counted_by_span_and_session(index: SearchIndex) -> None:
    one, two = SessionRef(1), SessionRef(2)
    store_units(
        index,
        a_unit(1, container=one, said_at=10),
        a_unit(2, container=one, said_at=19, kind=UnitKind.OTHER),
        a_unit(3, container=two, said_at=10),
        a_unit(4, container=one, said_at=20),
        a_unit(5, container=one, said_at=None),
        a_unit(6, container=one, said_at=15, kind=UnitKind.SESSION),
    )
    spans = [(20, 30), (10, 20)]

    assert index.count_by_session(spans, ANYTHING) == [
        ActiveSession(0, 1, 1, 20, 20),
        ActiveSession(1, 1, 2, 10, 19),
        ActiveSession(1, 2, 1, 10, 10),
    ]
    narrow = UnitFilter(ALL_KINDS, containers=frozenset({two}), without=frozenset({9}))
    assert index.count_by_session(spans, narrow) == [ActiveSession(1, 2, 1, 10, 10)]
    assert index.count_by_session([], ANYTHING) == []
    assert index.count_by_session(spans, UnitFilter(frozenset())) == []
