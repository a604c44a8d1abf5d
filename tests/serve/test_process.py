"""The server as a process: how it starts, what it tells, how it ends."""

import json
import logging
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile

import httpx
import pytest

from backstory.errors import BadQuery, StoreUnreachable
from backstory.serve.json_log import JsonLines
from backstory.serve.listening import Listening
from backstory.store.token_file import FileTokens
from backstory.system.locks import locked
from backstory.values.access import Scope
from tests.processes import PATIENCE_S, comes_true
from tests.shell import BACKSTORY, Shell

SECRETS = ("zebra", "giraffe", "bst_")
NAME = "memory.example.org"


class ServerProcess:
    """A server that runs, where, and what it has logged so far."""

    def __init__(self, process: subprocess.Popen[str], url: str, log: Path) -> None:
        self.process = process
        self.url = url
        self._log = log

    @property
    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def text(self) -> str:
        return self._log.read_text(encoding="utf-8")


@contextmanager
def serving(shell: Shell, *words: str, **environ: str) -> Iterator[ServerProcess]:
    with (
        NamedTemporaryFile("w", dir=shell.home, prefix="log-", delete=False) as writer,
        subprocess.Popen(
            [*BACKSTORY, "serve", "--port", "0", *words],
            env={**shell.environ, "BACKSTORY_EMBEDDER_NAME": "none", **environ},
            cwd=shell.home,
            stdout=subprocess.PIPE,
            stderr=writer,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        said = process.stdout.readline()
        log = Path(writer.name)
        assert said.startswith("Serving http"), log.read_text()
        url = said.removeprefix("Serving ").strip()
        try:
            assert comes_true(lambda: is_open(url))
            yield ServerProcess(process, url, log)
        finally:
            process.kill()


def is_open(url: str) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) == 0


def is_busy(server: ServerProcess, figures: str) -> bool:
    """Whether a request is being answered, beside the one that asks this."""
    told = httpx.get(f"{server.url}/metrics", headers=bearer(figures)).text
    return "backstory_requests_in_flight 2" in told


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, tmp_path / "kept")


# One process has it.
uses_running = pytest.mark.xdist_group("running server")


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Shell, ServerProcess]]:
    """A server that is started once, and the shell of whoever runs it."""
    folder = tmp_path_factory.mktemp("running")
    shell = Shell(folder, folder / "kept")
    make_token(shell)
    with serving(shell, "--name", NAME) as server:
        yield shell, server


@pytest.fixture
def taken_port() -> Iterator[str]:
    """A port where no server can start, however wrongly it does not refuse to."""
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        yield str(other.getsockname()[1])


