"""What it takes to keep the history of a run, to search it and to fit it to a window.

The run is made up (``bench.run_corpus``) and written to a file, which separate
processes read item by item, so that only what is measured holds the texts in memory.
"""

import copy
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import orjson

from backstory.runs.history import RunHistory
from backstory.text.tokens import most_tokens
from backstory.tools.base import Tool
from backstory.values.history import Role
from bench.measuring import Figure, median_seconds, seconds
from bench.run_corpus import Item, Query, RunCorpus

_ITEMS, _SIZE_BYTES = 10_000, 20_000_000
_QUERIES_A_KIND = 30
# How many of the first and of the last items are compared.
_END = 1_000
_PAGED_BYTES = 5_000_000
_PAGES = 50
_FIT_MESSAGES, _FIT_BYTES, _FIT_TOKENS = 2_000, 4_000_000, 100_000
_SHORT_CHARS = 40
_GROWN = 200
_ROUNDS = 5

# Any: the JSON that a child process prints for its parent.
Told = dict[str, Any]


def measure_run(folder: Path) -> Iterator[Figure]:
    corpus = RunCorpus()
    items = corpus.make_items(_ITEMS, _SIZE_BYTES)
    queries = corpus.make_queries(items, _QUERIES_A_KIND)
    write_items(folder / "items.jsonl", items)
    lines = [orjson.dumps(asdict(query)) for query in queries]
    (folder / "queries.jsonl").write_bytes(b"\n".join(lines))
    kept, listed, filed = (_tell(name, folder) for name in _CHILDREN)

    yield from _append_figures(kept, listed, filed)
    yield _memory_figure(kept, listed, filed)
    yield from _search_figures(queries, kept, listed)
    yield from _measure_pages(items)
    yield from _measure_fit(items)
    yield from _measure_observe(items)


def write_items(path: Path, items: Sequence[Item]) -> None:
    path.write_bytes(b"\n".join(orjson.dumps(asdict(item)) for item in items))


# -- in a separate process ------------------------------------------------------------


