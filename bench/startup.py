"""How long a command takes from a cold start, and what an installation costs."""

import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

from bench.measuring import (
    Figure,
    Took,
    measure,
    medians,
    run_nothing,
    with_bytecode,
)
from bench.search import build

_MESSAGES = 100_000
_TIMES = 20
# Words that many messages have, so that there is something to rank and to show.
_SEARCH = ["search", "deploy report update"]
_QUESTION = ["search", "what did we decide about the deploy report and update?"]
_WITHOUT_VECTORS = ["--set", "embedder.name=none"]
# Each command, and how many milliseconds it may take.
_COMMANDS: list[tuple[str, list[str], int]] = [
    ("--version", ["--version"], 60),
    ("search with vectors", _SEARCH, 250),
    ("search without vectors", [*_WITHOUT_VECTORS, *_SEARCH], 120),
    ("question without vectors", [*_WITHOUT_VECTORS, *_QUESTION], 120),
    ("status", ["status"], 120),
]
_PROJECT = Path(__file__).parent.parent
_MOST_MB = 330


def measure_startup(folder: Path) -> Iterator[Figure]:
    home = build(_MESSAGES).kept
    nothing: list[Took] = []
    times: dict[str, list[Took]] = {name: [] for name, _, _ in _COMMANDS}
    # In turns, so that a busy moment of the machine does not affect just one command.
    # The first round may compile modules, and is not counted.
    for number in range(_TIMES + 1):
        baseline = measure(run_nothing)
        took = {name: _time(words, home, folder) for name, words, _ in _COMMANDS}
        if number:
            nothing.append(baseline)
            for name, each in took.items():
                times[name].append(each)
    wall_of_nothing, cpu_of_nothing = medians(nothing)
    for name, _, most_ms in _COMMANDS:
        wall, cpu = medians(times[name])
        yield Figure(
            f"command from cold, whole process, {_MESSAGES:,} messages: {name}",
            f"{wall * 1000:.0f} ms, {wall / wall_of_nothing:.1f} times the baseline; "
            f"worked {cpu * 1000:.0f} ms",
            f"{most_ms} ms",
            f"a Python that does nothing: {wall_of_nothing * 1000:.0f} ms; "
            f"worked {cpu_of_nothing * 1000:.0f} ms",
            wall * 1000 <= most_ms,
        )


def _time(words: list[str], home: Path, user_home: Path) -> Took:
    program = str(Path(sys.executable).with_name("backstory"))
    environ = {
        **with_bytecode(),
        "HOME": str(user_home),
        "BACKSTORY_HOME": str(home),
        # A worker in the background would take time from the next command.
        "BACKSTORY_EMBEDDER_IN_BACKGROUND": "false",
    }
    return measure(
        lambda: subprocess.run(
            [program, *words], env=environ, capture_output=True, check=True
        )
    )


def measure_install(folder: Path) -> Iterator[Figure]:
    """Install the project into an environment of its own, as a user would."""
    made = folder / "installed"
    venv.create(made, with_pip=True)
    before_mb, before = _size_mb(made), _packages(made)
    pip = [str(made / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, str(_PROJECT)], check=True)
    size_mb = _size_mb(made) - before_mb
    yield Figure(
        "installed environment",
        f"{size_mb:.0f} MB, {_packages(made) - before} packages",
        f"{_MOST_MB} MB",
        f"an empty environment with pip: {before_mb:.0f} MB",
        size_mb <= _MOST_MB,
    )


def _size_mb(folder: Path) -> float:
    files = (path for path in folder.rglob("*") if path.is_file())
    return sum(path.lstat().st_size for path in files) / 1_000_000


def _packages(environment: Path) -> int:
    return len(list(environment.glob("lib/*/site-packages/*.dist-info")))


MEASURES = {"startup": measure_startup, "install": measure_install}
