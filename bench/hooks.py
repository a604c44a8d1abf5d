"""How long an agent waits for a hook: alone, and with a server that answers it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from backstory.hooks.server import HookServer
from backstory.memory import Memory
from bench.history import open_memory
from bench.measuring import (
    Figure,
    Took,
    measure,
    medians,
    run_nothing,
    with_bytecode,
)
from bench.search import build
from bench.search_corpus import NOW

_MESSAGES = 100_000
_TIMES = 30
_WORDS = slice(2, 14)
_EVERYDAY = "please run the tests and commit this to the branch"


def _prompts(memory: Memory) -> list[tuple[str, str]]:
    """Prompts in the words of earlier messages, and the folders they are from."""
    found = []
    for session in memory.sessions():
        said = next(memory.messages(session), None)
        if session.project and said and said.text.isascii():
            words = said.text.split()[_WORDS]
            if len(words) == _WORDS.stop - _WORDS.start:
                found.append((" ".join(words), session.project))
    return found[:: max(1, len(found) // _TIMES)][:_TIMES]


def measure_hooks(folder: Path) -> Iterator[Figure]:
    home = build(_MESSAGES).kept
    run = folder / "run"
    run.mkdir(mode=0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(run)
    settings = ["embedder.name=minilm"]
    with open_memory(folder, home, settings=settings, clock=lambda: NOW) as memory:
        memory.search("anything")
        prompts = _prompts(memory)
        everyday = [(_EVERYDAY, project) for _, project in prompts]
        nothing = [measure(run_nothing) for _ in range(_TIMES)]
        yield _figure("a prompt with memories", _time(home, prompts), nothing, 0.06)
        yield _figure("an everyday prompt", _time(home, everyday), nothing, 0.06)
        with HookServer(memory) as server:
            server.warm_up()
            times = _time(home, prompts)
        yield _figure(
            "a prompt with memories, asked a server", times, nothing, 0.045, 9
        )


def _time(home: Path, prompts: list[tuple[str, str]]) -> list[Took]:
    program = str(Path(sys.executable).with_name("backstory-hook"))
    command = [program, "prompt", "--host", "claude-code", "--home", str(home)]
    environ = with_bytecode()
    times = []
    # The first prompt is not counted, because it may compile the modules.
    for number, (prompt, project) in enumerate([prompts[0], *prompts]):
        name = f"{os.urandom(4).hex()}-{number}"
        payload = {"session_id": name, "cwd": project, "prompt": prompt}
        passed = json.dumps(payload).encode()
        times.append(
            measure(
                lambda passed=passed: subprocess.run(  # type: ignore[misc]
                    command, input=passed, capture_output=True, check=True, env=environ
                )
            )
        )
    return times[1:]


def _figure(
    name: str,
    times: list[Took],
    nothing: list[Took],
    most_s: float,
    most_times: float = 4,
) -> Figure:
    (wall, cpu), (wall_of_nothing, cpu_of_nothing) = map(medians, (times, nothing))
    ratio = min(wall / wall_of_nothing, cpu / cpu_of_nothing)
    return Figure(
        f"hook, whole process, {_MESSAGES:,} messages: {name}",
        f"{wall * 1000:.0f} ms, {wall / wall_of_nothing:.1f} times the baseline; "
        f"worked {cpu * 1000:.0f} ms, {cpu / cpu_of_nothing:.1f} times",
        f"{most_s * 1000:.0f} ms and {most_times} times the baseline",
        f"a Python that does nothing: {wall_of_nothing * 1000:.0f} ms; "
        f"worked {cpu_of_nothing * 1000:.0f} ms",
        # The smaller of the two, because on a busy machine it waits for the processor.
        min(wall, cpu) <= most_s and ratio <= most_times,
    )


MEASURES = {"hooks": measure_hooks}