def _tell(name: str, folder: Path) -> Told:
    command = [sys.executable, "-m", "bench.run", name, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    told: Told = orjson.loads(done.stdout)
    return told


def _keep(folder: Path) -> Told:
    """Record all items, then search for all queries, in the run and with its tool."""
    before = _held_bytes()
    run = RunHistory()
    times = [
        seconds(
            partial(
                run.record,
                item.role,
                item.text,
                tool_name=item.tool_name,
                call_id=item.call_id,
            )
        )
        for item in _iter_items(folder)
    ]
    held = _held_bytes() - before
    assert len(run) == len(times)
    tool = _tool_of(run, "search_conversation_history")
    queries = list(_iter_queries(folder))
    run.search("warm")
    searched = [seconds(partial(run.search, query)) for query in queries]
    asked = [seconds(partial(tool.run, query=query)) for query in queries]
    return {
        "times": times,
        "held": held,
        "held_after": _held_bytes() - before,
        "text": run.size_bytes,
        "searched": searched,
        "asked": asked,
    }


def _list(folder: Path) -> Told:
    """The texts in a plain list, scanned one by one."""
    before = _held_bytes()
    texts: list[str] = []
    times = [seconds(partial(texts.append, item.text)) for item in _iter_items(folder)]
    held = _held_bytes() - before
    lowered = [text.lower() for text in texts]
    searched = [
        seconds(partial(_scan, lowered, query.lower()))
        for query in _iter_queries(folder)
    ]
    return {"times": times, "held": held, "searched": searched}


def _scan(texts: Sequence[str], query: str) -> list[int]:
    return [number for number, text in enumerate(texts) if query in text]


def _file(folder: Path) -> Told:
    """The texts in a bare FTS5 table in memory."""
    before = _held_bytes()
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")

    def insert(text: str) -> None:
        db.execute("INSERT INTO words (text) VALUES (?)", (text,))

    times = [seconds(partial(insert, item.text)) for item in _iter_items(folder)]
    return {"times": times, "held": _held_bytes() - before}


def _iter_items(folder: Path) -> Iterator[Item]:
    with (folder / "items.jsonl").open("rb") as lines:
        for line in lines:
            read = orjson.loads(line)
            role = Role(read["role"])
            yield Item(role, read["text"], read["tool_name"], read["call_id"])


def _iter_queries(folder: Path) -> Iterator[str]:
    for line in (folder / "queries.jsonl").read_bytes().splitlines():
        yield orjson.loads(line)["text"]


def _held_bytes() -> int:
    """How much memory this process uses now."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found.group(1)) * 1024


def _tool_of(run: RunHistory, name: str) -> Tool:
    return next(tool for tool in run.tools() if tool.name == name)


_CHILDREN: dict[str, Callable[[Path], Told]] = {
    "keep": _keep,
    "list": _list,
    "file": _file,
}


# -- appending and memory -------------------------------------------------------------


def _append_figures(kept: Told, listed: Told, filed: Told) -> Iterator[Figure]:
    median, bare = _median_ms(kept["times"]), _median_ms(filed["times"])
    yield Figure(
        f"run: append, {_ITEMS:,} items of {_SIZE_BYTES / 1e6:.0f} MB, median",
        f"{median:.2f} ms",
        "<= 1 ms",
        f"bare FTS5 insert in memory: {bare:.2f} ms ({median / bare:.1f} x), plain "
        f"list: {_median_ms(listed['times']) * 1000:.2f} µs; p95 {_spread(kept)}, of "
        f"FTS5 {_spread(filed)}; all: {sum(kept['times']):.1f} s, of FTS5 "
        f"{sum(filed['times']):.1f} s",
        median <= 1,
    )
    first, last = (_median_ms(part) for part in _ends(kept))
    bare_first, bare_last = (_median_ms(part) for part in _ends(filed))
    yield Figure(
        f"run: append, the last {_END:,} compared with the first {_END:,}, median",
        f"{last / first:.2f} x",
        "<= 2 x",
        f"{last:.2f} ms and {first:.2f} ms; bare FTS5 insert: "
        f"{bare_last / bare_first:.2f} x",
        last <= 2 * first,
    )


def _ends(told: Told) -> tuple[list[float], list[float]]:
    return told["times"][:_END], told["times"][-_END:]


def _spread(told: Told) -> str:
    times = told["times"]
    return f"{_p95_ms(times):.1f} ms, slowest {1000 * max(times):.0f} ms"


def _memory_figure(kept: Told, listed: Told, filed: Told) -> Figure:
    text = kept["text"]
    return Figure(
        f"run: memory for {text / 1e6:.1f} MB of text in UTF-8",
        f"{kept['held'] / text:.2f} x, {kept['held'] / 1e6:.0f} MB",
        "<= 3 x",
        f"plain list: {listed['held'] / text:.2f} x; bare FTS5 with its texts: "
        f"{filed['held'] / text:.2f} x; the run after all searches: "
        f"{kept['held_after'] / text:.2f} x",
        kept["held"] <= 3 * text,
    )


# -- searching ------------------------------------------------------------------------


def _search_figures(
    queries: Sequence[Query], kept: Told, listed: Told
) -> Iterator[Figure]:
    scan = _median_ms(listed["searched"])
    for name, times in (
        ("search", kept["searched"]),
        ("search_conversation_history with its text", kept["asked"]),
    ):
        median = _median_ms(times)
        yield Figure(
            f"run: {name}, {len(times)} queries, median",
            f"{median:.1f} ms",
            "<= 10 ms",
            f"'in' over the lower-cased texts: {scan:.1f} ms ({median / scan:.1f} x); "
            f"p95 {_p95_ms(times):.1f} ms, slowest {1000 * max(times):.1f} ms",
            median <= 10,
        )
    by_kind = [
        f"{kind} {_median_ms(times):.1f} / {_p95_ms(times):.1f}"
        for kind, times in _by_kind(queries, kept["searched"]).items()
    ]
    scans = [
        f"{kind} {_median_ms(times):.1f}"
        for kind, times in _by_kind(queries, listed["searched"]).items()
    ]
    yield Figure(
        "run: search by kind of query, median / p95 in ms",
        ", ".join(by_kind),
        "-",
        f"'in' over the lower-cased texts: {', '.join(scans)}",
        True,
    )


def _by_kind(
    queries: Sequence[Query], times: Sequence[float]
) -> dict[str, list[float]]:
    by_kind: dict[str, list[float]] = {}
    for query, took in zip(queries, times, strict=True):
        by_kind.setdefault(query.kind, []).append(took)
    return by_kind


# -- pieces of a long item ------------------------------------------------------------


def _measure_pages(items: Sequence[Item]) -> Iterator[Figure]:
    text = _joined_results(items, _PAGED_BYTES)
    with RunHistory() as run:
        recorded = seconds(
            partial(run.record, Role.TOOL_RESULT, text, tool_name="Bash", call_id="c-1")
        )
        tool = _tool_of(run, "get_conversation_item")
        first, middle = (
            1000 * median_seconds(partial(tool.run, id="c-1", offset=offset), _PAGES)
            for offset in (0, len(text) // 2)
        )
    counted = seconds(lambda: most_tokens(text))
    yield Figure(
        f"run: get_conversation_item of {_PAGED_BYTES / 1e6:.0f} MB, median",
        f"{first:.1f} ms the first piece, {middle:.1f} ms one at the middle",
        "-",
        f"most_tokens over all of it: {1000 * counted:.0f} ms; to record it: "
        f"{1000 * recorded:.0f} ms",
        True,
    )


def _joined_results(items: Sequence[Item], size_bytes: int) -> str:
    """One text of ``size_bytes``, with many kinds of lines."""
    results = (item.text for item in items if item.role is Role.TOOL_RESULT)
    taken: list[str] = []
    size = 0
    while size < size_bytes:
        taken.append(next(results))
        size += len(taken[-1].encode()) + 1
    return "\n".join(taken).encode()[:size_bytes].decode(errors="ignore")


# -- the window -----------------------------------------------------------------------


def _measure_fit(items: Sequence[Item]) -> Iterator[Figure]:
    messages = _make_messages(items)
    texts = [str(message["content"]) for message in messages]
    size = sum(len(text.encode()) for text in texts)
    with RunHistory() as run:
        recorded = seconds(partial(run.observe, messages))
    with RunHistory() as run:
        fit = partial(run.fit, messages, _FIT_TOKENS)
        first = seconds(fit)
        again = median_seconds(fit, _ROUNDS)
        messages.append({"role": "user", "content": texts[0]})
        grown = seconds(fit)
        fitted = fit()
    counted = median_seconds(lambda: sum(map(most_tokens, texts)), _ROUNDS)
    assert fitted.fits
    yield Figure(
        f"run: fit of {_FIT_MESSAGES:,} messages, {size / 1e6:.1f} MB, into "
        f"{_FIT_TOKENS:,} tokens",
        f"{1000 * first:.0f} ms, again {1000 * again:.1f} ms, with one message more "
        f"{1000 * grown:.1f} ms",
        "-",
        f"most_tokens over all texts once: {1000 * counted:.0f} ms; to record them: "
        f"{1000 * recorded:.0f} ms; {len(fitted.trimmed)} results trimmed, "
        f"{fitted.tokens:,} tokens in all",
        True,
    )


# Any: messages have the shape of an API.
def _make_messages(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Short turns, with one call and its long result in every eight messages.

    The turns are short, because this many longer ones would not fit into the tokens.
    """
    turns = iter([item for item in items if item.role is Role.ASSISTANT])
    paths = iter([item for item in items if item.role is Role.TOOL_CALL])
    results = _joined_results(items, _FIT_BYTES).encode()
    size = _FIT_BYTES * 8 // _FIT_MESSAGES
    made: list[dict[str, Any]] = []
    for number in range(_FIT_MESSAGES):
        call_id = f"call_{number // 8}"
        match number % 8:
            case 5:
                made.append(_call_message(call_id, next(paths).text[:_SHORT_CHARS]))
            case 6:
                start = number // 8 * size
                text = results[start : start + size].decode(errors="ignore")
                made.append(_result_message(call_id, text))
            case place:
                role = "assistant" if place else "user"
                text = next(turns).text[:_SHORT_CHARS]
                made.append({"role": role, "content": text})
    return made


def _call_message(call_id: str, arguments: str) -> dict[str, Any]:
    function = {"name": "Read", "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _result_message(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


# -- a growing list -------------------------------------------------------------------


def _measure_observe(items: Sequence[Item]) -> Iterator[Figure]:
    short, long = (_observe_ms(items[:size]) for size in (100, _ITEMS))
    with RunHistory() as run:
        recorded = [
            seconds(partial(run.record, "user", text)) for text in _new_texts(items)
        ]
        messages = _to_messages(items)
        run.observe(messages)
        copied = seconds(partial(run.observe, copy.deepcopy(messages)))
    yield Figure(
        f"run: observe of a list grown by one, {_ITEMS:,} messages compared with 100",
        f"{long / short:.2f} x, {long:.2f} ms and {short:.2f} ms",
        "<= 2 x",
        f"recording the same texts alone: {_median_ms(recorded):.2f} ms; {_ITEMS:,} "
        f"messages that are all known, but copies: {1000 * copied:.0f} ms",
        long <= 2 * short,
    )


def _observe_ms(items: Sequence[Item]) -> float:
    messages = _to_messages(items)
    with RunHistory() as run:
        run.observe(messages)
        times = []
        for text in _new_texts(items):
            messages.append({"role": "user", "content": text})
            times.append(seconds(partial(run.observe, messages)))
    return _median_ms(times)


def _new_texts(items: Sequence[Item]) -> list[str]:
    said = next(item.text for item in items if item.role is Role.ASSISTANT)
    return [f"{said} {number}" for number in range(_GROWN)]


def _to_messages(items: Sequence[Item]) -> list[dict[str, Any]]:
    """The items as messages in OpenAI's format."""
    made: list[dict[str, Any]] = []
    for item in items:
        match item.role:
            case Role.TOOL_CALL:
                made.append(_call_message(item.call_id or "", item.text))
            case Role.TOOL_RESULT:
                made.append(_result_message(item.call_id or "", item.text))
            case _:
                made.append({"role": item.role.value, "content": item.text})
    return made


# -- numbers --------------------------------------------------------------------------


def _median_ms(times: Sequence[float]) -> float:
    return 1000 * statistics.median(times)


def _p95_ms(times: Sequence[float]) -> float:
    return 1000 * statistics.quantiles(times, n=20)[-1]


MEASURES = {"run": measure_run}

if __name__ == "__main__":
    told = _CHILDREN[sys.argv[1]](Path(sys.argv[2]))
    sys.stdout.buffer.write(orjson.dumps(told))
