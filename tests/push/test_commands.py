"""The command push, continuous pushing, and a server that is killed in between."""

import json
import subprocess
import threading
from functools import partial
from pathlib import Path

import httpx
import pytest

from backstory.system.locks import locked
from tests.builders import a_line, append, session_file
from tests.processes import comes_true
from tests.serve.test_process import bearer, certificate, make_token, serving
from tests.shell import BACKSTORY, Done, Shell

__all__ = ["certificate"]


@pytest.fixture
def server_side(tmp_path: Path) -> Shell:
    home = tmp_path / "server"
    home.mkdir()
    return Shell(home, home / "kept")


@pytest.fixture
def laptop(tmp_path: Path) -> Shell:
    home = tmp_path / "laptop"
    home.mkdir()
    return Shell(home, home / "kept")


def environ_of(token: str) -> dict[str, str]:
    return {
        "BACKSTORY_PUSH_TOKEN": "env:TEAM_TOKEN",
        "TEAM_TOKEN": token,
        "BACKSTORY_EMBEDDER_NAME": "none",
    }


def list_messages(url: str, token: str) -> list[str]:
    get = f"{url}/api/sessions"
    answer = httpx.get(get, headers=bearer(token), timeout=60)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    return [
        message["text"]
        for session in found
        for message in httpx.get(
            f"{get}/{session['host']}/{session['id']}",
            headers=bearer(token),
            timeout=60,
        ).json()["messages"]
    ]


def has_lines(path: Path, number: int) -> bool:
    return len(path.read_text(encoding="utf-8").splitlines()) == number


def test_push_reads_what_is_new_and_tells_what_it_sent(
    server_side: Shell, laptop: Shell
) -> None:
    token = make_token(server_side)
    file = session_file(laptop.home)
    append(file, a_line("The ladder is below.", uuid="u1"))
    with serving(server_side) as server:

        def push(*more: str) -> Done:
            return laptop.run("push", "--to", server.url, *more, **environ_of(token))

        # The first one waits until everything is read.
        first = push()
        append(file, a_line("The saw is above.", uuid="u2"))
        second = push()
        third = push()
        fourth = push("--json")
        there = list_messages(server.url, token)

    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith(f"Sent 1 message of 1 session to {server.url} (")
    assert first.stdout.endswith("; new there: 1.\n")
    assert second.stdout.startswith(f"Sent 1 message of 1 session to {server.url} (")
    assert third.stdout == f"Nothing new for {server.url}.\n"
    assert json.loads(fourth.stdout)["messages"] == 0
    assert there == ["The ladder is below.", "The saw is above."]


def test_a_certificate_of_the_teams_own_is_trusted_if_the_machine_trusts_it(
    server_side: Shell, laptop: Shell, certificate: tuple[Path, Path]
) -> None:
    chain, key = certificate
    token = make_token(server_side)
    append(session_file(laptop.home), a_line("The ladder is below.", uuid="u1"))
    laptop.run("index", **environ_of(token))
    words = ["--certificate", str(chain), "--key", str(key)]
    with serving(server_side, *words) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        push = ["push", "--to", url]
        refused = laptop.run(*push, **environ_of(token))
        trusting = {**environ_of(token), "SSL_CERT_FILE": str(chain)}
        sent = laptop.run(*push, **trusting)
        url_without_tls = server.url.replace("https:", "http:")
        open_ = laptop.run("push", "--to", url_without_tls, **environ_of(token))

    assert refused.returncode == 42
    assert "has a certificate that is not trusted (self-signed" in refused.stderr
    assert "SSL_CERT_FILE" in refused.stderr
    assert sent.stdout.startswith(f"Sent 1 message of 1 session to {url}")
    assert open_.returncode == 42
    assert open_.stderr.endswith(
        "check --to: if there is TLS at this port, it begins with https://; nothing "
        "is lost\n"
    )


