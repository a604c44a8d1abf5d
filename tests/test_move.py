"""A memory moves from files to a database and back, and is the same everywhere."""

import json
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backstory import (
    BadQuery,
    Memory,
    NotesConflict,
    StoreIncomplete,
    StoreProblem,
    StoreUnreachable,
    StoreUnwritable,
)
from backstory.store.base.history_rows import HISTORY_TABLES, Row
from backstory.store.postgres.tenants import TenantList
from tests.chance import seeds
from tests.postgres_server import OWNER, PostgresServer
from tests.processes import kill_sometime
from tests.samples import a_memory, all_cases, read_sample
from tests.shell import Shell

pytestmark = pytest.mark.postgres

QUERIES = ("ladder", "where is the saw?", "database", "error in the build", "本")


@pytest.fixture
def tenant(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name)[:200]
    TenantList(postgres.url(OWNER)).create(name)
    return name


OpenCopy = Callable[[], Memory]


@pytest.fixture
def open_copy(postgres: PostgresServer, tenant: str, tmp_path: Path) -> OpenCopy:
    """Opens the memory of a tenant that is empty at first."""
    chosen = (f"store.url={postgres.url()}", f"store.tenant={tenant}")
    return partial(
        a_memory, tmp_path / "copy", settings=("embedder.name=none", *chosen)
    )


def open_files(folder: Path) -> Memory:
    return a_memory(folder, settings=("embedder.name=none",))


def fill(memory: Memory, folder: Path) -> None:
    """Conversations of every format, notes, and something that was forgotten."""
    for number, case in enumerate(all_cases()):
        read_sample(memory, case.lay_out(folder / str(number)))
    memory.record("house", "user", "Where is the ladder?")
    memory.record("house", "assistant", "Below the stairs, \0 beside the saw.")
    memory.record("secret", "user", "Forget the walrus")
    memory.notebook.add_fact("Has a ladder")
    memory.notebook.append_log(date(2026, 2, 25), "Painted the fence", "one")
    text = memory.notebook.read_memory()
    memory.notebook.replace_memory(f"{text}- Has a saw\n", text, keep_backup=True)
    memory.search("ladder")
    memory.forget("secret")


def rows_of(memory: Memory) -> dict[str, list[Row]]:
    rows = memory._parts.stores.open_rows()
    try:
        return {
            table.name: list(rows.iter_rows(table, after=None))
            for table in HISTORY_TABLES
        }
    finally:
        rows.close()


def shown(memory: Memory) -> dict[str, Any]:
    """What a person sees of a memory."""
    return {
        "sessions": memory.sessions(),
        "messages": [list(memory.messages(each)) for each in memory.sessions()],
        "hits": [
            [(hit.message_id, hit.text) for hit in memory.search(query).hits]
            for query in QUERIES
        ],
        "notes": [(file.name, file.raw) for file in memory.notebook.iter_files()],
        "forgettings": memory.forgettings(),
        "problems": memory.status().problems,
    }


def test_a_memory_is_the_same_in_a_database_and_back(
    tmp_path: Path, open_copy: OpenCopy
) -> None:
    with open_files(tmp_path / "old") as old:
        fill(old, tmp_path / "sources")
        with open_copy() as copy:
            moved = old.move_to(copy)
            in_database = shown(copy), rows_of(copy)
        with open_copy() as copy, open_files(tmp_path / "back") as back:
            copy.move_to(back)
            in_files = shown(back), rows_of(back)
        original = shown(old), rows_of(old)

    assert in_database == original
    assert in_files == original
    assert moved.count("messages") == len(original[1]["messages"]) > 100
    # MEMORY.md, a log, a backup, and the records beside them.
    assert (moved.notes, moved.was_there, moved.problems) == (4, False, ())


def test_new_messages_get_numbers_that_nothing_had(
    tmp_path: Path, open_copy: OpenCopy
) -> None:
    with open_files(tmp_path / "old") as old, open_copy() as copy:
        fill(old, tmp_path / "sources")
        old.move_to(copy)

        number = copy.record("house", "user", "And the axe?")

        assert number is not None
        assert number not in {row[0] for row in rows_of(old)["messages"]}
        assert [hit.text for hit in copy.search("axe").hits][:1] == ["And the axe?"]


def test_moving_twice_copies_what_is_new(tmp_path: Path, open_copy: OpenCopy) -> None:
    with open_files(tmp_path / "old") as old, open_copy() as copy:
        old.record("house", "user", "Where is the ladder?")
        old.notebook.add_fact("Has a ladder")
        first = old.move_to(copy)
        again = old.move_to(copy)
        old.record("house", "user", "And the saw?")
        old.notebook.add_fact("Has a saw")
        later = old.move_to(copy)
        old.notebook.add_fact("Has an axe")
        noted = old.move_to(copy)

        assert [each.was_there for each in (first, again, later, noted)] == [
            False,
            True,
            False,
            False,
        ]
        assert shown(copy) == shown(old)


