"""WORK: one row for each long job that the page can start, like a command."""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.errors import UnknownName, nearest_hint
from backstory.render.people.notes import render_curation, render_log_report
from backstory.render.people.reports import (
    render_checked,
    render_indexed,
    render_report,
    render_salvaged,
    render_saved,
)
from backstory.repair import check_home, check_repaired, repair_home
from backstory.values.structs import FrozenStruct
from backstory.web.jobs import STATUS_PAGE, Jobs

if TYPE_CHECKING:
    from backstory.memory import Memory
    from backstory.values.reports import OnCount

READ = "read"
CHECK_PAGE = "/check"


class WorkRow(FrozenStruct):
    """One row: its name while it runs, what does it, and where the result is shown."""

    name: str
    title: str
    run: "Callable[[Memory, Path, OnCount], Iterable[str]]"
    page: str = STATUS_PAGE


def read_agents(
    memory: "Memory", user_home: Path, on_count: "OnCount"
) -> Iterable[str]:
    started = time.monotonic()
    report = memory.index(
        on_progress=lambda each: on_count(each.done_bytes, each.total_bytes)
    )
    took_s = time.monotonic() - started
    return render_report(report, home=user_home, took_s=took_s)


def _rebuild(memory: "Memory", user_home: Path, on_count: "OnCount") -> Iterable[str]:
    report = memory.rebuild(on_taken=on_count)
    return render_indexed(memory.status().index, report.problems, home=user_home)


def _check(memory: "Memory", user_home: Path, _: "OnCount") -> Iterable[str]:
    return render_checked(
        check_home(memory.home, database=memory.database), home=user_home
    )


def _check_all(memory: "Memory", user_home: Path, _: "OnCount") -> Iterable[str]:
    return render_checked(
        check_home(memory.home, is_deep=True, database=memory.database), home=user_home
    )


def _repair(memory: "Memory", user_home: Path, on_count: "OnCount") -> Iterator[str]:
    saved = repair_home(memory.home) if memory.database is None else None
    if saved is not None:
        yield from render_salvaged(saved, home=user_home)
    rebuild = partial(memory.rebuild, on_taken=on_count)
    yield from render_checked(
        check_repaired(memory.home, rebuild, database=memory.database), home=user_home
    )


def _salvage(memory: "Memory", user_home: Path, _: "OnCount") -> Iterable[str]:
    return [render_saved(memory.salvage(), home=user_home)]


def _write_logs(memory: "Memory", _: Path, on_count: "OnCount") -> Iterable[str]:
    done = 0

    def count(_: str, left: int) -> None:
        nonlocal done
        on_count(done, done + left)
        done += 1

    return render_log_report(memory.write_logs(on_session=count))


def _curate(memory: "Memory", _: Path, on_count: "OnCount") -> Iterable[str]:
    return render_curation(memory.curate())


WORK = (
    WorkRow(READ, "Reading what your agents wrote", read_agents),
    WorkRow("rebuild", "Rebuilding the index", _rebuild),
    WorkRow("check", "Looking for damage", _check, CHECK_PAGE),
    WorkRow("check-deep", "Comparing all rows", _check_all, CHECK_PAGE),
    WorkRow("repair", "Repairing what is damaged", _repair, CHECK_PAGE),
    WorkRow("salvage", "Saving what only the index knows", _salvage, CHECK_PAGE),
    WorkRow("logs", "Writing the daily logs that are due", _write_logs),
    WorkRow("curate", "Tidying MEMORY.md", _curate),
)


def start_work(jobs: Jobs, name: str, memory: "Memory", user_home: Path) -> str:
    """Start a job, unless another one is running; returns its page."""
    rows = {row.name: row for row in WORK}
    if name not in rows:
        hint = nearest_hint(name, rows)
        raise UnknownName(f"there is no work called '{name:.100}'", hint=hint)
    row = rows[name]
    jobs.start(row.title, partial(row.run, memory, user_home), page=row.page)
    return row.page
