"""Export and import on the page, into files on this machine and back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import comes_true
from tests.samples import a_memory
from tests.web.server import Page, read_page, serve


@pytest.fixture
def page(tmp_path: Path, home: Path) -> Iterator[Page]:
    with a_memory(tmp_path, home=home, settings=("embedder.name=none",)) as memory:
        memory.record("one/two", "user", "Where is the ladder?", title="Ladder")
        memory.record("other", "user", "Where is the rake?", title="Rake")
        with serve(memory, home) as served:
            yield served


def outcome(page: Page) -> str:
    """What the job that was started says when it is over."""
    job = {"Backstory-Part": "job"}
    assert comes_true(lambda: "data-running" not in page.get("/status", **job).text)
    return read_page(page.get("/status", **job).text).text


def test_one_conversation_is_exported_and_imported_elsewhere(
    page: Page, home: Path, tmp_path: Path
) -> None:
    link = "/export?session=python%2Fone%2Ftwo"
    assert link in page.see("/session/python/one%2Ftwo").links
    assert 'value="python/one/two"' in page.get(link).text

    started = page.save("/export", path="~/out.zip", session="python/one/two")
    exported = outcome(page)
    with (
        a_memory(tmp_path / "elsewhere", home=home) as empty,
        serve(empty, home) as elsewhere,
    ):
        elsewhere.save("/import", path="~/out.zip", dry_run="yes")
        told = outcome(elsewhere)
        before = len(empty.sessions())
        elsewhere.save("/import", path="~/out.zip")
        imported = outcome(elsewhere)
        titles = [each.title for each in empty.sessions()]

    assert (started.status_code, started.headers["location"]) == (303, "/export#job")
    assert (home / "out.zip").is_file()
    assert "Exported 1 message of 1 session to ~/out.zip" in exported
    assert (before, titles) == (0, ["Ladder"])
    assert told != imported


def test_what_cannot_be_done_is_said(page: Page) -> None:
    page.save("/import", path="/nowhere.zip")

    assert "/nowhere.zip" in outcome(page)
    assert page.save("/export", path=" ").status_code == 400
    elsewhere = {"Origin": "https://evil.example"}
    sent = page.browser.post("/export", data={"path": "/tmp/x"}, headers=elsewhere)
    assert sent.status_code == 403