def test_what_has_anything_of_its_own_is_not_overwritten(
    tmp_path: Path, open_copy: OpenCopy
) -> None:
    with open_files(tmp_path / "old") as old, open_copy() as copy:
        old.record("house", "user", "Where is the ladder?")
        old.notebook.add_fact("Has a ladder")
        copy.record("boat", "user", "Where is the anchor?")
        with pytest.raises(BadQuery, match="another memory"):
            old.move_to(copy)
        with open_files(tmp_path / "used") as used:
            old.move_to(used)
            used.record("house", "user", "And the saw?")
            with pytest.raises(BadQuery, match="has been used since"):
                old.move_to(used)
        with open_files(tmp_path / "noted") as noted:
            noted.notebook.add_fact("Has an anchor")
            with pytest.raises(NotesConflict, match=r"MEMORY\.md"):
                old.move_to(noted)

            assert "Has an anchor" in noted.notebook.read_memory()
        with pytest.raises(BadQuery, match="already there"):
            old.move_to(old)


@pytest.mark.parametrize("seed", seeds(1, soaking=10))
def test_a_killed_move_is_completed_by_the_next(
    tmp_path: Path, open_copy: OpenCopy, seed: int
) -> None:
    chance = random.Random(seed)
    with open_files(tmp_path / "old") as old:
        fill(old, tmp_path / "sources")

    def move() -> None:
        with open_files(tmp_path / "old") as old, open_copy() as copy:
            old.move_to(copy)

    deaths = 0
    while kill_sometime(move, chance, attempt=4 + deaths):
        deaths += 1

    with open_files(tmp_path / "old") as old, open_copy() as copy:
        assert deaths > 0
        assert rows_of(copy) == rows_of(old)
        assert shown(copy) == shown(old)


def test_a_move_goes_on_after_the_server_was_killed(
    tmp_path: Path, postgres: PostgresServer, open_copy: OpenCopy
) -> None:
    with open_files(tmp_path / "old") as old:
        fill(old, tmp_path / "sources")
        killed = threading.Event()

        def kill_once(done: int, total: int) -> None:
            if not killed.is_set():
                killed.set()
                postgres.kill()

        try:
            with open_copy() as copy, pytest.raises(StoreProblem):
                old.move_to(copy, on_count=kill_once)
        finally:
            postgres.start()
        with open_copy() as copy:
            old.move_to(copy)

            assert killed.is_set()
            assert rows_of(copy) == rows_of(old)
            assert shown(copy) == shown(old)


def stop(done: int, total: int) -> None:
    raise KeyboardInterrupt


USES: dict[str, Callable[[Memory], object]] = {
    "record": lambda memory: memory.record("boat", "user", "Where is the anchor?"),
    "forget": lambda memory: memory.forget("house"),
    "sessions": lambda memory: memory.sessions(),
    "search": lambda memory: memory.search("ladder"),
    "recall": lambda memory: memory.recall("ladder"),
    "status": lambda memory: memory.status(),
    "add a fact": lambda memory: memory.notebook.add_fact("Has an anchor"),
    "read notes": lambda memory: memory.notebook.read_memory(),
    "model calls": lambda memory: memory.model_calls(),
    "move": lambda memory: memory.move_to(open_files(memory.home / "elsewhere")),
}


@pytest.mark.parametrize("to_files", [False, True])
def test_nobody_uses_a_copy_that_is_not_complete(
    tmp_path: Path, open_copy: OpenCopy, *, to_files: bool
) -> None:
    def open_target() -> Memory:
        return open_files(tmp_path / "target") if to_files else open_copy()

    with open_files(tmp_path / "old") as old:
        fill(old, tmp_path / "sources")
        # Others have it open all the while.
        with open_target() as early:
            assert early.sessions() == []
            with open_target() as copy, pytest.raises(KeyboardInterrupt):
                old.move_to(copy, on_count=stop)
            with open_target() as late:
                refused = {
                    name: find_refusal(partial(use, memory))
                    for memory in (early, late)
                    for name, use in USES.items()
                }
                assert late.context("Where is the ladder?").text == ""
        with open_target() as copy:
            old.move_to(copy)
            assert rows_of(copy) == rows_of(old)
            copy.record("boat", "user", "Where is the anchor?")

    assert list(refused) == list(USES)
    assert set(refused.values()) == {
        (
            "it is a copy that is not complete",
            "run the same 'backstory move' again on the machine it is copied from; "
            "it continues where it stopped",
        )
    }


