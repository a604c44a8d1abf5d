"""What the samples of Gemini CLI cannot show."""

import io
from pathlib import Path
from time import process_time

import pytest

from backstory.ingest.hosts import get_host
from backstory.ingest.importers.base import Origin, Record
from backstory.ingest.importers.gemini_cli import GeminiCli, GeminiCliDocument
from backstory.system.machine import Machine
from backstory.values.history import NewMessage, Problem, Role, SessionFacts
from tests.samples import parse_records

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
        NewMessage("s", "m", Role.USER, "so \ufffd"),
    ]


def test_a_log_that_lost_its_header_is_named_after_its_file() -> None:
    record = {"id": "m", "type": "gemini", "content": "hello"}

    found = list(GeminiCli().parse(Record(1, record), ORIGIN, {}))

    assert found == [
        SessionFacts("session-1"),
        NewMessage("session-1", "m", Role.ASSISTANT, "hello"),
    ]


def test_its_home_variable_names_the_folder_above() -> None:
    machine = Machine("linux", Path("/home/dev"), {"GEMINI_CLI_HOME": "/srv/gemini"})

    place = get_host("gemini-cli").folders[0].locate(machine)

    assert place == Path("/srv/gemini/.gemini")


def prompts(*texts: str) -> list[tuple[Role, str]]:
    records = [
        Record(
            number, {"id": f"m{number}", "type": "user", "content": [{"text": text}]}
        )
        for number, text in enumerate(texts, start=1)
    ]
    found = parse_records(GeminiCli(), records, ORIGIN, {})
    return [(item.role, item.text) for item in found if isinstance(item, NewMessage)]


def test_many_openings_that_are_never_closed_cost_no_time() -> None:
    text = "<hook_context>" * 8_000
    started = process_time()

    assert prompts(text) == [(Role.USER, text)]
    assert process_time() - started < 1


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("<hook_context>a</hook_context>\n\n  - a list", "  - a list"),
        ("  - a list\n\n<hook_context>a</hook_context>", "  - a list"),
        ("one\n\n<hook_context>a</hook_context>\n\ntwo", "one\n\ntwo"),
        ("one <hook_context>a</hook_context> two <hook_context>", None),
    ],
)
def test_only_a_hook_s_context_is_cut_out_of_a_prompt(
    written: str, kept: str | None
) -> None:
    kept = "one  two <hook_context>" if kept is None else kept

    assert prompts(written) == [(Role.USER, kept)]


def test_only_the_first_message_is_the_context_of_a_session() -> None:
    context = "<session_context>\nlinux\n</session_context>"

    assert prompts(context, "Hello", context) == [
        (Role.USER, "Hello"),
        (Role.USER, context),
    ]
    assert prompts("<session_context> is what?") == [
        (Role.USER, "<session_context> is what?")
    ]


def test_a_context_that_was_shortened_is_still_one() -> None:
    context = "<session_context>\nThis is the Gemini CLI. We are setting …"

    assert prompts(context, "Hello") == [(Role.USER, "Hello")]


def test_a_snapshot_that_is_not_closed_is_the_person_s() -> None:
    assert prompts(
        "<state_snapshot> is what?", "<state_snapshot>a</state_snapshot>"
    ) == [
        (Role.USER, "<state_snapshot> is what?"),
        (Role.SUMMARY, "<state_snapshot>a</state_snapshot>"),
    ]
