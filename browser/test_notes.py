"""Edit the memory, read the logs, and see what a prompt is given."""

from typing import TYPE_CHECKING

import pytest
from tests.web.server import Page

from browser.conftest import NOTES, OpenWindow

if TYPE_CHECKING:
    from playwright.sync_api import Dialog
    from playwright.sync_api import Page as Tab

api = pytest.importorskip("playwright.sync_api", reason="run 'make browser'")


def on_disk(page: Page) -> str:
    return page.memory.notebook.read_memory()


def test_the_memory_is_edited_previewed_and_saved(page: Page, tab: "Tab") -> None:
    tab.goto("/memory")
    tab.get_by_role("link", name="Edit").click()
    text = tab.get_by_label("Text")
    api.expect(text).to_have_value(NOTES)
    text.press("Control+End")
    tab.keyboard.type("- Has a **ladder**\n")
    tab.get_by_role("button", name="Preview").click()

    api.expect(tab.locator("#preview strong")).to_have_text("ladder")
    assert on_disk(page) == NOTES
    tab.get_by_role("button", name="Save").click()
    api.expect(tab.get_by_text("Saved.", exact=True)).to_be_visible()
    assert on_disk(page) == f"{NOTES}- Has a **ladder**\n"


def test_unsaved_changes_are_not_lost_by_leaving(page: Page, tab: "Tab") -> None:
    asked: list[str] = []

    def stay(dialog: "Dialog") -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    tab.on("dialog", stay)
    tab.goto("/memory/edit")
    tab.get_by_label("Text").press("Control+End")
    tab.keyboard.type("- more")
    tab.get_by_role("link", name="Cancel").click()

    api.expect(tab.get_by_label("Text")).to_have_value(f"{NOTES}- more")
    assert (asked, on_disk(page)) == (["beforeunload"], NOTES)
    tab.get_by_label("Text").fill(NOTES)
    tab.get_by_role("link", name="Cancel").click()
    tab.wait_for_url("**/memory")
    assert asked == ["beforeunload"]


def test_a_conflict_is_shown_side_by_side_and_resolved(
    page: Page, open_window: OpenWindow
) -> None:
    window = open_window()
    tab = window.tab
    tab.goto("/memory/edit")
    page.memory.notebook.add_fact("An agent wrote this")
    tab.get_by_label("Text").press("Control+End")
    tab.keyboard.type("- Mine\n")
    tab.keyboard.press("Control+s")

    api.expect(tab.get_by_label("The file as it is now")).to_contain_text(
        "An agent wrote this"
    )
    api.expect(tab.get_by_label("Your text")).to_have_value(f"{NOTES}- Mine\n")
    # The browser itself complains of the status.
    assert len(window.complaints) == 1
    window.complaints.clear()
    tab.get_by_label("Your text").fill(f"{NOTES}- Both\n")
    tab.get_by_role("button", name="Save").click()
    api.expect(tab.get_by_text("Saved.", exact=True)).to_be_visible()
    assert on_disk(page) == f"{NOTES}- Both\n"


def test_what_was_typed_stays_if_the_server_has_ended(
    page: Page, open_window: OpenWindow
) -> None:
    window = open_window()
    tab = window.tab
    tab.goto("/memory/edit")
    tab.get_by_label("Text").fill(f"{NOTES}- Late\n")
    tab.context.set_offline(True)
    tab.get_by_role("button", name="Save").click()

    api.expect(tab.get_by_role("status")).to_contain_text("Not saved")
    api.expect(tab.get_by_label("Text")).to_have_value(f"{NOTES}- Late\n")
    assert on_disk(page) == NOTES
    tab.context.set_offline(False)
    tab.keyboard.press("Control+s")
    api.expect(tab.get_by_text("Saved.", exact=True)).to_be_visible()
    assert on_disk(page) == f"{NOTES}- Late\n"
    window.forgive("ERR_INTERNET_DISCONNECTED")


def test_what_was_saved_is_said_once(tab: "Tab") -> None:
    tab.goto("/memory/edit")
    tab.get_by_label("Text").fill(f"{NOTES}- Has a ladder\n")
    tab.get_by_role("button", name="Save").click()
    api.expect(tab.get_by_text("Saved.", exact=True)).to_be_visible()
    tab.reload()

    api.expect(tab.get_by_text("Has a ladder")).to_be_visible()
    api.expect(tab.get_by_text("Saved.", exact=True)).to_have_count(0)


def test_a_preview_that_nobody_answers_says_so(open_window: OpenWindow) -> None:
    window = open_window()
    tab = window.tab
    tab.goto("/memory/edit")
    tab.context.set_offline(True)
    tab.get_by_role("button", name="Preview").click()

    api.expect(tab.get_by_role("status")).to_contain_text("There is no preview")
    tab.context.set_offline(False)
    tab.get_by_role("button", name="Preview").click()
    api.expect(tab.locator("#preview h2").first).to_have_text("Preferences")
    window.forgive("ERR_INTERNET_DISCONNECTED")


def test_a_day_of_the_calendar_leads_to_its_log(tab: "Tab") -> None:
    tab.goto("/logs")
    tab.get_by_role("link", name="2026-02-25").click()

    api.expect(tab.get_by_text("SQLite with WAL")).to_be_visible()
    tab.get_by_role("link", name="2026-02-26 →").click()
    tab.wait_for_url("**/logs/2026-02-26")


def test_a_prompt_shows_its_memories(tab: "Tab") -> None:
    tab.goto("/prompt")
    tab.get_by_label("Prompt").fill("what did we decide about the council export?")
    tab.get_by_role("button", name="Show").click()

    api.expect(tab.locator(".given")).to_contain_text("## Long-term Memory")
    api.expect(tab.get_by_role("heading", name="tokens")).to_be_visible()
