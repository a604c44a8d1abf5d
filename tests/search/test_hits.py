"""What a search finds, leaves out and says, through the front door."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from backstory.errors import BadQuery, UnknownName
from backstory.memory import Memory
from backstory.search.hits import HitSearch
from backstory.search.request import Request
from backstory.search.retrieve import Retriever
from backstory.search.tuned_profile import TunedProfile
from backstory.text.query import parse_words
from backstory.values.hits import Hit, HitSource, SearchResult
from tests.builders import USUAL
from tests.grid import in_one_test
from tests.samples import a_memory

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOTES = """# Long-term Memory

## Preferences
- Likes sushi more than any other restaurant food
- Answers in German

## Projects
- The invoice program runs on PostgreSQL
"""
LOG = """# Daily Log - 2026-02-25

- Discussed dinner plans; wants to try the restaurant Sakura Sushi in Shibuya
- Fixed the flaky test of the invoice parser
"""


def at(day: str, hour: int = 12) -> datetime:
    return datetime.fromisoformat(f"{day}T{hour:02d}:00:00+00:00")


def open_memory(folder: Path, *more: str) -> Memory:
    return a_memory(folder, settings=("embedder.name=none", *more), clock=lambda: NOW)


def fill(memory: Memory) -> None:
    notes = memory.home / "memory"
    (notes / "daily").mkdir(parents=True)
    (notes / "MEMORY.md").write_text(NOTES, encoding="utf-8")
    (notes / "daily" / "2026-02-25.md").write_text(LOG, encoding="utf-8")
    talk = [
        ("dinner", "2026-02-25", "user", "Is there a good sushi restaurant there?"),
        ("dinner", "2026-02-25", "assistant", "Sakura Sushi in Shibuya is liked."),
        ("dinner", "2026-02-25", "user", "Book a table for two, please."),
        ("code", "2026-02-10", "user", "Why does parseInvoice fail on 10:30?"),
        ("code", "2026-02-10", "tool_result", "E   ValueError: 100% sure_thing"),
        ("code", "2026-02-10", "assistant", "The time has no zone; see src/app.py:42."),
        ("old", "2024-01-05", "user", "A restaurant for the office party?"),
    ]
    for session, day, role, text in talk:
        memory.record(
            session,
            role,
            text,
            sent_at=at(day),
            title={"dinner": "Dinner Planning"}.get(session),
            host="codex" if session == "code" else "python",
            project="/work/invoices" if session == "code" else None,
        )


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with open_memory(tmp_path_factory.mktemp("used")) as memory:
        fill(memory)
        yield memory


def texts(hits: tuple[Hit, ...]) -> list[str]:
    return [hit.text for hit in hits]


def found(memory: Memory, query: str, **where: Any) -> set[tuple[str, str]]:
    """Where something was found, and its first word: enough to tell the hits apart."""
    hits = memory.search(query, **where).hits
    return {(hit.source.value, hit.text.split()[0]) for hit in hits}


EVERYWHERE = {
    ("memory", "Likes"),
    ("daily_log", "Discussed"),
    ("message", "Is"),
    ("message", "A"),
}


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("all", EVERYWHERE),
        ("memory", {("memory", "Likes"), ("daily_log", "Discussed")}),
        ("daily_log", {("daily_log", "Discussed")}),
        ("sessions", {("message", "Is"), ("message", "A")}),
    ],
)
def test_a_scope_says_what_is_searched(
    used: Memory, scope: str, expected: set[tuple[str, str]]
) -> None:
    assert found(used, "restaurant", scope=scope) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"date_from": date(2026, 2, 26)}, {("memory", "Likes")}),
        ({"date_to": date(2024, 12, 31)}, {("message", "A")}),
        (
            {"date_from": date(2026, 2, 25), "date_to": date(2026, 2, 25)},
            {("daily_log", "Discussed"), ("message", "Is")},
        ),
        ({"date_from": date(2026, 2, 2), "date_to": date(2026, 2, 1)}, set()),
        ({"date_from": date(2031, 1, 1), "scope": "sessions"}, set()),
        ({"days": 7, "scope": "sessions"}, {("message", "Is")}),
        ({"days": 10**9}, EVERYWHERE),
        ({"host": "codex"}, set()),
        ({"sources": ["memory"]}, {("memory", "Likes")}),
        ({"sources": [HitSource.SESSION]}, {("session", "A")}),
        ({"sources": ["guidance"]}, set()),
    ],
)
def test_filters_narrow_what_is_found(
    used: Memory, where: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    # The file of facts is as old as its last change, which is today.
    assert found(used, "restaurant", **where) == expected


def test_a_host_and_a_project_narrow_the_sessions(used: Memory) -> None:
    assert found(used, "parseInvoice", host="codex") == found(
        used, "parseInvoice", project="/work/invoices"
    )
    assert found(used, "parseInvoice", host="python") == set()


def test_the_guidance_of_a_project_belongs_to_it(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "CLAUDE.md").write_text(f"# Style\n\nfrobnicate {name}\n")
    with open_memory(tmp_path) as memory:
        for name in ("one", "two"):
            memory.record(name, "user", "hello", project=tmp_path / name)
        memory.index()

        hits = memory.search(
            "frobnicate", sources=["guidance"], project=tmp_path / "one"
        )

    assert [hit.text for hit in hits.hits] == ["frobnicate one"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("parse_invoice", "Why does parseInvoice fail on 10:30?"),
        ("invoice fail", "Why does parseInvoice fail on 10:30?"),
        ("10:30", "Why does parseInvoice fail on 10:30?"),
        ("src/app.py:42", "The time has no zone; see src/app.py:42."),
        ("app.py", "The time has no zone; see src/app.py:42."),
        ("100% sure_thing", "E   ValueError: 100% sure_thing"),
        ("0% s", "E   ValueError: 100% sure_thing"),
        ("SAKURA SUSHI", "Sakura Sushi in Shibuya is liked."),
        ("hibuy", "Sakura Sushi in Shibuya is liked."),
        ("table for two", "Book a table for two, please."),
    ],
)
def test_words_parts_of_words_and_signs_are_found(
    used: Memory, query: str, expected: str
) -> None:
    result = used.search(query, sources=["message"])

    assert texts(result.hits)[0] == expected
    assert result.notices == ()


@pytest.mark.parametrize("query", ["quantum physics", "su%thing", "s_re", "🍣"])
def test_what_is_nowhere_is_not_found(used: Memory, query: str) -> None:
    assert used.search(query).hits == ()


def test_a_hit_tells_where_it_is(used: Memory) -> None:
    hit = used.search("parseInvoice", sources=["message"]).hits[0]

    assert hit.session is not None
    assert (hit.host, hit.project, hit.session.native_id, hit.role) == (
        "codex",
        "/work/invoices",
        "code",
        "user",
    )
    assert hit.said is not None
    assert hit.said.at == at("2026-02-10")
    assert [
        m.text for m in used.messages("code", around=hit.message_id, context=0)
    ] == [hit.text]
    assert {part.name for part in hit.parts} >= {"words", "meaning", "age", "source"}


def test_a_fact_tells_its_file_and_heading(used: Memory) -> None:
    hit = used.search("PostgreSQL", scope="memory").hits[0]

    assert (hit.text, hit.heading, hit.path) == (
        "The invoice program runs on PostgreSQL",
        "Long-term Memory > Projects",
        str(used.home / "memory" / "MEMORY.md"),
    )


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.text(max_size=60).filter(str.strip))
@example("FRIDAY")
def test_any_text_is_a_safe_query(used: Memory, query: str) -> None:
    result = used.search(query)

    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    expected = (
        "nothing matches well;",
        "nothing was said on those days",
        "did you mean '",
    )
    assert [each for each in result.notices if not each.startswith(expected)] == []
    used.recall(query)
    used.episodes(query)


@pytest.mark.parametrize(
    "query",
    [
        "x" * 100_000,
        "restaurant " * 9_000,
        '"; DROP TABLE units; --',
        "NEAR(a b) AND * OR ^",
        "text : {a}",
        "\0",
        "' OR 1=1",
        "%",
        "\\",
        "\ud800",
    ],
    ids=lambda query: repr(query[:12]),
)
def test_no_query_is_syntax(used: Memory, query: str) -> None:
    assert used.search(query).notices in (
        (),
        ("nothing matches well; these are the nearest",),
    )


DAYS = st.dates(date(2023, 12, 1), date(2026, 4, 1)) | st.none()


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    first=DAYS,
    last=DAYS,
    scope=st.sampled_from(["all", "memory", "daily_log", "sessions"]),
    query=st.sampled_from(["restaurant", "sushi", "invoice", "the time", "a"]),
)
def test_no_filter_ever_leaks(
    used: Memory, first: date | None, last: date | None, scope: str, query: str
) -> None:
    allowed = {
        "all": set(HitSource) - {HitSource.GUIDANCE},
        "memory": {HitSource.MEMORY, HitSource.DAILY_LOG},
        "daily_log": {HitSource.DAILY_LOG},
        "sessions": {HitSource.MESSAGE, HitSource.SESSION},
    }[scope]

    hits = used.search(query, scope=scope, date_from=first, date_to=last).hits

    days = [hit.said.at.date() for hit in hits if hit.said is not None]
    assert len(days) == len(hits)
    assert {hit.source for hit in hits} <= allowed
    assert all(first is None or day >= first for day in days)
    assert all(last is None or day <= last for day in days)


def test_both_ends_of_a_range_are_local_days(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    with open_memory(tmp_path) as memory:
        # Half past midnight of the 26th in Tokyo, and the last minute of it.
        memory.record("s", "user", "early bird", sent_at=at("2026-02-25", 15))
        memory.record(
            "s",
            "user",
            "late bird",
            sent_at=at("2026-02-26", 14) + timedelta(minutes=59),
        )
        day = date(2026, 2, 26)

        hits = memory.search("bird", date_from=day, date_to=day, sources=["message"])

    assert set(texts(hits.hits)) == {"early bird", "late bird"}


def test_a_new_message_is_found_at_once(used: Memory, tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.record("s", "user", "the word is xylophone")
        first = texts(memory.search("xylophone", sources=["message"]).hits)
        memory.record("s", "assistant", "another xylophone")
        second = texts(memory.search("xylophone", sources=["message"]).hits)

    assert first == ["the word is xylophone"]
    assert set(second) == {"the word is xylophone", "another xylophone"}


def test_the_session_that_asks_does_not_find_its_own_question(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.record("before", "user", "We ate at Sakura Sushi.")
        memory.record("now", "user", "Earlier I said Sakura is fine.")
        memory.record("now", "assistant", "Noted.")
        memory.record("now", "user", "Which restaurant was it, Sakura?")
        memory.record("now", "tool_call", "find Sakura", tool_name="look")

        hits = memory.search("Sakura", session="now").hits
        episodes = memory.episodes("Sakura", session="now").episodes

    expected = {"We ate at Sakura Sushi.", "Earlier I said Sakura is fine."}
    assert {hit.text for hit in hits if hit.source == "message"} == expected
    assert "now" not in {
        hit.session.native_id
        for hit in hits
        if hit.source == "session" and hit.session is not None
    }
    assert {each.matched.text for each in episodes} == expected


def test_of_what_was_said_twice_one_is_shown(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        for session in ("a", "b", "c"):
            memory.record(session, "user", "Please run the nightly backup job again")

        hits = memory.search("nightly backup", sources=["message"]).hits

    assert len(hits) == 1


def test_questions_to_memory_tools_are_not_found(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        asked = {"query": "giraffe"}
        own_name = "mcp__backstory__search_history"
        memory.record("s", "tool_call", asked, tool_name=own_name)
        memory.record("s", "tool_call", {"cmd": "ls giraffe"}, tool_name="Bash")

        hits = memory.search("giraffe", sources=["message"]).hits

    assert texts(hits) == ['{"cmd":"ls giraffe"}']


def test_an_unknown_scope_or_source_offers_those_there_are(used: Memory) -> None:
    with pytest.raises(UnknownName, match="no scope is called 'everything'"):
        used.search("x", scope="everything")
    with pytest.raises(UnknownName, match="'letter'"):
        used.search("x", sources=["letter"])
    with pytest.raises(UnknownName, match="no source type is called 'letters'"):
        used.recall("x", source_type="letters")


# -- the formulas of the spec ---


def test_the_profile_spec_finds_messages_by_their_text_alone(tmp_path: Path) -> None:
    with open_memory(tmp_path, "ranking.profile=spec") as memory:
        fill(memory)

        result = memory.search("restaurant")
        apart = memory.search("restaurant sushi", scope="sessions")
        nothing = memory.search("restaurant giraffe", scope="sessions")

    shown = {(hit.source.value, hit.text.split()[0]): hit.score for hit in result.hits}
    # Said four days and 786 days before the clock of this test.
    assert shown[("message", "Is")] == pytest.approx(0.6 * 0.96078944)
    assert shown[("message", "A")] == pytest.approx(0.6 * 0.00038587, abs=1e-6)
    assert max(shown.values()) == shown[("memory", "Likes")]
    # By all the words, because the phrase is nowhere.
    assert texts(apart.hits) == ["Is there a good sushi restaurant there?"]
    assert nothing.hits == ()


def test_the_profile_spec_counts_words_among_the_notes_alone(tmp_path: Path) -> None:
    with open_memory(tmp_path, "ranking.profile=spec") as memory:
        fill(memory)
        before = memory.search("sushi invoice", scope="memory")
        for number in range(50):
            memory.record("more", "user", f"invoice {number}", sent_at=NOW)
        after = memory.search("sushi invoice", scope="memory")

    bm25 = [
        {part.name: part.value for part in hit.parts}["bm25"] for hit in before.hits
    ]
    assert len(bm25) == 4
    assert min(bm25) > 0
    assert [(hit.text, hit.score) for hit in after.hits] == [
        (hit.text, hit.score) for hit in before.hits
    ]


@pytest.mark.parametrize("profile", ["spec", "tuned"])
def test_what_was_said_over_and_over_hides_nothing_else(
    tmp_path: Path, profile: str
) -> None:
    with open_memory(tmp_path, f"ranking.profile={profile}") as memory:
        memory.record("s", "user", "the walrus ate the last fish", sent_at=NOW)
        for number in range(450):
            memory.record(f"r{number}", "user", "feed the walrus", sent_at=NOW)

        result = memory.search("the walrus", sources=["message"])

    assert set(texts(result.hits)) == {
        "feed the walrus",
        "the walrus ate the last fish",
    }


# -- enough hits, and how good they are ---


def unlike(number: int) -> str:
    """Words that no two numbers share."""
    return f"word{number}a word{number}b word{number}c"


@pytest.fixture(scope="module")
def blogging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with open_memory(tmp_path_factory.mktemp("blogging")) as memory:
        facts = [f"blogging {unlike(number)}" for number in range(500)]
        # All the same, so that one of them is shown.
        facts += ["read the log of today"] * 140
        (memory.home / "memory").mkdir()
        text = "".join(f"- {fact}\n" for fact in facts)
        (memory.home / "memory" / "MEMORY.md").write_text(text, encoding="utf-8")
        for number in range(5):
            memory.record("s", "user", f"weblogs {unlike(number)}", sent_at=NOW)
        memory.record("s", "user", "the log", sent_at=NOW)
        yield memory


@pytest.mark.parametrize(
    ("query", "whole_words"),
    [
        ("log", {"read the log of today"}),
        ('"log"', {"read the log of today"}),
        ("oggin", set()),
    ],
)
@pytest.mark.parametrize("limit", [10, 50])
def test_parts_of_words_fill_the_list_where_the_words_are_too_few(
    blogging: Memory, query: str, whole_words: set[str], limit: int
) -> None:
    hits = blogging.search(query, scope="memory", limit=limit).hits

    assert len(hits) == limit
    assert {text for text in texts(hits) if "blogging" not in text} == whole_words
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0


def test_parts_of_words_fill_the_list_within_the_filters(blogging: Memory) -> None:
    hits = blogging.search("log", sources=["message"], limit=50).hits

    assert sorted(texts(hits)) == [
        "the log",
        *(f"weblogs {unlike(number)}" for number in range(5)),
    ]


@pytest.fixture(scope="module")
def weak(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """Many short messages with one of four words, and a long result with all."""
    with open_memory(tmp_path_factory.mktemp("weak")) as memory:
        words = ["zulu " * 6] * 20 + ["kilo", "lima", "mike"] * 8
        for number, word in enumerate(words):
            text = f"{word} {unlike(number)}"
            memory.record(f"s{number}", "user", text, sent_at=NOW)
        around = " ".join(map(unlike, range(1_000, 1_100)))
        text = f"{around} zulu mike lima kilo {around}"
        memory.record("x", "tool_result", text, sent_at=at("2025-02-03"))
        yield memory


@pytest.mark.parametrize("limit", [1, 5, 10, 50])
def test_a_hit_that_matches_well_is_shown_however_many_weak_ones_score_higher(
    weak: Memory, limit: int
) -> None:
    result = weak.search("kilo lima mike zulu", limit=limit)

    strengths = [hit.strength.value for hit in result.hits]
    assert (strengths.count("strong"), strengths[-1]) == (1, "strong")
    assert result.notices == ()
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("limit", [1, 5, 50])
def test_where_nothing_matches_well_the_nearest_are_shown_and_marked(
    weak: Memory, limit: int
) -> None:
    result = weak.search("kilo lima mike zulu", limit=limit, date_from="2026-01-01")

    assert result.notices == ("nothing matches well; these are the nearest",)
    assert [hit.strength.value for hit in result.hits] == ["weak"] * min(24, limit)


def test_a_hit_by_meaning_alone_has_a_score(tmp_path: Path) -> None:
    settings = ("embedder.in_background=false",)
    with a_memory(tmp_path, settings=settings, clock=lambda: NOW) as memory:
        text = "We had dinner at a sushi place near the station; the tuna was excellent"
        memory.record("s", "user", text, sent_at=NOW)
        memory.embed()

        (hit,) = memory.search("restaurants").hits
        (recalled,) = memory.recall("restaurants").found

    assert (hit.text, hit.strength.value) == (text, "weak")
    assert 0.1 < hit.score < 0.3
    assert 0.1 < recalled.score < 0.5


def near_memory(folder: Path, *texts: str) -> Memory:
    """A memory with vectors, in which agents said these texts."""
    memory = a_memory(
        folder, settings=("embedder.in_background=false",), clock=lambda: NOW
    )
    for number, text in enumerate(texts):
        memory.record(f"s{number}", "assistant", text, sent_at=NOW)
    memory.embed()
    return memory


QUEUE = "We use RabbitMQ as the job queue of the mail service, because it retries."
ELASTIC = "The mail service keeps its jobs in Elasticsearch 8 and reads them in order."
LUNCH = "The canteen has soup on Monday and fish on Friday."


@pytest.mark.parametrize(
    ("query", "is_weak"),
    [
        ("how does RabbitMQ retry the mail jobs?", False),
        # What is near is about something else, and the name says so.
        ("how does Kafka retry the mail jobs?", True),
        ("how does k6 retry the mail jobs?", True),
        # Other words may be the question's own.
        ("how does a carousel retry the mail jobs?", False),
        # At the beginning of a sentence, every word has a capital letter.
        ("Kafka retries the mail jobs how often?", False),
        # It is Elasticsearch there.
        ("are jobs in Elastic lost when the service is down?", False),
        # German nouns have a capital letter, too.
        ("wie hat der Karussell die mail jobs in der queue?", False),
    ],
)
def test_what_lacks_a_name_that_is_asked_for_matches_weakly(
    tmp_path: Path, query: str, is_weak: bool
) -> None:
    with near_memory(tmp_path, QUEUE, ELASTIC, LUNCH) as memory:
        result = memory.search(query)

    assert result.hits
    assert result.is_weak is is_weak


def test_a_name_far_from_the_other_words_of_a_long_text_is_there(
    tmp_path: Path,
) -> None:
    filler = " ".join(f"Step {number} went as planned." for number in range(100))
    # Only where there are many texts is a name rare that one of them has.
    others = [f"{LUNCH} Menu {number}" for number in range(300)]
    with near_memory(tmp_path, f"Kafka it is. {filler} {QUEUE}", *others) as memory:
        hit, *_ = memory.search("how does Kafka retry the mail jobs?").hits

    assert hit.text.startswith("Kafka")
    assert hit.strength.value != "weak"


# -- days ---


def test_a_query_that_is_a_day_finds_what_was_said_on_it(used: Memory) -> None:
    result = used.search("on 25 February", sources=["message", "daily_log"])

    assert {hit.said.at.date() for hit in result.hits if hit.said} == {
        date(2026, 2, 25)
    }
    assert {hit.source.value for hit in result.hits} == {"message", "daily_log"}
    assert not result.is_weak
    assert result.notices == ()


def test_a_query_that_is_a_day_of_silence_says_so(used: Memory) -> None:
    result = used.search("what did we do on 3 March 2025?")

    assert (result.hits, result.notices) == ((), ("nothing was said on those days",))


# -- chunks and episodes ---


def test_recall_gives_the_chunk_around_what_was_found(used: Memory) -> None:
    result = used.recall("Sakura Sushi liked", source_type="conversation", limit=1)

    (found_,) = result.found
    assert (found_.source_type, found_.name) == ("conversation", "Dinner Planning")
    assert found_.text == (
        "User: Is there a good sushi restaurant there?\n"
        "Agent: Sakura Sushi in Shibuya is liked.\n"
        "User: Book a table for two, please."
    )


def test_recall_of_files_gives_the_section(used: Memory) -> None:
    result = used.recall("sushi", source_type="file")

    assert {each.text for each in result.found} == {
        "Long-term Memory > Preferences\n"
        "Likes sushi more than any other restaurant food\nAnswers in German",
        "Daily Log - 2026-02-25\n"
        "Discussed dinner plans; wants to try the restaurant Sakura Sushi in Shibuya\n"
        "Fixed the flaky test of the invoice parser",
    }


def test_an_empty_memory_says_that_nothing_is_indexed(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        empty = memory.recall("x")
        memory.record("s", "user", "hello")
        used_now = memory.recall("x")

    assert (empty.is_empty_index, used_now.is_empty_index) == (True, False)


def test_episodes_come_newest_first_with_their_neighbours(used: Memory) -> None:
    episodes = used.episodes("restaurant").episodes

    assert [
        (
            each.before and each.before.text,
            each.matched.text,
            each.after and each.after.text,
        )
        for each in episodes
    ] == [
        (
            None,
            "Is there a good sushi restaurant there?",
            "Sakura Sushi in Shibuya is liked.",
        ),
        (None, "A restaurant for the office party?", None),
    ]


def test_the_neighbours_of_an_episode_are_never_tools(used: Memory) -> None:
    (episode,) = used.episodes("no zone").episodes

    assert episode.before is not None
    assert episode.before.text == "Why does parseInvoice fail on 10:30?"


def test_the_newest_episodes_are_never_lost(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        # Older ones are recorded later, and there are very many.
        for number in range(600):
            memory.record(
                f"s{number % 7}",
                "user",
                f"needle {number}",
                sent_at=NOW - timedelta(hours=number),
            )

        episodes = memory.episodes("needle", limit=3).episodes
        with_days = memory.episodes("needle", limit=50, days=1).episodes

    assert [e.matched.text for e in episodes] == ["needle 0", "needle 1", "needle 2"]
    assert len(with_days) == 13
    # What was said before the first day still shows beside what was said on it.
    assert with_days[-1].before is not None


def test_of_many_with_the_text_an_old_one_is_an_exact_match_as_well(
    tmp_path: Path,
) -> None:
    with open_memory(tmp_path) as memory:
        memory.record("old", "user", "zebra", sent_at=at("2026-02-01"))
        for number in range(220):
            others = " ".join(f"{place}of{number}" for place in range(90))
            memory.record("new", "user", f"zebra {others}", sent_at=at("2026-02-25"))

        hits = memory.search("zebra", limit=50).hits

    exact = {hit.text: hit.part("exact") for hit in hits}
    assert exact["zebra"] == 1
    assert set(exact.values()) == {1}


def test_where_the_phrase_is_nowhere_all_its_words_are_looked_for(used: Memory) -> None:
    episodes = used.episodes("sushi good").episodes

    assert [each.matched.text for each in episodes] == [
        "Is there a good sushi restaurant there?"
    ]
    assert used.episodes("sushi parseInvoice").episodes == ()


WRITTEN = [
    "make an export please",
    "first\n\tmake export, then rest",
    "er hat es ERZÄHLT",
    "send_reminders.py calls parseJson",
    "本の検索ページ",
    "C++ at 100% of `x`",
    "padding " * 5_000 + "needle",
    "make a plan and export it",
    "morgen nachfragen",
]
# What docs/how-to/search-well.md says can be searched for, and which texts have it.
AS_WRITTEN = {
    "make export": [1],
    '"make export"': [1],
    '"make export" please': [1],
    '"an export" "make an"': [0],
    "export, then": [1],
    "erzahlt": [2],
    "náchfragen": [8],
    "erzähl": [2],
    "reminders": [3],
    "json": [3],
    "検索": [4],
    "索ペ": [4],
    "c++": [5],
    "100%": [5],
    "`x`": [5],
    "needle": [6],
    "export make": [0, 1, 7],
    "make export last week": [0, 1, 7],
    "nowhere": [],
}


@pytest.fixture(scope="module", params=["with an index", "without one"])
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("written")
    with open_memory(folder) as memory:
        for number, text in enumerate(WRITTEN):
            sent_at = NOW - timedelta(days=number)
            memory.record("s", "user", text, sent_at=sent_at)
    if request.param == "without one":
        (folder / "backstory" / "index.db").write_bytes(b"no database " * 1_000)
    with open_memory(folder) as memory:
        yield memory


@in_one_test("case", {query: (query, shown) for query, shown in AS_WRITTEN.items()})
def test_episodes_find_the_text_as_written(
    case: tuple[str, list[int]], written: Memory
) -> None:
    query, shown = case

    episodes = written.episodes(query).episodes

    assert [each.matched.text for each in episodes] == [WRITTEN[n] for n in shown]


# -- trouble ---


class StuckIndex:
    """An index in which some ways of looking never end until they are interrupted."""

    def __init__(self, index: Any, *stuck: str) -> None:
        self._index = index
        self._stuck = stuck
        self._threads: set[int] = set()
        self.is_released = False

    def __getattr__(self, name: str) -> Any:
        return self._wait if name in self._stuck else getattr(self._index, name)

    def _wait(self, *_: object) -> list[int]:
        while not self.is_released and threading.get_ident() not in self._threads:
            time.sleep(0.01)
        return []

    def interrupt(self, thread_ids: Collection[int]) -> None:
        self._threads |= set(thread_ids)

    def count_documents(self, words: Sequence[object]) -> list[int]:
        """As in a large history: one word is needed, the others only help."""
        return [30_000] * len(words)


# Time enough for what is not stuck, on a busy machine too.
SEARCH_S = 1.0


@contextmanager
def a_stuck_search(folder: Path, *stuck: str) -> Iterator[Callable[[], SearchResult]]:
    """A search with little time, whose index is stuck in some places."""
    with open_memory(folder) as memory:
        fill(memory)
        memory.search("restaurant")
        index: Any = StuckIndex(memory._parts.index_files.index, *stuck)
        retriever = Retriever(index, lambda: None, on_damage=lambda: None)
        found = HitSearch(memory._parts.history, index)

        def search() -> SearchResult:
            return found.search(
                RESTAURANT,
                TunedProfile(retriever, memory._parts.history),
                now=NOW,
                until=time.monotonic() + SEARCH_S,
            )

        try:
            yield search
        finally:
            index.is_released = True
            retriever.close()


RESTAURANT = Request(
    parse_words("restaurant dinner"),
    frozenset({HitSource.MESSAGE}),
    USUAL.weights,
    limit=5,
)


def test_what_was_found_in_time_is_given_with_a_notice(tmp_path: Path) -> None:
    with a_stuck_search(tmp_path, "find_few") as search:
        result = search()

    assert len(result.hits) == 2
    assert result.notices == ("the search by text did not finish in time",)


def test_all_stages_of_a_search_share_one_deadline(tmp_path: Path) -> None:
    with a_stuck_search(tmp_path, "find_few", "score_words") as search:
        began = time.monotonic()
        result = search()
        took = time.monotonic() - began

    assert len(result.hits) == 2
    assert result.notices == (
        "the search by text did not finish in time",
        "the search by words did not finish in time",
    )
    assert SEARCH_S < took < 2 * SEARCH_S


def test_searches_that_are_stuck_leave_threads_for_the_next(tmp_path: Path) -> None:
    with a_stuck_search(tmp_path, "find_few", "interrupt") as search:
        results = [search() for _ in range(6)]

    assert [len(result.hits) for result in results] == [2] * 6


def test_one_long_conversation_does_not_hide_the_others_from_recall(
    tmp_path: Path,
) -> None:
    with open_memory(tmp_path) as memory:
        for number in range(800):
            memory.record("long", "user", f"walrus number {number}", sent_at=NOW)
        for number in range(3):
            memory.record(
                f"short{number}",
                "user",
                f"Somebody once mentioned a walrus beside thing{number} x{number} yes",
                sent_at=NOW,
            )

        found_ = memory.recall("walrus", limit=10).found

    sessions = {each.hit.session.native_id for each in found_ if each.hit.session}
    assert sessions == {"long", "short0", "short1", "short2"}


def test_what_was_said_over_and_over_hides_nothing_else_from_recall(
    tmp_path: Path,
) -> None:
    with open_memory(tmp_path) as memory:
        for number in range(300):
            memory.record(f"r{number}", "user", "run the nightly backup now")
        memory.record("a", "user", "The backup of the server failed for want of room")
        memory.record("b", "user", "A backup is not a restore, said the old admin")

        found_ = memory.recall("backup", limit=10).found

    assert len(found_) == 3


def test_the_question_is_not_in_the_chunk_that_answers_it(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.record("now", "user", "the ocelot plan is to wait")
        memory.record("now", "assistant", "Noted.")
        memory.record("now", "user", "what was the ocelot plan?")

        (only,) = memory.recall("ocelot plan", session="now").found

    assert only.text == "User: the ocelot plan is to wait\nAgent: Noted."


def test_the_result_of_a_memory_tool_is_known_by_its_call(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        own_name = "mcp__backstory__memory_search"
        memory.record("s", "tool_call", "{}", tool_name=own_name, call_id="c1")

        assert memory.record("s", "tool_result", "ocelots", call_id="c1") is None


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(used: Memory, limit: int) -> None:
    with pytest.raises(BadQuery, match=f"limit is {limit}"):
        used.search("x", limit=limit)


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("tuned", ["Where in the garden are the ocelots?", "Explore the garden."]),
        ("spec", ["Explore the garden.", "Where in the garden are the ocelots?"]),
    ],
)
def test_what_a_program_said_only_to_be_ready_comes_last(
    tmp_path: Path, profile: str, expected: list[str]
) -> None:
    with open_memory(tmp_path) as memory:
        for session, asked, answered in (
            ("real", "Where in the garden are the ocelots?", "Behind the shed."),
            ("warm", "Warmup", "Explore the garden."),
        ):
            memory.record(session, "user", asked, host="claude-code")
            memory.record(session, "assistant", answered, host="claude-code")

    with open_memory(tmp_path, f"ranking.profile={profile}") as memory:
        hits = memory.search("garden", sources=["message"]).hits

    assert [hit.text for hit in hits] == expected
