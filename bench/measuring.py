"""Time and memory of a piece of work, in this process or in a separate one."""

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One line of the report: what was measured, the target, and the baseline."""

    name: str
    value: str
    target: str
    baseline: str
    is_met: bool


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median_seconds(work: Callable[[], object], times: int) -> float:
    return statistics.median(seconds(work) for _ in range(times))


# How long something took, and how much processor time, in this process and in those
# that it started.
Took = tuple[float, float]


def measure(work: Callable[[], object]) -> Took:
    before = _worked()
    return seconds(work), _worked() - before


def _worked() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime + time.process_time()


def medians(times: list[Took]) -> Took:
    wall, cpu = zip(*times, strict=True)
    return statistics.median(wall), statistics.median(cpu)


def run_nothing() -> None:
    """Run a Python that does nothing: the baseline of all processes."""
    subprocess.run([sys.executable, "-c", "pass"], check=True)


def with_bytecode() -> dict[str, str]:
    """The environment, in which imported modules are compiled once and cached."""
    environ = dict(os.environ)
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return environ


def peak_megabytes(words: list[str], home: Path, kept: Path) -> float:
    """The peak memory of a Backstory command."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.peak", *words],
        env={**os.environ, "HOME": str(home), "BACKSTORY_HOME": str(kept)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stderr.splitlines()[-1])
