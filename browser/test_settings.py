"""Change settings by hand, exclude a folder, and forget what was kept of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.samples import a_memory
from tests.web.server import Page, serve

from browser.conftest import OpenWindow

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

api = pytest.importorskip("playwright.sync_api", reason="run 'make browser'")


@pytest.fixture
def own_page(tmp_path: Path) -> Iterator[Page]:
    """A page whose settings may be changed: it then closes the memory it began with."""
    with a_memory(tmp_path, settings=("embedder.name=none",)) as memory:
        memory.record("hush", "user", "Hush", title="Hush", project="/home/hush")
        with serve(memory, tmp_path) as served:
            yield served


@pytest.fixture
def tab(own_page: Page, open_window: OpenWindow) -> "Tab":
    return open_window(of=own_page).tab


def test_a_setting_is_changed_and_goes_back_to_its_default(tab: "Tab") -> None:
    tab.goto("/settings")
    row = tab.locator("form.setting", has_text="context.max_memories")
    row.get_by_role("spinbutton").fill("7")
    row.get_by_role("button", name="Save").click()

    api.expect(tab.get_by_role("status")).to_contain_text("Set context.max_memories in")
    api.expect(row.get_by_role("spinbutton")).to_have_value("7")
    api.expect(row).to_be_in_viewport()
    row.get_by_role("button", name="use it").click()
    api.expect(tab.get_by_role("status")).to_contain_text(
        "Removed context.max_memories from"
    )
    api.expect(row.get_by_role("spinbutton")).to_have_value("3")


def test_the_browser_itself_refuses_what_is_out_of_range(tab: "Tab") -> None:
    tab.goto("/settings")
    row = tab.locator("form.setting", has_text="context.max_memories")
    row.get_by_role("spinbutton").fill("99")
    row.get_by_role("button", name="Save").click()

    assert tab.evaluate("document.querySelector(':invalid') !== null")
    assert "changed" not in tab.url


def test_a_folder_is_excluded_and_what_was_kept_of_it_forgotten(tab: "Tab") -> None:
    tab.goto("/session/python/hush")
    tab.get_by_role("link", name="exclude folder …").click()
    api.expect(tab.get_by_text("What was read before stays: 1 session")).to_be_visible()
    tab.get_by_role("button", name="Exclude it").click()
    api.expect(tab.get_by_text("/home/hush is excluded")).to_be_visible()
    tab.get_by_role("link", name="Forget it …").click()
    tab.get_by_role("button", name="Forget it for good").click()

    api.expect(tab.get_by_text("Forgotten: 1 message of 1 session")).to_be_visible()
    tab.goto("/sessions")
    api.expect(tab.get_by_text("There are no conversations.")).to_be_visible()
