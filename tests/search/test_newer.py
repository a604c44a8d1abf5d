"""A decision that was changed later: the later one comes first, the older says so."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backstory.memory import Memory
from backstory.render.people.hits import render_hits
from backstory.tools import bind_tools
from backstory.values.hits import Hit
from tests.samples import a_memory
from tests.search.test_everyday_prompts import fill as fill_everyday

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LOANS, BLOG = "/home/mia/loans", "/home/mia/blog"

# The day, the session, the project, and what was said in turn by a person and an agent.
SAID = (
    (
        "2026-03-02",
        "database",
        LOANS,
        "We'll use Postgres for the loans database.",
        "Done: docker-compose starts Postgres 16, and the loans tables are created by "
        "migrations/0001.sql.",
    ),
    (
        "2026-03-09",
        "ports",
        LOANS,
        "The API listens on port 8080 on every host.",
        "Noted. The API binds 0.0.0.0:8080, and the health check asks the same port.",
    ),
    (
        "2026-03-12",
        "releases",
        LOANS,
        "We always deploy from main, tagged with the date.",
        "I set up the deploy workflow: a tag on main builds the image and rolls it "
        "out.",
    ),
    (
        "2026-03-20",
        "metrics",
        LOANS,
        "The metrics endpoint listens on port 9100.",
        "Added: Prometheus scrapes the metrics endpoint on port 9100 every minute.",
    ),
    (
        "2026-04-02",
        "backups",
        LOANS,
        "Back up the loans database every night at two.",
        "A cron job dumps the loans database at 02:00 and keeps fourteen dumps.",
    ),
    (
        "2026-05-03",
        "smaller",
        LOANS,
        "Postgres is overkill here, let's go with SQLite for the loans database.",
        "Switched the loans database from Postgres to SQLite with WAL: data/loans.db.",
    ),
    (
        "2026-05-10",
        "clash",
        LOANS,
        "The API listens on port 9090 now, because 8080 clashes with Jenkins.",
        "Changed the API from port 8080 to 9090 in docker-compose.yml and the docs.",
    ),
    (
        "2026-05-12",
        "branches",
        LOANS,
        "From now on we deploy from the release branch.",
        "The deploy workflow runs for tags on the release branch only.",
    ),
    (
        "2026-05-20",
        "blog",
        BLOG,
        "Switch the blog database from Postgres to MySQL.",
        "The blog database is MySQL 8 now.",
    ),
)


def fill(memory: Memory) -> None:
    fill_everyday(memory)
    for day, session, project, request, answer in SAID:
        at = datetime.fromisoformat(f"{day}T10:00:00+00:00")
        for place, (role, text) in enumerate(
            (
                ("user", request),
                ("tool_call", '{"command": "git status"}'),
                ("tool_result", "nothing to commit"),
                ("assistant", answer),
            )
        ):
            memory.record(
                session,
                role,
                text,
                tool_name="Bash" if role.startswith("tool") else None,
                sent_at=at + timedelta(minutes=place),
                project=project,
                title=session,
            )


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    settings = ("embedder.in_background=false", "context.timeout_seconds=60")
    folder: Path = tmp_path_factory.mktemp("newer")
    with a_memory(folder, settings=settings, clock=lambda: NOW) as opened:
        fill(opened)
        opened.index()
        opened.embed()
        yield opened


def say(hit: Hit) -> tuple[str, str | None]:
    """The session of a hit, and that of what is newer."""
    assert hit.session is not None
    if hit.newer is None or hit.newer.session is None:
        return hit.session.title, None
    return hit.session.title, hit.newer.session.title


def find_users(memory: Memory, query: str, limit: int = 10) -> list[Hit]:
    return [hit for hit in memory.search(query, limit=limit).hits if hit.role == "user"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "which database do we use for the loans?",
            [("smaller", None), ("database", "smaller")],
        ),
        ("what port does the API listen on", [("clash", None), ("ports", "clash")]),
        ("where do we deploy from?", [("branches", None), ("releases", "branches")]),
    ],
)
def test_the_later_decision_comes_first_and_the_older_one_names_it(
    memory: Memory, query: str, expected: list[tuple[str, str | None]]
) -> None:
    assert list(map(say, find_users(memory, query)[:2])) == expected
    assert list(map(say, find_users(memory, query, limit=1))) == expected[:1]


@pytest.mark.parametrize(
    ("query", "session"),
    [
        ("which port do the metrics use?", "metrics"),
        ("when is the loans database backed up?", "backups"),
        ("which database does the blog use?", "blog"),
    ],
)
def test_another_fact_about_the_same_subject_replaces_nothing(
    memory: Memory, query: str, session: str
) -> None:
    [first, *_] = find_users(memory, query)
    assert say(first) == (session, None)


def test_a_question_whose_answer_was_replaced_comes_after_the_newer_one(
    tmp_path: Path,
) -> None:
    said = (
        ("asked", "user", "Which queue do the mails go through?"),
        ("asked", "assistant", "The mails go through the queue in RabbitMQ."),
        ("moved", "user", "We moved the queue for mails from RabbitMQ to Postgres."),
    )
    by_words = ("embedder.name=none",)
    with a_memory(tmp_path, settings=by_words, clock=lambda: NOW) as memory:
        for number, (session, role, text) in enumerate(said):
            at = NOW - timedelta(days=30 - number)
            memory.record(session, role, text, sent_at=at, project=LOANS, title=session)
        query = "which queue for mails?"
        found = memory.search(query, sources=["message"])
        first = memory.search(query, sources=["message"], limit=1)

    assert [say(hit) for hit in found.hits if "queue" in hit.text] == [
        ("moved", None),
        ("asked", "moved"),
        ("asked", "moved"),
    ]
    assert list(map(say, first.hits)) == [("moved", None)]


def test_who_asks_for_what_was_used_originally_gets_the_older_one_first(
    memory: Memory,
) -> None:
    hits = find_users(memory, "which database did we originally use for the loans?")
    assert list(map(say, hits[:2])) == [("database", "smaller"), ("smaller", None)]


def test_a_prompt_is_given_the_later_decision_first(memory: Memory) -> None:
    context = memory.context("Add an index to the loans database", project=LOANS)
    lines = [line[:62] for line in context.text.splitlines() if line[:2] == "- "]
    assert lines[:2] == [
        '- [Conversation 2026-05-03 "smaller"] User: Postgres is overki',
        '- [Conversation 2026-03-02 "database", newer: 2026-05-03] User',
    ]


def place_of(hit: Hit) -> int:
    """The number of a message in its session, from 1."""
    assert hit.position is not None
    return hit.position + 1


def test_an_agent_is_told_where_the_newer_one_is(memory: Memory) -> None:
    tool = next(each for each in bind_tools(memory) if each.name == "search_history")
    newer, older = find_users(memory, "where do we deploy from?")[:2]
    assert newer.session is not None

    answer = tool.run(query="where do we deploy from?")

    line = f"\n[Newer: 2026-05-12, id: branches, message: {newer.message_id}]\n"
    assert answer.text.count(line) == 1
    data: Any = answer.data
    [_, told, *_] = data["results"]
    assert (told["message_id"], told["newer"]) == (
        older.message_id,
        {
            "source": "message",
            "session": {"id": newer.session.native_id, "title": "branches"},
            "message_id": newer.message_id,
            "date": "2026-05-12T10:00:00+00:00",
            "path": None,
            "show": f"backstory show branches --around {place_of(newer)}",
        },
    )


def test_memory_search_shows_the_later_decision_first(memory: Memory) -> None:
    tool = next(each for each in bind_tools(memory) if each.name == "memory_search")

    answer = tool.run(query="where do we deploy from?")

    data: Any = answer.data
    found = [
        (each["name"], each["newer"] and each["newer"]["session"]["title"])
        for each in data
    ]
    assert found[:2] == [("branches", None), ("releases", "branches")]
    assert "[Newer: 2026-05-12, id: branches, message: " in answer.text


def test_a_person_is_told_where_the_newer_one_is(memory: Memory) -> None:
    result = memory.search("where do we deploy from?")
    newer = result.hits[0]

    lines = list(render_hits(result, names={}))

    line = "   newer: 2026-05-12 10:00  backstory show branches --around "
    assert [each for each in lines if "newer" in each] == [f"{line}{place_of(newer)}"]


def test_of_notes_too_the_later_one_comes_first(tmp_path: Path) -> None:
    days = tmp_path / "backstory" / "memory" / "daily"
    days.mkdir(parents=True)
    for day, text in (
        ("2026-03-02", "The loans service uses Postgres."),
        ("2026-05-03", "The loans service uses SQLite."),
    ):
        log = f"# Daily Log - {day}\n\n## Loans\n\n- {text}\n"
        (days / f"{day}.md").write_text(log, encoding="utf-8")
    by_words = ("embedder.name=none",)
    with a_memory(tmp_path, settings=by_words, clock=lambda: NOW) as memory:
        hits = memory.search("what does the loans service use?").hits

    found = [(hit.path and hit.path[-13:-3], hit.newer is not None) for hit in hits]
    assert found == [("2026-05-03", False), ("2026-03-02", True)]


def test_a_decision_that_was_changed_in_german_is_marked(tmp_path: Path) -> None:
    said = (
        ("user", "Für die Ausleihen nehmen wir Postgres."),
        ("user", "Die Ausleihen werden jede Nacht um zwei gesichert."),
        ("user", "Sollten wir die Ausleihen von Postgres auf MySQL umstellen?"),
        ("assistant", "Ich habe die Ausleihen von Postgres auf SQLite umgestellt."),
    )
    by_words = ("embedder.name=none",)
    with a_memory(tmp_path, settings=by_words, clock=lambda: NOW) as memory:
        for number, (role, text) in enumerate(said):
            at = NOW - timedelta(days=30 - number)
            memory.record(f"s{number}", role, text, sent_at=at, project=LOANS)
        hits = memory.search("Ausleihen", sources=["message"]).hits

    marked = {hit.text: hit.newer.text for hit in hits if hit.newer is not None}
    assert len(hits) == len(said)
    assert marked == {said[0][1]: said[3][1]}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # What is said again is found once.
        (["The API listens on port 8080."] * 2, [("API listens on port 8080", False)]),
        # What is said again with another value is found twice, although it is alike.
        (
            [
                "On the staging host the public API server listens on port 8080.",
                "On the staging host the public API server listens on port 9090.",
            ],
            [("API server listens on port 9090", False), ("port 8080", True)],
        ),
        # An idea or a question is no decision.
        (
            [
                "The API listens on port 8080.",
                "Should we move the API from port 8080 to port 9090?",
                "We could move the API from port 8080 to port 9090 some day.",
            ],
            [("listens on port 8080", False), ("Should", False), ("could", False)],
        ),
    ],
    ids=["said again", "another value", "ideas"],
)
def test_what_was_said_twice(
    tmp_path: Path, texts: list[str], expected: list[tuple[str, bool]]
) -> None:
    by_words = ("embedder.name=none",)
    with a_memory(tmp_path, settings=by_words, clock=lambda: NOW) as memory:
        for number, text in enumerate(texts):
            at = NOW - timedelta(days=30 - number)
            memory.record(f"s{number}", "user", text, sent_at=at, project=LOANS)
        hits = memory.search("API port", sources=["message"]).hits

    found = sorted((hit.text, hit.newer is not None) for hit in hits)
    assert len(found) == len(expected)
    assert all(
        any(part in text and mark == marked for text, marked in found)
        for part, mark in expected
    )
