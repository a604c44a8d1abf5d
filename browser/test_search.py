"""Search by typing and by keys alone."""

from typing import TYPE_CHECKING

import pytest

from browser.conftest import OpenWindow

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

api = pytest.importorskip("playwright.sync_api", reason="run 'make browser'")


def test_results_appear_as_one_types_and_the_address_follows(tab: "Tab") -> None:
    tab.goto("/")
    api.expect(tab.get_by_role("searchbox")).to_be_focused()
    tab.keyboard.type("council export")

    api.expect(tab.locator(".hit mark").first).to_be_visible()
    assert tab.url.endswith("/?q=council+export")
    tab.reload()
    api.expect(tab.get_by_role("searchbox")).to_have_value("council export")
    api.expect(tab.locator(".hit").first).to_be_visible()


def test_going_back_shows_what_was_there_before(tab: "Tab") -> None:
    tab.goto("/")
    api.expect(tab.get_by_role("searchbox")).to_be_focused()
    tab.keyboard.type("council")
    api.expect(tab.locator(".hit").first).to_be_visible()
    tab.keyboard.press("Enter")
    tab.get_by_text("Filters").click()
    tab.get_by_label("Agent").select_option("codex")
    tab.wait_for_url("**/?q=council&host=codex")

    tab.go_back()
    tab.wait_for_url("**/?q=council")
    api.expect(tab.get_by_label("Agent")).to_have_value("")
    tab.go_back()
    api.expect(tab.get_by_role("searchbox")).to_have_value("")
    api.expect(tab.get_by_text("Latest conversations")).to_be_visible()


def test_everything_can_be_done_with_keys(tab: "Tab") -> None:
    tab.goto("/memory")
    tab.goto("/")
    tab.locator("main").focus()
    tab.keyboard.press("/")
    tab.keyboard.type("reminder")
    tab.wait_for_url("**/?q=reminder")
    api.expect(tab.locator("#results.busy")).to_have_count(0)
    api.expect(tab.locator(".hit").first).to_be_visible()
    links = tab.locator("[data-item]")

    tab.keyboard.press("ArrowDown")
    api.expect(links.nth(0)).to_be_focused()
    tab.keyboard.press("ArrowDown")
    api.expect(links.nth(1)).to_be_focused()
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("ArrowUp")
    api.expect(tab.get_by_role("searchbox")).to_be_focused()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Escape")
    api.expect(tab.get_by_role("searchbox")).to_be_focused()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("?")
    api.expect(tab.get_by_role("dialog")).to_be_visible()
    tab.keyboard.press("Escape")
    api.expect(tab.get_by_role("dialog")).to_be_hidden()
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/session/**")
    api.expect(tab.locator(".message.here")).to_be_in_viewport()
    tab.go_back()
    api.expect(tab.get_by_role("searchbox")).to_have_value("reminder")


def test_coming_back_from_a_result_is_coming_back_to_it(tab: "Tab") -> None:
    tab.goto("/?q=loans")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    second = tab.locator("#results [data-item]").nth(1)
    api.expect(second).to_be_focused()
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/session/**")
    tab.go_back()

    api.expect(second).to_be_focused()


def test_a_result_keeps_the_focus_when_newer_results_arrive(tab: "Tab") -> None:
    tab.goto("/?q=reminder")
    tab.keyboard.press("ArrowDown")
    chosen = tab.locator("[data-item]").first
    api.expect(chosen).to_be_focused()
    title = chosen.inner_text()
    # As if the last letter had been typed just before.
    tab.evaluate(
        """() => {
          const box = document.getElementById("q");
          box.value = "reminder mails";
          box.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    tab.wait_for_url("**/?q=reminder+mails")

    api.expect(tab.locator("#results.busy")).to_have_count(0)
    api.expect(tab.locator("[data-item]:focus")).to_have_text(title)


def test_results_are_grouped_by_day_and_a_day_can_be_folded(tab: "Tab") -> None:
    tab.goto("/?q=loans")
    tab.get_by_text("Filters").click()
    tab.get_by_label("By day").check()
    tab.wait_for_url("**group=day")

    day = tab.locator("details.day").first
    api.expect(day.locator(".hit").first).to_be_visible()
    day.locator("> summary").click()
    api.expect(day.locator(".hit").first).to_be_hidden()


def test_a_score_is_explained_and_its_command_copied(tab: "Tab") -> None:
    tab.goto("/?q=reminder+twice&host=claude-code")
    hit = tab.locator(".hit").first
    hit.locator("details.why > summary").click()

    api.expect(hit.get_by_role("row", name="meaning")).to_be_visible()
    hit.get_by_role("button", name="Copy").click()
    api.expect(hit.get_by_role("button", name="Copied")).to_be_visible()
    copied = tab.evaluate("navigator.clipboard.readText()")
    assert copied == hit.locator(".command code").first.inner_text()
    assert "claude --resume" in copied


def test_a_search_that_nobody_answers_says_so_and_can_be_tried_again(
    open_window: OpenWindow,
) -> None:
    window = open_window()
    tab = window.tab
    tab.goto("/")
    tab.context.set_offline(True)
    tab.get_by_role("searchbox").fill("loan")

    api.expect(tab.locator("#results")).to_contain_text("'backstory web' has ended")
    tab.context.set_offline(False)
    tab.keyboard.type("s")
    api.expect(tab.locator(".hit").first).to_be_visible()
    window.forgive("ERR_INTERNET_DISCONNECTED")


def test_a_day_that_is_none_is_explained_beside_its_field(
    open_window: OpenWindow,
) -> None:
    window = open_window()
    window.tab.goto("/sessions?since=garbage")

    api.expect(window.tab.get_by_label("From")).to_have_attribute(
        "aria-describedby", "wrong-since"
    )
    api.expect(window.tab.locator("#wrong-since")).to_contain_text(
        "'garbage' is not a date; write it as 2026-02-25"
    )
    # The browser itself complains of the status.
    assert len(window.complaints) == 1
    window.complaints.clear()


def test_it_works_without_scripts(open_window: OpenWindow) -> None:
    tab = open_window(with_scripts=False).tab
    tab.goto("/")
    tab.get_by_role("searchbox").fill("council export")
    tab.keyboard.press("Enter")
    tab.locator(".hit h3 a").first.click()

    api.expect(tab.locator(".message.here")).to_be_visible()
    tab.goto("/session/python/long")
    tab.get_by_role("link", name="Later messages").click()
    api.expect(tab.get_by_text("number 60", exact=True)).to_be_visible()


def test_a_browser_is_let_in_by_the_link_alone(open_window: OpenWindow) -> None:
    window = open_window()
    window.tab.context.clear_cookies()
    window.tab.goto("/")

    api.expect(window.tab.get_by_role("heading", level=1)).to_have_text(
        "This browser has no access"
    )
    # The browser itself complains of the status.
    assert len(window.complaints) == 1
    window.complaints.clear()
