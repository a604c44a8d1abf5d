"""The status, what is started from it, and the first visit."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backstory.errors import StoreFull
from backstory.store.sqlite.summaries import SqliteSummaryStore
from backstory.values.reports import OnCount
from backstory.web.jobs import Job, Jobs
from tests.builders import a_line, append, session_file
from tests.processes import comes_true
from tests.samples import a_memory
from tests.web.server import Page, read_page, serve


@pytest.fixture
def page(tmp_path: Path, home: Path) -> Iterator[Page]:
    settings = ("embedder.name=none",)
    with (
        a_memory(tmp_path, home=home, settings=settings) as memory,
        serve(memory, home) as served,
    ):
        yield served


def job_of(page: Page) -> str:
    """What a script is told about the work."""
    return page.get("/status", **{"Backstory-Part": "job"}).text


def is_over(page: Page) -> bool:
    return "data-running" not in job_of(page)


def test_on_the_first_visit_what_agents_left_is_read_on_request(
    page: Page, home: Path
) -> None:
    assert "No agent program has left conversations" in page.see("/").text
    append(session_file(home), a_line("Where is the ladder?", uuid="u1"))

    first = page.see("/").text
    started = page.save("/status/read")

    assert "Claude Code 1 file" in first
    assert (started.status_code, started.headers["location"]) == (303, "/status#job")
    assert comes_true(lambda: is_over(page))
    assert "1 new session, 1 new message" in page.see("/status").text
    assert "Sessions: 1 (claude-code 1) Messages: 1" in page.see("/status").text
    assert "Latest conversations" in page.see("/").text


def test_the_index_is_rebuilt_on_request(page: Page) -> None:
    page.memory.record("talk", "user", "Where is the ladder?")

    page.save("/status/rebuild")

    assert comes_true(lambda: is_over(page))
    assert "Indexed 2 units: messages, titles and notes." in page.see("/status").text


def test_work_is_done_as_its_command_does_it(page: Page) -> None:
    page.memory.record("talk", "user", "Where is the ladder?")
    said = {}
    for name in ("check", "logs", "curate"):
        page.save(f"/status/{name}")
        assert comes_true(lambda: is_over(page))
        said[name] = read_page(job_of(page)).text

    assert "history.db: sound" in said["check"]
    assert "no language model" in said["logs"]
    assert "no language model" in said["curate"]
    assert page.save("/status/nothing").status_code == 404


def test_what_agents_have_here_is_listed(page: Page, home: Path) -> None:
    append(session_file(home), a_line("Where is the ladder?", uuid="u1"))
    page.memory.index()

    text = page.see("/status").text

    assert "Claude Code 1 of 1 file read" in text


def test_problems_are_listed_with_what_to_do(page: Page, home: Path) -> None:
    append(session_file(home), b"not json\n")
    page.memory.index()

    text = page.see("/status").text

    assert "1 problem" in text
    assert ":1 not valid JSON" in text
    assert "exclude its folder" in text


def test_calls_of_the_model_are_shown_against_the_budget(
    tmp_path: Path, home: Path
) -> None:
    now = datetime(2026, 2, 25, 12, tzinfo=UTC)
    settings = ("embedder.name=none", "llm.daily_tokens=10000")
    with a_memory(tmp_path, home=home, settings=settings, clock=lambda: now) as memory:
        store = SqliteSummaryStore(memory.home / "history.db")
        for day, tokens in ((24, 500), (25, 2_000), (25, 1_000)):
            called = store.reserve_call(
                purpose="daily log",
                model="fake",
                input_tokens=tokens,
                output_tokens=100,
                daily_tokens=10_000,
                now=now.replace(day=day),
            )
            assert called is not None
            store.settle_call(
                called,
                input_tokens=tokens,
                output_tokens=100,
                took_ms=1500,
                outcome="ok",
            )
        store.close()
        with serve(memory, home) as page:
            seen = page.see("/status")

    assert "Today 3,200 of 10,000 tokens, 2 calls" in seen.text
    assert "2026-02-25 2 calls3,200 tokens" in seen.text
    assert "2026-02-24 1 call600 tokens" in seen.text
    assert "2,000 in, 100 out1.5 sok" in seen.text
    bars = [dict(attributes) for tag, attributes in seen.tags if tag == "progress"]
    ours = {each["aria-label"]: (each["value"], each["max"]) for each in bars}
    assert ours["Tokens of today's budget"] == ("3200", "10000")


# -- jobs ---


class HeldWork:
    """Work that tells how far it is, and waits to be let go on."""

    def __init__(self) -> None:
        self.told = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, on_count: OnCount) -> list[str]:
        on_count(1, 3)
        self.told.set()
        self.go_on.wait()
        on_count(2, 3)
        return ["It is done"]


def test_one_job_runs_at_a_time_and_tells_how_far_it_is() -> None:
    jobs, work = Jobs(), HeldWork()
    jobs.start("First", work)
    jobs.start("Second", lambda _: ["never"])
    work.told.wait()

    assert jobs.current == Job("First", done=1, total=3)
    work.go_on.set()
    assert comes_true(lambda: jobs.current is not None and jobs.current.is_over)
    assert jobs.current == Job("First", lines=("It is done",), is_over=True)


def test_a_job_is_stopped_where_it_tells_how_far_it_is() -> None:
    jobs, work = Jobs(), HeldWork()
    jobs.start("First", work)
    work.told.wait()
    jobs.stop()
    work.go_on.set()

    stopped = Job("First", lines=("It was stopped. Nothing is lost.",), is_over=True)
    assert comes_true(lambda: jobs.current == stopped)
    again = HeldWork()
    again.go_on.set()
    jobs.start("Second", again)
    done = Job("Second", lines=("It is done",), is_over=True)
    assert comes_true(lambda: jobs.current == done)


def test_a_job_that_fails_says_why_and_what_to_do() -> None:
    def fail(_: OnCount) -> list[str]:
        raise StoreFull("the disk is full")

    jobs = Jobs()
    jobs.start("First", fail)

    failed = Job("First", lines=("the disk is full", StoreFull.hint), is_over=True)
    assert comes_true(lambda: jobs.current == failed)
