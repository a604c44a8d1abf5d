"""Forget a conversation on the page: a preview, then it is gone for good."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.samples import a_memory
from tests.web.server import Page, serve


@pytest.fixture
def page(tmp_path: Path, home: Path) -> Iterator[Page]:
    settings = ("embedder.name=none",)
    with a_memory(tmp_path, home=home, settings=settings) as memory:
        for session in ("one/two", "other"):
            memory.record(session, "user", f"The ladder of {session}", title=session)
        memory.index()
        with serve(memory, home) as served:
            yield served


def test_a_conversation_is_previewed_and_then_forgotten(page: Page) -> None:
    found = page.see("/?q=ladder").text
    link = "/forget?session=python%2Fone%2Ftwo"
    assert link in page.see("/session/python/one%2Ftwo").links

    preview = page.see(link)
    kept = len(page.memory.sessions())
    receipt = page.save("/forget", session="python/one/two")

    assert "The ladder of one/two" in found
    assert "1 message of 1 session" in preview.text
    assert kept == 2
    assert receipt.status_code == 200
    assert "Forgotten" in receipt.text
    assert "Another process" not in receipt.text
    assert [each.native_id for each in page.memory.sessions()] == ["other"]
    assert "one/two" not in page.see("/?q=ladder").text
    assert page.save("/forget", session="python/one/two").status_code == 404


def test_nothing_is_forgotten_for_another_page_or_without_a_name(page: Page) -> None:
    elsewhere = {"Origin": "https://evil.example"}
    sent = {"session": "python/other"}

    answers = (
        page.browser.post("/forget", data=sent, headers=elsewhere),
        page.save("/forget"),
        page.get("/forget?session=none"),
        page.get("/forget?project=nowhere"),
        page.get("/forget?before=whenever"),
        page.save("/forget/undo", number="x"),
    )

    statuses = [answer.status_code for answer in answers]
    assert statuses == [403, 400, 404, 400, 400, 404]
    assert len(page.memory.sessions()) == 2


def test_what_meets_conditions_is_forgotten_and_may_be_read_again(page: Page) -> None:
    page.memory.record("third", "user", "The ladder", host="mine", project="/work/a")
    form = page.see("/forget")

    preview = page.see("/forget?host=mine&project=a").text
    receipt = page.save("/forget", host="mine", project="a")
    listed = page.see("/forget").text
    undone = page.save("/forget/undo", number="1")

    assert "Forgotten so far" not in form.text
    assert "This deletes 1 message of 1 session" in preview
    assert "Forgotten: 1 message of 1 session." in receipt.text
    assert [each.native_id for each in page.memory.sessions()] == ["other", "one/two"]
    assert "1 message of mine" in listed
    assert "reads it again" in undone.text
    assert "Forgotten so far" not in page.see("/forget").text


def test_a_fact_is_forgotten(page: Page) -> None:
    page.memory.notebook.change_memory(lambda _: "# Memory\n\n- Likes tea\n- No pets\n")

    preview = page.see("/forget?fact=tea").text
    page.save("/forget", fact="tea")

    assert "Likes tea" in preview
    assert page.memory.notebook.read_memory() == "# Memory\n\n- No pets\n"
