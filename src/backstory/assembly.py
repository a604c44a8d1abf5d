"""Build the parts of one home from its settings, each when it is first needed.

Some parts take longer to import than most uses of a memory take, so they are imported
where they are built.
"""

import logging
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from backstory.errors import BackstoryError, BadQuery, UnknownName
from backstory.index.files import IndexFiles
from backstory.index.history_damage import note_damage
from backstory.index.maintain import Maintainer
from backstory.ingest.announced import has_announced, iter_announced
from backstory.ingest.excluded import iter_kept_excluded
from backstory.ingest.hosts import get_host
from backstory.ingest.refresh import Refresh
from backstory.ingest.seen_files import FileFinder, find_last_reading
from backstory.notes.find import FoundNote, find_guidance
from backstory.options import (
    context_options,
    embedder_loader,
    has_lasting_embedder,
    llm_loader,
    log_options,
    read_excluded_folders,
    read_excluded_hosts,
    read_rules,
    run_limits,
    search_options,
)
from backstory.search.own_project import ISOLATION, OwnProject, absolute_folder
from backstory.search.search import Search
from backstory.search.sessions import (
    get_session,
    iter_messages,
    list_sessions,
    to_numbers,
)
from backstory.search.warm_ups import find_warm_ups
from backstory.settings import Settings
from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.store.base.recent_vectors import RecentVectors
from backstory.store.sqlite.connection import limit_page_caches
from backstory.store.sqlite.history import HISTORY_NAME, SqliteHistory
from backstory.system.files import make_private_folder
from backstory.system.machine import Machine, absolute
from backstory.system.threads import share_heaps
from backstory.text.arguments import (
    show_name,
    to_counter,
    to_day,
    to_days,
    to_instant,
    to_instants,
    to_limit,
    to_max_tokens,
    to_number,
    to_path,
    to_text,
)
from backstory.text.memories_frame import MemoriesFrame
from backstory.text.own_answers import OwnAnswers
from backstory.text.tokens import CountTokens
from backstory.values.history import Message, Problem, RecordedMessage, Session
from backstory.values.lazy import lazy_property
from backstory.values.notes import FactOrigin, Teller
from backstory.values.proof import Proof
from backstory.values.reports import (
    IndexReport,
    KeptExcluded,
    LogStatus,
    OnCount,
    OnProgress,
    Status,
)
from backstory.values.structs import replace

if TYPE_CHECKING:
    from backstory.exports.import_export import ExportImporter
    from backstory.exports.write_export import Exporter
    from backstory.forget import Forgetter
    from backstory.ingest.intake import Rules
    from backstory.ingest.record import MessageRecorder
    from backstory.ingest.sources import LocalSources
    from backstory.notes.notebook import Notebook
    from backstory.runs.history import RunHistory
    from backstory.runs.live import LiveRun, LiveSessions
    from backstory.runs.text_results import FindResults
    from backstory.search.prompt_context import PromptContext
    from backstory.summaries.schedule import Summaries
    from backstory.summaries.triggers import Triggers
    from backstory.values.statistics import Statistics


logger = logging.getLogger(__name__)

# With so little room, SQLite may not even begin a transaction: its log grows in pages,
# and a file beside it takes 32 KB.
_LITTLE_ROOM_BYTES = 64 * 1024

# How often one process looks for what is too old to be kept.
_FORGETTING_S = 3600.0
# What a process that runs for long may keep of its databases: their pages, and vectors.
# Every thread that searches has connections of its own, and each would keep 16 MB or
# more; the system's own cache makes up for it.
_LONG_RUNNING_PAGE_BYTES = 16_000_000
_LONG_RUNNING_VECTOR_BYTES = 8_000_000

Run = TypeVar("Run", bound="RunHistory")


