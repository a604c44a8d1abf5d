"""Chats in Visual Studio Code while they are written, and what is none."""

from pathlib import Path

import orjson

from tests.samples import Case, a_memory, all_cases, contents, read_sample

WORKSPACE = ".config/Code/User/workspaceStorage/1"


def the_log() -> Case:
    return next(case for case in all_cases() if case.format == "vscode-log")


def test_a_log_that_is_read_after_every_change_gives_the_same_in_the_end(
    tmp_path: Path,
) -> None:
    root = the_log().lay_out(tmp_path)
    with a_memory(tmp_path / "whole", home=root) as memory:
        read_sample(memory, root)
        expected = contents(memory, root)
    (file,) = root.rglob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)

    with a_memory(tmp_path / "growing", home=root) as memory:
        for count in range(1, len(lines) + 1):
            file.write_bytes(b"".join(lines[:count]))
            memory.index()
        grown = contents(memory, root)

    # What a tool gave back is written last, and stands where it was met first. What was
    # taken back was said, too.
    messages = {each["id"]: each for each in grown[0].pop("messages")}
    assert messages.pop("request-2")["text"] == "Kann das weg?"
    assert messages == {each["id"]: each for each in expected[0].pop("messages")}
    assert grown == expected


def test_a_log_without_its_beginning_is_a_problem(tmp_path: Path) -> None:
    root = the_log().lay_out(tmp_path)
    (file,) = root.rglob("*.jsonl")
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[2:3]))
    with a_memory(tmp_path, home=root) as memory:
        report = memory.index()

        assert memory.sessions() == []
        assert [problem.reason for problem in report.problems] == [
            "a chat without a session id; what was exported is not read, "
            "only the editor's own files are"
        ]


def test_a_chat_that_was_exported_is_not_taken_for_another_session(
    tmp_path: Path,
) -> None:
    file = tmp_path / "chat.json"
    request = {"requestId": "r1", "message": {"text": "Hello"}, "response": []}
    chat = {"responderUsername": "GitHub Copilot", "requests": [request]}
    file.write_bytes(orjson.dumps(chat))
    with a_memory(tmp_path) as memory:
        report = memory.index(path=file)

        assert memory.sessions() == []
        assert [problem.reason for problem in report.problems] == [
            "a chat without a session id; what was exported is not read, "
            "only the editor's own files are"
        ]


def test_a_session_without_a_request_is_none(tmp_path: Path) -> None:
    file = tmp_path / WORKSPACE / "chatSessions/a.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(orjson.dumps({"sessionId": "a", "requests": []}))
    with a_memory(tmp_path, home=tmp_path) as memory:
        report = memory.index()

        assert (memory.sessions(), report.problems) == ([], ())
