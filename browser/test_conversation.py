"""Read conversations: long ones by scrolling, hostile ones without any harm."""

from typing import TYPE_CHECKING

import pytest
from tests.processes import comes_true
from tests.web.server import Page

from browser.conftest import LONG, PHONE, OpenWindow

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Locator
    from playwright.sync_api import Page as Tab

api = pytest.importorskip("playwright.sync_api", reason="run 'make browser'")


def scroll_until(tab: "Tab", text: str, by: int) -> None:
    """Turn the wheel until a text is there."""
    for _ in range(400):
        if tab.get_by_text(text, exact=True).count():
            return
        tab.mouse.wheel(0, by)
        tab.wait_for_timeout(20)
    raise AssertionError(f"{text} never came")


def top_of(element: "Locator") -> float:
    return float(element.evaluate("each => each.getBoundingClientRect().top"))


def test_a_long_conversation_is_loaded_by_scrolling_and_stays_small(
    tab: "Tab",
) -> None:
    tab.goto("/session/python/long")
    tab.mouse.move(600, 500)

    scroll_until(tab, f"number {LONG - 1}", 4_000)
    api.expect(tab.locator(".later")).to_have_count(0)
    assert tab.locator("article").count() <= 400
    shown = tab.locator("article .plain, article .prose").all_inner_texts()
    first = int(shown[0].removeprefix("number "))
    api.expect(tab.locator("h2.date")).to_have_count(1)
    assert shown == [f"number {each}" for each in range(first, LONG)]

    scroll_until(tab, "number 0", -4_000)
    api.expect(tab.locator(".earlier")).to_have_count(0)
    shown = tab.locator("article .plain, article .prose").all_inner_texts()
    assert shown == [f"number {each}" for each in range(len(shown))]
    api.expect(tab.locator("h2.date")).to_have_count(1)


def test_what_is_being_read_stays_in_place_when_more_is_loaded(tab: "Tab") -> None:
    tab.goto("/session/python/long?find=number+700")
    tab.locator(".finds a").first.click()
    here = tab.locator(".plain", has_text="number 700")
    api.expect(here).to_be_in_viewport()
    before = top_of(here)
    tab.mouse.move(600, 500)
    tab.mouse.wheel(0, -900)

    api.expect(tab.get_by_text("number 640", exact=True)).to_have_count(1)
    assert comes_true(lambda: abs(top_of(here) - before - 900) < 2)
    assert tab.evaluate("CSS.highlights.get('found').size") >= 1


def test_tool_calls_are_folded_and_unfold_to_diffs(tab: "Tab") -> None:
    tab.goto("/session/python/edit")
    api.expect(tab.locator(".diff")).to_be_hidden()
    tab.locator("summary", has_text="Edit").click()

    api.expect(tab.locator(".diff .added").first).to_be_visible()
    api.expect(tab.get_by_text("loans.py was updated.")).to_be_visible()
    tab.get_by_role("link", name="Look").click()
    tab.wait_for_url("**/session/python/part")
    tab.get_by_role("link", name="Turn on WAL").click()
    tab.wait_for_url("**/session/python/edit")


def test_a_subagent_is_read_within_its_call(tab: "Tab") -> None:
    tab.goto("/session/python/edit")
    tab.locator("summary", has_text="subagent").last.click()
    tab.get_by_role("link", name="Read it here").click()

    api.expect(tab.locator(".nested article")).to_contain_text("Look for writers")
    tab.get_by_role("link", name="Conversations").click()
    folded = tab.locator(".more-below", has_text="1 subagent").first
    folded.locator("summary").click()
    api.expect(folded.get_by_role("link")).to_be_visible()


def test_the_ends_of_a_long_conversation_are_a_click_away(tab: "Tab") -> None:
    tab.goto("/session/python/long")
    tab.get_by_role("link", name="Last", exact=True).click()
    api.expect(tab.get_by_text(f"number {LONG - 1}", exact=True)).to_be_in_viewport()
    tab.get_by_role("link", name="First", exact=True).click()
    api.expect(tab.get_by_text("number 0", exact=True)).to_be_in_viewport()


def test_the_slider_says_where_one_is_and_goes_anywhere(tab: "Tab") -> None:
    tab.goto("/session/python/long")
    slider = tab.get_by_role("slider", name="Go to message")
    api.expect(slider).to_have_attribute("aria-valuetext", "1 of 1,500")
    slider.fill("900")

    api.expect(tab.get_by_text("number 899", exact=True)).to_be_in_viewport()
    tab.wait_for_url("**/long?nr=900")
    # What is before and after it is loaded, and it stays where it is.
    api.expect(tab.get_by_text("number 850", exact=True)).to_have_count(1)
    api.expect(tab.get_by_text("number 899", exact=True)).to_be_in_viewport()
    tab.mouse.move(600, 500)
    tab.mouse.wheel(0, 3_000)
    api.expect(tab.get_by_text("900 of 1,500")).to_have_count(0)
    assert comes_true(lambda: int(slider.input_value()) > 920)
    tab.reload()
    api.expect(tab.get_by_text("number 899", exact=True)).to_be_in_viewport()


