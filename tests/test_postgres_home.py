"""A home whose memory is in a PostgreSQL database, through the front door."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path

import psycopg
import pytest

from backstory import (
    BadQuery,
    ConfigError,
    Erasure,
    Memory,
    NotesConflict,
    StoreFull,
    StoreProblem,
    StoreUnreachable,
    UnknownName,
)
from backstory.store.postgres.database import Database
from backstory.store.postgres.history import PostgresHistory
from backstory.store.postgres.tenants import TenantList
from tests.builders import SESSION, a_line, append, session_file
from tests.every_command import COMMANDS
from tests.postgres_server import ADMIN, OWNER, PASSWORD, PostgresServer
from tests.processes import PATIENCE_S, comes_true
from tests.samples import a_memory
from tests.shell import BACKSTORY, Shell

pytestmark = pytest.mark.postgres


@pytest.fixture
def tenant(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    """The name of a tenant that nobody else uses."""
    name = str(request.node.name)[:200]
    TenantList(postgres.url(OWNER)).create(name)
    return name


def open_memory(postgres: PostgresServer, tenant: str, folder: Path) -> Memory:
    chosen = [f"store.url={postgres.url()}", f"store.tenant={tenant}"]
    return Memory.open(folder, settings=["embedder.name=none", *chosen])


def test_what_one_machine_records_another_one_finds(
    postgres: PostgresServer, tenant: str, tmp_path: Path
) -> None:
    with open_memory(postgres, tenant, tmp_path / "one") as memory:
        memory.record("trip", "user", "We fly to Lisbon on Tuesday.")
    with open_memory(postgres, tenant, tmp_path / "other") as memory:
        found = memory.search("when do we fly?").hits

    assert [hit.text for hit in found] == ["We fly to Lisbon on Tuesday."]
    assert not list(tmp_path.rglob("*.db"))


def test_tenants_find_nothing_of_each_other(
    postgres: PostgresServer, tenant: str, tmp_path: Path
) -> None:
    TenantList(postgres.url(OWNER)).create(f"{tenant}, another")
    with open_memory(postgres, tenant, tmp_path) as memory:
        memory.record("trip", "user", "We fly to Lisbon on Tuesday.")

    with open_memory(postgres, f"{tenant}, another", tmp_path) as memory:
        assert memory.sessions() == []
        assert memory.search("when do we fly?").hits == ()


def test_a_tenant_that_is_not_there_is_told_at_the_first_use(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    with (
        open_memory(postgres, "nobody", tmp_path) as memory,
        pytest.raises(UnknownName, match="there is no tenant 'nobody'") as raised,
    ):
        memory.sessions()

    assert "backstory database add-tenant nobody --owner" in raised.value.hint


@pytest.mark.parametrize("sign", "@/")
def test_a_password_that_is_not_encoded_is_not_taken_for_a_host(
    tmp_path: Path, sign: str
) -> None:
    url = f"postgresql://anna:wal{sign}rus@127.0.0.1:1/memory"

    with pytest.raises(ConfigError, match="not the address") as raised:
        a_memory(tmp_path, settings=(f"store.url={url}",)).sessions()

    assert "rus" not in str(raised.value)
    assert "percent-encoded" in raised.value.hint


def test_a_tenant_is_made_once(postgres: PostgresServer, tenant: str) -> None:
    tenants = TenantList(postgres.url(OWNER))

    with pytest.raises(BadQuery, match="there is already a tenant"):
        tenants.create(tenant)
    with pytest.raises(BadQuery, match="'' cannot be the name of a tenant"):
        tenants.create("")


def test_commands_work_on_a_database(
    postgres: PostgresServer, tmp_path: Path, home: Path
) -> None:
    shell = Shell(home, tmp_path / "kept")
    name = postgres.create_database()
    environ = {
        "BACKSTORY_STORE_URL": "env:MEMORY_URL",
        "MEMORY_URL": postgres.url(name=name),
        "OWNER_URL": postgres.url(OWNER, name),
    }
    append(session_file(home), a_line("The ladder is below the stairs.", uuid="u1"))

    refused = shell.run("sessions", **environ)
    prepare = ["database", "prepare", "--owner", "env:OWNER_URL"]
    prepared, again = (shell.run(*prepare, **environ) for _ in range(2))
    shell.run("index", "--wait", **environ)
    found = shell.run("search", "ladder", **environ)
    status = shell.run("status", **environ)

    assert refused.returncode == StoreProblem.exit_code
    assert "it has no tables of Backstory" in refused.stderr
    assert "backstory database prepare --owner" in refused.stderr
    assert prepared.stdout.splitlines()[-1] == "Made the tenant default."
    assert again.stdout.splitlines()[-1] == "The tenant default already exists."
    assert "The ladder is below the stairs." in found.stdout
    assert SESSION[:8] in found.stdout
    assert f"/{name}, tenant default" in status.stdout
    done = (refused, prepared, found, status)
    assert not any(PASSWORD in each.stdout + each.stderr for each in done)


OWNERS_COMMANDS = [
    ["database", "prepare"],
    ["database", "tenants"],
    ["database", "add-tenant", "anna"],
    ["database", "remove-tenant", "anna", "--yes"],
    ["token", "list"],
    ["token", "revoke", "1"],
    ["token", "create", "Anna", "--tenant", "anna"],
]


@pytest.mark.parametrize("words", OWNERS_COMMANDS, ids=" ".join)
def test_a_wrong_owner_is_not_blamed_on_the_setting(
    postgres: PostgresServer, tmp_path: Path, home: Path, words: list[str]
) -> None:
    shell = Shell(home, tmp_path / "kept")
    owner = postgres.url(OWNER).replace("s3cret", "wrong")

    done = shell.run(
        *words, "--owner", owner, BACKSTORY_STORE_URL=postgres.url(name="nowhere")
    )

    assert (done.returncode, done.stdout) == (StoreUnreachable.exit_code, "")
    assert "it refuses the user or the password" in done.stderr
    assert done.stderr.splitlines()[-1] == (
        "  hint: check the user, the password and the database in --owner"
    )


@pytest.mark.parametrize("words", OWNERS_COMMANDS[1:], ids=" ".join)
def test_before_there_are_tables_the_owner_is_told_to_make_them(
    postgres: PostgresServer, tmp_path: Path, home: Path, words: list[str]
) -> None:
    shell = Shell(home, tmp_path / "kept")
    name = postgres.create_database()

    done = shell.run(
        *words,
        "--owner",
        postgres.url(OWNER, name),
        BACKSTORY_STORE_URL=postgres.url(name=name),
    )

    assert (done.returncode, done.stdout) == (StoreProblem.exit_code, "")
    assert "it lacks tables of Backstory" in done.stderr
    assert "backstory database prepare --owner" in done.stderr


def test_preparing_another_database_than_memories_are_opened_in_is_told(
    postgres: PostgresServer, tmp_path: Path, home: Path
) -> None:
    shell = Shell(home, tmp_path / "kept")
    prepared, opened = postgres.create_database(), postgres.create_database()

    done = shell.run(
        *("database", "prepare", "--owner", postgres.url(OWNER, prepared)),
        BACKSTORY_STORE_URL=postgres.url(name=opened),
    )

    assert (done.returncode, done.stdout) == (ConfigError.exit_code, "")
    assert f"/{prepared} is ready, but store.url names another" in done.stderr


def test_every_command_works_on_a_database(
    postgres: PostgresServer, tmp_path: Path, home: Path
) -> None:
    """As ``tests/test_nothing_leaves.py`` runs them on files."""
    name = postgres.create_database()
    postgres.prepare(name)
    TenantList(postgres.url(OWNER, name)).create("default")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    temporary = tmp_path / "temporary"
    temporary.mkdir(mode=0o700)

    done = subprocess.run(
        [sys.executable, "-m", "tests.every_command", str(temporary), str(port), "0"],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "BACKSTORY_HOME": str(tmp_path / "kept"),
            "BACKSTORY_STORE_URL": postgres.url(name=name),
            "OWNER_URL": postgres.url(OWNER, name),
            "TMPDIR": str(temporary),
            "XDG_RUNTIME_DIR": os.environ["XDG_RUNTIME_DIR"],
            "EDITOR": "true",
            "PYTHONUTF8": "1",
            "TZ": "UTC",
        },
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * PATIENCE_S,
    )

    assert done.returncode == 0, done.stderr
    codes = json.loads(done.stdout.splitlines()[-1])
    odd = {path for path, code in codes.items() if code not in COMMANDS[path][1]}
    assert odd == set(), (codes, done.stderr)
    # Everything but what concerns this machine is in the database.
    assert not list((tmp_path / "kept").rglob("*.db"))
    assert not list((tmp_path / "kept" / "memory").rglob("*.md"))
    # Hooks tell only their log what goes wrong. On a busy machine, one may be late.
    log = tmp_path / "kept" / "hooks.log"
    told = log.read_text("utf-8").splitlines() if log.exists() else []
    assert [line for line in told if "it took longer than" not in line] == []


def test_more_threads_search_at_once_than_there_are_connections(
    postgres: PostgresServer,
    tenant: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Database, "max_connections", 2)
    said = "We put the tall ladder below the stairs."
    found: list[tuple[list[str], tuple[str, ...]]] = []
    with open_memory(postgres, tenant, tmp_path) as memory:
        memory.record("talk", "user", said)
        memory.search("ladder")

        def search() -> None:
            result = memory.search("tall ladder")
            found.append(([hit.text for hit in result.hits], result.notices))

        threads = [threading.Thread(target=search) for _ in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert found == [([said], ())] * 24


def test_a_search_sees_what_was_recorded_just_before(
    postgres: PostgresServer, tenant: str, tmp_path: Path
) -> None:
    with open_memory(postgres, tenant, tmp_path) as memory:
        for number in range(5):
            memory.record("house", "user", f"Ladder number {number}")
            hits = memory.search("ladder").hits
            assert len(hits) == number + 1


def test_a_machine_leaves_the_guidance_of_others_alone(
    postgres: PostgresServer, tenant: str, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Run the walrus tests first.")

    def find() -> list[str]:
        with open_memory(postgres, tenant, tmp_path / "home") as memory:
            memory.record("work", "user", "Hello", project=project)
            memory.index()
            return [
                hit.text for hit in memory.search("walrus", sources="guidance").hits
            ]

    first = find()
    project.rename(tmp_path / "of another machine")
    elsewhere = find()
    (tmp_path / "of another machine").rename(project)
    (project / "AGENTS.md").unlink()
    gone = find()

    assert (first, elsewhere, gone) == (["Run the walrus tests first."],) * 2 + ([],)


# -- notes ----------------------------------------------------------------------------


def test_machines_share_their_notes(
    postgres: PostgresServer, tenant: str, tmp_path: Path
) -> None:
    day = date(2026, 2, 25)
    with open_memory(postgres, tenant, tmp_path / "one") as memory:
        memory.notebook.add_fact("Has a ladder", topic="House")
        memory.notebook.append_log(day, "Painted the fence", "one")
    with open_memory(postgres, tenant, tmp_path / "other") as memory:
        text = memory.notebook.read_memory()
        logs = memory.notebook.list_logs()
        found = [hit.text for hit in memory.search("ladder").hits]
        memory.notebook.update_fact("Has a ladder", "Has two ladders")
    with open_memory(postgres, tenant, tmp_path / "one") as memory:
        again = [hit.text for hit in memory.search("ladder").hits]

    assert text == "# Long-term Memory\n\n## House\n- Has a ladder\n"
    assert logs == [day]
    assert found == ["Has a ladder"]
    assert again == ["Has two ladders"]


def test_no_fact_is_lost_when_many_save_at_once(
    postgres: PostgresServer, tenant: str, tmp_path: Path
) -> None:
    facts = [f"Owns tool number {number}" for number in range(20)]

    def save(number: int) -> None:
        with open_memory(postgres, tenant, tmp_path / str(number)) as memory:
            for fact in facts[number::4]:
                memory.notebook.add_fact(fact)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with open_memory(postgres, tenant, tmp_path) as memory:
        lines = memory.notebook.read_memory().splitlines()
    assert sorted(line[2:] for line in lines if line[:2] == "- ") == sorted(facts)


def test_what_a_person_saves_meanwhile_is_not_overwritten(
    postgres: PostgresServer, tenant: str, tmp_path: Path
) -> None:
    with (
        open_memory(postgres, tenant, tmp_path / "one") as one,
        open_memory(postgres, tenant, tmp_path / "other") as other,
    ):
        one.notebook.add_fact("Has a ladder")
        before = one.notebook.read_memory()
        other.notebook.replace_memory(f"{before}- Has a saw\n", before)

        with pytest.raises(NotesConflict):
            one.notebook.replace_memory("All gone", before)

        assert one.notebook.read_memory() == f"{before}- Has a saw\n"


def test_the_memory_is_edited_in_a_temporary_file(
    postgres: PostgresServer, tenant: str, tmp_path: Path, home: Path
) -> None:
    shell = Shell(home, tmp_path / "kept")
    environ = {
        "BACKSTORY_STORE_URL": postgres.url(),
        "BACKSTORY_STORE_TENANT": tenant,
        "EDITOR": f'{sys.executable} -c "import sys; '
        "open(sys.argv[1], 'a').write('- Has a saw\\n')\"",
    }
    shell.run("memory", "add", "Has a ladder", **environ)

    edited = shell.process("memory", "edit", **environ)

    assert edited.stdout == "Saved.\n", edited.stderr
    shown = shell.run("memory", "show", **environ).stdout
    assert "Has a ladder" in shown
    assert "Has a saw" in shown
    assert list((tmp_path / "kept" / "memory").iterdir()) == []


def test_a_forgotten_fact_is_gone_from_the_tables(
    postgres: PostgresServer, tenant: str, tmp_path: Path
) -> None:
    with open_memory(postgres, tenant, tmp_path) as memory:
        memory.notebook.add_fact("Hides the key below the walrus")
        before = memory.notebook.read_memory()
        after = f"{before}- Has a saw\n"
        memory.notebook.replace_memory(after, before, keep_backup=True)

        report = memory.forget(fact="walrus")

        assert report.facts[0].copies == 1
        assert "walrus" not in memory.notebook.read_memory()
        if postgres.version < 17:
            assert report.erasure is Erasure.LEFT
            return
        assert report.erasure is Erasure.DONE
        assert postgres.find_in_files(b"below the walrus") == []


def test_of_a_tenant_that_is_removed_nothing_is_left(
    postgres: PostgresServer, tenant: str, tmp_path: Path
) -> None:
    kept = f"{tenant} and company"
    TenantList(postgres.url(OWNER)).create(kept)
    for name, place in ((tenant, "pangolin"), (kept, "aardvark")):
        with open_memory(postgres, name, tmp_path / place) as memory:
            memory.record("bank", "user", f"The code is in the {place} jar")
            memory.notebook.add_fact(f"Owns a {place} jar")
            memory.index()
    shell = Shell(tmp_path, tmp_path / "kept")
    owner = ["--owner", postgres.url(OWNER)]
    remove = ["database", "remove-tenant", tenant]

    unasked = shell.run(*remove, *owner)
    done = shell.run(*remove, "--yes", *owner)
    again = shell.run(*remove, "--yes", *owner)

    assert unasked.returncode == 2
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == [
        f"This deletes the tenant {tenant} and its whole memory.",
        f"Deleted the tenant {tenant}.",
    ]
    assert again.returncode == UnknownName.exit_code
    numbers = {each.tenant_id for each in TenantList(postgres.url(OWNER)).list()}
    tables = postgres.ask(
        "SELECT table_name FROM information_schema.columns "
        "WHERE table_schema = 'backstory' AND column_name = 'tenant_id'",
        name="memory",
    )
    for (table,) in tables:
        found = postgres.ask(
            f"SELECT DISTINCT tenant_id FROM backstory.{table} "
            "WHERE tenant_id IS NOT NULL",
            name="memory",
        )
        assert {number for (number,) in found} <= numbers
    with open_memory(postgres, kept, tmp_path / "aardvark") as memory:
        assert [hit.text for hit in memory.search("jar").hits] != []
    if postgres.version >= 17:
        assert len(done.stdout.splitlines()) == 2
        assert postgres.find_in_files(b"pangolin jar") == []


def test_what_others_still_saw_when_it_was_forgotten_is_erased_later(
    postgres: PostgresServer, tenant: str, tmp_path: Path
) -> None:
    if postgres.version < 17:
        pytest.skip("up to version 16, only the owner of a table may vacuum it")
    with open_memory(postgres, tenant, tmp_path) as memory:
        memory.record("bank", "user", "The code is in the okapi jar")
        memory.search("okapi")
        with psycopg.connect(postgres.url(ADMIN)) as reader:
            reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            reader.execute("SELECT 1")
            report = memory.forget("bank")
            left = postgres.find_in_files(b"okapi jar")

        memory.index()

        assert (report.erasure, bool(left)) == (Erasure.BLOCKED, True)
        assert postgres.find_in_files(b"okapi jar") == []


def test_what_a_forgetting_that_was_stopped_has_left_is_erased_later(
    postgres: PostgresServer,
    tenant: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if postgres.version < 17:
        pytest.skip("up to version 16, only the owner of a table may vacuum it")

    def stop(*_: object) -> None:
        raise StoreFull("there is no room for it")

    with open_memory(postgres, tenant, tmp_path) as memory:
        memory.record("bank", "user", "The code is in the quokka jar")
        memory.search("quokka")
        with monkeypatch.context() as patched:
            patched.setattr(PostgresHistory, "delete_lost_sources", stop)
            with pytest.raises(StoreFull) as raised:
                memory.forget("bank")
        left = postgres.find_in_files(b"quokka jar")
    with open_memory(postgres, tenant, tmp_path) as memory:
        memory.index()

    assert raised.value.hint.startswith("it is forgotten; when this problem is solved")
    assert left != []
    assert postgres.find_in_files(b"quokka jar") == []


def test_a_worker_tries_again_later_to_erase_what_others_still_see(
    postgres: PostgresServer, tenant: str, tmp_path: Path
) -> None:
    if postgres.version < 17:
        pytest.skip("up to version 16, only the owner of a table may vacuum it")
    with open_memory(postgres, tenant, tmp_path) as memory:
        memory.record("bank", "user", "The code is in the numbat jar")
        with psycopg.connect(postgres.url(ADMIN)) as reader:
            reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            reader.execute("SELECT 1")
            memory.forget("bank")
            again_s = memory.do_job("index")
        # Whoever begins to read after it was forgotten does not see it.
        with psycopg.connect(postgres.url(ADMIN)) as reader:
            reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            reader.execute("SELECT 1")
            later = memory.do_job("index")

    assert (again_s, later) == (60.0, None)


# -- hooks ----------------------------------------------------------------------------


def run_hook(home: Path, kept: Path, **more: str) -> subprocess.CompletedProcess[str]:
    told = {
        "session_id": "asking",
        "cwd": str(home),
        "prompt": "where did we put the tall ladder?",
    }
    return subprocess.run(
        [sys.executable, "-m", "backstory.hooks", "prompt", "--host", "claude-code"],
        input=json.dumps(told),
        env={**Shell(home, kept).environ, **more},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.usefixtures("own_runtime_folder")
def test_a_hook_reminds_of_what_is_in_a_database(
    postgres: PostgresServer, tenant: str, tmp_path: Path, home: Path
) -> None:
    with open_memory(postgres, tenant, tmp_path / "kept") as memory:
        memory.record("talk", "user", "We put the tall ladder below the stairs.")
        memory.search("ladder")

    hooks: list[subprocess.CompletedProcess[str]] = []

    def is_reminded() -> bool:
        hooks.append(
            run_hook(
                home,
                tmp_path / "kept",
                BACKSTORY_STORE_URL=postgres.url(),
                BACKSTORY_STORE_TENANT=tenant,
            )
        )
        return "below the stairs" in hooks[-1].stdout

    # On a busy machine, one may have to give up, and says nothing.
    assert comes_true(is_reminded)
    assert {(hook.returncode, hook.stderr) for hook in hooks} == {(0, "")}


@pytest.mark.usefixtures("own_runtime_folder")
def test_a_hook_is_silent_if_the_database_cannot_be_reached(
    tmp_path: Path, home: Path
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()

    hook = run_hook(
        home, kept, BACKSTORY_STORE_URL=f"postgresql://me:{PASSWORD[:6]}@127.0.0.1:1/x"
    )

    assert (hook.returncode, hook.stdout, hook.stderr) == (0, "", "")
    logged = (kept / "hooks.log").read_text()
    assert "PostgreSQL at 127.0.0.1:1/x: no connection" in logged
    assert PASSWORD[:6] not in logged


def _stop(server: PostgresServer) -> None:
    server.stop()


def _kill(server: PostgresServer) -> None:
    server.kill()


@pytest.mark.parametrize("end", [_stop, _kill])
def test_watching_waits_for_a_server_that_went_away_and_loses_nothing(
    postgres: PostgresServer,
    tenant: str,
    tmp_path: Path,
    home: Path,
    end: Callable[[PostgresServer], None],
) -> None:
    chosen = {"BACKSTORY_STORE_URL": postgres.url(), "BACKSTORY_STORE_TENANT": tenant}
    shell = Shell(home, tmp_path / "kept")
    file, log = session_file(home), tmp_path / "log"
    append(file, a_line("said before", uuid="u0"))
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*BACKSTORY, "index", "--watch"],
            env={**shell.environ, **chosen, "BACKSTORY_INDEX_WATCH_SECONDS": "0.05"},
            stdout=output,
            stderr=output,
        ) as watching,
    ):
        try:
            assert comes_true(lambda: "1 new message" in log.read_text())
            end(postgres)
            append(file, a_line("said meanwhile", uuid="u1"))
            assert comes_true(lambda: "Waiting for the database." in log.read_text())
        finally:
            postgres.start()
        assert comes_true(lambda: "can be reached again" in log.read_text())
        append(file, a_line("said after that", uuid="u2"))
        assert comes_true(lambda: log.read_text().count("in 1 source\n") == 3)
        postgres.stop()
        try:
            assert comes_true(lambda: log.read_text().count("Waiting for") == 2)
            watching.send_signal(signal.SIGTERM)
            assert watching.wait(PATIENCE_S) == -signal.SIGTERM
        finally:
            postgres.start()

    with open_memory(postgres, tenant, tmp_path / "other") as memory:
        (session,) = memory.sessions()
        said = [message.text for message in memory.messages(session)]
    assert said == ["said before", "said meanwhile", "said after that"]


def test_watching_does_not_wait_for_a_server_that_was_never_reached(
    postgres: PostgresServer, tenant: str, tmp_path: Path, home: Path
) -> None:
    shell = Shell(home, tmp_path / "kept")

    done = shell.run(
        "index", "--watch", BACKSTORY_STORE_URL=postgres.url(name="nowhere")
    )

    assert done.returncode == StoreUnreachable.exit_code
