"""The server as agent programs start it: a process, spoken to over its pipes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import anyio
import pytest

from mcp import Client, StdioServerParameters
from tests.builders import a_line, append, session_file
from tests.mcp.clients import VERSIONS, connected
from tests.processes import PATIENCE_S, comes_true
from tests.shell import BACKSTORY, Shell

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture
def shell(home: Path) -> Shell:
    project = home / "project"
    project.mkdir()
    return Shell(home, home / "kept", folder=project)


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A folder for sockets, whose paths must be short."""
    with TemporaryDirectory(prefix="bs-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def environ(shell: Shell, runtime: Path) -> dict[str, str]:
    return {
        **shell.environ,
        "XDG_RUNTIME_DIR": str(runtime),
        "BACKSTORY_EMBEDDER_NAME": "none",
    }


def line(method: str, number: int | None = None, **params: Any) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        message["id"] = number
    return json.dumps(message).encode() + b"\n"


def send(stream: IO[bytes] | None, *lines: bytes) -> None:
    assert stream is not None
    stream.write(b"".join(lines))
    stream.flush()


def receive(stream: IO[bytes] | None) -> dict[str, Any]:
    assert stream is not None
    answer: dict[str, Any] = json.loads(stream.readline())
    return answer


@contextmanager
def running(
    environ: dict[str, str], folder: Path | None, *options: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that has answered the handshake."""
    with subprocess.Popen(
        [*BACKSTORY, "mcp", *options],
        env=environ,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        try:
            send(server.stdin, line("initialize", 1, **INITIALIZE))
            assert receive(server.stdout)["result"]["protocolVersion"] == "2025-06-18"
            send(server.stdin, line("notifications/initialized"))
            yield server
        finally:
            server.kill()


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # A zombie has ended; whoever started it has not looked yet.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_servers_of_one_home_serve_clients_of_every_version_at_once(
    shell: Shell, environ: dict[str, str]
) -> None:
    program = StdioServerParameters(
        command=BACKSTORY[0],
        args=[*BACKSTORY[1:], "mcp"],
        env=environ,
        cwd=shell.folder,
    )
    found: dict[str, str] = {}

    async def ask(version: str, client: Client) -> None:
        assert len((await client.list_tools()).tools) == 7
        fact = {"content": f"The client of {version} was here"}
        saved = await client.call_tool("save_memory", fact)
        assert not saved.is_error, saved.content
        query = {"query": version, "scope": "memory"}
        (content,) = (await client.call_tool("search_history", query)).content
        assert content.type == "text"
        found[version] = content.text

    async def ask_all() -> None:
        async with AsyncExitStack() as stack:
            clients = {
                version: await stack.enter_async_context(connected(program, version))
                for version in VERSIONS
            }
            async with anyio.create_task_group() as tasks:
                for version, client in clients.items():
                    tasks.start_soon(ask, version, client)

    anyio.run(ask_all)

    assert {
        version: f"The client of {version} was here" in text
        for version, text in found.items()
    } == dict.fromkeys(VERSIONS, True)
    facts = shell.out("memory", "show")
    assert [version for version in VERSIONS if f"of {version} was" not in facts] == []


def test_a_server_searches_the_session_of_its_program_and_ends_without_a_trace(
    shell: Shell, environ: dict[str, str], runtime: Path
) -> None:
    transcript = session_file(shell.home)
    cwd = str(shell.folder)
    arguments = {"query": "harbour code"}
    search = {"name": "search_conversation_history", "arguments": arguments}
    with running(environ, shell.folder, "--host", "claude-code") as server:
        append(transcript, a_line("The harbour code is 4711.", uuid="1", cwd=cwd))

        send(server.stdin, line("tools/call", 2, **search))
        answer = receive(server.stdout)["result"]
        assert comes_true(lambda: list_sockets(runtime) != [])
        server.send_signal(signal.SIGTERM)

        assert server.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert "The harbour code is 4711." in answer["content"][0]["text"]
    assert "structuredContent" not in answer
    assert list_sockets(runtime) == []


def list_sockets(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_socket()]


def test_what_is_no_request_does_no_harm_and_a_closed_pipe_ends_the_server(
    shell: Shell, environ: dict[str, str]
) -> None:
    with running(environ, shell.folder) as server:
        send(server.stdin, b"\xff\xfe not JSON\n", b"[]\n", line("ping", 7))

        answers = [receive(server.stdout)]
        while answers[-1].get("id") != 7:
            answers.append(receive(server.stdout))
        assert server.stdin is not None
        server.stdin.close()

        assert server.wait(PATIENCE_S) == 0
    assert answers[-1] == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert all("error" in answer for answer in answers[:-1])


def test_a_killed_program_leaves_no_server_though_its_pipe_is_held_open(
    shell: Shell, environ: dict[str, str]
) -> None:
    """Another child of the program may have inherited the pipe."""
    start = (
        "import subprocess, sys, time\n"
        "server = subprocess.Popen(sys.argv[1:])\n"
        "print(server.pid, file=sys.stderr, flush=True)\n"
        "time.sleep(1000)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", start, *BACKSTORY, "mcp"],
        env=environ,
        cwd=shell.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stderr is not None
        pid = int(program.stderr.readline())
        send(program.stdin, line("initialize", 1, **INITIALIZE))
        receive(program.stdout)
        send(program.stdin, line("notifications/initialized"))
        # It is killed while the server works for it.
        arguments = {"query": "harbour"}
        search = line("tools/call", 2, name="search_history", arguments=arguments)
        send(program.stdin, search * 20)

        program.kill()

        assert comes_true(lambda: is_gone(pid))


def test_an_unknown_host_is_refused_with_the_nearest(shell: Shell) -> None:
    done = shell.run("mcp", "--host", "claude-cod")

    assert (done.returncode, done.stdout, done.stderr) == (
        12,
        "",
        "backstory: no agent program is called 'claude-cod'\n"
        "  hint: did you mean 'claude-code'?\n",
    )


def test_a_person_who_starts_it_is_told_what_it_waits_for(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path / "kept")

    said = shell.on_terminal("mcp", typed="\x04")

    assert said.replace("\r\n", "\n").endswith(
        "Waiting for an agent program to speak MCP; they start this command by "
        "themselves.\nPress Ctrl-C to end.\n"
    )
