"""The page of all conversations."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from backstory.search.subagents import ListedConversation, nest_subagents
from backstory.values.history import Session
from tests.samples import a_memory
from tests.web.server import Page, serve

# One server answers all tests.
pytestmark = pytest.mark.xdist_group("web-sessions")
NOW = datetime(2026, 2, 25, 12, tzinfo=UTC)
TALKS = (
    ("2025-01-01", "python", "/work/library", "Too long ago"),
    ("2026-02-20", "python", "/work/library", "Shelves"),
    ("2026-02-25", "python", "/work/garden", "Hedge"),
    ("2026-02-25", "mine", "/work/<b>garden", "</a><script>alert(1)</script>"),
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("web")
    settings = ("embedder.name=none",)
    with a_memory(folder, home=folder, settings=settings, clock=lambda: NOW) as memory:
        for number, (day, host, project, title) in enumerate(TALKS):
            memory.record(
                f"talk{number}",
                "user",
                "Hello",
                host=host,
                project=project,
                title=title,
                sent_at=datetime.fromisoformat(f"{day}T0{number}:00:00+00:00"),
            )
        with serve(memory, folder) as served:
            yield served


def titles(page: Page, asked: str = "") -> list[str]:
    html = page.get(f"/sessions{asked}").text
    return re.findall(r"<a data-item[^>]*>(.*?)</a>", html)


def test_conversations_are_listed_by_day_and_narrowed(page: Page) -> None:
    hostile = "&lt;/a&gt;&lt;script&gt;alert(1)&lt;/script&gt;"
    all_of_them = [hostile, "Hedge", "Shelves", "Too long ago"]

    assert {
        asked: titles(page, asked)
        for asked in (
            "",
            "?host=mine",
            "?project=library",
            "?since=2026-02-21",
            "?until=2026-02-20",
            "?since=2026-02-20&until=2026-02-20",
            "?n=1",
            "?n=x",
        )
    } == {
        "": all_of_them,
        "?host=mine": [hostile],
        "?project=library": ["Shelves", "Too long ago"],
        "?since=2026-02-21": [hostile, "Hedge"],
        "?until=2026-02-20": ["Shelves", "Too long ago"],
        "?since=2026-02-20&until=2026-02-20": ["Shelves"],
        "?n=1": [hostile],
        "?n=x": all_of_them,
    }
    text = page.see("/sessions").text
    days = ("2026-02-25", "2026-02-20", "2025-01-01")
    assert re.findall(r"\d{4}-\d\d-\d\d(?!:)", text) == list(days)


def test_a_year_of_days_shows_how_much_was_said_and_leads_there(page: Page) -> None:
    html = page.get("/sessions?host=python").text

    assert html.count("<rect") == 52 * 7 + 3  # the last day is a Wednesday
    months = re.findall(r'<text x="(\d+)" y="-5" aria-hidden="true">(\w+)</text>', html)
    begins = {"Mar": 0, "Apr": 5, "May": 9, "Jun": 13, "Jul": 18, "Aug": 22}
    begins |= {"Sep": 27, "Oct": 31, "Nov": 35, "Dec": 40, "Jan": 44, "Feb": 48}
    assert months == [(str(12 * week), name) for name, week in begins.items()]
    days = re.findall(r'<a href="([^"]*)"[^>]*><rect class="level(\d)"', html)
    assert [(link.replace("&amp;", "&"), level) for link, level in days] == [
        ("/sessions?host=python&since=2026-02-20&until=2026-02-20", "1"),
        ("/sessions?host=python&since=2026-02-25&until=2026-02-25", "1"),
    ]


def test_a_day_says_what_ended_on_it_and_is_shaded_by_any_of_it(page: Page) -> None:
    wednesday = "2026-02-25: 2 conversations, 2 messages, 2 projects, mine, python"
    levels = {}
    for by in ("conversations", "messages", "projects", "agents", "x"):
        html = page.get(f"/sessions?by={by}").text
        cell = html.partition(f'aria-label="{wednesday}"><rect class="level')[2]
        levels[by] = cell[:1]

    assert levels == {
        "conversations": "2",
        "messages": "1",
        "projects": "2",
        "agents": "2",
        "x": "2",
    }


def test_subagents_stand_below_the_conversation_they_worked_for() -> None:
    def session(number: int, parent: int | None = None, host: str = "a") -> Session:
        return Session(
            session_id=number,
            host=host,
            native_id=f"s{number}",
            title="",
            project=None,
            git_branch=None,
            parent_id=None if parent is None else f"s{parent}",
            started=None,
            last_active=None,
            message_count=1,
            preview="",
            read_from="",
        )

    one, two, three = session(1), session(2, parent=1), session(3, parent=2)
    alone, elsewhere = session(4, parent=9), session(5, parent=1, host="b")
    loop, other = session(6, parent=7), session(7, parent=6)

    assert nest_subagents([three, alone, two, elsewhere, one]) == [
        ListedConversation(alone),
        ListedConversation(elsewhere),
        ListedConversation(one, (two, three)),
    ]
    # Nobody is lost, whatever a transcript says.
    shown = nest_subagents([loop, other])
    listed = [s for each in shown for s in (each.session, *each.subagents)]
    assert sorted(each.session_id for each in listed) == [6, 7]


def test_days_are_named_in_the_words_of_the_command(page: Page) -> None:
    answers = {
        words: page.get(f"/sessions?since={words}").status_code
        for words in ("1990-01-01", "yesterday")
    }
    wrong = page.get("/sessions?until=garbage")
    refused = page.get("/api/sessions?since=garbage")

    assert set(answers.values()) == {200}
    assert wrong.status_code == 400
    assert (
        "&#39;garbage&#39; is not a date; write it as 2026-02-25, or in words: "
        "yesterday, last week, 3 days ago." in wrong.text
    )
    assert "There are no such conversations" not in wrong.text
    assert refused.status_code == 400
    assert refused.json() == {
        "error": {
            "code": "BadQuery",
            "message": "since is 'garbage', not a date",
            "hint": "write it as 2026-02-25, or in words: yesterday, last week, "
            "3 days ago",
        }
    }


def test_what_names_nothing_is_explained_in_place(page: Page) -> None:
    answer = page.get("/sessions?project=nowhere")

    assert answer.status_code == 400
    assert "nowhere" in answer.text