def make_token(shell: Shell, scope: str = "read-write", *more: str) -> str:
    done = shell.run("token", "create", "Anna", "--scope", scope, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_without_a_token_it_does_not_start(shell: Shell, taken_port: str) -> None:
    make_token(shell, "metrics")
    expired = datetime(2020, 1, 1, tzinfo=UTC)
    FileTokens(shell.kept, lambda: datetime.now(UTC)).create(
        "Anna", tenant="", scope=Scope.READ, expires_at=expired
    )

    done = shell.run("serve", "--port", taken_port)

    assert (done.returncode, done.stdout) == (11, "")
    assert done.stderr == (
        "backstory: there is no token that works, so nobody could use the server\n"
        "  hint: make one: backstory token create NAME\n"
    )


@pytest.mark.parametrize("proxy", ["*", "proxy.example.org", "10.0.0.5/8", ""])
def test_only_an_address_is_believed_as_a_proxy(
    shell: Shell, taken_port: str, proxy: str
) -> None:
    make_token(shell)

    done = shell.run("serve", "--port", taken_port, "--behind-proxy", proxy)

    assert (done.returncode, done.stdout) == (11, "")
    assert f"--behind-proxy: '{proxy}' is not an IP address" in done.stderr


@pytest.mark.parametrize(
    "name", ["http://memory.example.org", "memory.example.org:443", "a/b", "a b", ""]
)
def test_a_name_that_no_client_can_ask_for_is_refused(
    shell: Shell, taken_port: str, name: str
) -> None:
    make_token(shell)

    done = shell.run("serve", "--port", taken_port, "--name", name)

    assert (done.returncode, done.stdout) == (11, "")
    assert done.stderr == (
        f"backstory: --name: '{name}' is not the name of a host\n"
        "  hint: give the name alone, such as memory.example.org, without http:// and "
        "without a port\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--until", "2020-01-01"], "2020-01-01 is over, so the token would never"),
        (["--owner", "postgresql://owner@db/memory"], "--owner is for a database"),
        (["--scope", "metrics", "--tenant", "anna"], "leave out --tenant"),
    ],
)
def test_a_token_that_would_be_of_no_use_is_not_made(
    shell: Shell, words: list[str], said: str
) -> None:
    done = shell.run("token", "create", "Anna", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())
    assert shell.run("token", "list").returncode == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_for_other_machines_it_does_not_start_unencrypted(
    shell: Shell, taken_port: str, host: str
) -> None:
    make_token(shell)

    done = shell.run("serve", "--host", host, "--port", taken_port)

    assert (done.returncode, done.stdout) == (11, "")
    assert f"on {host}, tokens and memories would travel unencrypted" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--certificate", "x.pem"], "TLS needs both a certificate and its key"),
        (["--key", "x.pem"], "TLS needs both a certificate and its key"),
        (["--certificate", "junk", "--key", "x.pem"], "backstory: x.pem: No such file"),
        (["--certificate", ".", "--key", "junk"], ": Is a directory"),
        (["--certificate", "junk", "--key", "junk"], "not a certificate and its key"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_refused(
    shell: Shell, taken_port: str, words: list[str], said: str
) -> None:
    make_token(shell)
    (shell.home / "junk").write_text("not a certificate")

    done = shell.run("serve", "--port", taken_port, *words)

    assert done.returncode == 11
    assert said in done.stderr


def test_a_key_that_needs_a_password_is_refused_without_asking_for_it(
    shell: Shell, taken_port: str, certificate: tuple[Path, Path]
) -> None:
    make_token(shell)
    chain, key = certificate
    locked = shell.home / "locked.pem"
    subprocess.run(
        [
            *("openssl", "pkey", "-in", str(key), "-out", str(locked)),
            *("-aes128", "-passout", "pass:walrus"),
        ],
        check=True,
        capture_output=True,
    )
    words = ["--certificate", str(chain), "--key", str(locked)]

    done = shell.process("serve", "--port", taken_port, *words)

    assert done.returncode == 11
    assert done.stderr.startswith(f"backstory: {locked}: it is encrypted with a pass")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "https://127.0.0.1:8848"),
        ("memory.example.org", "https://memory.example.org:8848"),
        ("::", "https://[::]:8848"),
    ],
)
def test_the_address_that_is_told_can_be_opened(host: str, url: str) -> None:
    assert Listening(host, 0, Path("c.pem"), Path("k.pem")).to_url(8848) == url


@uses_running
def test_a_made_token_works_until_it_is_revoked(
    running: tuple[Shell, ServerProcess],
) -> None:
    shell, server = running
    token = make_token(shell)
    made = json.loads(shell.out("token", "list", "--json"))[-1]
    before = httpx.get(f"{server.url}/api/sessions", headers=bearer(token))
    shell.run("token", "revoke", str(made["number"]))
    after = httpx.get(f"{server.url}/api/sessions", headers=bearer(token))

    assert (before.status_code, after.status_code) == (200, 401)


def test_logs_are_json_and_tell_nothing_that_was_said_or_looked_for(
    shell: Shell,
) -> None:
    token, figures = make_token(shell), make_token(shell, "metrics")
    with serving(shell) as server:
        get = httpx.get(
            f"{server.url}/api/search?q=zebra+giraffe", headers=bearer(token)
        )
        httpx.get(f"{server.url}/zebra", headers=bearer(token))
        httpx.get(f"{server.url}/session/claude/zebra", headers=bearer(token))
        httpx.get(f"{server.url}/?q=zebra", headers=bearer("bst_wrong"))
        httpx.request("ZEBRA", f"{server.url}/?q=zebra", headers=bearer(token))
        with suppress(httpx.HTTPError):
            httpx.post(f"{server.url}/mcp", content=b"zebra", headers=bearer(token))
        told = httpx.get(f"{server.url}/metrics", headers=bearer(figures)).text
        server.process.terminate()
        server.process.wait(PATIENCE_S)
        lines = server.lines

        assert not any(secret in server.text for secret in SECRETS)
        assert not any(secret in told for secret in SECRETS)
    mine = [
        line for line in lines if line.get("request") == get.headers["x-request-id"]
    ]
    assert [(line["route"], line["status"], line["token"]) for line in mine] == [
        ("/api/search", 200, 1)
    ]
    assert 'backstory_requests_total{method="other"' in told
    assert 'route="other",status="404"' in told


