"""The settings on the page: what each does, and a change that counts at once."""

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backstory.settings import SETTINGS, read_settings
from tests.builders import a_line, append, session_file
from tests.processes import comes_true
from tests.samples import a_memory
from tests.web.server import Page, serve


@pytest.fixture
def page(tmp_path: Path, home: Path) -> Iterator[Page]:
    settings = ("embedder.name=none",)
    with (
        a_memory(tmp_path, home=home, settings=settings) as memory,
        serve(memory, home) as served,
    ):
        yield served


def config_of(page: Page) -> str:
    return (page.memory.home.parent / "config.toml").read_text()


def typed(page: Page, name: str) -> str:
    """The value that the page shows in the field of a setting."""
    html = page.get("/settings").text
    field = html.partition(f'id="value-{name.replace(".", "-")}"')[2]
    found = re.match(r'[^>]*\bvalue="([^"]*)"', field)
    if found:
        return found[1]
    chosen = re.search(r"<option selected>([^<]*)", field.partition("</select>")[0])
    return chosen[1] if chosen else ""


def test_every_setting_is_shown_with_what_it_does(page: Page) -> None:
    text = page.see("/settings").text

    missing = [
        row.name for row in SETTINGS if row.name not in text or row.summary not in text
    ]

    assert missing == []
    assert "from --set" in text  # the embedder that this test chose


def test_a_change_counts_at_once_and_can_be_taken_back(page: Page) -> None:
    page.memory.record("talk", "user", "Where is the ladder?")
    changed = page.save("/settings/context.max_memories", value="7", do="set")
    name = "context.max_memories"
    after = typed(page, name)
    shown = page.see(changed.headers["location"]).text

    assert changed.status_code == 303
    assert (after, config_of(page)) == ("7", "[context]\nmax_memories = 7\n")
    assert f"Set {name} in" in shown
    assert "talk" in page.get("/sessions").text
    page.save("/settings/context.max_memories", do="unset")
    assert (typed(page, name), config_of(page)) == ("3", "[context]\n")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("context.max_memories", "51", "must be at most 50"),
        ("context.max_memories", "many", "must be a whole number"),
        ("ranking.profile", "best", "cannot be"),
        ("exclude.hosts", "clyde", "clyde"),
        ("no.such", "1", "unknown setting"),
    ],
)
def test_a_wrong_value_is_explained_and_nothing_is_changed(
    page: Page, name: str, value: str, said: str
) -> None:
    page.save("/settings/keep.days", value="30", do="set")
    before = config_of(page)

    answer = page.save(f"/settings/{name}", value=value, do="set")

    assert answer.status_code == 400
    assert said in answer.text
    assert config_of(page) == before
    assert page.get("/").status_code == 200


def test_a_value_from_elsewhere_is_named_as_what_counts(page: Page) -> None:
    changed = page.save("/settings/embedder.name", value="minilm", do="set")

    assert "--set overrides it" in page.see(changed.headers["location"]).text
    assert typed(page, "embedder.name") == "none"


def test_an_excluded_folder_is_not_read_any_more(page: Page, home: Path) -> None:
    folder = "/work/a, secret"
    append(session_file(home), a_line("Where is it?", uuid="u1", cwd=folder))
    page.memory.index()
    (session,) = page.memory.sessions()
    link = "/settings/exclude?folder=%2Fwork%2Fa%2C+secret"
    assert link in page.see(f"/session/{session.host}/{session.native_id}").links

    before = page.see(link).text
    done = page.save("/settings/exclude", folder=folder)
    seen = page.see(done.headers["location"])
    append(session_file(home), a_line("Nobody shall know", uuid="u2", cwd=folder))
    page.save("/status/read")

    assert "What was read before stays: 1 session (1 message)" in before
    assert config_of(page) == '[exclude]\nfolders = ["/work/a, secret"]\n'
    assert f"{folder} is excluded. Kept from before: 1 session (1 message)" in seen.text
    assert "/forget?project=%2Fwork%2Fa%2C+secret" in seen.links
    assert comes_true(lambda: "1 excluded by your settings" in page.get("/status").text)
    assert "Nobody shall know" not in page.get("/?q=nobody+know").text


def test_nothing_is_changed_for_another_page(page: Page) -> None:
    elsewhere = {"Origin": "https://evil.example"}

    answers = (
        page.browser.post(
            "/settings/keep.days", data={"value": "1"}, headers=elsewhere
        ),
        page.browser.post("/settings/exclude", data={"folder": "/"}, headers=elsewhere),
    )

    assert [answer.status_code for answer in answers] == [403, 403]
    assert not (page.memory.home.parent / "config.toml").exists()


def test_two_tabs_change_settings_while_others_read(page: Page) -> None:
    page.memory.record("talk", "user", "Where is the ladder?", title="Ladder")
    names = ("context.max_memories", "tools.answer_tokens", "keep.days")

    def change(number: int) -> int:
        name = names[number % len(names)]
        return page.save(f"/settings/{name}", value=str(1_000 + number)).status_code

    def read(number: int) -> int:
        return page.get(("/?q=ladder", "/sessions", "/status")[number % 3]).status_code

    with ThreadPoolExecutor(8) as threads:
        changes = threads.map(change, range(12))
        seen = set(threads.map(read, range(36)))
        statuses = Counter(changes)

    # The number is too large for one of the three.
    assert (seen, statuses) == ({200}, {303: 8, 400: 4})
    chosen = read_settings(
        user_file=page.memory.home.parent / "config.toml", environ={}
    )
    assert typed(page, "keep.days") == str(chosen.whole("keep.days"))
