"""Run everything that Backstory can do, once: each command, the Python API, servers.

A program of its own, so that a test can watch what it asks the system for. It prints
which commands ran, and with which exit codes, as JSON. Its umask is 0: files are only
private if the program itself makes them so.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from http.client import HTTPConnection
from io import StringIO
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

from backstory import Memory
from backstory.cli.app import App, run
from tests.builders import SESSION, a_line, append, session_file
from tests.processes import comes_true

# Each command, by its path, with arguments and the exit codes that they may lead to. A
# worker runs beside them, so a file may be in use when it is to be checked. On a slow
# machine, the time for a prompt's memories is over before any is found.
COMMANDS: dict[str, tuple[tuple[str, ...], set[int]]] = {
    "index": (("--wait",), {0}),
    "sources": ((), {0}),
    "sessions": ((), {0}),
    "show": ((SESSION[:8],), {0}),
    "stats": ((), {0}),
    "completion": (("bash",), {0}),
    "search": (("where", "is", "the", "ladder"), {0}),
    "context": (("where is the ladder",), {0, 1}),
    "tools": ((), {0}),
    "call": (("search_history", '{"query": "ladder"}'), {0}),
    "memory": ((), {0}),
    "memory add": (("Has a ladder",), {0}),
    "memory show": ((), {0}),
    "memory edit": ((), {0}),
    "memory export": (("{folder}/notes.zip",), {0}),
    "memory forget": (("ladder",), {0}),
    "memory import": (("{folder}/notes.zip",), {0}),
    "logs": (("--write",), {11}),
    "curate": ((), {11}),
    "settings": ((), {0}),
    "settings get": (("keep.days",), {0}),
    "settings set": (("keep.days", "0"), {0}),
    "settings unset": (("keep.days",), {0}),
    "status": ((), {0}),
    "check": (("--deep",), {0, 20}),
    "rebuild": ((), {0}),
    "salvage": ((), {1}),
    "eval": (("{folder}/questions.jsonl",), {0}),
    "install": (("codex", "gemini", "cursor"), {0}),
    "uninstall": (("codex", "gemini", "cursor"), {0}),
    "doctor": ((), {0}),
    "demo": ((), {0}),
    "database": (("--help",), {0}),
    "database prepare": (("--owner", "env:OWNER_URL"), {0, 11}),
    "database tenants": (("--owner", "env:OWNER_URL"), {0, 11}),
    "database add-tenant": (("ben", "--owner", "env:OWNER_URL"), {0, 11}),
    "database remove-tenant": (
        ("ben", "--yes", "--owner", "env:OWNER_URL"),
        {0, 11},
    ),
    "work": ((), {0}),
    "mcp": ((), {0}),
    "export": (("{folder}/export",), {0}),
    "import": (("{folder}/export",), {0}),
    "web": (("--no-open", "--port", "{port}"), {130}),
    "move": (("--to", "{folder}/moved"), {0}),
    "forget": ((SESSION[:8], "--yes"), {0}),
    # Nobody has a token yet, and no server is set.
    "serve": (("--port", "0"), {11}),
    "push": ((), {11}),
    "token": ((), {2}),
    # In a database, they need the role that owns its tables.
    "token create": (("Anna",), {0, 2}),
    "token list": ((), {0, 2}),
    "token revoke": (("1",), {0, 2}),
}
HOOKS = ("session-start", "prompt", "before-compaction", "session-end")
_BACKSTORY = (sys.executable, "-m", "backstory")


def main(folder: Path, port: int, lifetime_s: float) -> None:
    """Run everything; temporary files go into ``folder``, HTTP to ``port``."""
    os.umask(0)
    home = Path(os.environ["HOME"])
    append(
        session_file(home),
        a_line("Where is the ladder?", uuid="u1"),
        a_line("The ladder is below the stairs.", uuid="u2", role="assistant"),
    )
    questions = [{"question": "where is the ladder", "text": "below the stairs"}]
    lines = "".join(f"{json.dumps(each)}\n" for each in questions)
    folder.joinpath("questions.jsonl").write_text(lines)
    codes = {
        path: _run(path, [_fill_in(word, folder, port) for word in words])
        for path, (words, _) in COMMANDS.items()
    }
    for event in HOOKS:
        _run_hook(event, home)
    _serve_http(port)
    _watch()
    _use_python()
    # What reports something to somebody does so after some seconds.
    time.sleep(lifetime_s)
    sys.stdout.write(json.dumps(codes))


def _fill_in(word: str, folder: Path, port: int) -> str:
    return word.replace("{folder}", str(folder)).replace("{port}", str(port))


def _run(path: str, words: Sequence[str]) -> int:
    if path == "mcp":
        return _serve()
    if path == "web":
        return _serve_page(words)
    with (
        patch("sys.argv", ["backstory", *path.split(), *words]),
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()) as err,
    ):
        code = run(App())
    sys.stderr.write(err.getvalue())
    return code


def _serve() -> int:
    """Ask the MCP server something, as an agent program does."""
    asked = (
        {
            "method": "initialize",
            "id": 1,
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {
            "method": "tools/call",
            "id": 2,
            "params": {"name": "search_history", "arguments": {"query": "ladder"}},
        },
    )
    with subprocess.Popen(
        [*_BACKSTORY, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for each in asked:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n")
        server.stdin.flush()
        while json.loads(server.stdout.readline()).get("id") != 2:
            pass
        server.stdin.close()
        return server.wait()


def _serve_page(words: Sequence[str]) -> int:
    """Open the page as a browser does, and search with it."""
    with subprocess.Popen(
        [*_BACKSTORY, "web", *words], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        link = urlsplit(server.stdout.readline().split()[-1])
        assert link.hostname is not None
        connection = HTTPConnection(link.hostname, link.port)
        connection.request("GET", f"{link.path}?{link.query}")
        opened = connection.getresponse()
        opened.read()
        cookie = (opened.headers["Set-Cookie"] or "").partition(";")[0]
        connection.request("GET", "/?q=ladder", headers={"Cookie": cookie})
        found = connection.getresponse()
        assert b"below the stairs" in found.read()
        connection.close()
        server.send_signal(signal.SIGINT)
        return server.wait()


def _serve_http(port: int) -> None:
    """Ask the server over HTTP something, with the token and without it."""
    with subprocess.Popen(
        [*_BACKSTORY, "mcp", "--http", "--port", str(port)],
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        server.stderr.readline()
        token = server.stderr.readline().removeprefix("Token: ").strip()
        assert comes_true(lambda: _is_open(port))
        codes = [_ask_http(port, each) for each in (token, "wrong")]
        assert codes == [200, 401], codes
        server.terminate()


def _is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _ask_http(port: int, token: str) -> int:
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search_history", "arguments": {"query": "ladder"}},
    }
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/mcp", json.dumps(asked), headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def _run_hook(event: str, home: Path) -> None:
    told = {
        "session_id": SESSION,
        "cwd": str(home),
        "prompt": "where is the ladder",
        "transcript_path": str(session_file(home)),
        "source": "startup",
        "reason": "exit",
        "trigger": "auto",
    }
    subprocess.run(
        [sys.executable, "-m", "backstory.hooks", event, "--host", "claude-code"],
        input=json.dumps(told).encode(),
        stdout=subprocess.DEVNULL,
        check=True,
    )


def _watch() -> None:
    """Watch until something new was read."""
    file = session_file(Path(os.environ["HOME"]), "another")
    # A shell starts what it puts in the background deaf to it, and so its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        [*_BACKSTORY, "index", "--watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as watching:
        assert watching.stdout is not None
        number = 0
        # A worker may read a line first, so there is always another.
        while not select.select([watching.stdout], [], [], 0.2)[0]:
            number += 1
            append(file, a_line("More", uuid=f"m{number}", session="another"))
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()


def _use_python() -> None:
    with Memory.open() as memory:
        memory.record("talk", "user", "Where did we put the saw?", project="/tmp")
        memory.record_messages("talk", [{"role": "user", "content": "And the axe?"}])
        uses: tuple[Callable[[], object], ...] = (
            memory.index,
            memory.read_new,
            memory.embed,
            memory.rebuild,
            memory.salvage,
            lambda: memory.search("saw"),
            lambda: memory.recall("saw"),
            lambda: memory.episodes("saw"),
            lambda: memory.context("where is the saw"),
            memory.opening,
            memory.sources,
            memory.status,
            memory.end_session,
            memory.background,
            lambda: [tool.call({"query": "saw"}) for tool in memory.tools()],
            lambda: memory.new_run().record("user", "The saw?"),
            lambda: memory.notebook.add_fact("Has a saw"),
            lambda: memory.export(memory.home / "export"),
            lambda: memory.import_export(memory.home / "export"),
            lambda: memory.forget(fact="Has a saw"),
            lambda: memory.forget("talk"),
            memory.work,
        )
        for use in uses:
            use()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
