"""Without an index, everything is read for the query, or for all its words."""

import math
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.index.note_days import NoteDays
from backstory.search.fallback import FallbackSearch
from backstory.search.request import Request
from backstory.text.query import parse_words
from backstory.values.hits import HitSource, RecallResult, SearchResult
from tests.builders import USUAL
from tests.index_builders import NOW, an_indexed_memory, say, write_memory

RUN = "; run 'backstory rebuild'"
QUESTION = "Which port does the server use?"
ANSWER = "It listens on port 8080."
STAGING = "The staging port is 9090."


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a guidance file, in which a session ran."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "CLAUDE.md").write_text("# Style\n\nNames are written in full.\n")
    return folder


@pytest.fixture
def home(tmp_path: Path, project: Path) -> Path:
    """A memory with messages and notes whose index is no database."""
    with an_indexed_memory(tmp_path) as memory:
        say(memory, QUESTION, minute=1, project=project)
        say(memory, ANSWER, minute=2, role="assistant")
        say(memory, "listening on 0.0.0.0:8080", minute=3, role="tool_result")
        say(memory, "Die Straße ist gesperrt.", session="s2", minute=60 * 24 * 3)
        say(memory, "我们决定使用端口", session="s2", minute=60 * 24 * 3 + 1)
        say(memory, "We fly on Tuesday.", session="s3", title="Travel to Lisbon")
        write_memory(memory, f"# Servers\n\n- {STAGING}\n- Ask Ann.\n")
        write_memory(memory, "- Booked Lisbon.\n", name="daily/2026-02-03.md")
    (tmp_path / "backstory" / "index.db").write_bytes(b"this is no database " * 1_000)
    return tmp_path


def search(folder: Path, query: str, **more: Any) -> SearchResult:
    with an_indexed_memory(folder) as memory:
        return memory.search(query, **more)


def texts(result: SearchResult) -> list[str]:
    return [hit.text for hit in result.hits]


# -- what is found --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("listens on PORT", [ANSWER]),
        ("strasse ist", ["Die Straße ist gesperrt."]),
        ("0.0.0.0:8080", ["listening on 0.0.0.0:8080"]),
        ("fly on tues", ["We fly on Tuesday."]),
        ("staging port", [STAGING]),
        ("travel to", ["Travel to Lisbon\nWe fly on Tuesday."]),
        ("Lisbon", ["Booked Lisbon.", "Travel to Lisbon\nWe fly on Tuesday."]),
        ("nowhere at all", []),
    ],
)
def test_the_query_is_found_as_typed_in_messages_notes_and_titles(
    home: Path, query: str, expected: list[str]
) -> None:
    result = search(home, query)

    assert texts(result) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("8080 listens", [ANSWER]),
        ("what is the port of the servers for staging?", [STAGING]),
        ("server port use", [QUESTION]),
        ("gesperrt straße", ["Die Straße ist gesperrt."]),
        ("端口 决定", ["我们决定使用端口"]),
        ("listens nowhere", []),
        ("+ -", []),
    ],
)
def test_where_the_query_is_nowhere_all_its_words_are_looked_for(
    home: Path, query: str, expected: list[str]
) -> None:
    result = search(home, query)

    assert texts(result) == expected


def test_the_newest_comes_first_and_no_more_than_asked_for(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        for number in (2, 3, 1):
            say(memory, f"needle {number}", session=f"s{number}", minute=number)
    (tmp_path / "backstory" / "index.db").write_bytes(b"no database " * 1_000)

    result = search(tmp_path, "needle", limit=2, sources=["message"])

    assert texts(result) == ["needle 3", "needle 2"]


def test_a_question_to_a_memory_tool_does_not_answer_itself(home: Path) -> None:
    with an_indexed_memory(home) as memory:
        say(
            memory,
            '{"query": "staging port"}',
            role="tool_call",
            tool_name="mcp__backstory__search_history",
        )

        assert texts(memory.search("staging port")) == [STAGING]


# -- where it may be found ------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"scope": "memory"}, [STAGING]),
        ({"scope": "daily_log"}, []),
        ({"sources": ["message"]}, [ANSWER, QUESTION]),
        ({"project": "project"}, [ANSWER, QUESTION]),
        ({"host": "python", "scope": "memory"}, []),
        ({"date_from": (NOW + timedelta(days=1)).date(), "scope": "sessions"}, []),
        ({"date_to": date(2026, 2, 20), "limit": 1}, [ANSWER]),
        ({"session": "s1"}, [STAGING]),
    ],
)
def test_filters_hold_without_an_index(
    home: Path, more: dict[str, object], expected: list[str]
) -> None:
    result = search(home, "port", **more)

    assert texts(result) == expected


