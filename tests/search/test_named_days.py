"""What was said on a day or in a week that a query names comes first."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backstory.memory import Memory
from backstory.text.query import parse_words
from tests.samples import a_memory

# A Monday.
NOW = datetime(2026, 5, 18, 12, tzinfo=UTC)
SAID = (
    ("older", 40, "We decided to log every refund, and decided who reads the log."),
    ("last week", 5, "Let's keep the refund log for a year."),
    ("yesterday", 1, "The invoices are sent as PDF."),
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder: Path = tmp_path_factory.mktemp("days")
    settings = ("embedder.in_background=false",)
    with a_memory(folder, settings=settings, clock=lambda: NOW) as opened:
        for session, days, text in SAID:
            at = NOW - timedelta(days=days)
            opened.record(session, "user", text, sent_at=at, title=session)
        opened.index()
        opened.embed()
        yield opened


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("what did we decide about the refund log?", "older"),
        ("what did we decide about the refund log last week?", "last week"),
        ("what did we decide last week?", "last week"),
        ("what did we decide on 2026-04-08?", "older"),
    ],
)
def test_what_was_said_then_comes_first(memory: Memory, query: str, first: str) -> None:
    [hit, *_] = memory.search(query, sources=["message"]).hits
    assert hit.session is not None
    assert hit.session.title == first


def test_that_something_was_decided_is_not_what_it_was_about() -> None:
    asked = parse_words("which port did we decide on yesterday, what was agreed?")
    assert [term.text for term in asked.subject] == ["port"]
    without_topic = parse_words("decisions of yesterday")
    assert [term.text for term in without_topic.subject] == ["decisions"]