def test_a_long_prompt_is_folded_and_its_code_coloured(tab: "Tab") -> None:
    tab.goto("/session/python/pasted")
    api.expect(tab.locator(".message.user pre .k").first).to_have_text("def")
    end = tab.get_by_text("and after that, nothing.")
    api.expect(end).to_be_hidden()
    tab.get_by_text("Show 38 more lines").click()

    api.expect(end).to_be_visible()
    shown = tab.locator(".message.user .plain").all_inner_texts()
    assert "\n  step 3:  looked at shelf 3\n" in "\n".join(shown)
    tab.get_by_text("Show less").click()
    api.expect(end).to_be_hidden()


def test_what_is_folded_is_found_and_a_link_to_it_unfolds_it(tab: "Tab") -> None:
    tab.goto("/session/python/pasted")
    tab.get_by_role("searchbox").fill("after that, nothing")
    tab.keyboard.press("Enter")
    tab.locator(".finds a").click()

    api.expect(tab.get_by_text("and after that, nothing.").last).to_be_visible()
    assert tab.evaluate("CSS.highlights.get('found').size") >= 1
    link = tab.locator(".message.user header a").get_attribute("href")
    tab.goto("/session/python/pasted")
    tab.goto(f"{link}")
    api.expect(tab.get_by_text("and after that, nothing.")).to_be_visible()


def test_a_day_of_the_year_is_large_enough_for_a_finger(
    open_window: OpenWindow,
) -> None:
    tab = open_window(PHONE).tab
    tab.goto("/sessions")
    day = tab.locator(".year a").last
    api.expect(day).to_be_in_viewport()
    # The gap around a day belongs to it.
    sizes = day.locator("rect").evaluate(
        """each => {
          const { width, height } = each.getBoundingClientRect();
          const stroke = each.getScreenCTM().a * 2;
          return [width + stroke, height + stroke];
        }"""
    )
    assert min(sizes) >= 24
    first = tab.locator(".year rect").first
    api.expect(first).not_to_be_in_viewport()
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    day.click()

    tab.wait_for_url("**/sessions?since=*&until=*")


def test_a_conversation_is_forgotten_after_a_preview(page: Page, tab: "Tab") -> None:
    page.memory.record("secret", "user", "Nobody shall know", title="A secret")
    tab.goto("/session/python/secret")
    tab.get_by_role("link", name="forget …").click()
    api.expect(tab.get_by_text("This deletes 1 message of 1 session")).to_be_visible()
    tab.get_by_role("link", name="Cancel").click()
    api.expect(tab.get_by_text("Nobody shall know")).to_be_visible()
    tab.get_by_role("link", name="forget …").click()
    tab.get_by_role("button", name="Forget it for good").click()

    api.expect(tab.get_by_role("heading", name="Forgotten")).to_be_visible()
    assert "secret" not in [each.native_id for each in page.memory.sessions()]


def test_a_day_of_the_year_leads_to_its_conversations(tab: "Tab") -> None:
    tab.goto("/sessions?host=claude-code")
    tab.get_by_label("2026-02-25: 1 conversation").click()

    tab.wait_for_url("**/sessions?host=claude-code&since=2026-02-25&until=2026-02-25")
    api.expect(tab.locator("[data-item]")).to_have_text(["Reminder mails go out twice"])
    tab.keyboard.press("/")
    tab.wait_for_url("**/")
    api.expect(tab.get_by_role("searchbox")).to_be_focused()


def test_the_days_of_the_year_are_reached_with_keys(tab: "Tab") -> None:
    tab.goto("/sessions?host=claude-code")
    tab.get_by_role("button", name="Show").focus()
    tab.keyboard.press("Tab")
    days = tab.locator(".year a")
    api.expect(days.last).to_be_focused()
    tab.keyboard.press("ArrowRight")
    api.expect(days.last).to_be_focused()
    tab.keyboard.press("ArrowLeft")
    api.expect(days.nth(-2)).to_be_focused()
    tab.keyboard.press("Tab")
    api.expect(tab.get_by_role("link", name="messages", exact=True)).to_be_focused()
    tab.keyboard.press("Shift+Tab")
    api.expect(days.nth(-2)).to_be_focused()
    to_day = days.nth(-2).get_attribute("href")
    tab.keyboard.press("Enter")

    tab.wait_for_url(f"**{to_day}")


def test_a_hostile_conversation_does_nothing(open_window: OpenWindow) -> None:
    window = open_window()
    tab = window.tab
    dialogs: list[str] = []

    def note(dialog: "Dialog") -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    tab.on("dialog", note)
    for path in ("/?q=alert&n=200", "/session/python/hostile?find=alert"):
        tab.goto(path)
        for folded in tab.locator("details").all()[:60]:
            folded.evaluate("each => { each.open = true }")
    tab.mouse.move(600, 500)
    for _ in range(10):
        tab.mouse.wheel(0, 20_000)
        tab.wait_for_timeout(50)

    foreign = "img:not([src^='/static/']), svg, iframe, object, embed, style, [style]"
    assert (dialogs, tab.locator(foreign).count()) == ([], 0)
    assert tab.locator("main script, main link, main meta, main base").count() == 0
    # Whatever else went wrong, or left the machine, is noticed when the window closes.
