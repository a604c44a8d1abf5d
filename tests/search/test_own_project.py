"""An agent's own project comes first, or nothing else is shown to the agent."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.memory import Memory
from backstory.search.own_project import KEPT_APART
from tests.samples import a_memory

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BY_WORDS = "embedder.name=none"
ISOLATED = (BY_WORDS, "search.isolate_projects=true")
SHOP, BLOG, WEB = "/home/ada/shop", "/home/ada/blog", "/home/ada/shop/web"
LOG = """# Daily Log - 2026-02-25

## Blog (python, 12:00)

- The retries of the blog were raised to seven
"""


def fill(memory: Memory) -> None:
    """Have conversations about retries in three folders and in none, and take notes."""
    notes = memory.home / "memory"
    (notes / "daily").mkdir(parents=True, exist_ok=True)
    fact = "# Long-term Memory\n\n- Retries are always logged\n"
    (notes / "MEMORY.md").write_text(fact, encoding="utf-8")
    (notes / "daily" / "2026-02-25.md").write_text(LOG, encoding="utf-8")
    said = (
        (SHOP, "The shop makes five retries of a payment"),
        (BLOG, "The blog makes two retries of a ping"),
        (WEB, "The page makes three retries of a fetch"),
        (None, "Nobody knows how many retries are too many"),
    )
    for number, (project, text) in enumerate(said):
        at = NOW - timedelta(days=9 - number)
        name = f"s{number}"
        memory.record(name, "user", text, project=project, sent_at=at, title=name)
    # Words are only rare where there are others.
    for number in range(40):
        at = NOW - timedelta(days=300 + number)
        memory.record("older", "user", f"plum{number} pear{number}", sent_at=at)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with a_memory(tmp_path, settings=(BY_WORDS,), clock=lambda: NOW) as opened:
        fill(opened)
        yield opened


@pytest.fixture
def isolated(tmp_path: Path) -> Iterator[Memory]:
    with a_memory(tmp_path, settings=ISOLATED, clock=lambda: NOW) as opened:
        fill(opened)
        yield opened


def call(memory: Memory, name: str, asking: str, **arguments: Any) -> tuple[str, str]:
    """What a tool answers the agent in a session: its error, and its text."""
    tools = {tool.name: tool for tool in memory.tools(session=asking)}
    result = tools[name].call(arguments)
    return result.error or "", result.text


def test_what_was_said_in_the_agents_project_comes_first(memory: Memory) -> None:
    def first(folder: str | None) -> list[str | None]:
        found = memory.search("retries", folder=folder, sources="message").hits
        return [hit.project for hit in found]

    # The newest comes first; of the agent's own, with all below it, too.
    assert first(None) == [None, WEB, BLOG, SHOP]
    assert first(BLOG) == [None, BLOG, WEB, SHOP]
    assert first(SHOP) == [None, WEB, SHOP, BLOG]
    assert first("/home/ada/garden") == first(None)


@pytest.mark.parametrize("folder", [SHOP, BLOG, WEB])
def test_how_many_are_wanted_does_not_change_what_comes_first(
    memory: Memory, folder: str
) -> None:
    def hits(limit: int) -> list[str]:
        found = memory.search(
            "makes retries", folder=folder, sources="message", limit=limit
        )
        return [hit.text for hit in found.hits]

    def chunks(limit: int) -> list[str]:
        found = memory.recall("makes retries", folder=folder, limit=limit).found
        return [each.text for each in found]

    assert [hits(1), hits(2)] == [hits(10)[:1], hits(10)[:2]]
    assert [chunks(1), chunks(2)] == [chunks(10)[:1], chunks(10)[:2]]


def test_one_chunk_of_the_agents_project_is_found_behind_many_others(
    memory: Memory,
) -> None:
    for letter in "abcdefgh":
        text = f"Backoff doubles: quin{letter} fig{letter} lim{letter}"
        memory.record(letter, "user", text, project=BLOG, sent_at=NOW)
    # A little longer, so it scores a little less.
    own = "Backoff doubles: peach cherry apricot nectarine medlar"
    memory.record("own", "user", own, project=SHOP, sent_at=NOW)

    def first(limit: int) -> str:
        found = memory.recall("backoff doubles", folder=SHOP, limit=limit).found
        return found[0].text

    assert own in first(25)
    assert (first(1), first(2)) == (first(25), first(25))


def test_what_was_typed_comes_before_the_agents_project(memory: Memory) -> None:
    query = "two retries of a ping"
    found = memory.search(query, folder=SHOP).hits
    assert (found[0].project, found[0].part("exact")) == (BLOG, 1)


@pytest.mark.parametrize("name", ["search_history", "memory_search"])
def test_a_tool_knows_the_project_of_its_session(memory: Memory, name: str) -> None:
    def first(project: str) -> str:
        memory.record(project, "user", "How many?", project=project, sent_at=NOW)
        _, text = call(memory, name, project, query="makes retries")
        places = {each: text.index(each) for each in ("two ret", "three ret")}
        return min(places, key=lambda each: places[each])

    assert (first(BLOG), first(WEB)) == ("two ret", "three ret")


NOTED = "Retries are always logged"
FOREIGN = {"five retries", "two retries", "three retries", "too many", "raised to"}


@pytest.mark.parametrize(
    ("name", "project", "arguments", "expected"),
    [
        ("search_history", None, {}, {NOTED}),
        ("search_history", SHOP, {}, {"five retries", "three retries", NOTED}),
        ("search_history", WEB, {}, {"three retries", NOTED}),
        ("search_history", BLOG, {}, {"two retries", NOTED}),
        ("search_history", BLOG, {"view": "episodes"}, {"two retries"}),
        ("search_history", BLOG, {"project": SHOP}, set()),
        ("search_history", BLOG, {"scope": "daily_log"}, set()),
        ("memory_search", BLOG, {}, {"two retries", NOTED}),
        ("memory_search", SHOP, {"source_type": "file"}, {NOTED}),
    ],
)
def test_an_isolated_agent_sees_its_project_and_the_long_term_memory(
    isolated: Memory,
    name: str,
    project: str | None,
    arguments: dict[str, object],
    expected: set[str],
) -> None:
    isolated.record("asking", "user", "How many?", project=project, sent_at=NOW)
    error, text = call(isolated, name, "asking", query="retries", **arguments)
    assert error == ""
    assert {each for each in {NOTED, *FOREIGN} if each in text} == expected
    assert KEPT_APART in text


def test_an_isolated_agent_reads_sessions_of_its_project_only(isolated: Memory) -> None:
    def read(session: str) -> tuple[str, bool]:
        error, text = call(isolated, "read_session", "s0", session=session)
        return error, "retries" in text

    assert [read(name) for name in ("s0", "s2", "s1", "s3")] == [
        ("", True),
        ("", True),
        ("not_found", False),
        ("not_found", False),
    ]


def test_an_isolated_prompt_gets_memories_of_its_project_only(isolated: Memory) -> None:
    def remind(project: str) -> list[str]:
        prompt = (
            "How many retries of a ping or a payment do the blog and the shop make?"
        )
        return [hit.text for hit in isolated.context(prompt, project=project).memories]

    assert remind(BLOG) == ["The blog makes two retries of a ping"]
    assert remind("/home/ada/garden") == []


def test_a_person_sees_everything(isolated: Memory) -> None:
    found = isolated.search("retries", sources="message")
    assert {hit.project for hit in found.hits} == {SHOP, BLOG, WEB, None}
    assert found.notices == ()
