"""What the settings do not keep is forgotten by itself, with a receipt."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

from backstory import Forgetting, KeptExcluded, Memory
from tests.builders import a_line, append, session_file
from tests.index_builders import found
from tests.samples import Case, a_memory, all_cases
from tests.shell import Shell

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OTHER = "7e1c1c53-8a57-4f43-9f0e-3c3f6d8f2b22"


class Clock:
    """A clock that stops until it is moved."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def open_memory(tmp_path: Path, clock: Clock, *settings: str) -> Memory:
    chosen = ("embedder.name=none", *settings)
    return a_memory(tmp_path, home=tmp_path / "home", settings=chosen, clock=clock)


def fill(memory: Memory) -> None:
    """A message and the result of a tool on each of three days."""
    for days in (0, 10, 40):
        at = NOW - timedelta(days=days)
        memory.record("talk", "user", f"Asked {days} days ago", sent_at=at)
        memory.record(
            "talk", "tool_result", f"Found {days} days ago", tool_name="x", sent_at=at
        )
    long_ago = NOW - timedelta(days=100)
    memory.record("old", "user", "Asked long ago", sent_at=long_ago)


def texts(memory: Memory) -> list[str]:
    return [
        message.text for each in memory.sessions() for message in memory.messages(each)
    ]


def traces(memory: Memory, words: str) -> list[str]:
    return [
        file.name
        for file in memory.home.rglob("*")
        if file.is_file() and words.encode() in file.read_bytes()
    ]


def test_everything_is_kept_by_default(tmp_path: Path, clock: Clock) -> None:
    with open_memory(tmp_path, clock) as memory:
        fill(memory)
        clock.now += timedelta(days=10_000)
        memory.index()
        memory.work()

        assert len(texts(memory)) == 7
        assert memory.forgettings() == []


@pytest.mark.parametrize("by", ["index", "work"])
def test_what_is_too_old_is_forgotten(tmp_path: Path, clock: Clock, by: str) -> None:
    with open_memory(tmp_path, clock, "keep.days=30") as memory:
        fill(memory)
        memory.search("asked")

        getattr(memory, by)()

        assert sorted(texts(memory)) == [
            "Asked 0 days ago",
            "Asked 10 days ago",
            "Found 0 days ago",
            "Found 10 days ago",
        ]
        assert memory.forgettings() == [
            Forgetting(1, NOW, 1, 3, ("python",), 0, "keep.days")
        ]
        assert memory.status().last_forgetting == memory.forgettings()[-1]
        assert found(memory, "asked long ago", sources=["message"]) != []
        assert traces(memory, "long ago") == traces(memory, "40 days") == []


def test_results_of_tools_are_forgotten_sooner(tmp_path: Path, clock: Clock) -> None:
    settings = ("keep.days=60", "keep.tool_output_days=7")
    with open_memory(tmp_path, clock, *settings) as memory:
        fill(memory)

        memory.index()

        assert sorted(texts(memory)) == [
            "Asked 0 days ago",
            "Asked 10 days ago",
            "Asked 40 days ago",
            "Found 0 days ago",
        ]
        assert [(each.messages, each.reason) for each in memory.forgettings()] == [
            (1, "keep.days"),
            (2, "keep.tool_output_days"),
        ]


def test_it_does_not_come_back_and_the_next_day_goes_on(
    tmp_path: Path, home: Path, clock: Clock
) -> None:
    lines = [
        a_line("Old news", uuid="u1", at="2026-01-01T10:00:00Z"),
        a_line("Good news", uuid="u2", at="2026-02-27T10:00:00Z"),
    ]
    append(session_file(home), *lines)
    with open_memory(tmp_path, clock, "keep.days=30") as memory:
        memory.index()
    session_file(home).unlink()
    append(session_file(home), *lines)
    with open_memory(tmp_path, clock, "keep.days=30") as memory:
        memory.index()
        assert texts(memory) == ["Good news"]
        assert len(memory.forgettings()) == 1
    clock.now += timedelta(days=30)
    with open_memory(tmp_path, clock, "keep.days=30") as memory:
        memory.index()
        assert texts(memory) == []
        assert len(memory.forgettings()) == 2


def test_as_many_days_as_can_be_given_keep_everything(
    tmp_path: Path, clock: Clock
) -> None:
    with open_memory(tmp_path, clock, "keep.days=999999999") as memory:
        fill(memory)
        memory.index()

        assert len(texts(memory)) == 7


