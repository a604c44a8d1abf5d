"""Rebuild the index while looking at it."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

api = pytest.importorskip("playwright.sync_api", reason="run 'make browser'")


def test_the_index_is_rebuilt_and_the_page_says_when_it_is_done(tab: "Tab") -> None:
    tab.goto("/status")
    tab.get_by_role("button", name="Rebuild the index").click()

    api.expect(tab.get_by_role("heading", name="Rebuilding the index")).to_be_visible()
    api.expect(tab.get_by_text("Indexed")).to_be_visible(timeout=60_000)
    tab.get_by_role("main").get_by_role("link", name="Search").click()
    api.expect(tab.get_by_role("searchbox")).to_be_focused()
    tab.keyboard.type("council export")
    api.expect(tab.locator(".hit").first).to_be_visible()
