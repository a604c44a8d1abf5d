"""What the samples of Gemini CLI cannot show."""

import io
from pathlib import Path

from backstory.hosts import get_host
from backstory.hosts.base import Machine
from backstory.importers.base import Memo, Origin, Record
from backstory.importers.gemini_cli import GeminiCli, GeminiCliDocument
from backstory.model import NewMessage, Problem, Role, SessionFacts

ORIGIN = Origin(Path("/home/dev/.gemini/tmp/demo/chats/session-1.jsonl"))


def test_a_document_that_is_cut_off_is_one_problem() -> None:
    cut = io.BytesIO(b'{"sessionId": "s", "messages": [{"id": "m"')

    found = list(GeminiCliDocument().parse(cut, ORIGIN))

    assert found == [Problem("not valid JSON (unexpected end of data)")]


def test_half_a_character_does_not_cost_a_document() -> None:
    document = io.BytesIO(
        rb'{"sessionId": "s", "messages": '
        rb'[{"id": "m", "type": "user", "content": "so \ud83d"}]}'
    )

    found = list(GeminiCliDocument().parse(document, ORIGIN))

    assert found == [
        SessionFacts("s"),
        NewMessage("s", "m", Role.USER, "so \ud83d"),
    ]


def test_a_log_that_lost_its_header_is_named_after_its_file() -> None:
    record = {"id": "m", "type": "gemini", "content": "hello"}

    found = list(GeminiCli().parse([Record(1, record)], ORIGIN, {}))

    assert found == [
        SessionFacts("session-1"),
        NewMessage("session-1", "m", Role.ASSISTANT, "hello"),
    ]


def test_a_masked_result_is_better_than_none() -> None:
    masked = "<tool_output_masked>\n[masked]\n</tool_output_masked>"
    response = {"id": "c", "name": "ls", "response": {"output": masked}}
    record = {"id": "m", "type": "user", "content": [{"functionResponse": response}]}
    memo: Memo = {"session": "s", "told": "s"}

    found = list(GeminiCli().parse([Record(1, record)], ORIGIN, memo))

    assert found == [NewMessage("s", "c/result", Role.TOOL_RESULT, masked, "ls", "c")]


def test_its_home_variable_names_the_folder_above() -> None:
    machine = Machine("linux", Path("/home/dev"), {"GEMINI_CLI_HOME": "/srv/gemini"})

    place = get_host("gemini-cli").folders[0].locate(machine)

    assert place == Path("/srv/gemini/.gemini")