# -- the trash of a program ---


@pytest.fixture
def case() -> Case:
    (found,) = [each for each in all_cases() if each.name == "tools-and-summary"]
    return found


def throw_away(root: Path) -> int:
    (path,) = root.rglob("oneclaw*.db")
    db = apsw.Connection(str(path))
    db.execute("UPDATE sessions SET deleted_at = 1772000000000")
    count: int = db.changes()
    db.close()
    return count


@pytest.fixture
def root(case: Case, tmp_path: Path) -> Path:
    return case.lay_out(tmp_path)


@pytest.fixture
def sure(root: Path, tmp_path: Path) -> Iterator[Memory]:
    with a_memory(tmp_path, home=root, settings=("embedder.name=none",)) as memory:
        yield memory


def test_a_session_in_the_trash_of_its_program_is_forgotten(
    sure: Memory, root: Path
) -> None:
    sure.index()
    messages = sum(each.message_count for each in sure.sessions())
    sessions = len(sure.sessions())
    assert sessions

    throw_away(root)
    sure.index()

    assert sure.sessions() == []
    (forgetting,) = sure.forgettings()
    assert (forgetting.sessions, forgetting.messages) == (sessions, messages)
    assert forgetting.reason == "deleted in its program"
    sure.index()
    assert len(sure.forgettings()) == 1


def test_a_setting_keeps_what_is_in_the_trash(root: Path, tmp_path: Path) -> None:
    settings = ("embedder.name=none", "keep.deleted_sessions=true")
    with a_memory(tmp_path, home=root, settings=settings) as memory:
        memory.index()
        kept = memory.sessions()

        throw_away(root)
        memory.index()

        assert memory.sessions() == kept
        assert memory.forgettings() == []


def test_what_was_in_the_trash_before_it_was_read_is_no_forgetting(
    sure: Memory, root: Path
) -> None:
    throw_away(root)

    sure.index()

    assert sure.sessions() == []
    assert sure.forgettings() == []


# -- what is excluded later ---


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> Shell:
    append(session_file(home), a_line("Where is the key?", uuid="u1"))
    append(
        session_file(home, OTHER),
        a_line("Thanks", uuid="u2", session=OTHER),
        a_line("Bye", uuid="u3", session=OTHER),
    )
    made = Shell(home, tmp_path / "kept", now=NOW)
    made.run("index")
    return made


@pytest.mark.parametrize(
    ("setting", "value", "command"),
    [
        ("exclude.hosts", "claude-code", "backstory forget --host claude-code"),
        ("exclude.folders", "/home/dev", "backstory forget --project /home/dev"),
    ],
)
def test_excluding_tells_what_is_kept_and_how_to_forget_it(
    shell: Shell, setting: str, value: str, command: str
) -> None:
    told = (
        f"{value} is excluded. Kept from before: 2 sessions (3 messages); "
        f"to delete: '{command}'"
    )

    assert shell.out("settings", "set", setting, value).splitlines()[-1] == told
    assert told in shell.out("index").splitlines()
    assert told in shell.out("status").splitlines()
    # And the command does it.
    shell.out(*command.split()[1:], "--yes")
    assert "is excluded" not in shell.out("index") + shell.out("status")


def test_the_command_tells_what_it_did_not_keep(shell: Shell) -> None:
    usual = ("--set", "embedder.name=none")

    first = shell.run(*usual, "--set", "keep.days=1", "index")
    second = shell.run(*usual, "--set", "keep.days=1", "index")

    told = "Forgotten: 3 messages (keep.days); see 'backstory forget --list'."
    assert told in first.stdout.splitlines()
    assert "keep.days" not in second.stdout


def test_nothing_is_said_where_nothing_is_kept(shell: Shell) -> None:
    assert "kept" not in shell.out("settings", "set", "exclude.hosts", "codex")
    assert "kept" not in shell.out("settings", "set", "exclude.folders", "/elsewhere")


def test_what_is_excluded_in_python(tmp_path: Path) -> None:
    with a_memory(tmp_path) as memory:
        memory.record("a", "user", "hello", project="/work/the plan")
    with a_memory(tmp_path, settings=("exclude.folders=/work/the plan",)) as memory:
        (excluded,) = memory.excluded()

    assert excluded == KeptExcluded("--project", "/work/the plan", 1, 1)
    assert excluded.command == "backstory forget --project '/work/the plan'"
