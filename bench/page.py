"""How soon the page answers, in a real Chromium, and how smoothly it scrolls.

The server is a separate process, over a home with 100,000 messages and one conversation
of 10,000. Without Chromium or Playwright (``make browser`` installs both), only the
size of the scripts is measured.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import compress
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.web.templating import HERE
from bench.history import open_memory
from bench.measuring import Figure
from bench.search import SMALL, queries, small_home
from bench.search_corpus import NOW

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

    from backstory.memory import Memory

_LONG = 10_000
_LOADS = 20
_SCROLL_S = 5
_MOST_FIRST_MS = 200
_MOST_RESULTS_MS = 100
_MOST_OPEN_MS = 1_000
_LEAST_FPS = 50
_MOST_SCRIPT_KB = 150
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
# An address whose answer is short and never kept by the browser.
_TINY = "/api/job"
_LOADED_MS = "performance.getEntriesByType('navigation')[0].loadEventEnd"
# The time from a key to the frame in which its results appear.
_WATCH_RESULTS = """
() => {
  const main = document.getElementById("main");
  let typedAt = 0;
  window.took = [];
  document.getElementById("q").addEventListener("input", () => {
    typedAt = performance.now();
  }, { capture: true });
  new MutationObserver((changes) => {
    const isNew = changes.some((each) =>
      [...each.addedNodes].some((node) => node.id === "results"));
    const since = typedAt;
    const seen = () => window.took.push(performance.now() - since);
    if (isNew) requestAnimationFrame(seen);
  }).observe(main, { childList: true });
}
"""
_ROUND_TRIP = """
async (path) => {
  const started = performance.now();
  await (await fetch(path, { cache: "no-store" })).text();
  return performance.now() - started;
}
"""
# The frames of some seconds of scrolling, in milliseconds each.
_SCROLL = """
(seconds) => new Promise((resolve) => {
  const frames = [];
  let last = performance.now();
  const until = last + 1000 * seconds;
  function step(now) {
    frames.push(now - last);
    last = now;
    scrollBy(0, 120);
    if (now < until) requestAnimationFrame(step);
    else resolve(frames.slice(1));
  }
  requestAnimationFrame(step);
})
"""


def measure_page_scripts(_: Path) -> Iterator[Figure]:
    files = sorted((HERE / "static").glob("*.js"))
    raw = b"".join(file.read_bytes() for file in files)
    yield Figure(
        "all JavaScript of the page",
        f"{len(raw) / 1000:.1f} KB in {len(files)} files",
        f"<= {_MOST_SCRIPT_KB} KB",
        f"compressed: {len(compress(raw)) / 1000:.1f} KB",
        len(raw) <= 1000 * _MOST_SCRIPT_KB,
    )


def measure_page(folder: Path) -> Iterator[Figure]:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        missing = "not measured: there is no Chromium, or no Playwright"
        yield Figure("the page", missing, "-", "'make browser' installs both", True)
        return
    kept = _make_home(folder)
    with _serving(folder, kept) as link, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=_FLAGS)
        context = browser.new_context(
            base_url=link.partition("/?")[0], viewport={"width": 1280, "height": 900}
        )
        tab = context.new_page()
        tab.goto(link)
        yield _measure_first_page(tab)
        yield _measure_keys(tab)
        yield _measure_opening(tab)
        yield _measure_scrolling(tab)
        browser.close()


def _make_home(folder: Path) -> Path:
    """A home with the usual history and one very long conversation."""
    kept = folder / "kept"
    shutil.copytree(small_home(), kept)
    (kept / "bare.db").unlink(missing_ok=True)
    settings = ["embedder.name=none"]
    with open_memory(folder, kept, settings=settings, clock=lambda: NOW) as memory:
        texts = _sample_texts(memory)
        said = [
            {
                "role": "assistant" if each % 2 else "user",
                "content": f"{each}: {texts[each % len(texts)]}",
            }
            for each in range(_LONG)
        ]
        memory.record_messages("long", said, title="A very long one")
        memory.index()
    return kept


def _sample_texts(memory: "Memory") -> list[str]:
    sessions = memory.sessions(limit=5)
    return [each.text for session in sessions for each in memory.messages(session)]


@contextmanager
def _serving(folder: Path, kept: Path) -> Iterator[str]:
    """The link to the page of a home, which a separate process serves."""
    folder.chmod(0o700)
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "BACKSTORY_HOME": str(kept),
        "BACKSTORY_EMBEDDER_IN_BACKGROUND": "false",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "backstory", "web", "--no-open", "--port", "0"],
        env=environ,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        link = re.search(r"http://\S+", process.stdout.readline())
        assert link is not None
        yield link[0]
        process.terminate()


def _measure_first_page(tab: "Tab") -> Figure:
    times = _load_times(tab, "/")
    nothing = _load_times(tab, _TINY)
    return _to_figure(
        f"the first page, {SMALL:,} messages, until it is loaded",
        times,
        _MOST_FIRST_MS,
        f"a tiny answer of the same server: {statistics.median(nothing):.0f} ms",
    )


def _measure_opening(tab: "Tab") -> Figure:
    times = _load_times(tab, "/session/python/long?at=-1")
    short = tab.goto("/sessions") and tab.locator("[data-item]").nth(1)
    assert short
    usual = _load_times(tab, str(short.get_attribute("href")))
    return _to_figure(
        f"a conversation of {_LONG:,} messages, until its end is loaded",
        times,
        _MOST_OPEN_MS,
        f"the beginning of a usual conversation: {statistics.median(usual):.0f} ms",
    )


def _load_times(tab: "Tab", path: str) -> list[float]:
    """How many milliseconds the browser took each time, after the first time."""
    tab.goto(path)
    times = []
    for _ in range(_LOADS):
        tab.goto("about:blank")
        tab.goto(path)
        times.append(float(tab.evaluate(_LOADED_MS)))
    return times


def _measure_keys(tab: "Tab") -> Figure:
    """Type queries; each key but the first few gives new results."""
    tab.goto("/")
    tab.evaluate(_WATCH_RESULTS)
    box = tab.get_by_role("searchbox")
    for query in queries()[::3]:
        box.fill("")
        tab.wait_for_timeout(300)
        tab.evaluate("window.skip = window.took.length")
        for letter in query.text[:24]:
            count = tab.evaluate("window.took.length")
            tab.keyboard.insert_text(letter)
            if letter != " ":
                tab.wait_for_function("count => window.took.length > count", arg=count)
        # Emptying the box shows the first page again, which is no search.
        tab.evaluate("window.kept = [...(window.kept ?? []), ...took.slice(skip)]")
    times = [float(each) for each in tab.evaluate("window.kept")]
    trips = [float(tab.evaluate(_ROUND_TRIP, _TINY)) for _ in range(_LOADS)]
    return _to_figure(
        f"results after a key, {SMALL:,} messages, {len(times)} keys, until seen",
        times,
        _MOST_RESULTS_MS,
        f"a tiny answer of the same server: {statistics.median(trips):.1f} ms",
    )


def _measure_scrolling(tab: "Tab") -> Figure:
    tab.goto("/session/python/long")
    frames = tab.evaluate(_SCROLL, _SCROLL_S)
    said = tab.locator("article .plain, article .prose").last.inner_text()
    shown = said.partition(":")[0]
    tab.set_content("<p>Some words to read</p>" * 2_000)
    plain = tab.evaluate(_SCROLL, _SCROLL_S)
    fps = 1000 / statistics.mean(frames)
    slow = sum(each > 1000 / _LEAST_FPS * 1.5 for each in frames) / len(frames)
    return Figure(
        f"scrolling through {_LONG:,} messages for {_SCROLL_S} s, up to number {shown}",
        f"{fps:.0f} frames a second, {100 * slow:.1f} % of them late",
        f">= {_LEAST_FPS}",
        f"2,000 lines of plain text: {1000 / statistics.mean(plain):.0f} a second",
        fps >= _LEAST_FPS,
    )


def _to_figure(name: str, times: list[float], most: float, baseline: str) -> Figure:
    median = statistics.median(times)
    p95 = statistics.quantiles(times, n=20)[-1]
    return Figure(
        name,
        f"{median:.0f} ms, p95 {p95:.0f} ms",
        f"<= {most:.0f} ms",
        baseline,
        median <= most,
    )


MEASURES = {"page-scripts": measure_page_scripts, "page": measure_page}