class Parts:
    """Everything that a memory of one home is made of."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        machine: Machine,
        clock: Callable[[], datetime],
        start_worker: Callable[[], None] | None,
        count_tokens: CountTokens | None,
    ) -> None:
        self._is_closed = False
        self.count_tokens = to_counter(count_tokens)
        make_private_folder(home)
        self.home = home
        self.settings = settings
        self.machine = machine
        self.clock = clock
        self.start_worker = start_worker
        # Checked here, so that a typo shows at once and not when something is read.
        self.excluded_hosts = read_excluded_hosts(settings)
        self._forgetting_due = 0.0
        self._runs: weakref.WeakSet[RunHistory] = weakref.WeakSet()
        self.own_answers = OwnAnswers()
        self.excluded_folders = read_excluded_folders(settings, machine)
        self.index_files = IndexFiles(home, embedder_loader(settings, machine))
        self.history: HistoryStore = SqliteHistory(
            home / HISTORY_NAME,
            prove=self._prove,
            on_damage=partial(note_damage, home),
        )
        in_background = settings.flag("embedder.in_background")
        self.maintainer = Maintainer(
            self.index_files,
            self.history,
            self.find_guidance,
            clock=clock,
            start_worker=start_worker if in_background else None,
            embedder_name=settings.text("embedder.name"),
            has_lasting_embedder=has_lasting_embedder(settings),
        )
        self.search = Search(
            self.history,
            self.index_files,
            self.maintainer,
            self.find_guidance,
            search_options(settings),
            clock=clock,
            check_host=self.check_host,
            read_changed=self.read_changed,
        )

    def _prove(self, messages: Sequence[Message]) -> Sequence[Proof]:
        """Whether messages from damaged pages are what the index took in of them."""
        # Damage is rare.
        from backstory.index.proof import prove_by_files

        return prove_by_files(self.index_files, messages)

    def check_open(self) -> None:
        """Raise ``BadQuery`` if the memory is closed."""
        if self._is_closed:
            raise BadQuery("the memory is closed", hint="open it again: Memory.open()")

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.maintainer.close()
        for run in list(self._runs):
            run.close()
        if "notebook" in self.__dict__:
            self.notebook.close()
        self.search.close()
        self.index_files.close()
        if "summaries" in self.__dict__:
            self.summaries.close()
        self.history.close()

    def work(self) -> None:
        """Do what waits for the background worker."""
        self._mark_announced()
        self.refresh.read_wanted(self._read_in_background)
        self._forget_old()
        self.maintainer.work()
        self.summaries.work()

    def _mark_announced(self) -> None:
        """Read the sessions that hooks announced, and mark them as due."""
        announced = list(iter_announced(str(self.home)))
        for host in dict.fromkeys(each.host for each in announced):
            self._read_in_background(host)
        for each in announced:
            self.triggers.mark_one(each.cause, f"{each.host}/{each.session_id}")
            each.delete()

    def _read_in_background(self, host: str | None) -> None:
        # What was read is made findable by the work that follows.
        try:
            self.local_sources.index(host, None, update=IndexReport)
        except BackstoryError as exc:
            logger.warning("%s", exc)

    def read_changed(self) -> tuple[str, ...]:
        """Read what agents have written since the last reading; returns notices."""
        if not self.settings.flag("search.read_changed"):
            return ()
        return self.refresh.read_changed()

    def read_new(self) -> tuple[str, ...]:
        """Read and take in what is new, as a search would, but do not search."""
        self.check_open()
        self._wake_for_announced()
        if self.settings.flag("search.read_changed") and self.refresh.want_all():
            return ()
        notices = (*self.read_changed(), *self.maintainer.catch_up(()))
        self.triggers.mark_quiet()
        return notices

    def _wake_for_announced(self) -> None:
        """Start a worker if a hook had no time to: hosts end those that are slow."""
        if self.start_worker is None or not has_announced(str(self.home)):
            return
        if self.settings.flag("embedder.in_background"):
            self.start_worker()

    def today(self) -> date:
        """The local day."""
        return self.clock().astimezone().date()

    def list_sessions(
        self,
        host: str | None,
        project: str | Path | None,
        *,
        since: date | str | None,
        until: date | str | None,
        days: int,
        limit: int | None,
    ) -> list[Session]:
        """The sessions of a host, in a project, most recently active first."""
        first, end = to_instants(since, until, days, today=self.today())
        where = SessionFilter(
            self.check_host(host),
            active_since=first,
            started_before=end,
            limit=None if limit is None else to_limit(limit),
        )
        return list_sessions(self.history, where, project=project)

    def count_statistics(
        self,
        host: str | None,
        project: str | Path | None,
        *,
        since: date | str | None,
        until: date | str | None,
        days: int,
    ) -> "Statistics":
        """How much was said, by day, host, project and hour."""
        # Only people who look at it need it.
        from backstory.search.statistics import count_statistics

        today = self.today()
        first = to_day(since, "since", today=today)
        until_days = to_days(until, "until", today=today)
        if (number := to_number(days, "days")) > 0:
            # So many days that there is no such date means all of them.
            with suppress(OverflowError):
                recent = today - timedelta(days=number - 1)
                first = recent if first is None else max(first, recent)
        last = None if until_days is None else until_days.last
        found = self.list_sessions(
            host, project, since=None, until=None, days=0, limit=None
        )
        warm_ups = self.find_warm_ups(found)
        sessions = [each for each in found if each.session_id not in warm_ups]
        return count_statistics(self.history, sessions, first=first, last=last)

    def iter_messages(
        self,
        session: Session | str,
        *,
        around: str | int | None,
        place: int | None,
        context: int,
    ) -> Iterator[Message]:
        """The messages of a session, until the memory is closed."""
        if isinstance(session, str):
            session = get_session(self.history, session)
        found = iter_messages(
            self.history, session, around=around, place=place, context=context
        )
        return self._while_open(found)

    def _while_open(self, messages: Iterator[Message]) -> Iterator[Message]:
        self.check_open()
        for message in messages:
            yield message
            self.check_open()

    def find_warm_ups(self, sessions: Collection[Session]) -> set[int]:
        """The numbers of the sessions that a program started to be ready."""
        to_numbers(sessions)
        return find_warm_ups(self.history, sessions)

    def resume_commands(self, sessions: Collection[Session]) -> dict[int, str]:
        """How to continue sessions in their own programs, by their numbers."""
        # Few searches show how to continue a session.
        from backstory.ingest.hosts.resume import find_resume_commands

        to_numbers(sessions)
        home = self.machine.home
        return find_resume_commands(self.history, sessions, home=home)

    def list_projects(self) -> list[str]:
        """The current folder, and the folders that sessions ran in."""
        here = [str(self.machine.folder)] if self.machine.folder else []
        return list(dict.fromkeys([*here, *self.history.list_projects()]))

    def find_guidance(self) -> Iterator[FoundNote | Problem]:
        """The files in which projects tell agents how to work."""
        return find_guidance(
            self.list_projects(),
            user_home=self.machine.home,
            exclude=self.excluded_folders.exclude,
        )

    def check_host(self, host: str | None) -> str | None:
        """The host, if we or the history know it. Raises ``UnknownName``."""
        if host is None:
            return None
        host = to_text(host, "host")
        stored = {count.host for count in self.history.count_by_host()}
        return host if host in stored else get_host(host, also=stored).name

    def status(self) -> Status:
        """The state of this home."""
        counts = self.history.count_by_host()
        return Status(
            home=str(self.home),
            sessions=sum(count.sessions for count in counts),
            messages=sum(count.messages for count in counts),
            size_bytes=self.history.size_bytes(),
            sessions_by_host={c.host: c.sessions for c in counts if c.sessions},
            last_read_at=find_last_reading(self.home),
            problems=(
                *self._list_disk_problems(),
                *self.maintainer.list_problems(),
                *self.history.list_problems(),
                *self.maintainer.list_note_problems(),
            ),
            index=self.maintainer.status(),
            logs=self._log_status(),
            excluded=self.list_excluded(),
            last_forgetting=next(reversed(self.history.list_forgettings()), None),
        )

    def _list_disk_problems(self) -> list[Problem]:
        """That the disk is full, which a program that met it could not write down."""
        # Slow to import.
        import shutil

        with suppress(OSError):
            if shutil.disk_usage(self.home).free < _LITTLE_ROOM_BYTES:
                full = "the disk is full; nothing more can be kept"
                return [Problem(f"{self.home}: {full}")]
        return []

    def _log_status(self) -> LogStatus:
        status = self.summaries.status()
        if "triggers" not in self.__dict__:
            return status
        # Where the disk is full, only this process knows of a trigger.
        return replace(status, problem=self.triggers.problem or status.problem)

    def read_sources(
        self,
        host: str | None,
        path: str | Path | None,
        *,
        on_progress: OnProgress | None,
        on_taken: OnCount | None,
        on_wait: Callable[[], None] | None,
    ) -> IndexReport:
        """Read what is new in all sources, or in some, and make it findable."""
        self.check_open()
        if path is not None:
            # Few readings are of one path.
            from backstory.exports.sources import refuse_export

            refuse_export(Path(to_path(path, "path")))
        self.refresh.look_again()
        return self.local_sources.index(
            host,
            path,
            update=partial(self.update_index, on_taken),
            on_progress=on_progress,
            on_wait=on_wait,
        )

    def watch_sources(
        self,
        host: str | None,
        path: str | Path | None,
        *,
        sleep: Callable[[float], None],
    ) -> Iterator[IndexReport]:
        """Read all sources, or some, again and again."""
        # Searches do without it.
        from backstory.ingest.watch import repeat_reading

        read = partial(
            self.read_sources, host, path, on_progress=None, on_taken=None, on_wait=None
        )
        return repeat_reading(read, self.settings.number("index.watch_seconds"), sleep)

    def update_index(self, on_taken: OnCount | None = None) -> IndexReport:
        """Make findable what was just read, and see which sessions have gone quiet."""
        self._forget_old()
        report = self.maintainer.update(on_taken)
        self.triggers.mark_quiet()
        return report

    def drop_injected(self, text: str) -> str:
        """A text without the memories that this home added to a prompt."""
        return self.frame.drop(text)

    # -- what only some uses need ---

    @lazy_property
    def frame(self) -> MemoriesFrame:
        # Nobody else knows the identity of this history.
        return MemoriesFrame(self.history.identity)

    @lazy_property
    def rules(self) -> "Rules":
        return read_rules(self.settings, self.excluded_folders, self.drop_injected)

    @lazy_property
    def notebook(self) -> "Notebook":
        # Searches do without it.
        from backstory.notes.notebook import Notebook

        return Notebook(self.home)

    @lazy_property
    def recorder(self) -> "MessageRecorder":
        # Only programs with an agent loop of their own need it.
        from backstory.ingest.record import MessageRecorder

        return MessageRecorder(
            self.history,
            self.rules,
            self.own_answers,
            clock=self.clock,
            on_day_change=self._day_has_changed,
            on_recorded=self.maintainer.note_recording,
        )

    def record_messages(
        self,
        messages: Sequence[object],
        facts: RecordedMessage,
        find_results: "FindResults | None",
    ) -> int:
        """Keep messages in any dialect; return how many parts of them were kept."""
        # Only programs with an agent loop of their own need it.
        from backstory.runs.to_history import read_messages

        read = read_messages(messages, facts, self.own_answers, find_results)
        written = self.recorder.record_all(read.kept)
        if read.error is not None:
            raise read.error
        return written.new_messages

    def _day_has_changed(self, session: Session) -> None:
        self.triggers.mark_day_change(session)

    def get_session(self, name: str, folder: str | Path | None) -> Session:
        session = get_session(self.history, name)
        is_isolated = folder is not None and self.settings.flag(ISOLATION)
        here = None if folder is None else absolute_folder(folder)
        own = OwnProject(here, is_isolated)
        if not own.shows(session.project):
            raise UnknownName(
                f"no session of this project is called '{show_name(name)}'",
                hint=f"projects are kept apart ({ISOLATION})",
            )
        return session

    def find_origin(self, session: str | None) -> FactOrigin:
        host = native_id = None
        if session is not None:
            with suppress(UnknownName):
                found = get_session(self.history, session)
                host, native_id = found.host, found.native_id
        return FactOrigin(Teller.AGENT, host, native_id or session, self.today())

    def find_folder(self, session: str | None) -> Path:
        folder = self.machine.folder
        if session is not None:
            with suppress(UnknownName):
                project = get_session(self.history, session).project
                folder = folder if project is None else Path(project)
        # Nothing is said in the home, so an agent that is nowhere sees no project.
        return folder or self.home

    @lazy_property
    def prompt_context(self) -> "PromptContext":
        # Searches do without it.
        from backstory.notes.log_markers import is_marker_of
        from backstory.search.prompt_context import PromptContext

        return PromptContext(
            self.search,
            self.history,
            self.notebook,
            context_options(self.settings),
            is_log_of=is_marker_of,
            frame=self.frame,
            folder=self.machine.folder,
            count_tokens=self.count_tokens,
        )

    def write_opening(
        self, project: str | Path | None, is_compacted: bool, max_tokens: int | None
    ) -> str:
        # Only a session's beginning needs it.
        from backstory.notes.log_markers import is_marker_of
        from backstory.search.opening import SessionOpening

        budget = self.settings.whole("context.max_tokens")
        if max_tokens is not None:
            budget = to_max_tokens(max_tokens)
        folder = self.machine.folder
        if project is not None:
            folder = Path(folder or "/", to_path(project, "project"))
        return SessionOpening(
            self.history,
            self.notebook,
            is_log_of=is_marker_of,
            isolates_projects=self.settings.flag(ISOLATION),
            frame=self.frame,
            clock=self.clock,
            count_tokens=self.count_tokens,
        ).write(folder, is_compacted=is_compacted, max_tokens=budget)

    @lazy_property
    def refresh(self) -> Refresh:
        in_background = self.settings.flag("embedder.in_background")
        return Refresh(
            self.home,
            self.history,
            self.excluded_folders,
            FileFinder(
                machine=self.machine,
                excluded_hosts=self.excluded_hosts,
                list_projects=self.list_projects,
                more_folders=self.settings.texts("index.folders"),
            ),
            lambda: self.local_sources,
            start_worker=self.start_worker if in_background else None,
        )

    @lazy_property
    def local_sources(self) -> "LocalSources":
        # All importers and their libraries come with it.
        from backstory.ingest.sources import LocalSources

        return LocalSources(
            home=self.home,
            machine=self.machine,
            store=self.history,
            rules=self.rules,
            excluded_hosts=self.excluded_hosts,
            list_projects=self.list_projects,
            more_folders=self.settings.texts("index.folders"),
            clock=self.clock,
            on_deleted=self._forget_deleted,
        )

    def _forget_deleted(self, host: str, native_ids: Sequence[str]) -> None:
        if not self.settings.flag("keep.deleted_sessions"):
            self.forgetter.forget_deleted(host, native_ids)

    def _forget_old(self) -> None:
        """Forget what the settings do not keep; not all the time, as it takes long."""
        days = self.settings.whole("keep.days")
        tool_output_days = self.settings.whole("keep.tool_output_days")
        if (days or tool_output_days) and time.monotonic() >= self._forgetting_due:
            self._forgetting_due = time.monotonic() + _FORGETTING_S
            self.forgetter.forget_old(days=days, tool_output_days=tool_output_days)

    def list_excluded(self) -> tuple[KeptExcluded, ...]:
        """What is kept though the settings exclude it now."""
        folders = self.settings.texts("exclude.folders")
        return tuple(
            iter_kept_excluded(
                self.history,
                hosts=sorted(self.excluded_hosts),
                folders=[absolute(folder, self.machine) for folder in folders],
            )
        )

    @lazy_property
    def summaries(self) -> "Summaries":
        # Language models and HTTP come with it.
        from backstory.summaries.schedule import Summaries

        excluded = self.excluded_folders
        return Summaries(
            self.home,
            log_options(self.settings),
            load_llm=llm_loader(self.settings, self.machine),
            history=self.history,
            get_notebook=lambda: self.notebook,
            clock=self.clock,
            start_worker=self.start_worker,
            exclude=excluded.exclude if excluded.excluded_folders else None,
        )

    @lazy_property
    def forgetter(self) -> "Forgetter":
        # Few uses of a memory forget anything.
        from backstory.forget import Forgetter

        return Forgetter(
            self.home,
            self.history,
            self.notebook,
            update_index=self.maintainer.update,
            check_host=self.check_host,
            clock=self.clock,
        )

    @lazy_property
    def exporter(self) -> "Exporter":
        # Few uses of a memory export anything.
        from importlib.metadata import version

        # All importers and their libraries come with it.
        from backstory.exports.write_export import Exporter

        return Exporter(
            self.home,
            self.history,
            self.notebook,
            update_index=self.maintainer.update,
            check_host=self.check_host,
            clock=self.clock,
            program=f"backstory {version('backstory')}",
        )

    @lazy_property
    def export_importer(self) -> "ExportImporter":
        # Few uses of a memory import anything.
        from backstory.exports.import_export import ExportImporter

        return ExportImporter(
            self.history,
            self.notebook,
            self.rules,
            excluded_hosts=self.excluded_hosts,
            clock=self.clock,
            update_index=self.update_index,
        )

    @lazy_property
    def triggers(self) -> "Triggers":
        # Searches do without it.
        from backstory.summaries.triggers import Triggers

        # A lambda, so that the summaries are built only if something is marked.
        return Triggers(
            self.history,
            mark_due=lambda session, cause: self.summaries.mark_due(session, cause),
            mark_quiet=lambda: self.summaries.mark_quiet(),
            list_recorded=self.recorder.list_recorded,
            on_pause=self.maintainer.note_pause,
            clock=self.clock,
        )

    def new_run(
        self,
        is_injected: "Callable[[object], bool] | None",
        find_results: "FindResults | None",
    ) -> "RunHistory":
        # Only programs with an agent loop of their own need it.
        from backstory.runs.history import RunHistory

        return self._hand_out(
            RunHistory(
                run_limits(self.settings),
                count_tokens=self.count_tokens,
                is_injected=is_injected,
                find_results=find_results,
                drop_injected=self.drop_injected,
                answers=self.own_answers,
            )
        )

    @lazy_property
    def _live_sessions(self) -> "LiveSessions":
        # All importers and their libraries come with it.
        from backstory.runs.live import LiveSessions

        return LiveSessions(
            self.machine,
            self.excluded_folders.exclude,
            self.excluded_hosts,
            self.drop_injected,
        )

    def open_live_run(
        self, session: str | None, *, transcript: str | Path | None, host: str | None
    ) -> "LiveRun":
        return self._hand_out(
            self._live_sessions.open(
                session,
                transcript=transcript,
                host=host,
                limits=run_limits(self.settings),
                count_tokens=self.count_tokens,
            )
        )

    def find_live_session(
        self, host: str | None, since: date | str | None
    ) -> tuple[str, Path] | None:
        asked = None if host is None else get_host(host).name
        written_since = to_instant(since, "since", today=self.today())
        if self.machine.folder is None:
            return None
        return self._live_sessions.find_newest(
            self.machine.folder, host=asked, since=written_since
        )

    def _hand_out(self, run: Run) -> Run:
        """Remember a run, so that it is closed with the memory."""
        self._runs.add(run)
        return run


def keep_memory_low() -> None:
    """Have this process take less memory: it runs for long, and there may be several.

    To be called before threads are started.
    """
    share_heaps()
    limit_page_caches(_LONG_RUNNING_PAGE_BYTES)
    RecentVectors.max_bytes = _LONG_RUNNING_VECTOR_BYTES
