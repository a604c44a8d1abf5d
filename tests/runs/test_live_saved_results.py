"""Results that a program saved in files of their own, beside the transcript."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from backstory.memory import Memory
from tests.builders import (
    SESSION,
    a_line,
    a_tool_call,
    a_tool_result,
    append,
    session_file,
)
from tests.live_transcripts import OTHER, Gemini, found, texts, whole


@pytest.fixture(autouse=True)
def _tools_may_log_their_errors(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


# -- results in files of their own ---


CLAUDE_NOTICES = {
    "of today": "<persisted-output>\nOutput too large (34.3KB). Full output saved to: "
    "{path}\n\nPreview (first 2KB):\nline 0\n...\n</persisted-output>",
    "of 2.0": "<persisted-output>Tool result saved to: {path}\n\nUse Read to view"
    "</persisted-output>",
    "of an MCP server": "Error: result (374,984 characters) exceeds maximum allowed "
    "tokens. Output has been saved to {path}.\nFormat: Plain text",
}
LONG = "\n".join(f"line {number}" for number in range(5_000))


def _tool_results(home: Path) -> Path:
    folder = session_file(home).with_suffix("") / "tool-results"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("notice", CLAUDE_NOTICES.values(), ids=CLAUDE_NOTICES)
@pytest.mark.parametrize("place", ["{folder}", "/home/of another", "C:\\Users\\a b"])
def test_a_result_that_claude_saved_apart_is_whole(
    memory: Memory, home: Path, notice: str, place: str
) -> None:
    folder = _tool_results(home)
    (folder / "toolu_1.txt").write_text(LONG)
    sign = "\\" if "\\" in place else "/"
    named = sign.join(
        [place.format(folder=folder.parent), "tool-results", "toolu_1.txt"]
    )
    append(
        session_file(home),
        a_tool_call("Bash", {"command": "cat"}, uuid="u1", call="toolu_1"),
        a_tool_result(notice.format(path=named), uuid="u2", call="toolu_1"),
    )
    run = memory.live_run(SESSION)

    assert whole(run, "toolu_1") == LONG
    assert found(run, "line 4999")[:1] == ["toolu_1"]


def test_a_result_that_claude_saved_as_blocks_is_their_text(
    memory: Memory, home: Path
) -> None:
    path = _tool_results(home) / "mcp-x.txt"
    blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    path.write_bytes(orjson.dumps(blocks))
    notice = CLAUDE_NOTICES["of an MCP server"].format(path=path)
    append(session_file(home), a_tool_result(notice, uuid="u1", call="toolu_1"))

    assert texts(memory.live_run(SESSION)) == ["one\ntwo"]


def test_a_subagent_s_result_is_saved_with_those_of_its_session(
    memory: Memory, home: Path
) -> None:
    path = _tool_results(home) / "toolu_1.txt"
    path.write_text(LONG)
    folder = path.parent.parent / "subagents"
    folder.mkdir()
    notice = CLAUDE_NOTICES["of today"].format(path=path)
    append(
        folder / "agent-a1.jsonl",
        a_tool_result(
            notice, uuid="u1", call="toolu_1", isSidechain=True, agentId="a1"
        ),
    )

    assert texts(memory.live_run("agent-a1")) == [LONG]


def test_a_result_that_gemini_saved_apart_is_whole(memory: Memory, home: Path) -> None:
    log = Gemini()
    file = log.file(home, SESSION)
    saved = file.parent.parent / "tool-outputs" / f"session-{SESSION}" / "shell_1.txt"
    saved.parent.mkdir(parents=True)
    saved.write_text(LONG)
    notice = (
        "Output too large. Showing first 8,000 and last 32,000 characters. For full "
        f"output see: {saved}\nline 0\n\n... [1,000 characters omitted] ...\n\nline 9"
    )
    append(
        file,
        log.start(SESSION),
        log.call("run_shell_command", "c1", command="cat"),
        log.result("run_shell_command", "c1", notice),
    )

    assert texts(memory.live_run(SESSION)) == ['{"command":"cat"}', LONG]


def _of_another_session(folder: Path) -> str:
    other = folder.parent.with_name(OTHER) / "tool-results"
    other.mkdir(parents=True)
    (other / "toolu_1.txt").write_text("A zebra was here")
    return str(other / "toolu_1.txt")


def _above(folder: Path) -> str:
    (folder.parent / "toolu_1.txt").write_text("A zebra was here")
    return f"{folder}/../toolu_1.txt"


def _link_to_a_file(folder: Path) -> str:
    (folder.parent / "secret").write_text("A zebra was here")
    (folder / "toolu_1.txt").symlink_to(folder.parent / "secret")
    return f"{folder}/toolu_1.txt"


def _link_to_a_folder(folder: Path) -> str:
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "toolu_1.txt").write_text("A zebra was here")
    folder.rmdir()
    folder.symlink_to(elsewhere)
    return f"{folder}/toolu_1.txt"


def _pipe_in_it(folder: Path) -> str:
    os.mkfifo(folder / "toolu_1.txt")
    return f"{folder}/toolu_1.txt"


def _gone(folder: Path) -> str:
    return f"{folder}/toolu_1.txt"


def _elsewhere(folder: Path) -> str:
    (folder / "passwd").write_text("A zebra was here")
    return "/etc/passwd"


@pytest.mark.parametrize(
    "make",
    [
        _of_another_session,
        _above,
        _link_to_a_file,
        _link_to_a_folder,
        _pipe_in_it,
        _gone,
        _elsewhere,
    ],
)
def test_no_file_is_read_but_those_of_the_session_s_own_results(
    memory: Memory, home: Path, make: Callable[[Path], str]
) -> None:
    named = make(_tool_results(home))
    notice = CLAUDE_NOTICES["of today"].format(path=named)
    append(session_file(home), a_tool_result(notice, uuid="u1", call="toolu_1"))

    assert texts(memory.live_run(SESSION)) == [notice]


def test_what_only_speaks_of_a_saved_result_is_left_as_it_is(
    memory: Memory, home: Path
) -> None:
    path = _tool_results(home) / "toolu_1.txt"
    path.write_text("A zebra was here")
    notice = CLAUDE_NOTICES["of today"].format(path=path)
    append(
        session_file(home),
        a_line(notice, uuid="u1"),
        a_tool_result(f"It says: {notice}", uuid="u2", call="toolu_1"),
    )

    assert texts(memory.live_run(SESSION)) == [notice, f"It says: {notice}"]


def test_no_session_id_leads_to_a_file_elsewhere(memory: Memory, home: Path) -> None:
    log = Gemini()
    session = "x/../../elsewhere"
    file = log.file(home, "s1")
    secret = file.parent.parent / "elsewhere" / "shell_1.txt"
    for folder in (secret.parent, secret.parent.parent / "tool-outputs" / "session-x"):
        folder.mkdir(parents=True)
    secret.write_text("A zebra was here")
    notice = (
        "Output too large. Showing first 8,000 and last 32,000 characters. For full "
        "output see: /x/tool-outputs/session-x/shell_1.txt\nline 0"
    )
    append(
        file,
        log.start(session),
        log.call("run_shell_command", "c1", command="cat"),
        log.result("run_shell_command", "c1", notice),
    )

    assert texts(memory.live_run(transcript=file)) == ['{"command":"cat"}', notice]
