"""Memory: the one object users hold. It builds everything else and closes it again."""

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self

from backstory.errors import UnknownName
from backstory.files import locked, make_private_folder
from backstory.hosts import HOSTS, get_host
from backstory.hosts.base import Host, Machine
from backstory.hosts.finding import iter_in_projects, iter_sources
from backstory.importers import FORMATS, get_format
from backstory.importers.base import Format, compact_json
from backstory.importers.recognising import iter_recognised
from backstory.indexing import Found, Indexer
from backstory.model import (
    FoundFile,
    IndexReport,
    Message,
    NewMessage,
    OnProgress,
    Problem,
    Role,
    Session,
    SessionFacts,
    Source,
    SourceSummary,
    Status,
)
from backstory.moments import Moment, to_moment
from backstory.places import (
    absolute,
    both_names,
    find_home,
    load_settings,
    read_hosts,
    this_machine,
)
from backstory.redaction import is_recall
from backstory.settings import Settings
from backstory.store.base import Batch, SessionFilter
from backstory.store.intake import Rules
from backstory.store.sqlite.history import SqliteHistory

RECORDED_HOST = "python"
LOCK_NAME = "index.lock"
# An empty file; its time says when the sources were last looked through.
STAMP_NAME = "last-read"


def _now() -> datetime:
    return datetime.now(UTC)


@cache
def _load_format(name: str) -> Format:
    return get_format(name).load()


