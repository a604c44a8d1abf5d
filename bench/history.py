"""Reading sources into the history: how fast, and with how much memory."""

import os
import sqlite3
import statistics
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import orjson

from backstory.memory import Memory
from backstory.settings import read_settings
from backstory.system.machine import Machine
from bench.corpus import Corpus
from bench.measuring import Figure, median_seconds, peak_megabytes, seconds

MEGABYTE = 1_000_000


def open_memory(
    home: Path,
    kept: Path,
    *,
    settings: Sequence[str] = (),
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Memory:
    chosen = read_settings(
        user_file=home / "no-config.toml",
        environ={},
        flags=settings,
    )
    return Memory(kept, chosen, Machine("linux", home, {}), clock=clock)


def measure_import(folder: Path) -> Iterator[Figure]:
    """Messages per second from Claude Code's files; baseline: parsing and inserting."""
    home = folder / "home"
    files = Corpus(home).write(files=100, messages=1_000)
    count = 100_000

    with open_memory(home, folder / "kept") as memory:
        took = seconds(memory.index)
    bare_took = seconds(lambda: _parse_and_insert(files, folder / "bare.db"))

    speed, bare = count / took, count / bare_took
    yield Figure(
        "import, Claude Code JSONL",
        f"{speed:,.0f} messages/s",
        ">= 20,000 messages/s",
        f"orjson.loads + bare SQLite insert: {bare:,.0f} messages/s "
        f"({speed / bare:.0%} of it)",
        speed >= 20_000,
    )


def _parse_and_insert(files: list[Path], path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE messages (id TEXT PRIMARY KEY, text TEXT)")
    for file in files:
        rows = [
            (record["uuid"], str(record["message"]["content"]))
            for record in map(orjson.loads, file.read_bytes().splitlines())
        ]
        db.executemany("INSERT INTO messages VALUES (?, ?)", rows)
        db.commit()
    db.close()


def measure_rerun(folder: Path) -> Iterator[Figure]:
    """A second run over many unchanged files; baseline: one stat of each."""
    home = folder / "home"
    files = Corpus(home).write(files=10_000, messages=2)
    with open_memory(home, folder / "kept") as memory:
        memory.index()
        took = median_seconds(memory.index, 5)
    looking = median_seconds(lambda: [os.stat(file) for file in files], 5)  # noqa: PTH116

    yield Figure(
        "second run, 10,000 unchanged files",
        f"{took:.2f} s",
        "<= 1 s",
        f"os.stat of each: {looking:.2f} s ({took / looking:.1f} x)",
        took <= 1,
    )


def measure_append(folder: Path) -> Iterator[Figure]:
    """One new line in a large file; baseline: reading the whole file."""
    home = folder / "home"
    corpus = Corpus(home)
    (file,) = corpus.write(files=1, messages=100_000)
    with open_memory(home, folder / "kept") as memory:
        whole = seconds(memory.index)
        times = []
        for _ in range(20):
            with file.open("ab") as stream:
                stream.writelines(corpus.lines(file.stem, 1))
            times.append(seconds(memory.index))
    took = statistics.median(times)

    yield Figure(
        f"one line appended to {file.stat().st_size / MEGABYTE:.0f} MB",
        f"{took * 1000:.1f} ms",
        "-",
        f"reading all of it: {whole * 1000:,.0f} ms ({whole / took:,.0f} x)",
        True,
    )


def measure_record(folder: Path) -> Iterator[Figure]:
    """One durable message; baseline: one durable write of four kilobytes."""
    with open_memory(folder / "home", folder / "kept") as memory:
        took = median_seconds(lambda: memory.record("s", "user", "x" * 1_000), 300)
    with (folder / "bare").open("wb") as file:

        def write() -> None:
            file.write(b"x" * 4_096)
            file.flush()
            os.fsync(file.fileno())

        bare = median_seconds(write, 300)

    yield Figure(
        "record one message, durable",
        f"{took * 1000:.2f} ms",
        "-",
        f"write + fsync: {bare * 1000:.2f} ms ({took / bare:.1f} x)",
        True,
    )


def measure_memory(folder: Path) -> Iterator[Figure]:
    """Peak memory while reading; baseline: a process that reads nothing."""
    home, kept = folder / "home", folder / "kept"
    corpus = Corpus(home)
    index = ["index"]
    start = peak_megabytes(["status"], home, kept)

    (file,) = corpus.write(files=1, messages=1)
    block = b"".join(corpus.lines(file.stem, 20_000))
    with file.open("wb") as stream:
        for number in range(30):
            # Each block gets its own ids, so that every message is new.
            stream.write(block.replace(b'"uuid":"', b'"uuid":"%02d-' % number))
    yield _memory_figure(f"a file of {_size(file)}", index, home, kept, start)
    file.unlink()

    long_line = corpus.folder / "long-line.jsonl"
    with long_line.open("wb") as stream:
        line = corpus.lines("long-line", 4)[3]
        stream.write(
            line.replace(b'"content":"', b'"content":"' + b"x" * 50 * MEGABYTE)
        )
        stream.writelines(corpus.lines("long-line", 100))
    yield _memory_figure("a line of 50 MB", index, home, kept, start)
    long_line.unlink()

    export = folder / "conversations.json"
    _write_export(export, corpus)
    words = [*index, "--path", str(export)]
    yield _memory_figure(
        f"a ChatGPT export of {_size(export)}", words, home, kept, start
    )


def _memory_figure(
    what: str, words: list[str], home: Path, kept: Path, start: float
) -> Figure:
    peak = peak_megabytes(words, home, kept)
    return Figure(
        f"memory, {what}",
        f"{peak:.0f} MB",
        "<= 200 MB",
        f"a process that reads nothing: {start:.0f} MB",
        peak <= 200,
    )


def _size(file: Path) -> str:
    return f"{file.stat().st_size / MEGABYTE:.0f} MB"


def _write_export(path: Path, corpus: Corpus) -> None:
    """Write a ChatGPT export of about 200 MB, one conversation at a time."""
    with path.open("wb") as stream:
        stream.write(b"[")
        for number in range(2_000):
            nodes: dict[str, object] = {}
            parent: str | None = None
            for turn in range(100):
                name = f"{number}-{turn}"
                nodes[name] = {
                    "id": name,
                    "parent": parent,
                    "children": [f"{number}-{turn + 1}"] if turn < 99 else [],
                    "message": {
                        "id": name,
                        "author": {"role": "assistant" if turn % 2 else "user"},
                        "create_time": 1_770_000_000 + number * 1_000 + turn,
                        "content": {
                            "content_type": "text",
                            "parts": [corpus.text(120)],
                        },
                    },
                }
                parent = name
            conversation = {
                "title": f"Conversation {number}",
                "create_time": 1_770_000_000 + number * 1_000,
                "update_time": 1_770_000_000 + number * 1_000 + 99,
                "conversation_id": f"conversation-{number}",
                "current_node": parent,
                "mapping": nodes,
            }
            stream.write((b"," if number else b"") + orjson.dumps(conversation))
        stream.write(b"]")


def measure_look(folder: Path) -> Iterator[Figure]:
    """Searches of a history with nothing new; baseline: without looking for it."""
    home = folder / "home"
    Corpus(home).write(files=1_000, messages=2)
    words = ["loan", "export", "database", "reminder", "index"]
    first = []
    settings = ["embedder.name=none"]
    with open_memory(home, folder / "kept", settings=settings) as memory:
        memory.index()
    never = [*settings, "search.read_changed=false"]
    for _ in range(5):
        with open_memory(home, folder / "kept", settings=settings) as memory:
            first.append(seconds(memory._parts.read_changed))
    on, off = [], []
    with (
        open_memory(home, folder / "kept", settings=settings) as looking,
        open_memory(home, folder / "kept", settings=never) as other,
    ):
        # In turns, so that other load on the machine slows down both.
        for word in ["warm", *words * 40]:
            on.append(seconds(partial(looking.search, word)))
            off.append(seconds(partial(other.search, word)))
    del on[0], off[0]

    ratio = statistics.fmean(on) / statistics.fmean(off)
    yield Figure(
        "searches with 1,000 files that may have changed",
        f"{1000 * statistics.fmean(on):.1f} ms ({ratio:.2f} x)",
        "<= 1.1 x",
        f"without looking: {1000 * statistics.fmean(off):.1f} ms; looking at all "
        f"files, once per process or seldom: {1000 * statistics.median(first):.1f} ms",
        ratio <= 1.1,
    )


MEASURES: dict[str, Callable[[Path], Iterator[Figure]]] = {
    "import": measure_import,
    "rerun": measure_rerun,
    "append": measure_append,
    "look": measure_look,
    "record": measure_record,
    "memory": measure_memory,
}
