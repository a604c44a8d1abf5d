"""How fast a history is indexed and searched, and how soon new messages are found.

The histories are made up (``bench.search_corpus``) and built once for each size. With a
million messages that takes 3 GB of disk and 3.5 minutes of one core. Embedding a
million texts would take an hour, so the cache of vectors is filled with made-up ones
before the index asks for them: the vectors of a few hundred real texts of the history,
with noise added. Queries are embedded as usual.

No query is asked twice, because a memory caches the vectors of the last ones, and much
of what a query has read. Processor time is shown as well, because on a busy machine
only that can be compared.
"""

import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from backstory.index.build import IndexBuilder
from backstory.index.chunks import passages_of
from backstory.index.vectors import VectorBuilder
from backstory.memory import Memory
from backstory.providers.embedders import load_embedder, minilm
from backstory.providers.embedders.base import Embedder
from backstory.search.activity import find_activity
from backstory.search.scopes import SCOPES
from backstory.store.base.history import Batch, HistoryStore, KeptMessage
from backstory.store.base.index import SearchIndex
from backstory.store.sqlite.embeddings import SqliteEmbeddings
from backstory.store.sqlite.history import SqliteHistory
from backstory.store.sqlite.index import SqliteIndex
from backstory.store.sqlite.index_files import EMBEDDINGS_NAME, INDEX_NAME
from backstory.tools.base import Tool
from bench.history import open_memory
from bench.measuring import Figure, median_seconds, seconds
from bench.search_corpus import NOW, SearchCorpus
from bench.search_stages import watched

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from backstory.providers.embedders.minilm.inference import Model

SMALL, LARGE = 100_000, 1_000_000
# How far a made-up vector is from the real one: their cosine is about 0.7.
_NOISE = 1.0
_REAL_VECTORS = 400
_ROUNDS = 3
# How many sets of queries are timed, and how many are asked before to warm up.
_SETS = 4
_WARM_SETS = 1
_BATCH = 5_000
_ALONE_BATCH = 16
_BARE_QUERY = """
SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT 20
"""
_LIKE_SCAN = """
SELECT message_id FROM messages WHERE text LIKE ? ORDER BY message_id DESC LIMIT 20
"""
_MESSAGES = "SELECT message_id, text FROM messages ORDER BY message_id"


@dataclass(frozen=True)
class Query:
    kind: str
    text: str


