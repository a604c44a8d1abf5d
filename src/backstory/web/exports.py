"""The page that exports and imports files on this machine, like the commands."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from backstory.errors import BadQuery
from backstory.render.people.exports import render_export, render_import
from backstory.system.machine import Machine, absolute
from backstory.web.forms import read_form
from backstory.web.jobs import Jobs
from backstory.web.lists import list_folder_names
from backstory.web.templating import Templates

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory
    from backstory.values.reports import OnCount

_PAGE = "/export"
_FIELDS = ("session", "host", "project", "since", "until", "only", "path")


class ExportsPage:
    """Answers with the forms, and starts the work as a job."""

    def __init__(
        self, memory: "Memory", templates: Templates, jobs: Jobs, machine: Machine
    ) -> None:
        self._memory = memory
        self._templates = templates
        self._jobs = jobs
        self._machine = machine

    def show(self, request: "Request") -> "Response":
        sessions = self._memory.sessions()
        given = request.query_params
        values = {
            "asked": {name: given.get(name, "").strip() for name in _FIELDS},
            "hosts": sorted({each.host for each in sessions}),
            "projects": list_folder_names(sessions),
            "job": self._jobs.find_for(_PAGE),
        }
        return self._templates.render("exports.html", values)

    async def start_export(self, request: "Request") -> "Response":
        form = await read_form(request)
        return await run_in_threadpool(self._start_export, form)

    def _start_export(self, form: dict[str, str]) -> "Response":
        path = self._read_path(form)
        asked = {name: form.get(name, "").strip() or None for name in _FIELDS}

        def export(on_count: "OnCount") -> Iterable[str]:
            report = self._memory.export(
                path,
                asked["session"] or (),
                host=asked["host"],
                project=asked["project"],
                since=asked["since"],
                until=asked["until"],
                only=asked["only"],
                mask_secrets="mask" in form,
                force="force" in form,
                on_count=on_count,
            )
            if report.is_empty:
                return ["There is nothing to export; nothing was written."]
            return render_export(report, home=self._machine.home)

        self._jobs.start("Exporting", export, page=_PAGE)
        return RedirectResponse(f"{_PAGE}#job", status_code=303)

    async def start_import(self, request: "Request") -> "Response":
        form = await read_form(request)
        return await run_in_threadpool(self._start_import, form)

    def _start_import(self, form: dict[str, str]) -> "Response":
        path = self._read_path(form)

        def take_in(on_count: "OnCount") -> Iterable[str]:
            report = self._memory.import_export(
                path,
                only=form.get("only", "").strip() or None,
                dry_run="dry_run" in form,
                on_count=on_count,
            )
            return render_import(report, home=self._machine.home)

        self._jobs.start("Importing", take_in, page=_PAGE)
        return RedirectResponse(f"{_PAGE}#job", status_code=303)

    def _read_path(self, form: dict[str, str]) -> "Path":
        typed = form.get("path", "").strip()
        if not typed or "\0" in typed:
            raise BadQuery("name a folder or a zip file", hint="such as ~/memory.zip")
        return absolute(typed, self._machine)