@uses_running
def test_an_error_is_logged_by_its_kind_and_place_alone(
    running: tuple[Shell, ServerProcess],
) -> None:
    shell, server = running
    token = make_token(shell)
    (shell.kept / "memory").mkdir(exist_ok=True, parents=True)
    (shell.kept / "memory" / "MEMORY.md").mkdir()

    answer = httpx.get(f"{server.url}/memory", headers=bearer(token))

    assert answer.status_code >= 400
    assert str(shell.kept) not in answer.text
    assert all(isinstance(line, dict) for line in server.lines)


@pytest.mark.parametrize(
    ("error", "hints"),
    [
        (StoreUnreachable("zebra", hint="raise max_connections"), ["raise max_conn"]),
        (BadQuery("zebra", hint="giraffe"), []),
    ],
)
def test_the_log_says_what_to_do_about_a_database_that_is_away_and_no_more(
    error: Exception, hints: list[str]
) -> None:
    try:
        raise error
    except (StoreUnreachable, BadQuery):
        failed = sys.exc_info()
    record = logging.LogRecord("a", logging.ERROR, "", 0, "it failed", None, failed)

    line = json.loads(JsonLines().format(record))

    assert line["error"] == type(error).__name__
    assert [line[each][:14] for each in line if each == "hint"] == hints
    assert "zebra" not in str(line)


def test_it_says_that_it_ends_before_it_does_and_exits_well(shell: Shell) -> None:
    make_token(shell)
    with serving(shell) as server:
        assert httpx.get(f"{server.url}/ready").status_code == 200
        server.process.send_signal(signal.SIGTERM)
        told = []
        with suppress(httpx.HTTPError):
            while True:
                told.append(httpx.get(f"{server.url}/ready").status_code)
                time.sleep(0.05)

        assert server.process.wait(PATIENCE_S) == 0
        assert 503 in told


ASKED = {
    "PUT /api/memory": (b'{"text": "# Kept\\n", "version": "x"}', b"HTTP/1.1 409"),
    "POST /mcp": (
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": '
        b'{"name": "search_history", "arguments": {"query": "zebra"}}}',
        b"HTTP/1.1 200",
    ),
}


@contextmanager
def asking(
    server: ServerProcess, token: str, asked: str, size: int
) -> Iterator[socket.socket]:
    """A connection on which a request was begun, whose body has this size."""
    port = int(server.url.rpartition(":")[2])
    address = ("127.0.0.1", port)
    with socket.create_connection(address, timeout=PATIENCE_S) as client:
        lines = [
            f"{asked} HTTP/1.1",
            "Host: 127.0.0.1",
            f"Content-Length: {size}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Authorization: Bearer {token}",
        ]
        client.sendall("\r\n".join([*lines, "\r\n"]).encode())
        yield client


def read_all(client: socket.socket) -> bytes:
    """What is said until the other side closes the connection."""
    pieces = []
    while piece := client.recv(10_000):
        pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize("asked", ASKED)
def test_a_request_that_is_still_arriving_is_answered(shell: Shell, asked: str) -> None:
    token, figures = make_token(shell), make_token(shell, "metrics")
    body, expected = ASKED[asked]
    with (
        serving(shell) as server,
        asking(server, token, asked, len(body)) as client,
    ):
        client.sendall(body[:10])
        assert comes_true(lambda: is_busy(server, figures))
        server.process.send_signal(signal.SIGTERM)
        assert comes_true(lambda: not is_open(server.url))
        # What writes streams looks every half second whether the server ends.
        time.sleep(0.6)
        client.sendall(body[10:])
        answer = read_all(client)

        assert answer.startswith(expected)
        assert b"zebra" in answer or asked != "POST /mcp"
        assert server.process.wait(PATIENCE_S) == 0
        assert [line["event"] for line in server.lines if line["level"] != "info"] == []