@dataclass(frozen=True)
class Times:
    """How many milliseconds a search took: wall time and processor time."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Built:
    """A history that is indexed and embedded, and a bare FTS5 table of its texts."""

    kept: Path
    bare: Path
    messages: int


# -- building -------------------------------------------------------------------------


@cache
def _workshop() -> tempfile.TemporaryDirectory[str]:
    """Where everything is built; deleted when the process ends."""
    return tempfile.TemporaryDirectory(prefix="backstory-bench-search-")


@cache
def _corpus() -> SearchCorpus:
    return SearchCorpus()


@cache
def _embedder() -> Embedder:
    found = load_embedder("minilm")
    assert found is not None
    return found


@cache
def _history(messages: int) -> Path:
    """The folder of a history that has not been indexed yet."""
    kept = Path(_workshop().name) / f"{messages}"
    kept.mkdir()
    history = SqliteHistory(kept / "history.db")
    batches: dict[str, Batch] = {}
    for session in _corpus().iter_sessions(messages):
        batch = batches.setdefault(session.host, Batch(session.host))
        batch.facts.append(session.facts)
        batch.messages += [KeptMessage(message) for message in session.messages]
        if len(batch.messages) >= _BATCH:
            history.write(batches.pop(session.host), now=NOW, is_durable=False)
    for batch in batches.values():
        history.write(batch, now=NOW, is_durable=False)
    history.close()
    return kept


def small_home() -> Path:
    """A home with a small history, indexed and embedded."""
    return _built(SMALL).kept


@cache
def _built(messages: int) -> Built:
    kept = _history(messages)
    history = SqliteHistory(kept / "history.db")
    index = SqliteIndex(kept / INDEX_NAME, SqliteEmbeddings(kept / EMBEDDINGS_NAME))
    IndexBuilder(history, index, lambda: NOW).catch_up()
    make_vectors(index)
    make_passages(history, index)
    VectorBuilder(history, index, _embedder()).run()
    index.close()
    index.embeddings.close()
    history.close()
    bare = kept / "bare.db"
    _insert_bare(kept, bare)
    return Built(kept, bare, messages)


@cache
def _real_vectors() -> NDArray[np.float32]:
    return _embedder().embed_texts(_corpus().sample_texts(_REAL_VECTORS))


def make_vectors(index: SearchIndex) -> None:
    """Fill the cache with a vector for every unit that needs one, without the model."""
    real = _real_vectors()
    numbers = np.random.default_rng(20260220)
    done: set[int] = set()
    while waiting := index.list_to_embed(20_000, without=done):
        places = numbers.integers(len(real), size=len(waiting))
        noise = numbers.standard_normal((len(waiting), real.shape[1]), np.float32)
        made = real[places] + noise * np.float32(_NOISE / real.shape[1] ** 0.5)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        keys = [each.meaning_hash for each in waiting]
        index.embeddings.add(
            _embedder().fingerprint, dict(zip(keys, made, strict=True))
        )
        done |= {each.unit_id for each in waiting}


def make_passages(history: HistoryStore, index: SearchIndex) -> None:
    """Fill the cache for the passages of long messages, too."""
    real = _real_vectors()
    numbers = np.random.default_rng(20260221)
    done: set[int] = set()
    while waiting := index.list_passages_to_embed(5_000, without=done):
        messages = history.get_messages([each.unit_id for each in waiting])
        made = {
            each.meaning_hash: real[
                numbers.integers(
                    len(real), size=len(passages_of(messages[each.unit_id]))
                )
            ]
            for each in waiting
        }
        index.embeddings.add(_embedder().fingerprint, made)
        done |= messages.keys()


def _insert_bare(kept: Path, path: Path) -> None:
    """The texts of a history in a plain FTS5 table."""
    source = sqlite3.connect(kept / "history.db")
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (text, content = '')")
    rows = source.execute(_MESSAGES)
    while some := rows.fetchmany(10_000):
        db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", some)
        db.commit()
    db.close()
    source.close()


def build(messages: int) -> Built:
    """A home with that many messages, indexed and with vectors."""
    return _built(messages)


def open_built(built: Built, embedder: str = "minilm") -> Memory:
    return open_memory(
        built.kept / "home",
        built.kept,
        settings=[f"embedder.name={embedder}"],
        clock=lambda: NOW,
    )


def _search_tool(memory: Memory) -> Tool:
    return next(tool for tool in memory.tools() if tool.name == "search_history")


# -- queries --------------------------------------------------------------------------


@cache
def queries(number: int = 0) -> tuple[Query, ...]:
    """Queries of every kind that people and agents ask; each number gives new ones."""
    corpus = _corpus()
    chance = random.Random(3 + number)

    def rank(first: int, last: int) -> str:
        return corpus.words[chance.randrange(first, last)]

    made: list[Query] = []
    for topic in range(16 * number, 16 * (number + 1)):
        one, two = chance.sample(corpus.topic(topic), 2)
        three = rank(150, 2_000)
        made += [
            Query("question", f"what did we decide about the {one} {two} and {three}?")
        ]
    made += [Query("rare word", rank(40_000, 60_000)) for _ in range(8)]
    made += [Query("medium word", rank(1_500, 4_000)) for _ in range(8)]
    made += [Query("common word", rank(120, 260)) for _ in range(8)]
    made += [
        Query("identifier", corpus.identifiers[chance.randrange(0, 3_000)])
        for _ in range(8)
    ]
    made += [
        Query(
            "CJK", "".join(corpus.cjk_words[chance.randrange(5, 2_000)] for _ in "ab")
        )
        for _ in range(8)
    ]
    texts = [text for text in corpus.sample_texts(400) if text.count(" ") > 20]
    for text in chance.sample(texts, 8):
        start = chance.randrange(15)
        phrase = " ".join(text.split()[start : start + 3]).strip(".,")
        made += [Query("phrase", f'"{phrase}" {rank(300, 3_000)}')]
    for day in (
        "last week",
        "yesterday",
        "in January 2024",
        "on 3 March 2023",
        "last month",
        "in 2021",
        "two weeks ago",
        "on 2025-11-05",
    ):
        subject = f"{rank(150, 1_000)} {rank(1_000, 5_000)}"
        made += [Query("date", f"what did you say about {subject} {day}")]
    made += [
        Query("absent words", f"zyq{chance.randrange(10**6)}wv qqxz{place}")
        for place in range(6)
    ]
    return tuple(made)


# -- searching ------------------------------------------------------------------------


def measure_search(
    built: Built, p50_ms: float, p95_ms: float | None
) -> Iterator[Figure]:
    """search_history in a memory that has searched before, with new queries."""
    asked = new_queries(_SETS)
    times, shares = _search_times(built, asked)
    by_words, _ = _search_times(built, new_queries(1), embedder="none")
    bare = _bare_times(built, asked)
    like = statistics.median(_like_times(built, asked[::48]))

    wall, cpu = [each.wall for each in times], [each.cpu for each in times]
    p50, cpu_p50 = _percentile(wall, 50), _percentile(cpu, 50)
    bare_p50 = _percentile([each.wall for each in bare], 50)
    bare_cpu_p50 = _percentile([each.cpu for each in bare], 50)
    p95 = _percentile(wall, 95)
    name = f"search_history, {built.messages:,} messages, {len(asked)} new queries"
    by_kind = ", ".join(
        f"{kind} {_percentile(some, 50):.1f} / {_percentile(some, 95):.1f}"
        for kind, some in _by_kind(asked, wall)
    )
    yield Figure(
        f"{name}, p50",
        f"{p50:.1f} ms",
        f"<= {p50_ms:.0f} ms",
        f"bare FTS5 query: {bare_p50:.1f} ms ({p50 / bare_p50:.1f} x); LIKE scan: "
        f"{like:.0f} ms ({p50 / like:.3f} x); by words alone: "
        f"{_percentile([each.wall for each in by_words], 50):.1f} ms",
        p50 <= p50_ms,
    )
    yield Figure(
        f"{name}, p95",
        f"{p95:.1f} ms",
        "-" if p95_ms is None else f"<= {p95_ms:.0f} ms",
        f"p50 / p95 in ms: {by_kind}",
        p95_ms is None or p95 <= p95_ms,
    )
    yield Figure(
        f"{name}, processor time, p50 / p95",
        f"{cpu_p50:.1f} / {_percentile(cpu, 95):.1f} ms",
        "-",
        f"bare FTS5 query: {bare_cpu_p50:.1f} ms ({cpu_p50 / bare_cpu_p50:.1f} x); "
        f"of the mean: {shares}",
        is_met=True,
    )


def new_queries(sets: int) -> list[Query]:
    """Queries that differ from each other and from those of the first sets."""
    known = {query.text for number in range(_WARM_SETS) for query in queries(number)}
    new: dict[str, Query] = {}
    for number in range(_WARM_SETS, _WARM_SETS + sets):
        new |= {each.text: each for each in queries(number) if each.text not in known}
    return list(new.values())


def _search_times(
    built: Built, asked: Sequence[Query], embedder: str = "minilm"
) -> tuple[list[Times], str]:
    """How long each query takes, and the shares of the stages in all of them."""
    with open_built(built, embedder) as memory:
        tool = _search_tool(memory)
        for number in range(_WARM_SETS):
            for query in queries(number):
                tool.run(query=f"{query.text} before")
        times = [_time(partial(tool.run, query=query.text)) for query in asked]
        # In a separate round, because watching takes time as well.
        others = queries(_WARM_SETS + _SETS)
        with watched() as stages:
            took = sum(_time(partial(tool.run, query=each.text)).cpu for each in others)
    return times, stages.describe(took / 1000)


def _time(work: Callable[[], object]) -> Times:
    began = time.process_time()
    wall = seconds(work)
    return Times(1000 * wall, 1000 * (time.process_time() - began))


def _percentile(times: Sequence[float], percent: int) -> float:
    return float(np.percentile(times, percent))


def _by_kind(
    asked: Sequence[Query], times: Sequence[float]
) -> Iterable[tuple[str, list[float]]]:
    by_kind: dict[str, list[float]] = {}
    for query, took in zip(asked, times, strict=True):
        by_kind.setdefault(query.kind, []).append(took)
    return by_kind.items()


def _bare_times(built: Built, asked: Sequence[Query]) -> list[Times]:
    """The best twenty rows of a plain FTS5 table with any of the query's words."""
    db = sqlite3.connect(built.bare)
    times = []
    for query in asked:
        words = "".join(c if c.isalnum() else " " for c in query.text).split()
        match = " OR ".join(f'"{word}"' for word in words if len(word) > 4)
        find = partial(_run, db, _BARE_QUERY, match or f'"{words[0]}"')
        times.append(_time(find))
    db.close()
    return times


