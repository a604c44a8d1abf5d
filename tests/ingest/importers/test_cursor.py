"""Where Cursor's chats were and when: what its golden samples cannot show."""

from datetime import UTC, datetime
from pathlib import Path
from time import process_time

import pytest

from backstory.ingest.importers.base import Origin, Record
from backstory.ingest.importers.cursor import Cursor
from backstory.values.history import NewMessage
from backstory.values.moments import Moment


def a_transcript(home: Path, project: Path) -> Path:
    """Where Cursor would keep a chat about ``project``."""
    short = str(project).strip("/").replace("/", "-").replace("_", "-")
    return home / ".cursor/projects" / short / "agent-transcripts/1/1.jsonl"


def read_nothing(path: Path) -> bytes:
    """There is no file beside the transcript."""
    return b""


def test_links_between_folders_are_not_followed_in_every_order(tmp_path: Path) -> None:
    project = tmp_path / "app"
    project.mkdir()
    (project / "a").symlink_to(".")
    (project / "a-a").symlink_to(".")
    # That many ways lead there that nobody could follow all of them.
    deep = Path(str(project) + "-a" * 60)

    found = Cursor().look_beside(a_transcript(tmp_path, deep), read_nothing)

    assert found.keys() <= {"project"}


def test_a_project_is_found_by_its_shortened_name(tmp_path: Path) -> None:
    project = tmp_path / "my-app"
    project.mkdir()

    found = Cursor().look_beside(a_transcript(tmp_path, project), read_nothing)

    assert found == {"project": str(project)}


def test_a_shortened_name_that_fits_two_folders_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "my-app").mkdir()
    (tmp_path / "my" / "app").mkdir(parents=True)

    transcript = a_transcript(tmp_path, tmp_path / "my-app")
    found = Cursor().look_beside(transcript, read_nothing)

    assert found == {}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "Tuesday, Jul 28, 2026, 12:06 PM (UTC+2)",
            Moment(datetime(2026, 7, 28, 10, 6, tzinfo=UTC), 120),
        ),
        (
            "Tuesday, Jul 28, 2026, 12:06 AM (UTC-3:30)",
            Moment(datetime(2026, 7, 28, 3, 36, tzinfo=UTC), -210),
        ),
        (
            "Saturday, September 26, 2026 1:00 PM",
            Moment(datetime(2026, 9, 26, 13, 0, tzinfo=UTC)),
        ),
        ("Tuesday, Feb 31, 2026, 12:06 PM (UTC)", None),
        ("some day", None),
    ],
)
def test_the_time_before_a_message_is_read(
    written: str, expected: Moment | None
) -> None:
    text = f"<timestamp>{written}</timestamp>\n<user_query>\nHello\n</user_query>"
    content = [{"type": "text", "text": text}]
    record = Record(1, {"role": "user", "message": {"content": content}})

    _, message = Cursor().parse(record, Origin(Path("1.jsonl")), {})

    assert isinstance(message, NewMessage)
    assert (message.text, message.sent) == ("Hello", expected)


def said(text: str) -> list[str]:
    content = [{"type": "text", "text": text}]
    record = {"role": "user", "message": {"content": content}}
    found = Cursor().parse(Record(1, record), Origin(Path("/c/1.jsonl")), {})
    return [item.text for item in found if isinstance(item, NewMessage)]


@pytest.mark.parametrize("mark", ["<user_query>", "<timestamp>"])
def test_many_openings_that_are_never_closed_cost_no_time(mark: str) -> None:
    text = mark * 8_000
    started = process_time()

    assert said(text) == [text]
    assert process_time() - started < 1


def test_the_person_s_words_stand_between_the_marks() -> None:
    text = (
        "<rules>x</rules><user_query>\none\n</user_query> <user_query>two</user_query>"
    )

    assert said(text) == ["one\ntwo"]
    assert said("<timestamp>now</timestamp>\n three") == ["three"]