def test_a_certificate_that_has_expired_or_is_for_another_name_is_told(
    server_side: Shell, laptop: Shell, certificate: tuple[Path, Path]
) -> None:
    _, key = certificate
    chain = server_side.home / "expired.pem"
    request = ["openssl", "req", "-new", "-key", str(key), "-subj", "/CN=localhost"]
    sign = ["openssl", "x509", "-req", "-signkey", str(key), "-out", str(chain)]
    asked = subprocess.run(
        [*request, "-addext", "subjectAltName=DNS:localhost"],
        capture_output=True,
        check=True,
    )
    subprocess.run(
        [*sign, "-days", "-1", "-copy_extensions", "copyall"],
        input=asked.stdout,
        capture_output=True,
        check=True,
    )
    token = make_token(server_side)
    append(session_file(laptop.home), a_line("The ladder is below.", uuid="u1"))
    told = []
    for used in (chain, certificate[0]):
        words = ["--certificate", str(used), "--key", str(key)]
        trusting = {**environ_of(token), "SSL_CERT_FILE": str(used)}
        with serving(server_side, *words) as server:
            # The certificate that is still good is for localhost alone.
            name = "localhost" if used is chain else "127.0.0.1"
            url = server.url.replace("127.0.0.1", name)
            told.append(laptop.run("push", "--to", url, **trusting).stderr)

    expired, misnamed = told
    assert "is not trusted (certificate has expired)\n" in expired
    assert "hint: whoever operates the server has to renew it; nothing is l" in expired
    assert "is not trusted (IP address mismatch)\n" in misnamed
    assert "hint: check --to: it must use a name that the certificate" in misnamed


def test_push_without_a_server_says_what_to_do(laptop: Shell) -> None:
    done = laptop.run("push")

    assert done.returncode == 11
    assert done.stderr.startswith("backstory: push.url is not set\n")


def test_nothing_is_read_for_a_push_that_cannot_be(laptop: Shell) -> None:
    append(session_file(laptop.home), a_line("The ladder is below.", uuid="u1"))

    done = laptop.run("push", "--to", "nowhere")

    assert done.returncode == 11
    assert json.loads(laptop.out("status", "--json"))["messages"] == 0


def test_an_address_that_is_none_is_blamed_on_where_it_was_given(
    laptop: Shell,
) -> None:
    typed = laptop.run("push", "--to", "nowhere")
    chosen = laptop.run("push", BACKSTORY_PUSH_URL="nowhere")

    wrong = "is not an http or https address\n"
    assert typed.stderr.startswith(f"backstory: --to {wrong}")
    assert chosen.stderr.startswith(f"backstory: push.url {wrong}")


def test_a_wrong_scheme_or_path_is_told(server_side: Shell, laptop: Shell) -> None:
    token = make_token(server_side)
    append(session_file(laptop.home), a_line("The ladder is below.", uuid="u1"))

    def push(url: str) -> tuple[int, str]:
        done = laptop.run("push", "--to", url, **environ_of(token))
        return done.returncode, done.stderr.split("\n  hint: ")[1].rstrip()

    with serving(server_side) as server:
        paths = [push(f"{server.url}{path}") for path in ("/mcp", "/api/", "/{x}")]
        encrypted = push(server.url.replace("http:", "https:"))
    away = push(server.url)

    assert paths == [
        (
            41,
            "check --to: it is the server's address, such as "
            f"https://memory.example.org, without {path}",
        )
        for path in ("/mcp", "/api", "/{x}")
    ]
    assert encrypted == (
        42,
        "check --to: if there is no TLS at this port, it begins with http://",
    )
    assert away == (
        42,
        "check that the server runs, and --to; nothing is lost: what is new is sent "
        "the next time",
    )


def test_a_password_in_the_address_is_not_sent_instead_of_the_token(
    laptop: Shell,
) -> None:
    done = laptop.run("push", "--to", "http://u:walrus@127.0.0.1:1", **environ_of("x"))

    assert done.returncode == 11
    assert "--to has a user or a password in it" in done.stderr
    assert "walrus" not in done.stderr


