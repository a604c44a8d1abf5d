"""The search page: one box and its results; the latest messages if it is empty."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from backstory.errors import BackstoryError
from backstory.render.format import render_day
from backstory.render.hit_parts import number_hits, shown_excerpt, unchanged
from backstory.search.notices import parse_missing
from backstory.search.subagents import nest_subagents
from backstory.values.hits import Hit, HitSource, SearchResult
from backstory.values.reports import SourceSummary
from backstory.values.structs import FrozenStruct, replace
from backstory.web.jobs import Jobs
from backstory.web.lists import list_folder_names, read_number
from backstory.web.offers import EVERYTHING, Offers
from backstory.web.suggestions import suggest_questions
from backstory.web.templating import Templates, session_url, wants_part

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory

_SCOPE_NAMES = {
    "all": "Everything",
    "sessions": "Conversations",
    "memory": "Notes",
    "daily_log": "Daily logs",
}
_LIMIT = 20
_MAX_LIMIT = 200
_RECENT = 12
# A notice about texts without vectors is important from this share on.
_MANY = 0.2
# How many of the latest conversations questions are suggested from.
_LATEST = 60


class Asked(FrozenStruct):
    """Everything that the address says about a search; it leaves out empty texts."""

    q: str = ""
    scope: str = "all"
    host: str = ""
    project: str = ""
    since: str = ""
    until: str = ""
    group: str = ""
    n: int = _LIMIT

    @property
    def by_day(self) -> bool:
        return self.group == "day"

    @property
    def is_filtered(self) -> bool:
        return replace(self, q="", group="", n=_LIMIT) != Asked()

    @property
    def more(self) -> str | None:
        """The address of the same search with more results; None if that is all."""
        if self.n >= _MAX_LIMIT:
            return None
        return self.to_url(replace(self, n=min(_MAX_LIMIT, self.n * 2)))

    @staticmethod
    def to_url(asked: "Asked") -> str:
        pairs = {
            name: getattr(asked, name)
            for name in Asked.__struct_fields__
            if getattr(asked, name) != getattr(Asked(), name)
        }
        return f"/?{urlencode(pairs)}" if pairs else "/"


def read_asked(request: "Request") -> Asked:
    """What the address asks for."""
    given = request.query_params
    names = ("q", "host", "project", "since", "until", "group")
    texts = {name: given.get(name, "").strip() for name in names}
    return Asked(
        **texts,
        scope=given.get("scope") or "all",
        n=read_number(given.get("n", ""), _LIMIT, _MAX_LIMIT),
    )


class ShownHit(FrozenStruct):
    """A hit with its rank, and what is shown of it."""

    number: int
    hit: Hit
    excerpt: str
    resume: str | None
    url: str | None


class SearchPage:
    """Shows the page, or only its results while somebody types."""

    def __init__(
        self,
        memory: "Memory",
        templates: Templates,
        jobs: Jobs,
        offers: Offers = EVERYTHING,
    ) -> None:
        self._memory = memory
        self._templates = templates
        self._jobs = jobs
        self._offers = offers

    def show(self, request: "Request") -> "Response":
        asked = read_asked(request)
        values, status = self._find(asked)
        values["asked"] = asked
        if wants_part(request, "results"):
            return self._templates.render("results.html", values, status)
        sessions = self._memory.sessions()
        values["job"] = self._jobs.running
        values["scopes"] = _SCOPE_NAMES
        values["hosts"] = sorted({each.host for each in sessions})
        values["projects"] = list_folder_names(sessions)
        return self._templates.render("search.html", values, status)

    def _find(self, asked: Asked) -> tuple[dict[str, object], int]:
        values: dict[str, object] = {
            "result": None,
            "problem": None,
            "recent": (),
            "is_unread": False,
        }
        if not asked.q:
            latest = self._memory.sessions(limit=_LATEST)
            values["recent"] = nest_subagents(latest)[:_RECENT]
            values["questions"] = suggest_questions(latest)
            values["sources"] = () if latest else self._list_unread()
            values["is_reading"] = self._jobs.running is not None
            return values, 200
        try:
            result = self._search(asked)
        except BackstoryError as exc:
            # Such as an unknown project, which the person can correct right here.
            return {**values, "problem": exc}, 400
        values["result"] = result
        values["notices"], values["asides"] = sort_notices(result.notices)
        if not result.hits and not self._memory.sessions(limit=1):
            # Nothing is stored yet, so what could be read is offered instead.
            values["sources"] = self._list_unread()
            values["is_reading"] = self._jobs.running is not None
            values["is_unread"] = True
        values["days"] = group_by_day(self._show_hits(result, asked), asked.by_day)
        return values, 200

    def _list_unread(self) -> list[SourceSummary]:
        """The agent programs that have left conversations on this machine."""
        if not self._offers.is_local:
            return []
        found = self._memory.sources()
        return [each for each in found if each.found and not each.excluded]

    def _search(self, asked: Asked) -> SearchResult:
        return self._memory.search(
            asked.q,
            scope=asked.scope,
            host=asked.host or None,
            project=asked.project or None,
            date_from=asked.since or None,
            date_to=asked.until or None,
            limit=asked.n,
        )

    def _show_hits(self, result: SearchResult, asked: Asked) -> Iterator[ShownHit]:
        sessions = result.sessions if self._offers.is_local else ()
        resumes = self._memory.resume_commands(sessions)
        for number, hit in number_hits(result, asked.by_day):
            if hit.source is HitSource.SESSION and hit.session is not None:
                shown = hit.session.preview  # the title is in the heading already
            else:
                shown = shown_excerpt(hit, result.parsed, unchanged)
            resume = resumes.get(hit.session.session_id) if hit.session else None
            # Lines that are blank, or only mark a cut, are left out.
            lines = [line for line in shown.split("\n") if line.strip(" \t\r.")]
            url = self._find_url(hit)
            yield ShownHit(number, hit, "\n".join(lines), resume, url)

    def _find_url(self, hit: Hit) -> str | None:
        """The address where a hit is shown; None if no page shows it."""
        if hit.session is not None:
            return session_url(hit.session, hit.message_id)
        notebook = self._memory.notebook
        if hit.path == str(notebook.memory_path):
            return "/memory"
        day = hit.said.at.date() if hit.said else None
        if day is not None and hit.path == str(notebook.log_path(day)):
            return f"/logs/{day.isoformat()}"
        return None


def sort_notices(notices: Sequence[str]) -> tuple[list[str], list[str]]:
    """The notices to put above results, and those to mention beside them.

    That just a few texts wait for vectors is not worth mentioning.
    """
    shares = {notice: parse_missing(notice) for notice in notices}
    loud = [notice for notice, share in shares.items() if share is None]
    asides = [notice for notice, share in shares.items() if (share or 0) >= _MANY]
    return loud, asides


def group_by_day(
    hits: Iterator[ShownHit], by_day: bool
) -> list[tuple[str, list[ShownHit]]]:
    """The hits below the days on which they were said, or below one empty heading."""
    if not by_day:
        listed = list(hits)
        return [("", listed)] if listed else []
    days = groupby(hits, key=lambda each: render_day(each.hit.said, unknown="No date"))
    return [(day, list(each)) for day, each in days]
