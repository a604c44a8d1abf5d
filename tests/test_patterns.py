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

LENGTH = 50_000 if SOAK else 1_000
# Enough to tell those that are meant to be slow, which would take minutes above.
SHORT = 600
# The same for one that takes little time for each character.
MEDIUM = 4_000
# Less than this is not worth measuring again: quadratic time would be longer.
QUICK_S_PER_CHAR = 0.25e-6

# They make expressions later than at import, of words that were typed.
MAKE_PATTERNS = {
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
        if (shape := _find_slow_shape(pattern, LENGTH))
    ]

    assert slow == []


def _find_slow_shape(pattern: PackagePattern, length: int) -> Shape | None:
    """The shape of the text that takes longest, if that is out of proportion."""
    times = {
        shape: cpu_seconds(pattern.apply, shape.to_text(length))
        for shape in hostile_shapes(pattern.source, pattern.flags)[:: 1 if SOAK else 4]
    }
    slowest = max(times, key=times.__getitem__)
    is_quick = times[slowest] <= length * QUICK_S_PER_CHAR
    if is_quick or is_linear(pattern.apply, slowest.to_text, length):
        return None
    return slowest


# Each is of a kind that was once in the package.
@pytest.mark.parametrize(
    ("expression", "length"),
    [
        pytest.param(r"(?<=.{4}) ?[!-~]+…$", SHORT, id="an end that is missing"),
        pytest.param(
            r"token=(?:[^\s(]{8,}+)(?!\()", SHORT, id="a run with many beginnings"
        ),
        pytest.param(r"\{.*\}", MEDIUM, id="a bracket without its partner"),
        pytest.param(r"a\s*(?:b)?\s*:", SHORT, id="two repetitions that share a text"),
        pytest.param(
            r"(?:[a-z]{8,}\s){1,200}END", SHORT, id="lines before a last line"
        ),
    ],
)
def test_a_quadratic_expression_is_noticed(expression: str, length: int) -> None:
    pattern = PackagePattern("", re.compile(expression, re.S), is_searched=True)

    assert _find_slow_shape(pattern, length) is not None
