"""How long regular expressions take for a megabyte that was made to be hard."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.growth import cpu_seconds
from tests.hostile_texts import Shape, hostile_shapes
from tests.package_patterns import PackagePattern, package_patterns

from bench.measuring import Figure

_LENGTH = 1_000_000
# Texts are compared at this length, and only the slowest is made a megabyte long.
_SHORT = 8_000
_SHOWN = 12
_TARGET_MS = 50
_PLAIN = re.compile(r"[a-z]+")


def measure_patterns(folder: Path) -> Iterator[Figure]:
    measured = [_measure(pattern) for pattern in package_patterns()]
    measured.sort(key=lambda row: row[0], reverse=True)
    baseline = 1_000 * _best(lambda text: _PLAIN.sub("", text), "some words " * 90_909)
    for milliseconds, pattern, shape in measured[:_SHOWN]:
        yield Figure(
            f"{pattern.name}, {(shape.beginning + shape.repeated)[:40]!r} and so on",
            f"{milliseconds:.0f} ms",
            f"{_TARGET_MS} ms",
            f"removing all words of a megabyte: {baseline:.0f} ms",
            milliseconds <= _TARGET_MS,
        )


def _measure(pattern: PackagePattern) -> tuple[float, PackagePattern, Shape]:
    shapes = hostile_shapes(pattern.source, pattern.flags)
    worst = max(
        shapes, key=lambda shape: cpu_seconds(pattern.apply, shape.to_text(_SHORT))
    )
    return 1_000 * _best(pattern.apply, worst.to_text(_LENGTH)), pattern, worst


def _best(use: Callable[[str], object], text: str) -> float:
    return min(cpu_seconds(use, text) for _ in range(3))


MEASURES = {"patterns": measure_patterns}
