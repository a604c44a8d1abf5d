"""The page that forgets: a preview, a receipt, and a way to undo it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from backstory.errors import BackstoryError, UnknownName
from backstory.render.people.forgetting import (
    render_preview,
    render_receipt,
    render_undone,
)
from backstory.values.forgetting import ForgetReport
from backstory.values.structs import FrozenStruct, fields
from backstory.web.forms import read_form
from backstory.web.lists import list_folder_names
from backstory.web.templating import Templates

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory

# The number of columns that the page has room for.
_PREVIEW_WIDTH = 96


class Named(FrozenStruct):
    """What a form selects to be forgotten, like the options of the command."""

    session: str = ""
    project: str = ""
    host: str = ""
    before: str = ""
    after: str = ""
    fact: str = ""

    @property
    def is_anything(self) -> bool:
        return self != Named()


def read_named(given: Mapping[str, str]) -> Named:
    names = [each.name for each in fields(Named)]
    return Named(**{name: given.get(name, "").strip() for name in names})


class ForgetPage:
    """Answers with the preview, the receipt and the list of the command ``forget``."""

    def __init__(self, memory: "Memory", templates: Templates, user_home: Path) -> None:
        self._memory = memory
        self._templates = templates
        self._user_home = user_home

    def show_preview(self, request: "Request") -> "Response":
        named = read_named(request.query_params)
        if not named.is_anything:
            return self._show_form(named)
        try:
            # Log entries and facts are listed in any case, but only deleted if that was
            # chosen.
            report = self._run(named, dry_run=True)
        except UnknownName:
            # A link to something that is gone. In the form, the person can correct a
            # name.
            if named.session:
                raise
            return self._show_form(named, problem="Nothing has that name.")
        except BackstoryError as exc:
            return self._show_form(named, problem=str(exc))
        if report.is_empty:
            problem = "Nothing matches, so nothing is forgotten."
            return self._show_form(named, problem=problem)
        lines = render_preview(
            report,
            names=self._memory.short_ids([each.session for each in report.sessions]),
            home=self._user_home,
            width=_PREVIEW_WIDTH,
            is_dry_run=False,
        )
        values = {
            "named": named,
            "session": self._memory.session(named.session) if named.session else None,
            "has_notes": bool(report.sessions and (report.log_entries or report.facts)),
            "text": "\n".join(lines),
        }
        return self._templates.render("forget.html", values)

    def _show_form(self, named: Named, problem: str = "") -> "Response":
        sessions = self._memory.sessions()
        values = {
            "asked": named,
            "problem": problem,
            "hosts": sorted({each.host for each in sessions}),
            "projects": list_folder_names(sessions),
            "forgettings": self._memory.forgettings(),
        }
        status = 400 if problem else 200
        return self._templates.render("forget_what.html", values, status)

    async def forget(self, request: "Request") -> "Response":
        form = await read_form(request)
        return await run_in_threadpool(self._forget, form)

    def _forget(self, form: dict[str, str]) -> "Response":
        report = self._run(read_named(form), with_notes="notes" in form)
        return self._show_receipt("Forgotten", render_receipt(report))

    async def undo(self, request: "Request") -> "Response":
        form = await read_form(request)
        return await run_in_threadpool(self._undo, form.get("number", ""))

    def _undo(self, number: str) -> "Response":
        if not (number.isascii() and number.isdecimal() and len(number) < 10):
            raise UnknownName("nothing was forgotten under that number", hint="")
        undone = self._memory.undo_forget(int(number))
        return self._show_receipt("It may be read again", render_undone(undone))

    def _show_receipt(self, heading: str, lines: Iterable[str]) -> "Response":
        values = {"heading": heading, "text": "\n".join(lines)}
        return self._templates.render("forgotten.html", values)

    def _run(
        self, named: Named, *, dry_run: bool = False, with_notes: bool = False
    ) -> ForgetReport:
        sessions: tuple[str, ...] = ()
        if named.session:
            found = self._memory.session(named.session)
            sessions = (f"{found.host}/{found.native_id}",)
        return self._memory.forget(
            sessions,
            project=named.project or None,
            host=named.host or None,
            before=named.before or None,
            after=named.after or None,
            fact=named.fact or None,
            with_notes=with_notes,
            dry_run=dry_run,
        )