def test_guidance_is_read_when_it_is_asked_for(home: Path, project: Path) -> None:
    asked = search(home, "written in full", sources=["guidance"])
    unasked = search(home, "written in full")

    assert [(hit.path, hit.heading, hit.project) for hit in asked.hits] == [
        (str(project / "CLAUDE.md"), "Style", str(project))
    ]
    assert unasked.hits == ()


# -- stretches and episodes -----------------------------------------------------------


def recall(folder: Path, query: str, **more: Any) -> RecallResult:
    with an_indexed_memory(folder) as memory:
        return memory.recall(query, **more)


def test_a_message_is_recalled_with_the_chunk_it_is_in(home: Path) -> None:
    result = recall(home, "listens on port")

    assert [(each.source_type, each.chunk_id, each.text) for each in result.found] == [
        (
            "conversation",
            "1.0",
            f"User: {QUESTION}\nAgent: {ANSWER}",
        )
    ]


def test_several_messages_of_one_chunk_are_recalled_once(home: Path) -> None:
    result = recall(home, "port", source_type="conversation")

    assert [each.chunk_id for each in result.found] == ["1.0"]


def test_a_note_is_recalled_with_its_section(home: Path) -> None:
    result = recall(home, "ask ann", source_type="file")

    assert [(each.source_type, each.name, each.text) for each in result.found] == [
        ("file", "MEMORY.md", f"Servers\n{STAGING}\nAsk Ann.")
    ]


def test_what_a_tool_put_out_is_not_recalled(home: Path) -> None:
    assert recall(home, "0.0.0.0:8080").found == ()


def test_stretches_have_the_same_name_as_with_an_index(home: Path) -> None:
    without = recall(home, "port")
    with an_indexed_memory(home) as memory:
        memory.rebuild()
        with_index = memory.recall("port")

    def named(result: RecallResult) -> set[tuple[str, str, str]]:
        return {(each.chunk_id, each.name, each.text) for each in result.found}

    assert named(without) == named(with_index) != set()


def test_episodes_have_their_neighbours_and_need_only_the_words(home: Path) -> None:
    with an_indexed_memory(home) as memory:
        result = memory.episodes("8080 listens")

    (episode,) = result.episodes
    assert episode.before is not None
    assert (episode.before.text, episode.matched.text, episode.after) == (
        QUESTION,
        ANSWER,
        None,
    )


# -- what is said about it ------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "more", "notice"),
    [
        (
            "staging port",
            {},
            "messages, titles and notes were searched for the query as typed",
        ),
        (
            "port staging",
            {"scope": "memory"},
            "notes were searched for all the words of the query",
        ),
        (
            "nowhere",
            {"sources": ["message", "guidance"]},
            "messages and guidance files were searched for the query as typed and "
            "for all its words",
        ),
    ],
)
def test_the_notice_says_what_was_read_and_how(
    home: Path, query: str, more: dict[str, object], notice: str
) -> None:
    result = search(home, query, **more)

    assert result.notices[:1] == (f"the index is damaged, so {notice}{RUN}",)


def test_when_the_time_is_up_what_was_found_is_given(tmp_path: Path) -> None:
    query = parse_words("needle")
    request = Request(query, frozenset({HitSource.MESSAGE}), USUAL.weights)
    away = ("the index is away", "")
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "needle")
        history = memory._parts.history
        days = NoteDays(history, lambda: NOW, is_read_only=True)
        fallback = FallbackSearch(history, list, list, days)

        result = fallback.search(request, away, until=time.monotonic())
        whole = fallback.search(request, away, until=math.inf)

    told = "the index is away, so messages were searched for the query as typed"
    assert result == SearchResult(
        query,
        (),
        (
            f"{told} and for all its words",
            "time ran out before everything was searched",
        ),
    )
    assert (texts(whole), whole.notices) == (["needle"], (told,))
