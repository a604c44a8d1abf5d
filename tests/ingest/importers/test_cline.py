"""Tasks of Cline and Roo Code while they are written, which samples cannot show."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from backstory.memory import Memory
from tests.samples import a_memory

FOLDERS = {
    "cline": ".config/Code - Insiders/User/globalStorage/saoudrizwan.claude-dev",
    "roo-code": ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline",
}
FIRST = {"cline": "task", "roo-code": "text"}


def write_task(home: Path, host: str, *messages: dict[str, Any]) -> Path:
    """A task of that program, whose first message is the person's."""
    file = home / FOLDERS[host] / "tasks/1746000000000/ui_messages.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    task = {"ts": 1746000000000, "type": "say", "say": FIRST[host], "text": "Do it."}
    file.write_bytes(orjson.dumps([task, *messages]))
    return file


def texts(memory: Memory) -> list[str]:
    """All messages of all sessions: who, with which tool, what."""
    return [
        f"{message.role.value} {message.tool_name or ''}: {message.text}"
        for session in memory.sessions()
        for message in memory.messages(session)
    ]


@pytest.mark.parametrize("host", FOLDERS)
def test_a_message_that_is_still_written_is_replaced_by_the_whole(
    host: str, tmp_path: Path
) -> None:
    text = {"ts": 1746000000001, "type": "say", "say": "text"}
    tool = {"ts": 1746000000002, "type": "ask", "ask": "tool"}
    with a_memory(tmp_path, home=tmp_path) as memory:
        write_task(
            tmp_path,
            host,
            {**text, "text": "I wi", "partial": True},
            {**tool, "text": '{"tool":"readFile","pa', "partial": True},
        )
        memory.index()
        before = texts(memory)

        write_task(
            tmp_path,
            host,
            {**text, "text": "I will.", "partial": False},
            {**tool, "text": '{"tool":"readFile","path":"a"}', "partial": False},
        )
        memory.index()

        assert before == ["user : Do it.", "assistant : I wi"]
        assert texts(memory) == [
            "user : Do it.",
            "assistant : I will.",
            'tool_call readFile: {"path":"a"}',
        ]


def test_a_list_that_is_cut_off_gives_what_is_whole(tmp_path: Path) -> None:
    said = {"ts": 1746000000001, "type": "say", "say": "text", "text": "Done."}
    file = write_task(tmp_path, "cline", said, {**said, "ts": 1746000000002})
    file.write_bytes(file.read_bytes()[:-20])
    with a_memory(tmp_path, home=tmp_path) as memory:
        report = memory.index()

        assert texts(memory) == ["user : Do it.", "assistant : Done."]
        assert [problem.reason for problem in report.problems] == [
            "the file ends in the middle of message 3, which cannot be read"
        ]


@pytest.mark.parametrize("host", FOLDERS)
def test_a_task_given_by_its_path_is_of_the_program_that_wrote_it(
    host: str, tmp_path: Path
) -> None:
    file = write_task(tmp_path / "backup", host)
    with a_memory(tmp_path) as memory:
        memory.index(path=file)

        assert [session.host for session in memory.sessions()] == [host]


def test_an_older_task_has_no_command_that_resumes_it(tmp_path: Path) -> None:
    write_task(tmp_path, "cline")
    with a_memory(tmp_path, home=tmp_path) as memory:
        memory.index()

        assert memory.resume_commands(memory.sessions()) == {}
