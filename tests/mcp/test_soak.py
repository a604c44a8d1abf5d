"""Many servers and hooks of one home at once, for minutes: part of ``make soak`` alone.

``make soak ARGS="-s -n 0 tests/mcp/test_soak.py"`` also prints what was counted.
"""

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import pytest

from backstory.memory import Memory
from tests.builders import PROJECT, a_line, append, session_file
from tests.chance import SOAK, rounds
from tests.mcp.test_stdio import INITIALIZE, line, receive, send
from tests.processes import comes_true
from tests.shell import BACKSTORY

pytestmark = pytest.mark.skipif(not SOAK, reason="it takes minutes")

SERVERS, HOOKS = 8, 20
SECONDS = rounds(0, soaking=120)
# Each server has these threads with a connection to the index, of two files each, that
# may only be used for the first time late: for calls, hooks and searches.
SPARE_FILES = 2 * (2 + 3 + 4)
MOST_GROWTH_MB = 25
EVENTS = ("session-start", "prompt", "prompt", "before-compaction", "session-end")


class Load:
    """Work that many threads repeat, until it is over; the first failure is kept."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.counts: Counter[str] = Counter()
        self._is_over = threading.Event()
        self._may_go_on = threading.Event()
        self._may_go_on.set()
        self._busy = 0
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def repeat(self, work: Callable[[int], str]) -> None:
        """Start a thread that calls ``work`` with 0, 1 and so on, and counts calls."""
        thread = threading.Thread(target=self._repeat, args=(work,))
        self._threads.append(thread)
        thread.start()

    def _repeat(self, work: Callable[[int], str]) -> None:
        for number in itertools.count():
            self._may_go_on.wait()
            if self._is_over.is_set():
                return
            with self._lock:
                self._busy += 1
            try:
                name = work(number)
            except BaseException as exc:
                self.failures.append(repr(exc))
                return
            finally:
                with self._lock:
                    self._busy -= 1
            with self._lock:
                self.counts[name] += 1

    def pause(self) -> None:
        self._may_go_on.clear()
        assert comes_true(lambda: not self._busy)

    def go_on(self) -> None:
        self._may_go_on.set()

    def end(self) -> None:
        self._is_over.set()
        self._may_go_on.set()
        for thread in self._threads:
            thread.join()


class Server:
    """A server of the home, and what its agent does: talk, save, search."""

    def __init__(
        self, number: int, home: Path, environ: dict[str, str], errors: IO[bytes]
    ) -> None:
        self.said: list[str] = []
        self.facts: list[str] = []
        self._name = f"{number:08}-0000-4000-8000-000000000000"
        self._file = session_file(home, self._name)
        self._ids = itertools.count(1)
        self.process = subprocess.Popen(
            [*BACKSTORY, "mcp"],
            env=environ,
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        self._ask("initialize", **INITIALIZE)
        send(self.process.stdin, line("notifications/initialized"))

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        send(self.process.stdin, line(method, next(self._ids), **params))
        answer = receive(self.process.stdout)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _call(self, name: str, **arguments: object) -> str:
        result = self._ask("tools/call", name=name, arguments=arguments)
        text = "".join(part["text"] for part in result["content"])
        assert not result.get("isError"), text
        assert "locked" not in text, text
        return text

    def work(self, number: int) -> str:
        word = f"quince{self._name[:8]}x{number}"
        match number % 5:
            case 0 | 1:
                self.said.append(word)
                text = f"we ordered {word} for the orchard"
                uuid = f"{self._name}-{number}"
                append(self._file, a_line(text, uuid=uuid, session=self._name))
                return "messages"
            case 2:
                self.facts.append(word)
                self._call("save_memory", content=f"The supplier of {word} is Ada")
                return "facts"
            case 3:
                found = self._call("search_history", query=self.said[-1], max_results=3)
                assert self.said[-1] in found or "still" in found or "new" in found
                return "searches"
            case _:
                self._call("memory_search", query=f"supplier {self.facts[-1]}")
                return "searches"

    def megabytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        rows = dict(row.split(":", 1) for row in status.splitlines())
        return int(rows["VmRSS"].split()[0]) / 1024

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


def run_hook(home: Path, environ: dict[str, str], name: str, number: int) -> str:
    event = EVENTS[number % len(EVENTS)]
    program = Path(sys.executable).with_name("backstory-hook")
    payload = {
        "session_id": f"{name}-{number // len(EVENTS)}",
        "cwd": PROJECT,
        "prompt": f"who is the supplier of quince00000000x{number % 50}?",
    }
    done = subprocess.run(
        [str(program), event, "--host", "claude-code", "--home", str(home)],
        input=json.dumps(payload).encode(),
        capture_output=True,
        env=environ,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if done.stdout:
        json.loads(done.stdout)
    return "hooks"


def list_processes(kept: Path) -> list[str]:
    """Processes that were started for this home, by what the system says of them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environ = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if f"BACKSTORY_HOME={kept}".encode() in environ and command:
            found.append(command.replace(b"\0", b" ").decode())
    return found