def test_a_tool_that_is_at_work_answers_before_the_server_ends(shell: Shell) -> None:
    token = make_token(shell)
    body = (
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": '
        b'{"name": "save_memory", "arguments": {"content": "Likes zebras"}}}'
    )
    with (
        serving(shell) as server,
        asking(server, token, "POST /mcp", len(body)) as client,
    ):
        # Nobody can change notes while this is locked.
        with locked(shell.kept / "notes.lock"):
            client.sendall(body)
            begun = client.recv(10_000)
            server.process.send_signal(signal.SIGTERM)
            assert comes_true(lambda: not is_open(server.url))
            time.sleep(0.6)
        answer = begun + read_all(client)

        assert b"Likes zebras" in answer
        assert answer.endswith(b"0\r\n\r\n")
        assert server.process.wait(PATIENCE_S) == 0


@uses_running
def test_nobody_keeps_the_server_waiting_with_a_stream_of_nothing(
    running: tuple[Shell, ServerProcess],
) -> None:
    shell, server = running
    token = make_token(shell)

    answer = httpx.get(
        f"{server.url}/mcp",
        headers={**bearer(token), "Accept": "text/event-stream"},
    )

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_what_was_acknowledged_survives_a_kill(shell: Shell) -> None:
    token = make_token(shell)
    saved: list[str] = []
    with serving(shell) as server:
        stop = threading.Event()

        def save() -> None:
            with suppress(httpx.HTTPError, KeyError):
                while not stop.is_set():
                    url = f"{server.url}/api/memory"
                    version = httpx.get(url, headers=bearer(token)).json()["version"]
                    text = f"# Memory\n\n- number {len(saved)}\n"
                    done = httpx.put(
                        url,
                        headers=bearer(token),
                        json={"text": text, "version": version},
                    )
                    assert done.status_code == 200, done.text
                    saved.append(text)

        writer = threading.Thread(target=save)
        writer.start()
        assert comes_true(lambda: len(saved) >= 5)
        server.process.kill()
        stop.set()
        writer.join()
    with serving(shell) as server:
        text = httpx.get(f"{server.url}/api/memory", headers=bearer(token)).json()[
            "text"
        ]

    # The last one may have been written without an answer.
    assert text in (saved[-1], f"# Memory\n\n- number {len(saved)}\n")


def test_over_tls_a_browser_signs_in_and_stays_signed_in(
    shell: Shell, certificate: tuple[Path, Path]
) -> None:
    token = make_token(shell)
    chain, key = certificate
    words = ["--certificate", str(chain), "--key", str(key)]
    with serving(shell, *words) as server:
        trusted = ssl.create_default_context(cafile=str(chain))
        url = server.url.replace("127.0.0.1", "localhost")
        with httpx.Client(verify=trusted, base_url=url, follow_redirects=True) as page:
            first = page.get("/", headers={"Accept": "text/html"})
            own = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
            second = page.post("/sign-in", data={"token": token}, headers=own)
            third = page.get("/memory")

    assert "<h1>Sign in</h1>" in first.text
    assert (second.status_code, second.url.path) == (200, "/")
    assert third.status_code == 200
    assert third.headers["strict-transport-security"] == "max-age=31536000"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself."""
    folder = tmp_path_factory.mktemp("certificate")
    chain, key = folder / "chain.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-days", "2"),
            # Such a key is made much faster than one for RSA.
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(key), "-out", str(chain)),
        ],
        check=True,
        capture_output=True,
    )
    return chain, key


@uses_running
def test_forwarding_headers_count_only_from_a_proxy_that_was_named(
    running: tuple[Shell, ServerProcess],
) -> None:
    shell, without_proxy = running
    headers = {
        **bearer(make_token(shell)),
        "Host": NAME,
        "X-Forwarded-Proto": "https",
        "Origin": f"https://{NAME}",
    }

    def ask(server: ServerProcess) -> int:
        return httpx.get(f"{server.url}/api/sessions", headers=headers).status_code

    with serving(shell, "--name", NAME, "--behind-proxy", "127.0.0.1") as server:
        behind_this_machine = ask(server)
    with serving(shell, "--name", NAME, "--behind-proxy", "10.9.8.7") as server:
        behind_another = ask(server)

    statuses = ask(without_proxy), behind_this_machine, behind_another
    assert statuses == (403, 200, 403)
