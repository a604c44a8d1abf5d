"""How long it takes to find the memories for a prompt, warm and from a cold start."""

import random
import sqlite3
import statistics
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from functools import partial
from pathlib import Path

from backstory.memory import Memory
from bench.history import open_memory
from bench.measuring import Figure, median_seconds, seconds
from bench.search_corpus import SearchCorpus

_LOGS = 1_000
_ITEMS = 8
_TOPICS, _FACTS = 10, 18
_TIMES = 15
_FIRST_DAY = date(2023, 6, 1)
_PROMPTS = 40

# Run in a separate process; prints how many seconds it took after the imports.
_COLD = """
import sys, time
from backstory.memory import Memory
began = time.perf_counter()
memory = Memory.open(sys.argv[1], settings=("embedder.name=none",))
text = memory.context(sys.argv[2]).text
print(time.perf_counter() - began)
assert text
"""
_BARE = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT 20"


def _sentences() -> Iterator[str]:
    """An endless supply of sentences."""
    rng = random.Random(7)
    for session in SearchCorpus().iter_sessions(200_000):
        for message in session.messages:
            words = message.text.split()
            if len(words) > 12:
                start = rng.randrange(len(words) - 12)
                yield " ".join(words[start : start + 12]).strip("#*->`")


def _fill(home: Path) -> list[str]:
    """Write the notes; returns prompts about some of them."""
    said = _sentences()
    notes = home / "memory"
    (notes / "daily").mkdir(parents=True)
    topics = [
        f"## Topic {topic}\n" + "".join(f"- {next(said)}\n" for _ in range(_FACTS))
        for topic in range(_TOPICS)
    ]
    text = "# Long-term Memory\n\n" + "\n".join(topics)
    (notes / "MEMORY.md").write_text(text, encoding="utf-8")
    about = []
    for number in range(_LOGS):
        day = _FIRST_DAY + timedelta(days=number)
        items = [next(said) for _ in range(_ITEMS)]
        about.append(f"what was it about {' '.join(items[3].split()[2:8])}?")
        block = f"## Session {number}\n\n### Topics\n" + "".join(
            f"- {item}\n" for item in items
        )
        path = notes / "daily" / f"{day}.md"
        path.write_text(f"# Daily Log - {day}\n\n{block}", encoding="utf-8")
    return about[:: _LOGS // _PROMPTS]


def measure_context(folder: Path) -> Iterator[Figure]:
    home = folder / "kept"
    prompts = _fill(home)
    with open_memory(folder, home, settings=("embedder.name=minilm",)) as memory:
        memory.search("anything")
        memory.embed()
        bare = _bare_seconds(folder, memory, prompts)
        yield _warm(memory, prompts, bare)
    yield from _cold(home, prompts[0], bare)


def _warm(memory: Memory, prompts: list[str], bare: float) -> Figure:
    memory.context(prompts[0])
    times = [seconds(partial(memory.context, prompt)) for prompt in prompts]
    found = sum(bool(memory.context(prompt).memories) for prompt in prompts)
    median = statistics.median(times)
    return Figure(
        f"context over {_LOGS:,} daily logs, warm, with vectors",
        f"{median * 1000:.1f} ms, slowest {max(times) * 1000:.1f} ms; "
        f"{found} of {len(prompts)} prompts got memories",
        "100 ms",
        f"a bare FTS5 query over the same texts: {bare * 1000:.2f} ms",
        median <= 0.1,
    )


def _cold(home: Path, prompt: str, bare: float) -> Iterator[Figure]:
    command = [sys.executable, "-c", _COLD, str(home), prompt]
    inside: list[float] = []

    def run() -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        inside.append(float(done.stdout))

    whole = median_seconds(run, _TIMES)
    empty = [sys.executable, "-c", "pass"]
    nothing = median_seconds(lambda: subprocess.run(empty, check=True), _TIMES)
    first = statistics.median(inside)
    yield Figure(
        "the first context of a new process, without vectors, from opening the memory",
        f"{first * 1000:.1f} ms",
        "60 ms",
        f"a bare FTS5 query over the same texts: {bare * 1000:.2f} ms",
        first <= 0.06,
    )
    yield Figure(
        "the same, including Python's start and all imports",
        f"{whole * 1000:.0f} ms",
        "-",
        f"a Python that does nothing: {nothing * 1000:.0f} ms",
        True,
    )


def _bare_seconds(folder: Path, memory: Memory, prompts: list[str]) -> float:
    db = sqlite3.connect(folder / "bare.db")
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")
    for file in memory.notebook.folder.rglob("*.md"):
        lines = file.read_text(encoding="utf-8").splitlines()
        rows = [(line[2:],) for line in lines if line.startswith("- ")]
        db.executemany("INSERT INTO words (text) VALUES (?)", rows)
    quoted = [
        " OR ".join(f'"{word}"' for word in prompt.replace('"', "").split())
        for prompt in prompts
    ]

    def find(asked: str) -> None:
        db.execute(_BARE, (asked,)).fetchall()

    times = [seconds(partial(find, asked)) for asked in quoted]
    db.close()
    return statistics.median(times)


MEASURES = {"context": measure_context}
