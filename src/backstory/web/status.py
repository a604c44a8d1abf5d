"""The page that tells how much is kept, and reads or rebuilds it on request."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from backstory.render.people.reports import (
    render_indexed,
    render_report,
    render_status,
)
from backstory.web.forms import read_form
from backstory.web.jobs import Jobs
from backstory.web.templating import Templates, wants_part

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory
    from backstory.values.reports import OnCount


class StatusPage:
    """Answers with what the command ``status`` prints, and with what is being done."""

    def __init__(
        self, memory: "Memory", templates: Templates, jobs: Jobs, user_home: Path
    ) -> None:
        self._memory = memory
        self._templates = templates
        self._jobs = jobs
        self._user_home = user_home

    def show(self, request: "Request") -> "Response":
        values: dict[str, object] = {"job": self._jobs.current}
        if wants_part(request, "job"):
            return self._templates.render("job.html", values)
        lines = render_status(self._memory.status(), home=self._user_home)
        values["text"] = "\n".join(lines)
        return self._templates.render("status.html", values)

    async def start_reading(self, request: "Request") -> "Response":
        start_reading(self._jobs, self._memory, self._user_home)
        form = await read_form(request)
        # From the first visit, back to the search box.
        place = "/" if form.get("then") == "search" else "/status"
        return RedirectResponse(place, status_code=303)

    async def start_rebuilding(self, request: "Request") -> "Response":
        self._jobs.start("Rebuilding the index", self._rebuild)
        return RedirectResponse("/status", status_code=303)

    async def stop(self, request: "Request") -> "Response":
        self._jobs.stop()
        return RedirectResponse("/status", status_code=303)

    def _rebuild(self, on_count: "OnCount") -> Iterable[str]:
        report = self._memory.rebuild(on_taken=on_count)
        return render_indexed(
            self._memory.status().index, report.problems, home=self._user_home
        )


def start_reading(jobs: Jobs, memory: "Memory", user_home: Path) -> None:
    """Read what is new, unless something else is being done."""

    def read(on_count: "OnCount") -> Iterable[str]:
        started = time.monotonic()
        report = memory.index(on_progress=lambda done, total, _: on_count(done, total))
        took_s = time.monotonic() - started
        return render_report(report, home=user_home, took_s=took_s)

    jobs.start("Reading what your agents wrote", read)
