"""How soon the MCP server answers, and how much memory it takes after many calls."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bench.measuring import Figure, median_seconds
from bench.search import SMALL, queries, small_home

_STARTS = 30
_CALLS = 10_000
_MOST_START_S = 1.0
_MOST_MB = 250
# How much the second half of the calls may add; in the first half, caches fill up.
_MOST_GROWTH_MB = 5
_INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class _Server:
    """A server process, spoken to over its pipes."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._number = 0

    def start(self) -> None:
        self.ask("initialize", **_INITIALIZE)
        self._send({"method": "notifications/initialized"})

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        answer: dict[str, Any] = json.loads(_stream(self._process.stdout).readline())
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, name: str, **arguments: object) -> dict[str, Any]:
        result = self.ask("tools/call", name=name, arguments=arguments)
        assert not result.get("isError"), result
        return result

    def _send(self, message: dict[str, Any]) -> None:
        stdin = _stream(self._process.stdin)
        stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        stdin.flush()

    def megabytes(self, name: str = "VmRSS") -> float:
        """The resident memory; ``RssFile`` is what is mapped from files."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        line = next(each for each in status.splitlines() if each.startswith(name))
        return int(line.split()[1]) / 1024

    def cpu_seconds(self) -> float:
        line = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8")
        fields = line.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))  # noqa: PTH208


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


@contextmanager
def _running(folder: Path, kept: Path) -> Iterator[_Server]:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "BACKSTORY_HOME": str(kept),
        "BACKSTORY_EMBEDDER_IN_BACKGROUND": "false",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "backstory", "mcp"],
        env=environ,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        yield _Server(process)
        _stream(process.stdin).close()


def measure_mcp_start(folder: Path) -> Iterator[Figure]:
    kept = small_home()
    folder.chmod(0o700)

    def list_tools() -> None:
        started = time.perf_counter()
        with _running(folder, kept) as server:
            server.start()
            assert len(server.ask("tools/list")["tools"]) == 7
            times.append(time.perf_counter() - started)
            cpu_times.append(server.cpu_seconds())

    times: list[float] = []
    cpu_times: list[float] = []
    list_tools()  # compiles the modules, if they are not
    times.clear()
    cpu_times.clear()
    for _ in range(_STARTS):
        list_tools()
    median, cpu = statistics.median(times), statistics.median(cpu_times)
    nothing = median_seconds(lambda: _run_python("pass"), _STARTS)
    library = median_seconds(lambda: _run_python("import mcp"), _STARTS)
    yield Figure(
        f"tools/list over {SMALL:,} messages, from the start of the server",
        f"{median * 1000:.0f} ms, of which it worked {cpu * 1000:.0f} ms",
        f"{_MOST_START_S * 1000:.0f} ms",
        f"a Python that does nothing: {nothing * 1000:.0f} ms; one that imports the "
        f"MCP library: {library * 1000:.0f} ms",
        # The smaller of the two, because on a busy machine it waits for the processor.
        min(median, cpu) <= _MOST_START_S,
    )


def _run_python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def measure_mcp_memory(folder: Path) -> Iterator[Figure]:
    kept = small_home()
    folder.chmod(0o700)
    asked = [query.text for query in queries()]
    with _running(folder, kept) as server:
        server.start()
        server.ask("tools/list")
        started_with = server.megabytes()
        server.call("memory_search", query=asked[0])
        loaded = server.megabytes()
        times: list[float] = []
        early, files = 0.0, 0
        for number in range(_CALLS):
            started = time.perf_counter()
            _call_one(server, number, asked)
            times.append(time.perf_counter() - started)
            if number == _CALLS // 2:
                early, files = server.megabytes(), server.open_files()
        late, files_late = server.megabytes(), server.open_files()
        mapped = server.megabytes("RssFile")
    yield Figure(
        f"memory of a server over {SMALL:,} messages, with its model loaded",
        f"{late:.0f} MB after {_CALLS:,} calls, {mapped:.0f} of them mapped from files",
        f"{_MOST_MB} MB",
        f"after tools/list: {started_with:.0f} MB; after the first search: "
        f"{loaded:.0f} MB; median call {statistics.median(times) * 1000:.1f} ms",
        late <= _MOST_MB,
    )
    yield Figure(
        f"growth from the {_CALLS // 2:,}th to the {_CALLS:,}th call",
        f"{late - early:+.1f} MB, {files_late - files:+d} open files",
        f"{_MOST_GROWTH_MB} MB, 0 files",
        f"at the {_CALLS // 2:,}th: {early:.0f} MB, {files} open files",
        late - early <= _MOST_GROWTH_MB and files_late <= files,
    )


def _call_one(server: _Server, number: int, asked: list[str]) -> None:
    """Make one call; the number chooses its kind, in turn."""
    query = f"{asked[number % len(asked)]} {number}"
    match number % 5:
        case 0 | 1:
            server.call("search_history", query=query, max_results=5)
        case 2:
            server.call("memory_search", query=query, limit=3)
        case 3:
            server.ask("resources/list")
        case _:
            server.ask("tools/list")


MEASURES = {"mcp-start": measure_mcp_start, "mcp-memory": measure_mcp_memory}