def _run(db: sqlite3.Connection, sql: str, value: str) -> None:
    db.execute(sql, (value,)).fetchall()


def _like_times(built: Built, asked: Sequence[Query]) -> list[float]:
    db = sqlite3.connect(built.kept / "history.db")
    times = []
    for query in asked:
        times.append(1000 * seconds(partial(_run, db, _LIKE_SCAN, f"%{query.text}%")))
    db.close()
    return times


def measure_search_small(folder: Path) -> Iterator[Figure]:
    return measure_search(_built(SMALL), 10, 30)


def measure_search_large(folder: Path) -> Iterator[Figure]:
    return measure_search(_built(LARGE), 25, None)


# -- any part of a text ---------------------------------------------------------------


def measure_substring(folder: Path) -> Iterator[Figure]:
    """Messages that contain the query verbatim; baseline: a LIKE scan."""
    built = _built(SMALL)
    texts = [text for text in _corpus().sample_texts(2_000) if len(text) > 80]
    parts = [text[20 : 20 + size] for size in (5, 9, 18, 40) for text in texts[::200]]
    parts += ["zqzqzq", "qz", *(query.text for query in queries()[40:56])]
    with open_built(built) as memory:
        memory.episodes("warm")
        times = [
            1000 * median_seconds(partial(memory.episodes, part), _ROUNDS)
            for part in parts
        ]
    asked = [Query("part", part) for part in parts]
    like = statistics.median(_like_times(built, asked[::4]))
    took = statistics.median(times)

    yield Figure(
        f"substring, {SMALL:,} messages, {len(parts)} parts, p50",
        f"{took:.1f} ms",
        "<= 10 ms",
        f"LIKE scan: {like:.0f} ms ({took / like:.2f} x); p95 "
        f"{_percentile(times, 95):.1f} ms, slowest {max(times):.1f} ms",
        took <= 10,
    )


