"""Backstory's own format, as its page describes it."""

import re
from pathlib import Path

import pytest

from backstory.ingest.importers.backstory_jsonl import BackstoryJsonl
from backstory.ingest.importers.base import Memo, Origin, Record
from backstory.memory import Memory
from backstory.values.history import NewMessage, Problem, Role, SessionFacts
from tests.samples import contents

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "jsonl-format.md"
EXAMPLES = re.findall(
    r"^```jsonl\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)


def test_the_first_example_of_the_page_works(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "helpdesk.backstory.jsonl"
    file.write_text(EXAMPLES[0], encoding="utf-8")

    report = memory.index(path=file)

    assert report.problems == ()
    (session,) = contents(memory, tmp_path)
    messages = [
        (message["role"], message["text"], message["sent"])
        for message in session.pop("messages")
    ]
    assert session == {
        "host": "jsonl",
        "id": "ticket-17",
        "title": "Printer on floor 2",
        "project": "/srv/helpdesk",
        "git_branch": None,
        "parent_id": None,
        "started": "2026-01-05T09:00:12+01:00",
        "last_active": "2026-01-05T09:00:30+01:00",
        "preview": "The toner is empty.",
        "read_from": "helpdesk.backstory.jsonl",
    }
    assert messages == [
        ("user", "The printer prints blank pages.", "2026-01-05T09:00:12+01:00"),
        ("tool_call", '{"floor":2}', "2026-01-05T09:00:21+01:00"),
        ("tool_result", '{"toner":0}', "2026-01-05T09:00:22+01:00"),
        ("assistant", "The toner is empty.", "2026-01-05T09:00:30+01:00"),
    ]


@pytest.mark.parametrize(
    ("example", "name", "session", "count"),
    [
        (1, "garden.backstory.jsonl", "garden", 2),
        (2, "plan.jsonl", "week-19", 1),
    ],
    ids=["the least", "known by its first line"],
)
def test_the_other_examples_of_the_page_work(
    memory: Memory, tmp_path: Path, example: int, name: str, session: str, count: int
) -> None:
    file = tmp_path / name
    file.write_text(EXAMPLES[example], encoding="utf-8")

    report = memory.index(path=file)

    assert (report.problems, report.new_messages) == ((), count)
    assert [found.native_id for found in memory.sessions()] == [session]


def test_the_page_names_every_role() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))

    assert {role.value for role in Role} <= named


def test_a_session_named_after_its_file_stays_one_when_the_file_is_renamed() -> None:
    memo: Memo = {}
    first = Record(1, {"role": "user", "text": "One", "id": "1"})
    second = Record(2, {"role": "user", "text": "Two", "id": "2"})

    found = [
        *BackstoryJsonl().parse(first, Origin(Path("a.backstory.jsonl")), memo),
        *BackstoryJsonl().parse(second, Origin(Path("b.backstory.jsonl")), memo),
    ]

    assert found == [
        SessionFacts("a"),
        NewMessage("a", "1", Role.USER, "One"),
        NewMessage("a", "2", Role.USER, "Two"),
    ]


def test_a_text_nested_too_deeply_is_kept_as_a_mark() -> None:
    text: list[object] = []
    for _ in range(2000):
        text = [text]
    record = Record(1, {"role": "user", "text": text, "id": "1"})

    found = list(BackstoryJsonl().parse(record, Origin(Path("a.jsonl")), {}))

    assert found == [
        SessionFacts("a"),
        NewMessage("a", "1", Role.USER, "[nested too deeply to be shown]"),
    ]


def test_a_line_about_nothing_is_a_problem() -> None:
    record = Record(3, {"note": "?"})

    found = list(BackstoryJsonl().parse(record, Origin(Path("a.jsonl")), {}))

    assert found == [Problem("neither a message nor about a session", 3)]


def test_another_log_that_mentions_backstory_is_not_taken_for_this_format() -> None:
    head = b'{"project": "backstory", "role": "user", "content": "Hello"}\n'

    assert not BackstoryJsonl().recognizes(Path("log.jsonl"), head)


@pytest.mark.parametrize(
    ("line", "is_known"),
    [
        (b'{"role": "user", "text": "Hello"}', False),
        (b'{"session": "a", "role": "user", "text": "Hello"}', True),
        (b'{"role": "user", "text": "Hello", "sent_at": 1767000000}', True),
        (b'{"role": "user", "text": "Hello", "id": 7}', True),
        (b'{"role": "tool_call", "text": {}, "tool_name": "ls"}', True),
        (b'{"role": "user", "text": "Hello", "timestamp": 1767000000}', False),
    ],
)
def test_a_role_and_a_text_alone_may_be_another_program_s(
    line: bytes, is_known: bool
) -> None:
    assert BackstoryJsonl().recognizes(Path("log.jsonl"), line + b"\n") == is_known


def test_a_session_is_named_after_its_file_however_its_suffix_is_written() -> None:
    record = Record(1, {"role": "user", "text": "One", "id": "1"})

    found = list(BackstoryJsonl().parse(record, Origin(Path("A.Backstory.JSONL")), {}))

    assert found[0] == SessionFacts("A")


def test_equal_answers_of_the_same_second_are_two_messages(
    memory: Memory, tmp_path: Path
) -> None:
    file = tmp_path / "talk.backstory.jsonl"
    yes = b'{"role":"user","text":"yes","sent_at":"2026-02-20T14:32:10Z"}\n'
    sure = b'{"role":"assistant","text":"Sure?","sent_at":"2026-02-20T14:32:10Z"}\n'
    file.write_bytes(yes + sure)
    memory.index(path=file)
    file.write_bytes(yes + sure + yes)

    memory.index(path=file)

    (session,) = memory.sessions()
    assert [message.text for message in memory.messages(session)] == [
        "yes",
        "Sure?",
        "yes",
    ]
