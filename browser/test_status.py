"""The first visit, and rebuilding the index while looking at it."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.samples import a_memory
from tests.web.server import serve

from browser.conftest import NOW, SAMPLES, SCREENSHOTS, OpenWindow

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

api = pytest.importorskip("playwright.sync_api", reason="run 'make browser'")


def test_the_first_visit_reads_what_agents_left_and_suggests_what_to_ask(
    open_window: OpenWindow, tmp_path: Path
) -> None:
    settings = ("embedder.name=none",)
    with (
        a_memory(
            tmp_path, home=SAMPLES, settings=settings, clock=lambda: NOW
        ) as memory,
        serve(memory, SAMPLES) as empty,
    ):
        tab = open_window(of=empty).tab
        tab.goto("/")
        api.expect(tab.get_by_role("searchbox")).to_be_focused()
        tab.keyboard.type("council export")
        heading = tab.get_by_role("heading", level=2)
        api.expect(heading).to_have_text(
            "Nothing can be found: no conversation has been read yet"
        )
        tab.keyboard.press("Control+a")
        tab.keyboard.press("Delete")
        api.expect(heading).to_have_text("No conversation has been read yet")
        api.expect(tab.get_by_text("Claude Code")).to_be_visible()
        tab.screenshot(path=SCREENSHOTS / "first-visit.png")
        tab.get_by_role("button", name="Read them").click()

        questions = tab.locator(".questions a")
        api.expect(questions).to_have_count(3)
        api.expect(tab.get_by_role("searchbox")).to_be_focused()
        tab.screenshot(path=SCREENSHOTS / "first-questions.png")
        questions.nth(1).click()
        api.expect(tab.locator(".hit").first).to_be_visible()


def test_the_index_is_rebuilt_and_the_page_says_when_it_is_done(tab: "Tab") -> None:
    tab.goto("/status")
    tab.get_by_role("button", name="Rebuild the index").click()

    api.expect(tab.get_by_role("heading", name="Rebuilding the index")).to_be_visible()
    api.expect(tab.get_by_text("Indexed")).to_be_visible()
    tab.get_by_role("main").get_by_role("link", name="Search").click()
    api.expect(tab.get_by_role("searchbox")).to_be_focused()
    tab.keyboard.type("council export")
    api.expect(tab.locator(".hit").first).to_be_visible()
