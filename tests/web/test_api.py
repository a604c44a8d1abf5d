"""The JSON API: every operation answers as its description says."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from backstory.web.api import OPERATIONS
from tests.processes import comes_true
from tests.samples import a_memory
from tests.web.server import Page, serve

OWN = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def page(tmp_path: Path, home: Path) -> Iterator[Page]:
    settings = ("embedder.name=none",)
    with a_memory(tmp_path, home=home, settings=settings) as memory:
        memory.record(
            "one/two",
            "user",
            "Where is the ladder?",
            title="Ladder",
            project="/work/shed",
            sent_at=datetime(2026, 2, 20, 9, tzinfo=UTC),
        )
        memory.record("one/two", "assistant", "In the shed.")
        memory.notebook.change_memory(lambda _: "# Memory\n\n- Likes tea\n")
        memory.notebook.append_log("2026-02-20", "## Ladder\n\n- Found\n", "m")
        memory.index()
        with serve(memory, home) as served:
            yield served


def ask(
    page: Page, method: str, path: str, body: dict[str, object] | None = None
) -> httpx.Response:
    """What a program gets that was let in; a text has no control characters."""
    headers = {} if method == "GET" else OWN
    answer = page.browser.request(method, f"/api{path}", json=body, headers=headers)
    assert answer.headers["content-type"] == "application/json"
    return answer


def get(page: Page, path: str) -> Any:
    answer = ask(page, "GET", path)
    assert answer.status_code == 200, answer.text
    return answer.json()


# -- the description ---


def test_every_operation_is_described_once_and_answers_as_described(page: Page) -> None:
    document = get(page, "/openapi.json")
    described = [
        (method.upper(), path)
        for path, methods in document["paths"].items()
        for method in methods
    ]
    version = get(page, "/memory")["version"]
    # Those that delete come last.
    asked = {
        "search": "/search?q=ladder&scope=all&limit=3",
        "listSessions": "/sessions?host=python&project=shed&since=2026-02-01&limit=5",
        "showSession": "/sessions/python/one/two?around=1&context=1",
        "showLog": "/logs/2026-02-20",
        "showContext": "/context?prompt=where+is+the+ladder",
        "setSetting": "/settings/context.max_memories",
        "unsetSetting": "/settings/context.max_memories",
        "undoForget": "/forgettings/1",
        "changeAgent": "/agents/cursor",
        "startJob": "/job/check",
    }
    bodies: dict[str, dict[str, object]] = {
        "saveMemory": {"text": "# Memory\n\n- Likes coffee\n", "version": version},
        "setSetting": {"value": "5"},
        "excludeFolder": {"folder": "/work/secret"},
        "changeAgent": {"do": "install"},
        "forget": {"session": "python/one/two", "dry_run": False},
    }
    wrong = {}
    for each in OPERATIONS:
        path = asked.get(each.name, each.path)
        answer = ask(page, each.method, path, bodies.get(each.name))
        schema = document["paths"][each.path][each.method.lower()]["responses"]["200"]
        checker = jsonschema.Draft202012Validator(
            schema["content"]["application/json"]["schema"]
        )
        problems = [str(problem) for problem in checker.iter_errors(answer.json())]
        if answer.status_code != 200 or problems:
            wrong[each.name] = (answer.status_code, answer.text[:300], problems)

    assert wrong == {}
    assert sorted(described) == sorted((each.method, each.path) for each in OPERATIONS)
    assert len({each.name for each in OPERATIONS}) == len(OPERATIONS)


def test_the_description_names_where_it_is_served_and_what_lets_in(page: Page) -> None:
    document = get(page, "/openapi.json")

    assert document["servers"] == [{"url": f"{page.url}/api"}]
    scheme = document["components"]["securitySchemes"]["cookie"]
    (cookie,) = page.browser.cookies.jar
    assert scheme["name"] == cookie.name


# -- what is asked ---


def test_a_search_is_that_of_the_command(page: Page) -> None:
    found = get(page, "/search?q=ladder&scope=sessions")

    (title, message) = found["results"]
    assert (found["scope"], title["session"]["id"]) == ("sessions", "one/two")
    assert message["excerpt"] == "Where is the ladder?"
    assert get(page, "/search?q=ladder&until=2026-02-19")["results"] == []


def test_a_conversation_has_all_its_messages(page: Page) -> None:
    found = get(page, "/sessions/python/one/two")

    assert (found["title"], [each["text"] for each in found["messages"]]) == (
        "Ladder",
        ["Where is the ladder?", "In the shed."],
    )


def test_the_memory_is_saved_only_over_the_version_that_was_read(page: Page) -> None:
    read = get(page, "/memory")
    new = {"text": "# Memory\n\n- Likes coffee\n", "version": read["version"]}

    saved = ask(page, "PUT", "/memory", new)
    again = ask(page, "PUT", "/memory", new)

    assert saved.json()["text"] == new["text"]
    assert [fact["text"] for fact in saved.json()["facts"]] == ["Likes coffee"]
    assert (again.status_code, again.json()["error"]["code"]) == (409, "NotesConflict")
    assert page.memory.notebook.read_memory() == new["text"]


def test_a_setting_counts_at_once(page: Page) -> None:
    def value() -> object:
        (found,) = (
            each for each in get(page, "/settings") if each["name"] == "keep.days"
        )
        return found["value"]

    values = [value()]
    ask(page, "PUT", "/settings/keep.days", {"value": "30"})
    values.append(value())
    ask(page, "DELETE", "/settings/keep.days")
    values.append(value())

    assert values == [0, 30, 0]


def test_nothing_is_forgotten_unless_it_is_said(page: Page) -> None:
    told = ask(page, "POST", "/forget", {"session": "python/one/two"})

    assert told.json()["messages"] == 2
    assert len(page.memory.sessions()) == 1
    ask(page, "POST", "/forget", {"session": "python/one/two", "dry_run": False})
    assert page.memory.sessions() == []
    assert [each["messages"] for each in get(page, "/forgettings")] == [2]


def test_work_is_started_and_watched(page: Page) -> None:
    assert get(page, "/job")["name"] is None
    ask(page, "POST", "/job/rebuild")

    assert comes_true(lambda: get(page, "/job")["is_over"])
    assert "Indexed" in get(page, "/job")["lines"][0]


# -- what goes wrong ---


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/sessions/python/nothing", None, (404, "UnknownName")),
        ("GET", "/logs/2020-01-01", None, (404, "UnknownName")),
        ("GET", "/logs/whenever", None, (400, "BadQuery")),
        ("GET", "/search?q=a&limit=many", None, (400, "BadQuery")),
        ("GET", "/search?q=a&scope=none", None, (404, "UnknownName")),
        ("GET", "/nothing", None, (404, "Refused")),
        ("DELETE", "/search", None, (405, "Refused")),
        ("PUT", "/settings/no.such", {"value": "1"}, (400, "ConfigError")),
        ("PUT", "/settings/keep.days", {"value": 1}, (400, "BadQuery")),
        ("PUT", "/settings/keep.days", {}, (400, "BadQuery")),
        ("PUT", "/settings/keep.days", {"valu": "1"}, (400, "BadQuery")),
        ("POST", "/forget", {"dry_run": "no"}, (400, "BadQuery")),
        ("POST", "/forget", {}, (400, "BadQuery")),
        ("POST", "/exclude", {"folder": " "}, (400, "BadQuery")),
        ("POST", "/job/nothing", None, (404, "UnknownName")),
        ("DELETE", "/forgettings/7", None, (404, "UnknownName")),
    ],
)
def test_an_error_has_a_code_a_message_and_a_hint(
    page: Page,
    method: str,
    path: str,
    body: dict[str, object] | None,
    expected: tuple[int, str],
) -> None:
    answer = ask(page, method, path, body)

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == expected
    assert error["message"]
    assert sorted(error) == ["code", "hint", "message"]


def test_a_body_that_is_not_json_is_refused(page: Page) -> None:
    answers = [
        page.browser.put("/api/memory", content=body, headers=OWN)
        for body in (b"text=a", b"[1]", b"\xff", b"x" * 5_000_000)
    ]

    assert [answer.status_code for answer in answers] == [400, 400, 400, 413]


def test_nobody_else_is_answered(page: Page) -> None:
    stranger = httpx.get(f"{page.url}/api/status")
    elsewhere = page.browser.put(
        "/api/settings/keep.days",
        json={"value": "1"},
        headers={"Origin": "https://evil.example"},
    )

    assert (stranger.status_code, elsewhere.status_code) == (401, 403)
    assert stranger.json()["error"]["code"] == "Refused"
