"""What the tests get: the page of the sample conversations, and windows to open it in.

Without a Chromium, or without Playwright, every test is skipped and says so.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from tests.samples import a_memory
from tests.web.hostile import record_hostile
from tests.web.server import Page, serve

import backstory.cli

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage
    from playwright.sync_api import Page as Tab

SCREENSHOTS = Path(__file__).parents[1] / "build" / "screenshots"
SAMPLES = Path(backstory.cli.__file__).parent / "samples"
# In the week after the sample conversations, because scores depend on age.
NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
# Before anything is recorded, so that the subagent is taken for the next one.
BEFORE_PART = datetime(2026, 2, 27, 9, tzinfo=UTC)
LONG = 1_500
# A busy machine takes many times as long; only a failure waits until then.
PATIENCE_MS = 60_000
DESKTOP = (1280, 900)
PHONE = (390, 844)
# It shall do nothing by itself, and leave nothing behind.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# More lines than are shown at once, with code among them.
PASTED = "\n".join(
    (
        "Why does this fail?",
        "",
        "```python",
        "def lend(book):",
        "    # Nobody has it yet.",
        "    return book.loans[-1]",
        "```",
        "",
        "This is the log:",
        *(f"  step {number}:  looked at shelf {number}" for number in range(60)),
        "and after that, nothing.",
    )
)
NOTES = """# Memory

## Preferences

- Wants every change explained in one sentence
- Prefers SQLite, and plain files for what people edit

## Projects

- bookshelf lends the books of a village library
"""


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("page")
    settings = ("embedder.name=none",)
    with a_memory(folder, home=SAMPLES, settings=settings, clock=lambda: NOW) as memory:
        memory.index()
        said = [
            {"role": "assistant" if each % 2 else "user", "content": f"number {each}"}
            for each in range(LONG)
        ]
        memory.record_messages("long", said, title="A long one")
        record_hostile(memory)
        edit = {
            "file_path": "loans.py",
            "old_string": "def open():\n    return connect(PATH)\n",
            "new_string": "def open():\n    # Readers do not wait for writers.\n"
            "    return connect(PATH, wal=True)\n",
        }
        asked = "Please turn on WAL for the loans."
        memory.record("edit", "user", asked, title="Turn on WAL", project="/home/dev")
        memory.record(
            "edit", "tool_call", json.dumps(edit), tool_name="Edit", call_id="1"
        )
        memory.record("edit", "tool_result", "loans.py was updated.", call_id="1")
        memory.record(
            "edit",
            "assistant",
            "WAL is on:\n\n```python\nreturn connect(PATH, wal=True)\n```\n\n"
            "| reader | waits |\n|---|---|\n| before | yes |\n| now | no |\n",
        )
        memory.record("pasted", "user", PASTED, title="A long prompt with code")
        memory.record("pasted", "assistant", "It is in line 3.")
        memory.record("part", "user", "Look for writers", title="Look", parent="edit")
        task = json.dumps({"description": "Look", "prompt": "Look for writers"})
        memory.record("edit", "tool_call", task, tool_name="Task", sent_at=BEFORE_PART)
        for day in ("2026-02-24", "2026-02-25", "2026-02-26"):
            block = "## Loans\n\n- Decided: SQLite with WAL in `data/loans.db`\n"
            memory.notebook.append_log(day, block, day)
        memory.index()
        with serve(memory, SAMPLES) as served:
            yield served


@pytest.fixture(autouse=True)
def _notes(page: Page) -> None:
    page.memory.notebook.memory_path.write_text(NOTES)


def find_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def chromium() -> "Iterator[Browser]":
    found = find_chromium()
    if found is None:
        pytest.skip("no Chromium is installed; on Debian: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="run 'make browser'")
    api.expect.set_options(timeout=PATIENCE_MS)
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Window:
    """A window of a browser that is let in, and all that went wrong in it."""

    tab: "Tab"
    url: str
    reached: list[str]
    complaints: list[str]

    def forgive(self, words: str) -> None:
        """Drop the complaints with these words, which a test has brought about."""
        self.complaints[:] = [each for each in self.complaints if words not in each]


def note_error(window: Window, said: "ConsoleMessage") -> None:
    """Note what the browser calls an error, such as a breach of the page's policy."""
    if said.type == "error":
        window.complaints.append(said.text)


OpenWindow = Callable[..., Window]


@pytest.fixture
def open_window(page: Page, chromium: "Browser") -> Iterator[OpenWindow]:
    """Opens windows; at the end, nothing may have gone wrong or left the machine."""
    opened: list[Window] = []

    def open_one(
        size: tuple[int, int] = DESKTOP,
        scheme: Literal["light", "dark"] = "light",
        *,
        with_scripts: bool = True,
        of: Page = page,
    ) -> Window:
        (cookie,) = of.browser.cookies.jar
        context = chromium.new_context(
            base_url=of.url,
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,
            java_script_enabled=with_scripts,
        )
        context.set_default_timeout(PATIENCE_MS)
        context.add_cookies(
            [{"name": cookie.name, "value": cookie.value or "", "url": of.url}]
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        tab = context.new_page()
        window = Window(tab, of.url, [], [])
        tab.on("request", lambda request: window.reached.append(request.url))
        tab.on("pageerror", lambda error: window.complaints.append(str(error)))
        tab.on("console", lambda said: note_error(window, said))
        opened.append(window)
        return window

    yield open_one
    for window in opened:
        window.tab.context.close()
    assert [each.complaints for each in opened] == [[] for _ in opened]
    assert [
        url for each in opened for url in each.reached if not url.startswith(each.url)
    ] == []


@pytest.fixture
def tab(open_window: OpenWindow) -> "Tab":
    """One tab at the size of a desktop."""
    return open_window().tab
