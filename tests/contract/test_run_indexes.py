"""What every index of a run must do, whatever is behind it."""

from collections.abc import Iterator

import pytest

from backstory.store.base.run_index import Match, RunIndex
from backstory.store.sqlite.run_index import SqliteRunIndex

INDEXES = {"sqlite": SqliteRunIndex}


@pytest.fixture(params=INDEXES.values(), ids=list(INDEXES))
def index(request: pytest.FixtureRequest) -> Iterator[RunIndex]:
    made: RunIndex = request.param()
    yield made
    made.close()


def add(index: RunIndex, *texts: str, first: int = 0, about: str = "") -> None:
    index.add(enumerate(texts, start=first), len(texts), about)


def test_the_passage_that_fits_best_comes_first(index: RunIndex) -> None:
    add(
        index,
        *["nothing"] * 9,
        "timeout of one",
        "pool timeout of many",
        "pool timeout",
    )

    assert index.rank([("pool",), ("timeout",)], 10) == [11, 10, 9]
    assert index.rank([("pool",), ("timeout",)], 1) == [11]
    assert index.rank([("absent",)], 10) == []


def test_of_equal_passages_the_newest_comes_first(index: RunIndex) -> None:
    add(index, "same", "same", "same")

    assert index.rank([("same",)], 10) == [2, 1, 0]


def test_what_a_passage_is_about_counts_for_less_than_what_it_says(
    index: RunIndex,
) -> None:
    add(index, "one two", first=0, about="grep")
    add(index, "grep two", first=1)

    assert index.rank([("grep",)], 10) == [1, 0]


def test_the_words_of_a_phrase_stand_in_a_row_in_the_text_itself(
    index: RunIndex,
) -> None:
    add(index, "the pool timeout", "timeout of the pool")
    add(index, "else", first=2, about="pool timeout")

    assert index.rank_phrase("pool timeout", 10) == [0]


def test_a_term_in_two_spellings_counts_once(index: RunIndex) -> None:
    add(index, "parse json parse json", "parsejson", "other")

    found = index.match([("parse json", "parsejson"), ("other",)], [0, 1, 2])

    counts = {each.passage_id: each.counts for each in found}
    assert counts == {0: [2.0, 0.0], 1: [1.0, 0.0], 2: [0.0, 1.0]}


def test_lengths_are_in_mean_lengths_and_only_what_was_asked_for_is_matched(
    index: RunIndex,
) -> None:
    add(index, "word word word", "word")

    assert index.match([("word",)], [0]) == [Match(0, [3.0], 1.5)]


def test_case_accents_and_endings_make_no_difference(index: RunIndex) -> None:
    add(index, "Crème Brûlées")

    assert index.count(["creme"]) == 1
    assert index.count(["brulee"]) == 1


def test_what_is_removed_is_neither_found_nor_counted(index: RunIndex) -> None:
    add(index, "one", "one", "one")

    index.remove([0, 2])

    assert (len(index), index.count(["one"]), index.rank([("one",)], 9)) == (1, 1, [1])


@pytest.mark.parametrize("word", ['"', "a OR b", "*", "text :", "NEAR("])
def test_any_spelling_is_safe(index: RunIndex, word: str) -> None:
    add(index, "one")

    index.rank([(word,)], 5)
    index.rank_phrase(word, 5)

    assert index.match([(word,)], [0]) == []
    assert index.count([word]) == 0
