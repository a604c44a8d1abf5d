"""The page that shows how much is kept, and reads or rebuilds it on request."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from backstory.render.people.reports import render_status
from backstory.values.structs import FrozenStruct
from backstory.web.forms import read_form
from backstory.web.jobs import STATUS_PAGE, Jobs
from backstory.web.settings import list_excluded
from backstory.web.templating import Templates, wants_part
from backstory.web.work import CHECK_PAGE, start_work

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory
    from backstory.values.reports import ModelCall

# How many days of the ledger are shown.
_LEDGER_DAYS = 14
_MAX_PROBLEMS = 200


class LedgerDay(FrozenStruct):
    """What the language model was called for on a day."""

    day: str
    calls: "tuple[ModelCall, ...]"

    @property
    def tokens(self) -> int:
        return sum(call.tokens for call in self.calls)


class StatusPage:
    """Shows what the command ``status`` shows, and the running job."""

    def __init__(
        self, memory: "Memory", templates: Templates, jobs: Jobs, user_home: Path
    ) -> None:
        self._memory = memory
        self._templates = templates
        self._jobs = jobs
        self._user_home = user_home

    def show(self, request: "Request") -> "Response":
        if wants_part(request, "job"):
            values: dict[str, object] = {"job": self._jobs.current}
            return self._templates.render("job.html", values)
        values = {"job": self._jobs.find_for(STATUS_PAGE)}
        status = self._memory.status()
        values["status"] = status
        values["problems"] = status.problems[:_MAX_PROBLEMS]
        values["notes"] = self._memory.notebook.summary()
        values["sources"] = self._memory.sources()
        values["excluded"] = list_excluded(status.excluded)
        values["ledger"] = group_by_day(self._memory.model_calls(days=_LEDGER_DAYS))
        values["text"] = "\n".join(render_status(status, home=self._user_home))
        return self._templates.render("status.html", values)

    async def start(self, request: "Request") -> "Response":
        name = request.path_params["work"]
        page = start_work(self._jobs, name, self._memory, self._user_home)
        form = await read_form(request)
        # On the first visit, go back to the search box.
        place = "/" if form.get("then") == "search" else f"{page}#job"
        return RedirectResponse(place, status_code=303)

    async def stop(self, request: "Request") -> "Response":
        self._jobs.stop()
        job = self._jobs.current
        page = STATUS_PAGE if job is None else job.page
        return RedirectResponse(f"{page}#job", status_code=303)

    def show_check(self, request: "Request") -> "Response":
        values = {"job": self._jobs.find_for(CHECK_PAGE)}
        return self._templates.render("check.html", values)


def group_by_day(calls: "Sequence[ModelCall]") -> list[LedgerDay]:
    """The calls of each local day, the latest first."""
    days = groupby(calls, key=lambda call: call.called_at.astimezone().date())
    found = [LedgerDay(day.isoformat(), tuple(each)) for day, each in days]
    return found[::-1]
