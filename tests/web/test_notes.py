"""The pages of the notes: MEMORY.md is edited and nothing is lost; logs are read."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from html import unescape

import pytest

from backstory.values.notes import FactOrigin, Teller
from tests.samples import a_memory
from tests.web.server import Page, serve

# One server answers all tests.
pytestmark = pytest.mark.xdist_group("web-notes")
NOW = datetime(2026, 2, 25, 12, tzinfo=UTC)
TEXT = "# Memory\n\n## Tools\n\n- Uses **uv**\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("web")
    settings = ("embedder.name=none",)
    with (
        a_memory(folder, home=folder, settings=settings, clock=lambda: NOW) as memory,
        serve(memory, folder) as served,
    ):
        yield served


@pytest.fixture
def page(served: Page) -> Page:
    """The page of a memory that has only this text."""
    served.memory.notebook.folder.mkdir(exist_ok=True)
    write(served, TEXT)
    return served


def write(page: Page, text: str) -> None:
    page.memory.notebook.memory_path.write_bytes(text.encode())


def on_disk(page: Page) -> str:
    return page.memory.notebook.memory_path.read_bytes().decode()


def fields_of(html: str) -> tuple[str, list[str]]:
    """The stamp in an editor, and the texts in its fields as a browser has them."""
    stamp = re.search('name="stamp" value="([^"]*)"', html)
    texts = re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", html, re.DOTALL)
    return stamp[1] if stamp else "", [unescape(each) for each in texts]


def send(page: Page, text: str, stamp: str, do: str = "save") -> tuple[int, str]:
    """Send the editor's form, with the line ends that browsers send."""
    typed = text.replace("\n", "\r\n")
    answer = page.save("/memory/edit", text=typed, stamp=stamp, do=do)
    return answer.status_code, answer.text


# -- MEMORY.md ---


def test_the_memory_is_shown_and_offered_for_editing(page: Page) -> None:
    seen = page.see("/memory")

    assert "<strong>uv</strong>" in page.get("/memory").text
    assert "1 fact in 5 lines" in seen.text
    assert "/memory/edit" in seen.links
    assert fields_of(page.get("/memory/edit").text)[1] == [TEXT]


def test_what_is_saved_replaces_the_file_and_the_old_text_is_kept(page: Page) -> None:
    stamp, (text,) = fields_of(page.get("/memory/edit").text)

    answer = page.save("/memory/edit", text=f"{text}- Né <b>\n", stamp=stamp, do="save")

    assert (answer.status_code, answer.headers["location"]) == (303, "/memory?saved=1")
    assert on_disk(page) == f"{TEXT}- Né <b>\n"
    backups = page.memory.notebook.folder.glob("backups/*.md")
    assert TEXT in [each.read_text() for each in backups]
    assert "Saved." in page.see("/memory?saved=1").text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n# Two lines first\n",
        "no line end",
        "\ufeff# Mark\r\n\r\n- and\r\n- CRLF\r\n",
        "</textarea><script>alert(1)</script>&amp;&lt;\n",
        "bidi \u202e and \x0b control \x1b[31m\n",
    ],
)
def test_saving_without_a_change_leaves_every_byte(page: Page, text: str) -> None:
    write(page, text)
    stamp, (shown,) = fields_of(page.get("/memory/edit").text)

    assert send(page, shown, stamp)[0] == 303
    assert on_disk(page) == (text or "# Long-term Memory\n")


def test_a_file_that_a_browser_would_change_is_not_edited_here(page: Page) -> None:
    odd = ("a\r\nb\n", "a\rb\n", "a\0b\n")
    offered = []
    for text in odd:
        write(page, text)
        offered.append("/memory/edit" in page.see("/memory").links)
        assert page.get("/memory/edit").status_code == 400

    assert offered == [False, False, False]


