"""Connect an agent, have everything examined and checked, and copy a command."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.samples import a_memory
from tests.web.server import Page, serve

from browser.conftest import SCREENSHOTS, OpenWindow

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

api = pytest.importorskip("playwright.sync_api", reason="run 'make browser'")


@pytest.fixture
def user_home(tmp_path: Path) -> Path:
    home = tmp_path / "user"
    (home / ".cursor").mkdir(parents=True)
    (home / ".cursor/mcp.json").write_text('{"mcpServers": {}}')
    return home


@pytest.fixture
def own_page(tmp_path: Path, user_home: Path) -> Iterator[Page]:
    """A page of a machine whose files may be changed."""
    settings = ("embedder.name=none",)
    with a_memory(tmp_path, home=user_home, settings=settings) as memory:
        memory.record("talk", "user", "Where is the ladder?", title="The ladder")
        with serve(memory, user_home) as served:
            yield served


@pytest.fixture
def tab(own_page: Page, open_window: OpenWindow) -> "Tab":
    return open_window(of=own_page).tab


def test_an_agent_is_connected_and_disconnected(tab: "Tab", user_home: Path) -> None:
    settings = user_home / ".cursor/mcp.json"
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    tab.goto("/status")
    tab.get_by_role("link", name="Agents").click()
    tab.get_by_role("link", name="Connect Cursor").click()
    api.expect(tab.get_by_text("would change: ~/.cursor/mcp.json")).to_be_visible()
    assert settings.read_text() == '{"mcpServers": {}}'
    tab.screenshot(path=SCREENSHOTS / "connect-preview.png")
    tab.get_by_role("button", name="Connect it").click()

    receipt = tab.locator("#job .given")
    api.expect(receipt).to_contain_text("changed: ~/.cursor/mcp.json (backup: ")
    api.expect(receipt).to_contain_text('ask Cursor: What do you remember about "The')
    tab.screenshot(path=SCREENSHOTS / "connected.png")
    assert list(json.loads(settings.read_text())["mcpServers"]) == ["backstory"]
    tab.get_by_role("link", name="Disconnect Cursor").click()
    tab.get_by_role("button", name="Disconnect it").click()
    api.expect(receipt).to_contain_text("Your history and notes are still in")
    assert settings.read_text() == '{"mcpServers": {}}'


def test_the_doctor_finds_what_can_be_mended_and_leads_there(tab: "Tab") -> None:
    tab.goto("/doctor")
    tab.get_by_role("button", name="Examine").click()
    cursor = tab.get_by_role("listitem").filter(has_text="Cursor")

    api.expect(cursor).to_contain_text("on this machine, but not connected")
    cursor.get_by_role("button", name="Copy").click()
    copied = tab.evaluate("navigator.clipboard.readText()")
    assert copied == "backstory install cursor"
    tab.screenshot(path=SCREENSHOTS / "doctor-findings.png", full_page=True)
    cursor.get_by_role("link", name="or do it here").click()
    tab.wait_for_url("**/agents")


def test_damage_is_looked_for_and_the_result_is_shown_there(tab: "Tab") -> None:
    tab.goto("/check")
    tab.get_by_role("button", name="Check", exact=True).click()

    api.expect(tab.locator("#job .given")).to_contain_text("history.db: sound")
    tab.screenshot(path=SCREENSHOTS / "checked.png")


def test_a_command_is_explained_and_copied(tab: "Tab") -> None:
    tab.goto("/commands")
    row = tab.get_by_role("listitem").filter(has_text="backstory eval")
    row.get_by_text("Measure how well searches find what is wanted.").first.click()
    api.expect(row.get_by_text("--shuffle SEED")).to_be_visible()
    row.get_by_role("button", name="Copy backstory eval").click()

    assert "backstory eval" in tab.evaluate("navigator.clipboard.readText()")
