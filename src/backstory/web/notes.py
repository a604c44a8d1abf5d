"""The pages of the notes: MEMORY.md, the daily logs, and what a prompt is given.

A browser sends every line end as CRLF. So the file's own line ends and byte order mark
are put back, and a file that would not survive this is not offered for editing.
"""

import calendar
from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from backstory.errors import BadQuery, NotesConflict, UnknownName
from backstory.notes.daily_logs import without_markers
from backstory.notes.facts import TITLE, list_facts
from backstory.render.people.prose import to_html
from backstory.text.arguments import to_date
from backstory.text.markdown.lines import split_bom
from backstory.text.memories_frame import MAX_GIVEN_LINES
from backstory.values.identity import bytes_hash
from backstory.values.notes import FactOrigin
from backstory.values.structs import FrozenStruct
from backstory.web.forms import read_form
from backstory.web.templating import Templates, wants_part

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


# -- the text of a file in a browser --------------------------------------------------


class EditedText(FrozenStruct):
    """The text of MEMORY.md as a browser can edit it, and as the file has it."""

    on_disk: str

    @property
    def stamp(self) -> str:
        """What identifies this version of the text."""
        return bytes_hash(self.on_disk.encode("utf-8"))

    @property
    def shown(self) -> str:
        return split_bom(self.on_disk)[1].replace("\r\n", "\n") or f"# {TITLE}\n"

    @property
    def is_editable(self) -> bool:
        """Whether saving what is shown, unchanged, would give the same bytes."""
        return not self.on_disk or self.put_back(self.shown) == self.on_disk

    def put_back(self, typed: str) -> str:
        """What to write for what was typed."""
        mark, text = split_bom(self.on_disk)
        typed = typed.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
        return mark + (typed.replace("\n", "\r\n") if "\r\n" in text else typed)


class KnownFact(FrozenStruct):
    """A fact, the line it is on, and where it comes from."""

    text: str
    line: int
    origins: tuple[FactOrigin, ...]


class NotesPages:
    """Shows the long-term memory, the daily logs, and what a prompt is given."""

    def __init__(self, memory: "Memory", templates: Templates) -> None:
        self._memory = memory
        self._templates = templates

    # -- MEMORY.md ---

    def show_memory(self, request: "Request") -> "Response":
        text = self._memory.notebook.read_memory()
        values = {
            "text": split_bom(text)[1],
            "html": to_html(split_bom(text)[1]),
            "summary": self._memory.notebook.summary(),
            "max_lines": MAX_GIVEN_LINES,
            "facts": list(self._list_known_facts(text)),
            "path": str(self._memory.notebook.memory_path),
            "is_saved": "saved" in request.query_params,
            "is_editable": EditedText(text).is_editable,
            "model": self._memory.status().logs.model,
        }
        return self._templates.render("memory.html", values)

    def _list_known_facts(self, text: str) -> Iterator[KnownFact]:
        """The facts whose origin is known: the others were written by the person."""
        origins = self._memory.notebook.read_origins()
        for fact in list_facts(text):
            if found := origins.get(fact.text):
                yield KnownFact(fact.text, fact.line, tuple(found))

    def edit_memory(self, request: "Request") -> "Response":
        current = EditedText(self._memory.notebook.read_memory())
        if not current.is_editable:
            raise BadQuery(
                "MEMORY.md has line ends or characters that a browser would change",
                hint="edit it with 'backstory memory edit', or in any editor",
            )
        return self._show_editor(current, current.shown)

    async def save_memory(self, request: "Request") -> "Response":
        form = await read_form(request)
        return await run_in_threadpool(self._save, request, form)

    def _save(self, request: "Request", form: dict[str, str]) -> "Response":
        typed = form.get("text", "").replace("\r\n", "\n")
        current = EditedText(self._memory.notebook.read_memory())
        if form.get("do") == "preview":
            if wants_part(request, "preview"):
                return self._templates.render("preview.html", _show_preview(typed))
            stamp = form.get("stamp")
            return self._show_editor(current, typed, stamp, preview=typed)
        if form.get("stamp") != current.stamp:
            return self._show_editor(current, typed, is_conflict=True, status=409)
        after = current.put_back(typed)
        try:
            if after != current.on_disk:
                self._memory.notebook.replace_memory(
                    after, current.on_disk, keep_backup=True, by_person=True
                )
        except NotesConflict:
            newer = EditedText(self._memory.notebook.read_memory())
            return self._show_editor(newer, typed, is_conflict=True, status=409)
        return RedirectResponse("/memory?saved=1", status_code=303)

    def _show_editor(
        self,
        current: EditedText,
        typed: str,
        stamp: str | None = None,
        *,
        is_conflict: bool = False,
        status: int = 200,
        preview: str | None = None,
    ) -> "Response":
        values = {
            "typed": typed,
            # Whoever looks at a preview is still editing the version that they began
            # with.
            "stamp": current.stamp if stamp is None else stamp,
            "on_disk": current.shown if is_conflict else None,
            **_show_preview(preview),
        }
        return self._templates.render("edit.html", values, status)

    # -- the daily logs ---

    def list_logs(self, request: "Request") -> "Response":
        days = self._memory.notebook.list_logs()
        values = {
            "months": list(list_months(days)),
            "weekdays": _WEEKDAYS,
            "model": self._memory.status().logs.model,
        }
        return self._templates.render("logs.html", values)

    def show_log(self, request: "Request") -> "Response":
        day = to_date(request.path_params["day"], "day")
        text = self._memory.notebook.read_log(day)
        if text is None:
            raise UnknownName(f"there is no daily log for {day.isoformat()}", hint="")
        days = self._memory.notebook.list_logs()
        shown = without_markers(text)
        values = {
            "day": day,
            "before": max((each for each in days if each < day), default=None),
            "after": min((each for each in days if each > day), default=None),
            "text": shown,
            "html": to_html(shown),
        }
        return self._templates.render("log.html", values)

    # -- what a prompt is given ---

    def show_prompt(self, request: "Request") -> "Response":
        prompt = request.query_params.get("prompt", "").strip()
        project = request.query_params.get("project", "").strip()
        given = None
        if prompt:
            given = self._memory.context(prompt, project=project or None)
        values = {"prompt": prompt, "project": project, "given": given}
        return self._templates.render("prompt.html", values)


def _show_preview(typed: str | None) -> dict[str, object]:
    return {"html": to_html(typed) if typed else None, "plain": typed}


# -- the calendar ---------------------------------------------------------------------


class CalendarMonth(FrozenStruct):
    """A month: weeks of days, each with whether it has a log; None for empty cells."""

    first: date
    weeks: tuple[tuple[tuple[date, bool] | None, ...], ...]


def list_months(days: Sequence[date]) -> Iterator[CalendarMonth]:
    """The months that have logs, the latest first."""
    logged = set(days)
    for year, month in sorted({(each.year, each.month) for each in days}, reverse=True):
        yield CalendarMonth(
            date(year, month, 1),
            tuple(
                tuple(
                    (day, day in logged) if number else None
                    for number in week
                    for day in [date(year, month, number or 1)]
                )
                for week in calendar.Calendar().monthdayscalendar(year, month)
            ),
        )