def test_a_text_changed_by_someone_else_is_shown_beside_ones_own(page: Page) -> None:
    stamp, _ = fields_of(page.get("/memory/edit").text)
    write(page, "# Memory\n\n- Theirs\n")

    status, html = send(page, "# Memory\n\n- Mine\n", stamp)

    newer, texts = fields_of(html)
    assert (status, texts) == (409, ["# Memory\n\n- Mine\n", "# Memory\n\n- Theirs\n"])
    assert on_disk(page) == "# Memory\n\n- Theirs\n"
    assert send(page, "# Memory\n\n- Both\n", newer)[0] == 303
    assert on_disk(page) == "# Memory\n\n- Both\n"


def test_of_two_tabs_the_second_is_told(page: Page) -> None:
    first, second = (fields_of(page.get("/memory/edit").text)[0] for _ in range(2))

    assert send(page, "- one\n", first)[0] == 303
    assert send(page, "- two\n", second)[0] == 409
    assert on_disk(page) == "- one\n"


def test_a_preview_saves_nothing_and_keeps_the_version_one_began_with(
    page: Page,
) -> None:
    stamp, _ = fields_of(page.get("/memory/edit").text)
    write(page, "- newer\n")

    _, html = send(page, "*mine*\n", stamp, "preview")

    assert fields_of(html) == (stamp, ["*mine*\n"])
    assert "<em>mine</em>" in html
    assert on_disk(page) == "- newer\n"


def test_nothing_is_saved_for_another_page(page: Page) -> None:
    stamp, _ = fields_of(page.get("/memory/edit").text)
    sent = {"text": "- evil\n", "stamp": stamp, "do": "save"}
    elsewhere = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}

    answer = page.browser.post("/memory/edit", data=sent, headers=elsewhere)

    assert (answer.status_code, on_disk(page)) == (403, TEXT)


def test_too_much_text_is_refused(page: Page) -> None:
    assert send(page, "x" * 4_000_001, "")[0] == 413


def test_a_memory_of_more_than_two_hundred_lines_has_a_notice(page: Page) -> None:
    write(page, "- fact\n" * 200)
    fits = page.see("/memory").text
    write(page, "- fact\n" * 201)
    too_long = page.see("/memory").text

    notice = "It has 201 lines. Only the first 200 are given to agents; shorten it."
    assert [notice in text for text in (fits, too_long)] == [False, True]


def test_a_fact_leads_to_the_conversation_that_it_comes_from(page: Page) -> None:
    origin = FactOrigin(Teller.USER, "python", "talk", date(2026, 2, 20), (7,))
    page.memory.notebook.add_fact("Has a ladder", origin=origin)

    seen = page.see("/memory")

    assert "Has a ladder You said so2026-02-20python" in seen.text.replace("\n", "")
    assert "/session/python/talk?at=7#m7" in seen.links


# -- daily logs and prompts ---


def test_the_days_with_a_log_are_in_a_calendar_and_lead_to_it(page: Page) -> None:
    notebook = page.memory.notebook
    for day in ("2026-01-31", "2026-02-24"):
        notebook.append_log(day, f"## Work of {day}\n\n- *Something*", day)

    listed = page.see("/logs")
    log = page.see("/logs/2026-02-24")

    assert [link for link in listed.links if link.startswith("/logs/")] == [
        "/logs/2026-02-24",
        "/logs/2026-01-31",
    ]
    assert "Work of 2026-02-24" in log.text
    assert "/logs/2026-01-31" in log.links
    paths = ("/logs/2026-02-23", "/logs/yesterday", "/logs/..%2fMEMORY")
    assert [page.get(path).status_code for path in paths] == [404, 400, 404]


def test_a_prompt_shows_what_an_agent_would_be_given_with_its_cost(page: Page) -> None:
    seen = page.see("/prompt?prompt=which+tools+do+I+use")

    given = page.memory.context("which tools do I use")
    assert f"{given.tokens} tokens at most" in seen.text
    assert "> - Uses **uv**" in seen.text
    write(page, "")
    assert "No memories fit this prompt." in page.see("/prompt?prompt=zebra").text