def test_eight_servers_and_twenty_hooks_share_a_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = home / "kept"
    with TemporaryDirectory(prefix="bs-", dir="/tmp") as runtime:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_RUNTIME_DIR": runtime,
            "BACKSTORY_HOME": str(kept),
            # Eight models would need more memory than the rest of a test machine has.
            "BACKSTORY_EMBEDDER_NAME": "none",
        }
        with (home / "errors").open("wb") as errors:
            servers = [
                Server(number, home, environ, errors) for number in range(SERVERS)
            ]
            load = Load()
            for server in servers:
                load.repeat(server.work)
            for number in range(HOOKS):
                load.repeat(
                    lambda each, name=f"hook{number}": run_hook(  # type: ignore[misc]
                        kept, environ, name, each
                    )
                )
            time.sleep(SECONDS / 3)
            load.pause()
            early = [(each.open_files(), each.megabytes()) for each in servers]
            load.go_on()
            time.sleep(SECONDS * 2 / 3)
            load.pause()
            late = [(each.open_files(), each.megabytes()) for each in servers]
            load.end()
            ends = [server.end() for server in servers]
        log = kept / "hooks.log"
        logged = log.read_text(encoding="utf-8") if log.exists() else ""
        told = (home / "errors").read_text(encoding="utf-8")
        sys.stdout.write(
            f"\n{load.failures}\n{dict(load.counts)}\n"
            f"early {early}\nlate {late}\n{logged}"
        )

        assert load.failures == []
        assert ends == [0] * SERVERS
        assert "locked" not in logged + told
        assert all("took longer" in each for each in logged.splitlines())
        assert all(
            after[0] <= before[0] + SPARE_FILES
            and after[1] <= before[1] + MOST_GROWTH_MB
            for before, after in zip(early, late, strict=True)
        )
        assert comes_true(lambda: not list_processes(kept))
        assert list(Path(runtime).rglob("*.sock")) == []

    # Nothing is lost.
    for name in ("HOME", "BACKSTORY_HOME", "BACKSTORY_EMBEDDER_NAME"):
        monkeypatch.setenv(name, environ[name])
    with Memory.open(kept) as memory:
        memory.index()
        stored = {
            message.text
            for session in memory.sessions()
            for message in memory.messages(session)
        }
        said = [word for server in servers for word in server.said]
        assert {f"we ordered {word} for the orchard" for word in said} - stored == set()
        facts = memory.notebook.read_memory()
        saved = [word for server in servers for word in server.facts]
        assert [word for word in saved if f"{word} is Ada" not in facts] == []
        last = [server.said[-1] for server in servers]
        assert [word in memory.search(word).hits[0].text for word in last] == [True] * 8
