"""No regular expression takes quadratic time or is slow, whatever text it is given.

What is read was written by others, and much of it is read outside of every deadline.
"""

import re
from functools import cache

import pytest

from backstory.ingest import spilled_results
from backstory.summaries import who_said
from backstory.text import dates, own_calls, passages, query, words
from tests.chance import SOAK
from tests.growth import cpu_seconds, is_linear, times_as_slow
from tests.hostile_texts import Shape, hostile_shapes
from tests.package_patterns import (
    PackagePattern,
    package_patterns,
    uses_outside_of_constants,
)
from tests.source_code import GROUP

pytestmark = pytest.mark.xdist_group(GROUP)

# Long enough to tell which texts take longest.
LENGTH = 2_000
# How many of those are measured at growing lengths, and up to which.
SLOWEST = 9 if SOAK else 3
MAX_LENGTH = 250_000 if SOAK else 16_000

# They make expressions later than at import, of words that were typed.
MAKE_PATTERNS = {
    "text.patterns.__getattr__",  # of constants
    "text.excerpts._iter_needles",
    "runs.search._make_phrase_check",
}


# This one takes about 50 ms for a megabyte of text. None that is given as much may take
# more than some times as long.
MATCHES_EVERYTHING = re.compile("[ab]")
TIMES_AS_SLOW = 4
MEGABYTE = 1_000_000
# How much of a text the package gives to an expression, where it gives it less.
MAX_CHARS = {
    "text.dates._DATE_PATTERNS": dates._READ_CHARS,
    "text.dates._RECENT": dates._READ_CHARS,
    "text.dates._ARGUMENT_WAYS": dates._READ_CHARS,
    "text.query._TYPED": query._READ_CHARS,
    "text.query._CODE": query._READ_CHARS,
    "text.words._PART": words._LONGEST_JOINED,
    "text.passages._BEGINNING": passages._MAX_CHARS,
    "summaries.who_said._ORDER": who_said._MAX_LINE_CHARS,
    "text.own_calls._JQ_SCRIPT": own_calls._MAX_COMMAND_CHARS,
    "ingest.spilled_results._NOTICES": spilled_results._NOTICE_CHARS,
}


def test_expressions_are_constants_so_that_all_of_them_are_known() -> None:
    assert uses_outside_of_constants() == MAKE_PATTERNS


def test_every_expression_takes_time_in_proportion_to_its_text() -> None:
    slow = [
        f"{pattern.name}: {shape}"
        for pattern in package_patterns()
        if (shape := _find_slow_shape(pattern))
    ]

    assert slow == []


def test_no_expression_is_many_times_as_slow_as_one_that_matches_everything() -> None:
    slow = [
        f"{pattern.name}: {shape}"
        for pattern in package_patterns()
        if (shape := _find_costly_shape(pattern))
    ]

    assert slow == []


def _find_slow_shape(pattern: PackagePattern) -> Shape | None:
    """A shape whose texts take time out of proportion to their length, if there is."""
    for shape in _slowest_shapes(pattern):
        if not is_linear(pattern.apply, shape.to_text, MAX_LENGTH):
            return shape
    return None


def _find_costly_shape(pattern: PackagePattern) -> Shape | None:
    """A shape whose texts take too long, as long as they may be, if there is."""
    limit = TIMES_AS_SLOW * MEGABYTE / MAX_CHARS.get(pattern.name, MEGABYTE)
    for shape in _slowest_shapes(pattern):
        text = shape.to_text(LENGTH)
        ratio = times_as_slow(
            pattern.apply,
            text,
            lambda other: MATCHES_EVERYTHING.sub("", other),
            "a" * pattern.length(text),
            limit=limit,
        )
        if ratio > limit:
            return shape
    return None


@cache
def _slowest_shapes(pattern: PackagePattern) -> list[Shape]:
    times = {
        shape: cpu_seconds(pattern.apply, shape.to_text(LENGTH))
        for shape in hostile_shapes(pattern.source, pattern.flags)[:: 1 if SOAK else 4]
    }
    return sorted(times, key=times.__getitem__, reverse=True)[:SLOWEST]


# Each is of a kind that was once in the package.
@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(r"(?<=.{4}) ?[!-~]+…$", id="an end that is missing"),
        pytest.param(r"token=(?:[^\s(]{8,}+)(?!\()", id="a run with many beginnings"),
        pytest.param(r"\{.*\}", id="a bracket without its partner"),
        pytest.param(r"a\s*(?:b)?\s*:", id="two repetitions that share a text"),
        pytest.param(r"(?:[a-z]{8,}\s){1,200}END", id="lines before a last line"),
    ],
)
def test_a_quadratic_expression_is_noticed(expression: str) -> None:
    pattern = PackagePattern("", re.compile(expression, re.S), is_searched=True)

    assert _find_slow_shape(pattern) is not None


def test_a_slow_expression_is_noticed() -> None:
    # From every letter, it reads hundreds more.
    pattern = PackagePattern("", re.compile("(?:[a-z]{0,900}=)?;"), is_searched=True)

    assert _find_costly_shape(pattern) is not None