class Memory:
    """Every past conversation of the agents on this machine, and a place for new ones.

    Safe to use from several threads; several processes may each open their own.
    """

    def __init__(
        self,
        home: Path,
        settings: Settings,
        machine: Machine,
        *,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        make_private_folder(home)
        self.home = home
        self.settings = settings
        self._machine = machine
        self._clock = clock
        self._excluded_hosts = read_hosts(settings, "exclude.hosts")
        self._excluded_sessions: set[tuple[str, str]] = set()
        self._store = SqliteHistory(home / "history.db")
        self._rules = Rules(
            excluded_folders=tuple(
                path
                for folder in settings.texts("exclude.folders")
                for path in both_names(absolute(folder, machine))
            ),
            max_tool_output_bytes=settings.whole("index.max_tool_output_bytes"),
        )

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        settings: str | Sequence[str] = (),
    ) -> Self:
        """Open the memory of this machine, making it if there is none yet.

        ``home`` is where it is kept: by default ``$BACKSTORY_HOME``, or the user's data
        folder. ``settings`` are ``"name=value"`` texts that override all others.
        """
        machine = this_machine()
        settings = (settings,) if isinstance(settings, str) else settings
        return cls(find_home(machine, home), load_settings(machine, settings), machine)

    def close(self) -> None:
        """Close it; a closed memory cannot be used again."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

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
        """Keep one message of a session of your own; durable when this returns.

        ``session`` is any name you choose; the session begins with its first message.
        ``text`` that is not a text (a tool's arguments or result) is kept as JSON.
        ``message`` is your id of the message: recording it again replaces it.
        Returns the number of the message, or None when it is left out: the session
        ran in an excluded folder, or the text is the result of a recall tool.
        """
        try:
            known_role = Role(role)
        except ValueError:
            raise UnknownName(
                f"no role is called {role!r}",
                hint="the roles are: " + ", ".join(known.value for known in Role),
            ) from None
        if not session:
            raise UnknownName(
                "a session needs a name", hint="any text that is not empty"
            )
        if known_role is Role.TOOL_RESULT and is_recall(tool_name):
            return None
        if self._is_excluded(host, session, project):
            return None
        native_id = message or str(uuid.uuid4())
        new = NewMessage(
            session,
            native_id,
            known_role,
            text if isinstance(text, str) else compact_json(text),
            tool_name,
            call_id,
            to_moment(sent_at) if sent_at else Moment(self._clock()),
        )
        facts = SessionFacts(
            session,
            title=title,
            project=str(project) if project is not None else None,
            parent_id=parent,
        )
        batch = Batch(
            host,
            facts=[self._rules.keep_facts(facts)],
            messages=[self._rules.keep(new)],
            replaces=True,
        )
        return self._store.write(batch, now=self._clock()).last_message_id

    def _is_excluded(self, host: str, session: str, project: str | Path | None) -> bool:
        """Whether a session is in an excluded folder, by this call or an earlier."""
        folder = project or self._store.find_project(host, session)
        if folder is not None and self._rules.exclude(folder):
            self._excluded_sessions.add((host, session))
        return (host, session) in self._excluded_sessions

    # -- reading the sources ---

    def index(
        self,
        *,
        host: str | None = None,
        path: str | Path | None = None,
        on_progress: OnProgress | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> IndexReport:
        """Read what the agents on this machine have written since the last time.

        ``host`` reads one program only; ``path`` one file or folder, wherever it lies.
        One reading runs at a time; ``on_wait`` is called when another has to end first.
        """
        hosts = [get_host(host)] if host is not None else list(HOSTS)
        indexer = self._indexer()
        with locked(self.home / LOCK_NAME, on_wait=on_wait):
            if path is not None:
                return indexer.run(self._found_at(Path(path), host), on_progress)
            report = indexer.run(self._found(hosts), on_progress)
            # The sessions just read may name folders that other programs write into.
            report += indexer.run(self._found_in_projects(hosts), None)
            if host is None:
                loose = list(indexer.loose_problems)
                self._store.replace_loose_problems(loose, now=self._clock())
                (self.home / STAMP_NAME).touch(mode=0o600)
            return report

    def watch(
        self,
        *,
        host: str | None = None,
        path: str | Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[IndexReport]:
        """Index again and again; yields the report of each reading."""
        while True:
            started = time.monotonic()
            report = self.index(host=host, path=path)
            yield report
            took = time.monotonic() - started
            # On a machine with very many files, looking must not become all it does.
            sleep(max(self.settings.number("index.watch_seconds"), took * 10))

    def _indexer(self) -> Indexer:
        return Indexer(
            self._store,
            _load_format,
            self._clock,
            companions=frozenset(row.name for row in FORMATS if row.is_companion),
            rules=self._rules,
        )

    def _found(self, hosts: Iterable[Host]) -> Iterator[Found]:
        for host in hosts:
            if host.name not in self._excluded_hosts:
                yield from iter_sources(host, self._machine)
        for folder in self.settings.texts("index.folders"):
            yield from self._found_at(absolute(folder, self._machine), None)

    def _found_in_projects(self, hosts: Iterable[Host]) -> Iterator[Found]:
        projects = self._projects()
        for host in hosts:
            if host.name not in self._excluded_hosts:
                yield from iter_in_projects(host, projects)

    def _projects(self) -> list[str]:
        """The folders that sessions were seen in, and the one the person stands in."""
        here = [str(self._machine.folder)] if self._machine.folder else []
        return list(dict.fromkeys([*here, *self._store.list_projects()]))

    def _found_at(self, path: Path, host: str | None) -> Iterator[Found]:
        rows = [
            row
            for row in FORMATS
            if row.host not in self._excluded_hosts and host in (None, row.host)
        ]
        if self._rules.exclude(path):
            yield Problem("your settings exclude it", path=str(path))
            return
        is_folder = path.is_dir()
        for found in iter_recognised(path, rows, self._rules.exclude):
            if isinstance(found, FoundFile) and not is_folder:
                yield Problem("not in a format that Backstory knows", path=str(path))
            else:
                yield found

    # -- looking ---

    def sessions(
        self,
        *,
        host: str | None = None,
        project: str | Path | None = None,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> list[Session]:
        """The sessions there are, the most recently active first.

        ``project`` is a folder: as a path, sessions that ran in it or below it; as a
        bare name, sessions that ran in any folder called so.
        """
        if host is not None:
            self._check_host(host)
        # A time without a zone is local here too.
        since = since and since.astimezone(UTC)
        where = SessionFilter(host, active_since=since, limit=limit)
        if isinstance(project, Path) or (project and Path(project).is_absolute()):
            where = replace(where, folder=str(project))
        elif project:
            where = replace(where, folder_name=project)
        return self._store.list_sessions(where)

    def _check_host(self, host: str) -> None:
        """Raise ``UnknownName`` for a host that neither we nor the store know."""
        stored = {count.host for count in self._store.count_by_host()}
        if host not in stored:
            get_host(host, also=stored)

    def session(self, name: str) -> Session:
        """The session of that id, of ``host/id``, or whose id begins so.

        Raises ``UnknownName`` when there is none, or more than one.
        """
        found = self._store.find_sessions(name) if name else []
        # A subagent's id may begin with its parent's, which is then the one meant.
        ids = {each.native_id for each in found}
        found = [each for each in found if not _is_below(each.native_id, ids)]
        if not found:
            raise UnknownName(
                f"no session is called '{name}'",
                hint="run 'backstory sessions' to see them all",
            )
        if len(found) > 1:
            names = ", ".join(f"{each.host}/{each.native_id}" for each in found[:5])
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            raise UnknownName(
                f"'{name}' fits {len(found)} sessions", hint=f"say which: {names}{more}"
            )
        return found[0]

    def messages(
        self,
        session: Session | str,
        *,
        around: str | int | None = None,
        context: int = 5,
    ) -> Iterator[Message]:
        """The messages of a session in order; or ``context`` each side of one.

        ``around`` is a message's number or its own id.
        """
        if isinstance(session, str):
            session = self.session(session)
        if around is None:
            return self._store.iter_messages(session.session_id)
        middle = self._store.find_message(session.session_id, str(around))
        if middle is None:
            raise UnknownName(
                f"no message of session {session.native_id} is called '{around}'",
                hint=f"run 'backstory show {session.native_id}' to see their numbers",
            )
        return self._store.iter_messages(
            session.session_id,
            first=max(0, middle.position - context),
            last=middle.position + context,
        )

    def sources(self) -> list[SourceSummary]:
        """What each agent program has on this machine, and how much was read."""
        indexer = self._indexer()
        known = self._store.list_sources()
        counts = {count.host: count for count in self._store.count_by_host()}
        projects = self._projects()
        summaries = []
        for host in HOSTS:
            found = [
                item
                for item in chain(
                    iter_sources(host, self._machine), iter_in_projects(host, projects)
                )
                if isinstance(item, Source) and not get_format(item.format).is_companion
            ]
            count = counts.pop(host.name, None)
            if not found and count is None:
                continue
            sources, indexed = indexer.survey(found, known)
            summaries.append(
                SourceSummary(
                    host=host.name,
                    title=host.title,
                    places=self._places(host, found),
                    found=sources,
                    found_bytes=sum(item.file.size_bytes for item in found),
                    indexed=indexed,
                    sessions=count.sessions if count else 0,
                    messages=count.messages if count else 0,
                    excluded=host.name in self._excluded_hosts,
                )
            )
        for count in counts.values():
            summaries.append(
                SourceSummary(
                    count.host, count.host, (), 0, 0, 0, count.sessions, count.messages
                )
            )
        return summaries

    def _places(self, host: Host, found: Iterable[Source]) -> tuple[str, ...]:
        roots = (folder.locate(self._machine) for folder in host.folders)
        there = [str(root) for root in roots if root is not None and root.exists()]
        if there:
            return tuple(dict.fromkeys(there))
        return tuple(sorted({str(item.file.path.parent) for item in found}))

    def status(self) -> Status:
        """How much is kept, when it was last read, and what went wrong."""
        counts = self._store.count_by_host()
        return Status(
            home=str(self.home),
            sessions=sum(count.sessions for count in counts),
            messages=sum(count.messages for count in counts),
            size_bytes=self._store.size_bytes(),
            sessions_by_host={c.host: c.sessions for c in counts if c.sessions},
            last_read_at=self._last_read_at(),
            problems=tuple(self._store.list_problems()),
        )

    def _last_read_at(self) -> datetime | None:
        try:
            modified = (self.home / STAMP_NAME).stat().st_mtime
        except OSError:
            return None
        return datetime.fromtimestamp(modified, UTC)


def _is_below(native_id: str, others: Collection[str]) -> bool:
    return any(native_id.startswith(f"{other}/") for other in others)