def test_a_token_in_place_of_where_it_is_is_refused_and_not_shown(
    laptop: Shell,
) -> None:
    token = "bst_" + "A" * 43
    done = laptop.run("push", "--to", "http://127.0.0.1:1", BACKSTORY_PUSH_TOKEN=token)
    shown = laptop.run("settings", BACKSTORY_PUSH_TOKEN=token)

    assert done.returncode == 11
    assert token not in done.stdout + done.stderr + shown.stdout


def test_watching_pushes_as_files_grow_and_beside_others_that_push(
    server_side: Shell, laptop: Shell
) -> None:
    token = make_token(server_side)
    file = session_file(laptop.home)
    append(file, a_line("said before", uuid="u1"))
    # It is asked again and again below until it has what was said.
    with serving(server_side, BACKSTORY_SERVE_REQUESTS_PER_MINUTE="0") as server:
        environ = {
            **laptop.environ,
            **environ_of(token),
            "BACKSTORY_PUSH_URL": server.url,
            "BACKSTORY_INDEX_WATCH_SECONDS": "0.05",
        }
        log = laptop.home / "log"
        with (
            log.open("w") as writer,
            subprocess.Popen(
                [*BACKSTORY, "index", "--watch"],
                env=environ,
                cwd=laptop.home,
                stdout=writer,
                stderr=subprocess.DEVNULL,
            ) as watching,
        ):
            try:
                assert comes_true(
                    lambda: list_messages(server.url, token) == ["said before"]
                )
                with locked(laptop.kept / "push.lock"):
                    for number in (2, 3):
                        append(file, a_line("said meanwhile", uuid=f"u{number}"))
                        # One line for what was sent, and one for each reading.
                        assert comes_true(partial(has_lines, log, 1 + number))
                    assert len(list_messages(server.url, token)) == 1
                assert comes_true(lambda: len(list_messages(server.url, token)) == 3)
            finally:
                watching.terminate()


def test_watching_goes_on_without_a_token_and_says_so_once(laptop: Shell) -> None:
    file = session_file(laptop.home)
    append(file, a_line("said before", uuid="u1"))
    environ = {
        **laptop.environ,
        "BACKSTORY_PUSH_URL": "http://127.0.0.1:1",
        "BACKSTORY_PUSH_TOKEN": f"file:{laptop.home / 'token'}",
        "BACKSTORY_EMBEDDER_NAME": "none",
        "BACKSTORY_INDEX_WATCH_SECONDS": "0.05",
    }
    log = laptop.home / "log"
    with (
        log.open("w") as writer,
        subprocess.Popen(
            [*BACKSTORY, "index", "--watch"],
            env=environ,
            cwd=laptop.home,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
        ) as watching,
    ):
        try:
            assert comes_true(partial(has_lines, log, 1))
            append(file, a_line("said meanwhile", uuid="u2"))
            assert comes_true(partial(has_lines, log, 2))
        finally:
            watching.terminate()
            assert watching.stderr is not None
            told = watching.stderr.read()

    assert told.splitlines() == [
        "Watching; stop with Ctrl-C.",
        f"Not pushed: push.token names the file '{laptop.home / 'token'}', which "
        "cannot be read (No such file or directory)",
        "  hint: check the path, and that you may read the file",
    ]


def test_a_server_that_is_killed_while_it_takes_in_loses_and_doubles_nothing(
    server_side: Shell, laptop: Shell
) -> None:
    token = make_token(server_side)
    said = [f"line {number} of what was said" for number in range(3_000)]
    append(
        session_file(laptop.home),
        *(a_line(text, uuid=f"u{at}") for at, text in enumerate(said)),
    )
    laptop.run("index", **environ_of(token))
    with serving(server_side) as server:
        killer = threading.Timer(0.15, server.process.kill)
        killer.start()
        first = laptop.process("push", "--to", server.url, **environ_of(token))
        killer.join()
        url, port = server.url, server.url.rpartition(":")[2]
    with serving(server_side, "--port", port) as server:
        second = laptop.run("push", "--to", server.url, **environ_of(token))
        there = list_messages(server.url, token)

    assert first.returncode in (0, 42)
    assert (second.returncode, url) == (0, server.url)
    assert there == said