def find_refusal(use: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(StoreIncomplete) as raised:
        use()
    return str(raised.value).rpartition(": ")[2], raised.value.hint


@pytest.mark.parametrize("to_files", [False, True])
def test_every_command_says_that_a_copy_is_not_complete(
    tmp_path: Path,
    postgres: PostgresServer,
    tenant: str,
    open_copy: OpenCopy,
    *,
    to_files: bool,
) -> None:
    folder = tmp_path / "target"
    with open_files(tmp_path / "old") as old:
        fill(old, tmp_path / "sources")
        with (
            open_files(folder) if to_files else open_copy() as copy,
            pytest.raises(KeyboardInterrupt),
        ):
            old.move_to(copy, on_count=stop)
    shell = Shell(tmp_path, folder / "backstory")
    chosen = {} if to_files else chosen_database(postgres, tenant)

    failed = {
        words: shell.run(*words.split(), **chosen).returncode
        for words in (
            "search ladder",
            "status",
            "sessions",
            "show house",
            "stats",
            "memory show",
            "memory add anchor",
            "logs",
            "index",
            "rebuild",
            "export out",
        )
    }
    told = {
        words: "it is a copy that is not complete"
        in " ".join(shell.run(*words, **chosen).stdout.split())
        for words in ((), ("check",), ("check", "--repair"), ("doctor",))
    }

    assert failed == dict.fromkeys(failed, StoreIncomplete.exit_code)
    assert told == dict.fromkeys(told, True)


def test_hooks_tell_nothing_of_a_copy_that_is_not_complete(tmp_path: Path) -> None:
    folder = tmp_path / "target"
    shell = Shell(tmp_path, folder / "backstory")
    started = {"session_id": "now", "cwd": str(tmp_path), "source": "startup"}

    def begin_session() -> str:
        words = (sys.executable, "-m", "backstory.hooks", "session-start")
        return subprocess.run(
            [*words, "--host", "claude-code"],
            input=json.dumps(started),
            env=shell.environ,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    with open_files(tmp_path / "old") as old:
        fill(old, tmp_path / "sources")
        with open_files(folder) as copy:
            old.move_to(copy)
        before = begin_session()
        old.record("house", "user", "And the axe?")
        with open_files(folder) as copy, pytest.raises(KeyboardInterrupt):
            old.move_to(copy, on_count=stop)
        after = begin_session()

    assert "Has a ladder" in before
    assert after == ""


def chosen_database(postgres: PostgresServer, tenant: str) -> dict[str, str]:
    return {"BACKSTORY_STORE_URL": postgres.url(), "BACKSTORY_STORE_TENANT": tenant}


def test_what_is_written_while_a_move_begins_is_not_overwritten(
    tmp_path: Path, open_copy: OpenCopy
) -> None:
    with open_files(tmp_path / "old") as old, open_copy() as copy:
        old.record("house", "user", "Where is the ladder?")
        rows = copy._parts.stores.open_rows()
        seen = rows.find_last_change()
        copy.record("boat", "user", "Where is the anchor?")

        assert not rows.begin("another", "1", last_change=seen)
        rows.close()
        assert len(copy.sessions()) == 1


@pytest.mark.parametrize("words", [["http://walrus"], ["mysql://u:walrus@h/d"]])
def test_no_folder_is_made_of_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = Shell(tmp_path, tmp_path / "kept").run("move", "--to", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert "neither the address of a PostgreSQL database nor a folder" in done.stderr
    assert "walrus" not in done.stderr
    assert not list(tmp_path.glob("*:"))


def test_a_tenant_is_not_ignored_for_a_folder(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path / "kept")
    done = shell.run("move", "--to", str(tmp_path / "x"), "--tenant", "anna")

    assert (done.returncode, done.stdout) == (2, "")
    assert "--tenant is for a database" in done.stderr


def test_what_is_wrong_with_the_new_place_is_not_blamed_on_the_setting(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, tmp_path / "kept")

    done = shell.run("move", "--to", postgres.url().replace("s3cret", "wrong"))

    unbound = shell.run("move", "--to", postgres.url(OWNER))

    assert (done.returncode, done.stdout) == (StoreUnreachable.exit_code, "")
    assert done.stderr.splitlines()[-1] == (
        "  hint: check the user, the password and the database in --to"
    )
    assert (unbound.returncode, unbound.stdout) == (StoreUnwritable.exit_code, "")
    assert unbound.stderr.splitlines()[-1] == (
        "  hint: --to must name a role that is not a superuser, has no BYPASSRLS, and "
        "does not own the tables"
    )