# -- what was worked on ---------------------------------------------------------------


def measure_activity(folder: Path) -> Iterator[Figure]:
    """An overview of some days; baseline: the search without it."""
    built = _built(SMALL)
    asked = ["yesterday", "last week", "in January 2024", "last month", "in 2021"]
    with open_built(built) as memory:
        parts = memory._parts
        requests = [
            parts.search.make_plain_request(parts.search.parse(text), SCOPES["all"])
            for text in asked
        ]
        index = parts.index_files.index
        find_activity(requests[-1], parts.history, index, now=NOW)
        times = [
            1000 * seconds(partial(find_activity, each, parts.history, index, now=NOW))
            for each in requests * 10
        ]
    slowest = _percentile(times, 95)

    yield Figure(
        f"overview of days, {SMALL:,} messages, p95",
        f"{slowest:.1f} ms",
        "<= 20 ms",
        f"p50 {statistics.median(times):.1f} ms, of {', '.join(asked)}",
        slowest <= 20,
    )


# -- what is new ----------------------------------------------------------------------


def measure_fresh(folder: Path) -> Iterator[Figure]:
    """The time from recording a message until a search by words has found it."""
    built = _built(SMALL)
    texts = _corpus().sample_texts(60)[20:]
    times, recorded = [], []
    with open_built(built) as memory:
        memory.search("warm")
        for number, text in enumerate(texts):
            word = f"newword{number}x{time.monotonic_ns()}"
            started = time.perf_counter()
            kept = memory.record("fresh", "user", f"{text} {word}", sent_at=NOW)
            recorded.append(1000 * (time.perf_counter() - started))
            hits = memory.search(word).hits
            times.append(1000 * (time.perf_counter() - started))
            assert kept in [hit.message_id for hit in hits], "it was not found"
    took = statistics.median(times)

    yield Figure(
        f"a new message found by word, {SMALL:,} messages",
        f"{took:.1f} ms",
        "<= 100 ms",
        f"recording alone: {statistics.median(recorded):.1f} ms; slowest of "
        f"{len(times)}: {max(times):.1f} ms",
        took <= 100,
    )


# -- indexing -------------------------------------------------------------------------


def measure_index_text(folder: Path) -> Iterator[Figure]:
    """Indexing a history that was just imported; baseline: a plain FTS5 table."""
    kept = _history(SMALL)
    history = SqliteHistory(kept / "history.db")
    times, bare_times = [], []
    for number in range(_ROUNDS):
        place = folder / str(number)
        place.mkdir()
        cached = SqliteEmbeddings(place / EMBEDDINGS_NAME)
        index = SqliteIndex(place / INDEX_NAME, cached)
        builder = IndexBuilder(history, index, lambda: NOW)
        times.append(seconds(builder.catch_up))
        index.close()
        cached.close()
        bare = place / "bare.db"
        bare_times.append(seconds(lambda bare=bare: _insert_bare(kept, bare)))  # type: ignore[misc]
    history.close()

    speed = SMALL / statistics.median(times)
    bare_speed = SMALL / statistics.median(bare_times)
    yield Figure(
        f"indexing text, {SMALL:,} messages",
        f"{speed:,.0f} messages/s",
        ">= 15,000 messages/s",
        f"bare FTS5 insert of the same texts: {bare_speed:,.0f} messages/s "
        f"({speed / bare_speed:.0%} of it); best of {_ROUNDS}: "
        f"{SMALL / min(times):,.0f} messages/s",
        speed >= 15_000,
    )


