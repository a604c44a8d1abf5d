"""The server on a database with several tenants, by commands and real processes."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from backstory import Memory
from tests.builders import SESSION, a_line, append, session_file
from tests.embedding_server import running_server
from tests.postgres_server import OWNER, PASSWORD, PostgresServer
from tests.processes import PATIENCE_S
from tests.serve.test_process import ServerProcess, bearer, serving
from tests.shell import BACKSTORY, Shell

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("serve-postgres")]


class PostgresTeam:
    """A server, a token of each kind for each tenant, and how to run commands."""

    def __init__(
        self, shell: Shell, environ: dict[str, str], postgres: PostgresServer
    ) -> None:
        self.shell = shell
        self.environ = environ
        self.postgres = postgres
        self.tokens: dict[str, str] = {}
        self.server: ServerProcess

    def command(self, *words: str) -> str:
        done = self.shell.run(*words, "--owner", "env:OWNER_URL", **self.environ)
        assert done.returncode == 0, done.stderr
        assert PASSWORD not in done.stdout + done.stderr
        return done.stdout.strip()

    def open(self, tenant: str) -> Memory:
        url = f"store.url={self.environ['MEMORY_URL']}"
        return Memory.open(
            self.shell.home / tenant,
            settings=["embedder.name=none", url, f"store.tenant={tenant}"],
        )

    def get(self, path: str, token: str) -> httpx.Response:
        headers = bearer(self.tokens.get(token, token))
        return httpx.get(self.server.url + path, headers=headers, timeout=60)


@pytest.fixture(scope="module")
def team(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PostgresTeam]:
    home = tmp_path_factory.mktemp("team")
    name = postgres.create_database()
    environ = {
        "BACKSTORY_STORE_URL": "env:MEMORY_URL",
        "MEMORY_URL": postgres.url(name=name),
        "OWNER_URL": postgres.url(OWNER, name),
    }
    made = PostgresTeam(Shell(home, home / "kept"), environ, postgres)
    made.command("database", "prepare")
    for tenant, secret in (("anna", "apricot"), ("bo", "blueberry")):
        made.command("database", "add-tenant", tenant)
        for scope in ("read", "read-write"):
            words = ["--tenant", tenant, "--scope", scope]
            token = made.command("token", "create", f"{tenant} {scope}", *words)
            made.tokens[f"{tenant} {scope}"] = token
        with made.open(tenant) as memory:
            memory.record(f"s-{tenant}", "user", f"the code word is {secret}")
            memory.notebook.add_fact(f"{tenant} likes {secret}", "Taste", mask=False)
    # Tests start workers of their own.
    with serving(made.shell, BACKSTORY_SERVE_WORKERS="0", **environ) as made.server:
        yield made


def test_each_token_sees_its_own_tenant(team: PostgresTeam) -> None:
    seen = {}
    for token in ("anna read", "bo read"):
        results = team.get("/api/search?q=code+word", token).json()["results"]
        seen[token] = [each["session"]["id"] for each in results if each["session"]]

    assert seen == {"anna read": ["s-anna"], "bo read": ["s-bo"]}


def test_notes_are_of_the_tenant(team: PostgresTeam) -> None:
    seen = [
        [word in team.get("/api/memory", token).text for word in ("apricot", "blueb")]
        for token in ("anna read", "bo read")
    ]

    assert seen == [[True, False], [False, True]]


def test_a_token_is_listed_by_its_beginning_and_the_day_it_was_used(
    team: PostgresTeam,
) -> None:
    team.get("/api/sessions", "anna read")
    listed = team.command("token", "list")

    assert "bst_" in listed
    assert not any(token in listed for token in team.tokens.values())
    assert "anna read-write" in listed


def test_a_revoked_token_is_refused_at_once(team: PostgresTeam) -> None:
    token = team.command("token", "create", "short", "--tenant", "bo")
    before = team.get("/api/sessions", token).status_code
    number = team.command("token", "list").splitlines()[-1].split()[0]
    team.command("token", "revoke", number)

    assert (before, team.get("/api/sessions", token).status_code) == (200, 401)


def test_a_token_for_a_tenant_that_there_is_not_is_not_made(team: PostgresTeam) -> None:
    done = team.shell.run(
        "token", "create", "x", "--tenant", "nobody", "--owner", "env:OWNER_URL",
        **team.environ,
    )  # fmt: skip

    assert done.returncode == 12
    assert done.stderr == (
        "backstory: there is no tenant 'nobody'\n"
        "  hint: 'backstory database tenants' lists them, and "
        "'backstory database add-tenant' adds one\n"
    )


def test_a_token_of_a_database_is_for_a_tenant(team: PostgresTeam) -> None:
    done = team.shell.run(
        "token", "create", "x", "--owner", "env:OWNER_URL", **team.environ
    )

    assert done.returncode == 2
    assert "give --tenant" in done.stderr


def test_tokens_of_a_database_need_its_owner(team: PostgresTeam) -> None:
    done = team.shell.run("token", "list", **team.environ)

    assert done.returncode == 2
    assert "give --owner" in done.stderr


def test_nothing_of_a_tenant_is_kept_in_files_of_the_server(
    team: PostgresTeam,
) -> None:
    for token in ("anna read", "bo read"):
        team.get("/?q=code+word", token)

    files = [each for each in team.shell.kept.rglob("*") if each.is_file()]
    assert [each for each in files if b"apricot" in each.read_bytes()] == []
    names = [
        str(each.relative_to(team.shell.kept))
        for each in Path(team.shell.kept).rglob("*")
    ]
    assert not any("anna" in name for name in names)


def test_a_connection_that_is_lost_costs_one_request_at_most(
    team: PostgresTeam,
) -> None:
    team.get("/api/sessions", "anna read")
    team.postgres.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'backstory'"
    )

    statuses = [team.get("/api/sessions", "anna read").status_code for _ in range(3)]

    assert statuses[1:] == [200, 200]
    assert team.get("/ready", "x").status_code == 200


def test_what_is_pushed_is_in_the_database_of_its_tenant_alone(
    team: PostgresTeam, tmp_path: Path
) -> None:
    laptop = Shell(tmp_path, tmp_path / "kept")
    environ = {
        "BACKSTORY_PUSH_TOKEN": "env:TEAM_TOKEN",
        "TEAM_TOKEN": team.tokens["bo read-write"],
        "BACKSTORY_EMBEDDER_NAME": "none",
    }
    said = [f"line {number} about quinces" for number in range(2_500)]
    append(
        session_file(laptop.home),
        *(a_line(text, uuid=f"u{at}") for at, text in enumerate(said)),
    )
    laptop.run("index", **environ)
    first = laptop.run("push", "--to", team.server.url, **environ)
    again = laptop.run("push", "--to", team.server.url, **environ)
    laptop.run("forget", SESSION, "--yes", **environ)
    before = team.get("/api/search?q=quinces", "bo read").json()["results"]
    forgotten = laptop.run("push", "--to", team.server.url, **environ)
    after = team.get("/api/search?q=quinces", "bo read").json()["results"]

    assert "Sent 2,500 messages of 1 session" in first.stdout, first.stderr
    assert again.stdout.startswith("Nothing new")
    assert len(before) == 10
    assert "quinces" not in team.get("/api/search?q=quinces", "anna read").text[50:]
    assert "Forgotten there as well: 1 session." in forgotten.stdout
    assert after == []


def test_worker_processes_share_the_work_and_vectors_are_made_once(
    team: PostgresTeam, tmp_path: Path
) -> None:
    tenants = [f"worker {number}" for number in range(6)]
    for tenant in tenants:
        team.command("database", "add-tenant", tenant)
        with team.open(tenant) as memory:
            for number in range(5):
                memory.record("s", "user", f"{tenant} said sentence {number}")
    with running_server() as embedding:
        environ = {
            **team.shell.environ,
            **team.environ,
            "BACKSTORY_EMBEDDER_NAME": "openai",
            "BACKSTORY_EMBEDDER_URL": f"{embedding.url}/v1",
            "BACKSTORY_EMBEDDER_MODEL": "letters",
        }
        processes = [
            subprocess.Popen(
                [*BACKSTORY, "work", "--tenants", "--once"],
                env={**environ, "BACKSTORY_HOME": str(tmp_path / str(number))},
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(3)
        ]
        said = [each.communicate(timeout=PATIENCE_S)[0] for each in processes]
        sent = [text for texts in embedding.texts() for text in texts]

    assert [each.returncode for each in processes] == [0, 0, 0]
    done = [int(line.split()[1]) for line in said]
    assert sum(done) >= len(tenants)
    mine = [text for text in sent if "said sentence" in text]
    assert len(mine) == len(set(mine)) == 5 * len(tenants)
