"""The server over HTTP: for programs that have the token, on this machine only."""

import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from backstory.mcp.http import read_token
from mcp import Client
from tests.mcp.clients import VERSIONS, connected
from tests.processes import PATIENCE_S, comes_true
from tests.shell import BACKSTORY, Shell

# One process serves all tests.
pytestmark = pytest.mark.xdist_group("mcp-http")


class HttpServer:
    """A server that runs, its address, and what it said when it started."""

    def __init__(self, shell: Shell, port: int, said: list[str]) -> None:
        self.shell = shell
        self.port = port
        self.said = said
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.token = said[1].removeprefix("Token: ")

    def post(self, **headers: str) -> tuple[int, str]:
        """The answer to a request with the token, and with headers instead of it."""
        usual = {
            "authorization": f"Bearer {self.token}",
            "accept": "application/json, text/event-stream",
        }
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        given = {**usual, **headers}
        kept = {name: value for name, value in given.items() if value}
        answer = httpx.post(self.url, json=ping, headers=kept)
        return answer.status_code, answer.text


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    home = tmp_path_factory.mktemp("http")
    shell = Shell(home, home / "kept")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [*BACKSTORY, "mcp", "--http", "--port", str(port)],
        env={**shell.environ, "BACKSTORY_EMBEDDER_NAME": "none"},
        cwd=home,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = [process.stderr.readline().rstrip("\n") for _ in range(2)]
        assert comes_true(lambda: is_open(port))
        yield HttpServer(shell, port, said)
        process.terminate()
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM


def is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_of_each_version_is_served(server: HttpServer, version: str) -> None:
    async def ask() -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {server.token}"}
        async with create_mcp_http_client(headers) as http:
            reached = streamable_http_client(server.url, http_client=http)
            async with connected(reached, version) as client:
                return len((await client.list_tools()).tools), await search(client)

    async def search(client: Client) -> str:
        result = await client.call_tool("search_history", {"query": "zebra"})
        (content,) = result.content
        assert content.type == "text"
        return content.text

    assert anyio.run(ask) == (
        7,
        '[Search Results for "zebra" (scope: all, 0 results)]\n\n'
        "No matching results found. Try broader keywords or a different scope.",
    )


def test_the_token_is_told_once_and_kept_private(server: HttpServer) -> None:
    path = server.shell.kept / "mcp-token"

    assert server.said == [f"Serving {server.url}", f"Token: {server.token}"]
    assert path.read_text() == f"{server.token}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_token(server.shell.kept) == (server.token, False)


def test_requests_without_the_token_or_from_elsewhere_are_refused(
    server: HttpServer,
) -> None:
    here = f"localhost:{server.port}"

    answers = {
        "as it should be": server.post()[0],
        "from its own page": server.post(host=here, origin=f"http://{here}")[0],
        "no token": server.post(authorization=""),
        "another token": server.post(authorization="Bearer x"),
        "not a bearer": server.post(authorization=server.token),
        "a rebound name": server.post(host="evil.example"),
        "another port": server.post(host="127.0.0.1:1"),
        "a page elsewhere": server.post(origin="https://evil.example"),
        "a page in a file": server.post(origin="null"),
    }

    required = (401, "A bearer token is required\n")
    assert answers == {
        "as it should be": answers["from its own page"],
        "from its own page": answers["as it should be"],
        "no token": required,
        "another token": required,
        "not a bearer": required,
        "a rebound name": (421, "Unknown host\n"),
        "another port": (421, "Unknown host\n"),
        "a page elsewhere": (403, "Unknown origin\n"),
        "a page in a file": (403, "Unknown origin\n"),
    }
    assert answers["as it should be"] not in (401, 403, 421)


def test_only_this_machine_can_connect(server: HttpServer) -> None:
    wanted = f"0100007F:{server.port:04X}"

    listening = [
        line.split()[1]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{server.port:04X}")
    ]

    assert listening == [wanted]


def test_a_port_that_is_taken_is_an_error(server: HttpServer) -> None:
    done = server.shell.run("mcp", "--http", "--port", str(server.port))

    assert (done.returncode, done.stderr) == (
        11,
        f"backstory: 127.0.0.1:{server.port}: Address already in use\n"
        "  hint: choose another with --port\n",
    )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--port", "7718"), "--port is for --http."),
        (("--http", "--host", "codex"), "--host is for a server that a program starts"),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    done = Shell(tmp_path, tmp_path / "kept").run("mcp", *words)

    assert done.returncode == 2
    assert reason in done.stderr


def test_an_empty_token_is_an_error(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path / "kept")
    shell.kept.mkdir()
    (shell.kept / "mcp-token").write_text("\n")

    done = shell.run("mcp", "--http")

    assert (done.returncode, done.stderr) == (
        11,
        f"backstory: {shell.kept}/mcp-token: it is empty\n"
        "  hint: delete it; a new one is made\n",
    )