def measure_embed(folder: Path) -> Iterator[Figure]:
    """Texts per second; baseline: onnxruntime alone on the same tokens."""
    # Imported here because it would count in the memory of a process that only
    # searches.
    from backstory.providers.embedders.minilm.inference import Model, open_session

    place = Path(minilm.__file__).parent
    model, alone = Model(place), open_session(place, threads=2)
    # The last is what onnxruntime alone reached with two threads, in texts/s.
    for tokens, count, known in ((65, 512, 303.0), (256, 128, 56.5)):
        texts = _texts_of(model, tokens, count)
        ids = np.stack([model.tokenize(text) for text in texts])
        work = partial(model.embed, texts), partial(_run_alone, alone, ids)
        for each in work:
            each()
        # In turn, so that other load on the machine slows down both alike.
        took = [[seconds(each) for each in work] for _ in range(_ROUNDS)]
        speed, bare = (
            count / statistics.median(times) for times in zip(*took, strict=True)
        )
        yield Figure(
            f"embedding, texts of {tokens} tokens",
            f"{speed:.0f} texts/s",
            f">= {0.8 * known:.0f} texts/s, or 80 % of onnxruntime alone in this run",
            f"onnxruntime alone on the same tokens: {bare:.0f} texts/s "
            f"({speed / bare:.0%} of it)",
            speed >= 0.8 * min(known, bare),
        )


def _texts_of(model: "Model", tokens: int, count: int) -> list[str]:
    """Texts of ``tokens`` tokens each, including the two that every text gets."""
    chance = random.Random(tokens)
    texts: list[str] = []
    while len(texts) < count:
        text = " ".join(chance.choices(_corpus().words[:250], k=tokens - 2))
        if len(model.tokenize(text)) == tokens:
            texts.append(text)
    return texts


def _run_alone(session: "InferenceSession", ids: NDArray[np.int32]) -> None:
    lengths = np.full(_ALONE_BATCH, ids.shape[1], np.int32)
    for start in range(0, len(ids), _ALONE_BATCH):
        part = ids[start : start + _ALONE_BATCH]
        session.run(["vectors"], {"ids": part, "lengths": lengths[: len(part)]})


# -- memory ---------------------------------------------------------------------------


def measure_search_memory(folder: Path) -> Iterator[Figure]:
    """The memory of a process that has searched; baseline: before the first search."""
    return _measure_memory(_built(SMALL), 300)


def measure_search_memory_large(folder: Path) -> Iterator[Figure]:
    # Half of it is the file of texts, which is mapped.
    return _measure_memory(_built(LARGE), 800)


def _measure_memory(built: Built, most_mb: int) -> Iterator[Figure]:
    now, peak = _searching_megabytes(built, [query.text for query in queries()][:50])
    start, _ = _searching_megabytes(built, [])
    yield Figure(
        f"memory of a searching process, {built.messages:,} messages, 50 searches",
        f"{now:.0f} MB",
        f"<= {most_mb:,} MB",
        f"at its peak: {peak:.0f} MB; before the first search: {start:.0f} MB",
        now <= most_mb,
    )


def _searching_megabytes(built: Built, texts: Sequence[str]) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.search", str(built.kept), *texts],
        env={**os.environ, "HOME": str(built.kept / "home")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    now, peak = done.stdout.split()
    return float(now), float(peak)


def _search_and_tell(kept: Path, texts: Sequence[str]) -> None:
    """Search, then print the current and the peak memory of this process, in MB."""
    with open_built(Built(kept, kept, 0)) as memory:
        tool = _search_tool(memory)
        for text in texts:
            tool.run(query=text)
        status = Path("/proc/self/status").read_text()
        for name in ("VmRSS", "VmHWM"):
            found = re.search(rf"{name}:\s+(\d+) kB", status)
            assert found is not None
            print(int(found.group(1)) * 1024 / 1_000_000)


MEASURES: dict[str, Callable[[Path], Iterator[Figure]]] = {
    "index-text": measure_index_text,
    "activity": measure_activity,
    "fresh": measure_fresh,
    "search-100k": measure_search_small,
    "substring": measure_substring,
    "embed": measure_embed,
    "search-memory": measure_search_memory,
    "search-1m": measure_search_large,
    "search-1m-memory": measure_search_memory_large,
}


if __name__ == "__main__":
    _search_and_tell(Path(sys.argv[1]), sys.argv[2:])
