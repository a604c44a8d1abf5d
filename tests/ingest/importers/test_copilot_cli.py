"""What the samples of Copilot CLI cannot show."""

import io
from pathlib import Path

from backstory.ingest.importers.base import Memo, Origin, Record
from backstory.ingest.importers.copilot_cli import (
    MAX_WORKSPACE_BYTES,
    CopilotCli,
    CopilotCliWorkspace,
)
from backstory.values.history import NewMessage, Problem, Role, SessionFacts
from tests.samples import parse_records

ORIGIN = Origin(Path("/home/dev/.copilot/session-state/5a02/events.jsonl"))


def test_a_log_that_lost_its_start_is_named_after_its_folder() -> None:
    record = {"type": "user.message", "id": "e1", "data": {"content": "hello"}}

    found = list(CopilotCli().parse(Record(1, record), ORIGIN, {}))

    assert found == [
        SessionFacts("5a02"),
        NewMessage("5a02", "e1", Role.USER, "hello"),
    ]


def test_a_call_that_is_over_leaves_nothing_in_the_memo() -> None:
    call = {"toolCallId": "c", "toolName": "bash", "arguments": {"command": "ls"}}
    done = {"toolCallId": "c", "success": True, "result": {"content": "menu.txt"}}
    memo: Memo = {"session": "s", "told": ["s"]}

    found = parse_records(
        CopilotCli(),
        [
            Record(1, {"type": "tool.execution_start", "id": "e1", "data": call}),
            Record(2, {"type": "tool.execution_complete", "id": "e2", "data": done}),
        ],
        ORIGIN,
        memo,
    )

    assert found == [
        NewMessage("s", "c", Role.TOOL_CALL, '{"command":"ls"}', "bash", "c"),
        NewMessage("s", "e2", Role.TOOL_RESULT, "menu.txt", "bash", "c"),
    ]
    assert memo == {"session": "s", "told": ["s"], "running": {}}


def test_a_session_may_be_called_yes() -> None:
    workspace = io.BytesIO(b"id: 5a02\ncwd: /home/dev/demo\nname: yes\n")

    found = list(CopilotCliWorkspace().parse(workspace, ORIGIN))

    assert found == [SessionFacts("5a02", title="yes", project="/home/dev/demo")]


def test_a_workspace_that_is_no_yaml_is_one_problem() -> None:
    workspace = io.BytesIO(b"id: [5a02\n")

    found = list(CopilotCliWorkspace().parse(workspace, ORIGIN))

    assert found == [
        Problem("not valid YAML (expected ',' or ']', but got '<stream end>')")
    ]


def test_a_workspace_of_any_size_is_read_up_to_a_limit() -> None:
    long = io.BytesIO(b"id: s\nname: " + b"x" * MAX_WORKSPACE_BYTES)

    found = list(CopilotCliWorkspace().parse(long, ORIGIN))

    assert found == [Problem("a workspace of more than 262,144 bytes")]
