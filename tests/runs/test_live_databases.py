"""The run of a program that keeps all sessions in one database, as opencode does."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from backstory.errors import SourceUnreadable, UnknownName
from backstory.memory import Memory
from tests.live_transcripts import found, items, texts, whole
from tests.samples import a_memory

PROJECT = "/home/dev/ferries"


class Opencode:
    """opencode's database, open as it is while opencode runs."""

    def __init__(self, home: Path) -> None:
        path = home / ".local/share/opencode/opencode.db"
        path.parent.mkdir(parents=True)
        self.db = apsw.Connection(str(path))
        self.db.pragma("journal_mode", "wal")
        self.db.execute(
            """
            CREATE TABLE session (
              id, parent_id, directory, title, time_created, time_updated
            );
            CREATE TABLE message (id, session_id, time_created, time_updated, data);
            CREATE TABLE part (
              id, message_id, session_id, time_created, time_updated, data
            );
            """
        )
        self._count = 0

    def start(self, session: str) -> None:
        self.db.execute(
            "INSERT INTO session VALUES (?, NULL, ?, 'Ferries', 1e12, 1e12)",
            (session, PROJECT),
        )

    def say(self, session: str, role: str, part: dict[str, object]) -> None:
        self._count += 1
        message, at = f"m{self._count}", 10**12 + self._count
        self.db.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)",
            (message, session, at, at, json.dumps({"role": role})),
        )
        self.db.execute(
            "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
            (f"p{self._count}", message, session, at, at, json.dumps(part)),
        )

    def finish_last(self, part: dict[str, object]) -> None:
        self.db.execute(
            "UPDATE part SET data = ?, time_updated = time_updated + 1 WHERE id = ?",
            (json.dumps(part), f"p{self._count}"),
        )


def text(said: str) -> dict[str, object]:
    return {"type": "text", "text": said}


def tool(status: str, **more: object) -> dict[str, object]:
    state = {"status": status, "input": {"command": "cat timetable"}, **more}
    return {"type": "tool", "callID": "call_1", "tool": "bash", "state": state}


@pytest.fixture
def opencode(home: Path) -> Iterator[Opencode]:
    program = Opencode(home)
    with closing(program.db):
        program.start("ses_1")
        program.say("ses_1", "user", text("When does the ferry to Rousay sail?"))
        yield program


def test_a_session_is_followed_as_it_grows(memory: Memory, opencode: Opencode) -> None:
    run = memory.live_run("ses_1", host="opencode")
    at_first = items(run)

    opencode.say("ses_1", "assistant", tool("running"))
    opencode.finish_last(tool("completed", output="Rousay: 07:40"))
    opencode.say("ses_1", "assistant", text("At 07:40."))

    assert at_first == [
        (1, "user", None, "item-1", "When does the ferry to Rousay sail?")
    ]
    assert items(run) == [
        *at_first,
        (1, "assistant", "bash", "item-2", '{"command":"cat timetable"}'),
        (1, "tool_result", "bash", "call_1", "Rousay: 07:40"),
        (2, "assistant", None, "item-4", "At 07:40."),
    ]
    assert whole(run, "call_1") == "Rousay: 07:40"


def test_what_changes_is_read_again(memory: Memory, opencode: Opencode) -> None:
    run = memory.live_run("ses_1", host="opencode")
    opencode.say("ses_1", "assistant", text("Let me"))
    before = texts(run)

    opencode.finish_last(text("Let me look: at 07:40."))

    question = "When does the ferry to Rousay sail?"
    assert before == [question, "Let me"]
    assert texts(run) == [question, "Let me look: at 07:40."]


def test_other_sessions_do_not_count(memory: Memory, opencode: Opencode) -> None:
    opencode.start("ses_2")
    opencode.say("ses_2", "user", text("The ferry to Hoy sails at noon."))

    run = memory.live_run("ses_1", host="opencode")

    assert found(run, "Hoy") == []
    with pytest.raises(UnknownName, match="has a transcript of session 'ses_3'"):
        memory.live_run("ses_3", host="opencode")


def test_a_session_of_an_excluded_project_is_refused(
    tmp_path: Path, home: Path, opencode: Opencode
) -> None:
    excluded = a_memory(tmp_path, home=home, settings=(f"exclude.folders={PROJECT}",))

    with excluded as memory, pytest.raises(SourceUnreadable, match="exclude"):
        memory.live_run("ses_1", host="opencode")
