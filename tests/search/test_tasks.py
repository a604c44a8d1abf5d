"""What an agent asks of its subagent is a call of a tool, not what a user said."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from backstory.memory import Memory
from tests.samples import a_memory

pytestmark = pytest.mark.xdist_group("tasks")

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
REQUEST = "Please find out why the nightly import of suppliers fails"
TASK = (
    "Find out why the nightly import of suppliers fails. Read import_suppliers.py and "
    "its tests, do not change anything, and report the cause with file and line."
)
FOUND = (
    "The nightly import of suppliers fails when a supplier's file is empty: line 40 "
    "of import_suppliers.py takes its first line for granted."
)
ANSWER = "It fails on empty files, because of line 40; I have made it skip them."


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("tasks")
    settings = ("embedder.in_background=false",)
    with a_memory(folder, settings=settings, clock=lambda: NOW) as opened:
        said = (
            ("main", "user", REQUEST, None),
            ("main", "tool_call", f'{{"prompt": "{TASK}"}}', None),
            ("helper", "user", TASK, "main"),
            ("helper", "tool_call", '{"path": "import_suppliers.py"}', "main"),
            ("helper", "assistant", FOUND, "main"),
            ("main", "tool_result", FOUND, None),
            ("main", "assistant", ANSWER, None),
        )
        for number, (session, role, text, parent) in enumerate(said):
            opened.record(
                session,
                role,
                text,
                tool_name="Agent" if role.startswith("tool") else None,
                sent_at=NOW - timedelta(days=2, minutes=-number),
                project="/home/mia/shop",
                parent=parent,
            )
        opened.index()
        opened.embed()
        yield opened


def test_it_stands_after_what_was_said(memory: Memory) -> None:
    result = memory.search("why does the import of suppliers fail at night?")

    spoken = {REQUEST, FOUND, ANSWER}
    found = [hit.text for hit in result.hits if hit.message_id is not None]
    assert set(found[:2]) <= spoken
    assert TASK not in found[:3]


def test_it_is_found_by_its_words(memory: Memory) -> None:
    (tool,) = [each for each in memory.tools() if each.name == "search_history"]

    shown = tool.run(query="do not change anything, and report the cause").text

    # The call that it was is the same text, and shown instead.
    assert "report the cause with file and line" in shown
    assert "User:" not in shown


def test_a_transcript_names_it(memory: Memory) -> None:
    (tool,) = [each for each in memory.tools() if each.name == "read_session"]

    shown = tool.run(session="helper").text

    assert "Task, 2026-03-18 12:02:\n> Find out why the nightly import" in shown


def test_it_reminds_of_nothing(memory: Memory) -> None:
    added = memory.context(
        "Read import_suppliers.py again: why do suppliers fail in the nightly import?",
        project="/home/mia/shop",
    )

    assert "takes its first line for granted" in added.text
    assert "do not change anything" not in added.text


def test_memory_search_names_it(memory: Memory) -> None:
    (tool,) = [each for each in memory.tools() if each.name == "memory_search"]

    assert "Task: Find out why" in tool.run(query="line 40 first line granted").text
