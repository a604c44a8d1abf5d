"""No regular expression takes quadratic time, whatever text it is given.

What is read was written by others, and much of it is read outside of every deadline.
"""

import re

import pytest

from tests.chance import SOAK
from tests.growth import cpu_seconds, is_linear
from tests.hostile_texts import Shape, hostile_shapes
from tests.package_patterns import (
    PackagePattern,
    package_patterns,
    uses_outside_of_constants,
)

# One process has the package's expressions recorded.
pytestmark = pytest.mark.xdist_group("patterns")

# Long enough to tell which texts take longest.
LENGTH = 4_000
# How many of those are measured at growing lengths, and up to which.
SLOWEST = 9 if SOAK else 3
MAX_LENGTH = 250_000 if SOAK else 16_000

# They make expressions later than at import, of words that were typed.
MAKE_PATTERNS = {
    "text.patterns.__getattr__",  # of constants
    "text.dates._row",  # called at import
    "text.excerpts._iter_needles",
    "runs.search._make_phrase_check",
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


def _find_slow_shape(pattern: PackagePattern) -> Shape | None:
    """A shape whose texts take time out of proportion to their length, if there is."""
    times = {
        shape: cpu_seconds(pattern.apply, shape.to_text(LENGTH))
        for shape in hostile_shapes(pattern.source, pattern.flags)[:: 1 if SOAK else 4]
    }
    slowest = sorted(times, key=times.__getitem__, reverse=True)[:SLOWEST]
    for shape in slowest:
        if not is_linear(pattern.apply, shape.to_text, MAX_LENGTH):
            return shape
    return None


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
