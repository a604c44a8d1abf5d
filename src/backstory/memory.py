"""Memory: the one object that users hold. It opens everything else, decides nothing."""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from backstory.assembly.parts import Parts
from backstory.maintenance import Maintenance
from backstory.search.request import Filters
from backstory.search.scopes import to_source_type, to_sources
from backstory.search.sessions import to_numbers
from backstory.settings import Settings, load_settings, to_flags
from backstory.system.machine import Machine, find_home, this_machine, utc_now
from backstory.system.worker import start_worker
from backstory.text.tokens import CountTokens
from backstory.values.history import (
    RECORDED_HOST,
    Message,
    RecordedMessage,
    Role,
    Session,
)
from backstory.values.hits import EpisodeResult, HitSource, RecallResult, SearchResult
from backstory.values.notes import FactOrigin
from backstory.values.runs import TextResult

if TYPE_CHECKING:
    from backstory.notes.notebook import Notebook
    from backstory.runs.history import RunHistory
    from backstory.runs.live import LiveRun
    from backstory.search.prompt_context import Context
    from backstory.tools.base import Tool
    from backstory.values.statistics import Statistics


class Memory(Maintenance):
    """Every past conversation of the agents on this machine, and a place for new ones.

    Safe to use from several threads; several processes may each open their own.
    """

    def __init__(
        self,
        home: Path,
        settings: Settings,
        machine: Machine,
        *,
        clock: Callable[[], datetime] = utc_now,
        start_worker: Callable[[], None] | None = None,
        count_tokens: CountTokens | None = None,
    ) -> None:
        parts = Parts(home, settings, machine, clock, start_worker, count_tokens)
        super().__init__(home, parts)
        self.settings = settings
        self.database = parts.database
        self.count_tokens = parts.count_tokens

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        settings: str | Sequence[str] = (),
        count_tokens: CountTokens | None = None,
    ) -> Self:
        """Open the memory of this machine; create it if there is none yet.

        ``home`` is its folder: by default ``$BACKSTORY_HOME``, or one in the user's
        data folder. ``settings`` are ``"name=value"`` texts that override all others.
        ``count_tokens`` counts as your model does; the default is ``most_tokens``.
        """
        machine = this_machine()
        found, flags = find_home(machine, home), to_flags(settings)
        chosen = load_settings(machine, flags)
        wake = partial(start_worker, found, flags)
        return cls(found, chosen, machine, start_worker=wake, count_tokens=count_tokens)

    def close(self) -> None:
        """Close the memory, its notebook and its runs; none can be used again."""
        self._all_parts.close()

    def __enter__(self) -> Self:
        self._all_parts.check_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def notebook(self) -> "Notebook":
        """The long-term memory and the daily logs, to read and to change."""
        return self._parts.notebook

    # -- recording ---

    def record(
        self,
        session: str,
        role: Role | str,
        text: object,
        *,
        tool_name: str | None = None,
        call_id: str | None = None,
        sent_at: datetime | None = None,
        message: str | None = None,
        host: str = RECORDED_HOST,
        title: str | None = None,
        project: str | Path | None = None,
        parent: str | None = None,
    ) -> int | None:
        """Store one message of a session of your own; durable when this returns.

        ``session`` is any name. If ``text`` is not a string, it is stored as JSON; None
        is for tool calls and results only. Recording the same ``message`` id again
        replaces it. Returns the message's number, or None if it was left out: an
        excluded folder, the result of a memory tool, nothing but memories, or a message
        that was forgotten.
        """
        about = (tool_name, call_id, sent_at, message, host, title, project, parent)
        recorded = RecordedMessage(session, role, text, *about)
        return self._parts.recorder.record(recorded)

    def record_messages(
        self,
        session: str,
        messages: Sequence[object],
        *,
        host: str = RECORDED_HOST,
        title: str | None = None,
        project: str | Path | None = None,
        parent: str | None = None,
        find_results: Callable[[object], Sequence[TextResult]] | None = None,
    ) -> int:
        """Store messages in the format of your API or framework; durable as well.

        Pass only what is new: a list passed twice is stored twice. Any format that a
        ``RunHistory`` reads will do, and ``find_results`` works as it does there.
        System prompts, thinking and what ``record`` leaves out are not stored. Returns
        how many messages were stored: a call or a result within another message counts
        as one. Raises ``BadQuery`` for messages in an unknown format, after storing the
        others.
        """
        facts = RecordedMessage(
            session,
            Role.USER,
            "",
            host=host,
            title=title,
            project=project,
            parent=parent,
        )
        return self._parts.record_messages(messages, facts, find_results)

    # -- searching ---

    def search(
        self,
        query: str,
        *,
        scope: str = "all",
        sources: Collection[HitSource | str] | str | None = None,
        host: str | None = None,
        project: str | Path | None = None,
        date_from: date | str | None = None,
        date_to: date | str | None = None,
        days: int = 0,
        limit: int = 10,
        session: str | None = None,
        folder: str | Path | None = None,
        remote: bool = False,
    ) -> SearchResult:
        """Find what was said or noted, best first.

        ``scope`` is all, memory, daily_log or sessions; ``sources`` narrows it to some
        kinds of hits, or widens it to ``guidance``. Days are local and both ends are
        included; ``days`` means the last N, including today. ``session`` is the one
        that asks: its current turn is not found. ``folder`` is where the asking agent
        works: what was said there comes first or, with ``search.isolate_projects``, is
        all that is found. With ``remote``, the server of ``push.url`` is searched as
        well.
        """
        filters = Filters(host, project, date_from, date_to, days, session, folder)
        wanted = to_sources(scope, sources)
        if remote:
            return self._parts.search_together(
                query, scope, wanted, filters, limit=limit
            )
        return self._parts.search.search(query, wanted, filters, limit=limit)

    def recall(
        self,
        query: str,
        *,
        source_type: str = "all",
        limit: int = 10,
        session: str | None = None,
        folder: str | Path | None = None,
    ) -> RecallResult:
        """Find chunks of a source type: conversation, file or all; best first."""
        filters = Filters(session=session, folder=folder)
        return self._parts.search.recall(
            query, to_source_type(source_type), filters, limit=limit
        )

    def episodes(
        self,
        query: str,
        *,
        host: str | None = None,
        project: str | Path | None = None,
        date_from: date | str | None = None,
        date_to: date | str | None = None,
        days: int = 0,
        limit: int = 10,
        session: str | None = None,
        folder: str | Path | None = None,
    ) -> EpisodeResult:
        """Find messages that contain the query, newest first, with their neighbours."""
        filters = Filters(host, project, date_from, date_to, days, session, folder)
        return self._parts.search.episodes(query, filters, limit=limit)

    def origin_of(self, session: str | None) -> FactOrigin:
        """The origin of a fact that the agent of a session saves now."""
        return self._parts.find_origin(session)

    def folder_of(self, session: str | None) -> Path:
        """The folder that the agent of a session works in, else the current one."""
        return self._parts.find_folder(session)

    def context(
        self,
        prompt: str,
        *,
        session: str | None = None,
        max_tokens: int | None = None,
        project: str | Path | None = None,
        given: Collection[str] | None = None,
    ) -> "Context":
        """The memories to put below the system prompt of an agent asked ``prompt``.

        Contains the long-term memory, and what helps with the prompt, but nothing from
        ``session`` itself and, without strong evidence, nothing from projects other
        than the folder ``project`` (default: the current one). ``given`` are the
        ``keys`` of what the session was given before, with the long-term memory; it is
        not repeated. Never raises.
        """
        return self._parts.prompt_context.build(
            prompt, session=session, max_tokens=max_tokens, project=project, given=given
        )

    def opening(
        self,
        *,
        project: str | Path | None = None,
        is_compacted: bool = False,
        max_tokens: int | None = None,
    ) -> str:
        """What to tell an agent when a session begins in the folder ``project``.

        Contains the long-term memory and the project's highlights of the last days;
        and, if the session was compacted, how to find what was dropped.
        """
        return self._parts.write_opening(project, is_compacted, max_tokens)

    # -- tools and runs ---

    def tools(
        self, *, session: str | None = None, run: "RunHistory | None" = None
    ) -> tuple["Tool", ...]:
        """The tools to give to a session's agent, and those of its run if given."""
        # Only agents need them.
        from backstory.tools import bind_tools

        answers = self._parts.own_answers
        return bind_tools(self, session=session, run=run, answers=answers)

    def new_run(
        self,
        *,
        is_injected: Callable[[object], bool] | None = None,
        find_results: Callable[[object], Sequence[TextResult]] | None = None,
    ) -> "RunHistory":
        """A history for one run of your own agent loop; see ``RunHistory``."""
        return self._parts.new_run(is_injected, find_results)

    def live_run(
        self,
        session: str | None = None,
        *,
        transcript: str | Path | None = None,
        host: str | None = None,
    ) -> "LiveRun":
        """The run in progress of an agent program, read from its transcript.

        Needs ``session``, the id that hooks are passed, or the transcript's path.
        """
        return self._parts.open_live_run(session, transcript=transcript, host=host)

    def find_live_session(
        self, *, host: str | None = None, since: date | str | None = None
    ) -> tuple[str, Path] | None:
        """The latest session in the current folder, and its transcript.

        For ``live_run``. Returns None if none was written to ``since`` a day or a time.
        """
        return self._parts.find_live_session(host, since)

    # -- looking ---

    def sessions(
        self,
        *,
        host: str | None = None,
        project: str | Path | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        days: int = 0,
        limit: int | None = None,
    ) -> list[Session]:
        """All sessions, most recently active first.

        ``project`` is the path of a folder, or the end of one. ``since`` and ``until``
        are days, both included, between which a session must have been active; ``days``
        means the last N, including today.
        """
        return self._parts.list_sessions(
            host, project, since=since, until=until, days=days, limit=limit
        )

    def warm_ups(self, sessions: Collection[Session]) -> set[int]:
        """The numbers of those sessions that only got an agent program ready.

        Claude Code starts them by itself: nobody asked for anything in them.
        """
        return self._parts.find_warm_ups(sessions)

    def stats(
        self,
        *,
        host: str | None = None,
        project: str | Path | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        days: int = 0,
    ) -> "Statistics":
        """How much was said, by day, agent program, project and hour.

        This covers the days from ``since`` to ``until``, both included, or the last
        ``days``; without any of these, the year up to the latest session. A session
        counts on the local day on which it was last active.
        """
        return self._parts.count_statistics(
            host, project, since=since, until=until, days=days
        )

    def session(self, name: str, *, folder: str | Path | None = None) -> Session:
        """The session with this id, ``host/id``, or beginning of an id.

        ``folder`` is where the asking agent works; with ``search.isolate_projects``, it
        sees no session of another folder. Raises ``UnknownName`` if there is none or
        more than one.
        """
        return self._parts.get_session(name, folder)

    def short_ids(self, sessions: Collection[Session]) -> dict[int, str]:
        """For each session's number, the shortest id by which ``session`` finds it."""
        return self._parts.history.short_ids(to_numbers(sessions))

    def resume_commands(self, sessions: Collection[Session]) -> dict[int, str]:
        """For each session's number, the command that continues it, if there is one."""
        return self._parts.resume_commands(sessions)

    def messages(
        self,
        session: Session | str,
        *,
        around: str | int | None = None,
        place: int | None = None,
        context: int = 5,
    ) -> Iterator[Message]:
        """The messages of a session in order, or ``context`` on each side of one.

        ``around`` is a message's number or native id, or -1 for the last one.
        Alternatively, ``place`` counts the messages of the session from 1, as
        ``backstory show`` does.
        """
        return self._parts.iter_messages(
            session, around=around, place=place, context=context
        )
