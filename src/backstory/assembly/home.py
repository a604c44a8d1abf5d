"""What everything else in a home is built on: its stores, settings and sessions."""

import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.address import read_database
from backstory.errors import BadQuery, UnknownName
from backstory.index.files import IndexFiles
from backstory.index.maintain import Maintainer
from backstory.ingest.hosts import get_host
from backstory.notes.find import FoundNote, find_guidance
from backstory.options import (
    embedder_loader,
    has_lasting_embedder,
    read_excluded_folders,
    read_excluded_hosts,
)
from backstory.search.own_project import ISOLATION, OwnProject, absolute_folder
from backstory.search.sessions import (
    get_session,
    iter_messages,
    list_sessions,
    to_numbers,
)
from backstory.search.warm_ups import find_warm_ups
from backstory.settings import Settings
from backstory.store.base.history import SessionFilter
from backstory.stores import open_stores
from backstory.system.files import make_private_folder
from backstory.system.machine import Machine
from backstory.text.arguments import (
    find_first_of_last,
    show_name,
    to_counter,
    to_day,
    to_days,
    to_instants,
    to_limit,
    to_text,
)
from backstory.text.own_answers import OwnAnswers
from backstory.text.tokens import CountTokens
from backstory.values.history import Message, Problem, Session
from backstory.values.lazy import lazy_property
from backstory.values.notes import FactOrigin, Teller
from backstory.values.proof import Proof

if TYPE_CHECKING:
    from backstory.notes.notebook import Notebook
    from backstory.runs.history import RunHistory
    from backstory.text.memories_frame import MemoriesFrame
    from backstory.values.statistics import Statistics


class HomeParts:
    """The stores of one home, and what is asked of them directly."""

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
        self.database = read_database(settings, machine)
        self.stores = open_stores(home, self.database, prove=self._prove)
        self.history = self.stores.history
        self.index_files = IndexFiles(
            home, self.stores.index_place, embedder_loader(settings, machine)
        )
        in_background = settings.flag("embedder.in_background")
        self.maintainer = Maintainer(
            self.index_files,
            self.history,
            self.find_guidance,
            find_notes=self.stores.notes.find_notes,
            locks=self.stores.locks,
            clock=clock,
            start_worker=start_worker if in_background else None,
            embedder_name=settings.text("embedder.name"),
            has_lasting_embedder=has_lasting_embedder(settings),
        )

    def _prove(self, messages: Sequence[Message]) -> Sequence[Proof]:
        """Prove messages from damaged pages by comparing them with the index."""
        # Imported here because damage is rare.
        from backstory.index.proof import prove_by_files

        return prove_by_files(self.index_files, messages)

    def check_open(self) -> None:
        """Raise ``BadQuery`` if the memory is closed."""
        if self._is_closed:
            raise BadQuery("the memory is closed", hint="open it again: Memory.open()")

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
        # Imported here because only people who look at statistics need it.
        from backstory.search.statistics import count_statistics

        today = self.today()
        first = to_day(since, "since", today=today)
        until_days = to_days(until, "until", today=today)
        if (recent := find_first_of_last(days, today=today)) is not None:
            first = recent if first is None else max(first, recent)
        last = None if until_days is None else until_days.last
        found = self.list_sessions(
            host, project, since=None, until=None, days=0, limit=None
        )
        warm_ups = self.find_warm_ups(found)
        sessions = [each for each in found if each.session_id not in warm_ups]
        return count_statistics(
            self.history, sessions, warm_ups=len(warm_ups), first=first, last=last
        )

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
        """The numbers of the sessions that are warm-ups."""
        to_numbers(sessions)
        return find_warm_ups(self.history, sessions)

    def resume_commands(self, sessions: Collection[Session]) -> dict[int, str]:
        """How to continue sessions in their own programs, by their numbers."""
        # Imported here because few searches show how to continue a session.
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
        wants_guidance = self.settings.flag("index.guidance")
        return find_guidance(
            self.list_projects() if wants_guidance else [],
            user_home=self.machine.home,
            exclude=self.excluded_folders.exclude,
        )

    def check_host(self, host: str | None) -> str | None:
        """Return a host that is known to us or the history. Raises ``UnknownName``."""
        if host is None:
            return None
        host = to_text(host, "host")
        stored = {count.host for count in self.history.count_by_host()}
        return host if host in stored else get_host(host, also=stored).name

    def drop_injected(self, text: str) -> str:
        """A text without the memories that this home added to a prompt."""
        return self.frame.drop(text)

    @lazy_property
    def frame(self) -> "MemoriesFrame":
        # Imported here because only reading, and adding to prompts, need frames.
        from backstory.text.memories_frame import MemoriesFrame

        # Nobody else knows the identity of this history.
        return MemoriesFrame(self.history.identity)

    @lazy_property
    def notebook(self) -> "Notebook":
        # Imported here because searches do without it.
        from backstory.notes.notebook import Notebook

        return Notebook(self.home, self.stores.notes)

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
        # No session runs in the home, so an agent without a folder sees no project.
        return folder or self.home
