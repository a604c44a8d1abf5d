"""LiveRun: the run of an agent program, read from the transcript that it writes.

Programs shorten what their model sees when a session becomes long; the transcript keeps
all of it. The program itself says which session it is: by id, or by the file's path.
"""

import stat
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from pathlib import Path

from backstory.errors import BadQuery, SourceUnreadable, UnknownName
from backstory.ingest.follow import Follower, is_named_after
from backstory.ingest.follow_database import DatabaseFollower
from backstory.ingest.hosts import HOSTS, get_host
from backstory.ingest.hosts.base import Host
from backstory.ingest.hosts.find import iter_sources
from backstory.ingest.importers import FORMATS, get_format
from backstory.ingest.parsing.recognize import iter_recognized
from backstory.ingest.parsing.streams import is_seekable
from backstory.runs.dialects.base import Part
from backstory.runs.history import RunHistory
from backstory.runs.items import RunItems
from backstory.runs.record import IterationCounter
from backstory.system.machine import Machine, absolute, both_names
from backstory.text.arguments import to_optional_text, to_path, to_text
from backstory.text.envelope import label
from backstory.text.memories_frame import DropInjected, keep_all
from backstory.text.tokens import CountTokens
from backstory.values.history import NewMessage, Problem, Role, SessionFacts, Source
from backstory.values.runs import RunLimits

# Codex records the output of the user's own shell commands in the system role. It is
# the user's, unlike the output of the program's own commands (its tools, its settings).
_COMMAND_OUTPUT = "<user_shell_command>"
_MAX_ID_CHARS = 80
_MAX_PATH_CHARS = 300

AnyFollower = Follower | DatabaseFollower
FindFollower = Callable[[], AnyFollower | None]


class LiveRun(RunHistory):
    """The history of an agent program's session in progress.

    Each use first reads what the program has written since the last one. If that fails,
    the use raises the error, and the next one tries again.
    """

    def __init__(
        self,
        find: FindFollower,
        limits: RunLimits | None = None,
        *,
        count_tokens: CountTokens | None = None,
        awaited: Path | None = None,
        drop_injected: DropInjected = keep_all,
    ) -> None:
        self._find = find
        self._awaited = awaited
        self._follower: AnyFollower | None = None
        super().__init__(limits, count_tokens=count_tokens, drop_injected=drop_injected)

    @property
    def session_id(self) -> str | None:
        """The session that is followed; None until something has been written."""
        with self._using():
            return None if self._follower is None else self._follower.session_id

    def _expire(self) -> None:
        # The transcript still has everything; when read again, it gets the same ids.
        self._items.close()
        self._reset(RunItems(self.limits.max_bytes), IterationCounter())
        if self._follower is not None:
            self._follower.start_over()

    def _catch_up(self) -> None:
        if self._follower is None:
            self._follower = self._find()
        follower = self._follower
        if follower is None or not follower.has_changed():
            return
        is_done = False
        try:
            for message in follower.iter_new(on_rewritten=self._expire):
                self._recorder.record(_to_part(message), message=message.native_id)
            is_done = True
        finally:
            if not is_done:
                # What has been read so far may be incomplete.
                self._expire()

    def _notices(self) -> tuple[str, ...]:
        if self._items.by_number:
            return super()._notices()
        if self._follower is None:
            return (f"{_shown(self._awaited)} has not been written yet.",)
        return (f"{_shown(self._follower.path)} has nothing of this session yet.",)


def _shown(path: object) -> str:
    return label(str(path), _MAX_PATH_CHARS)


def _to_part(message: NewMessage) -> Part:
    role = message.role
    if role is Role.SYSTEM and message.text.lstrip().startswith(_COMMAND_OUTPUT):
        role = Role.USER
    return Part(role, message.text, message.tool_name, message.call_id)


# -- finding --------------------------------------------------------------------------


class LiveSessions:
    """Finds the transcripts of sessions in progress on one machine."""

    def __init__(
        self,
        machine: Machine,
        exclude: Callable[[str | Path], bool],
        excluded_hosts: Collection[str],
        drop_injected: DropInjected = keep_all,
    ) -> None:
        self._machine = machine
        self._drop_injected = drop_injected
        self._exclude = exclude
        self._excluded_hosts = excluded_hosts

    def open(
        self,
        session: str | None,
        *,
        transcript: str | Path | None,
        host: str | None,
        limits: RunLimits,
        count_tokens: CountTokens | None,
    ) -> LiveRun:
        """The run of a session, given its id, the path of its transcript, or both."""
        session = to_optional_text(session, "session")
        if transcript is not None:
            path = absolute(str(to_path(transcript, "transcript")), self._machine)
            return LiveRun(
                lambda: self.find_by_path(path, session),
                limits,
                count_tokens=count_tokens,
                awaited=path,
                drop_injected=self._drop_injected,
            )
        if not session:
            raise BadQuery(
                "no session was given",
                hint="give its id (--session), or the path of the transcript that its "
                "program writes (--transcript)",
            )
        follower = self.get_by_id(to_text(session, "session"), host)
        return LiveRun(
            lambda: follower,
            limits,
            count_tokens=count_tokens,
            drop_injected=self._drop_injected,
        )

    # -- by path ---

    def find_by_path(self, path: Path, session_id: str | None) -> AnyFollower | None:
        """Follow a transcript by its path; None until something is written to it.

        Raises ``SourceUnreadable`` if it is not a transcript that can be followed.
        """
        if self._exclude(path):
            raise SourceUnreadable(f"{path}: your settings exclude it")
        try:
            source = self._recognize(path) if self._is_written(path) else None
        # ValueError: a NUL in the path. RuntimeError: a link that leads to itself.
        except (OSError, ValueError, RuntimeError) as exc:
            reason = getattr(exc, "strerror", None) or exc
            raise SourceUnreadable(
                f"{_shown(path)}: it cannot be read ({reason})"
            ) from exc
        if source is None:
            return None
        follower = self._follow(source, session_id or None)
        if follower is None:
            raise _not_followed(path)
        return follower

    def _is_written(self, path: Path) -> bool:
        """Whether a file that a program is about to write has any content yet."""
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            # When the first session of a project starts, even its folder is missing.
            if path.parent.is_dir() or self._is_in_a_host(path):
                return False
            raise
        if stat.S_ISDIR(found.st_mode):
            raise OSError(0, "it is a folder")
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is not a file")
        return found.st_size > 0

    def _is_in_a_host(self, path: Path) -> bool:
        """Whether a path is in a folder where an agent program keeps its files."""
        roots = (
            folder.locate(self._machine) for each in HOSTS for folder in each.folders
        )
        return any(root in path.parents for root in roots if root is not None)

    def _recognize(self, path: Path) -> Source | None:
        for found in iter_recognized(path, FORMATS):
            if isinstance(found, Problem):
                raise SourceUnreadable(str(found))
            if isinstance(found, Source):
                return found
        # Before its first message, a transcript may only be recognizable by its folder.
        real = path.resolve()
        for host in HOSTS if self._is_in_a_host(path) else ():
            for each in iter_sources(host, self._machine):
                if isinstance(each, Source) and each.file.path == real:
                    return each
        raise _not_followed(path)

    # -- by id ---

    def get_by_id(self, session_id: str, host: str | None) -> AnyFollower:
        """Follow the session with this id. Raises ``UnknownName`` if there is none."""
        hosts = HOSTS if host is None else [get_host(host)]
        for each in hosts:
            if each.name not in self._excluded_hosts:
                followers = list(self._followers(each, session_id))
                if followers:
                    # If a program moves a session, it may leave the old file behind.
                    return max(followers, key=lambda f: f.source.file.mtime_ns)
        shown = label(session_id, _MAX_ID_CHARS)
        raise UnknownName(
            f"no agent program on this machine has a transcript of session '{shown}'",
            hint="give the whole id, as the program passes it to its hooks, or the "
            "path of the transcript (--transcript)",
        )

    def _followers(self, host: Host, session_id: str) -> Iterator[AnyFollower]:
        # A subagent may be in the file of the session that it works for.
        named = session_id.partition("/")[0]
        for source in iter_sources(host, self._machine):
            # Files with other names are not even opened; a database contains all
            # sessions.
            if isinstance(source, Source) and (
                is_named_after(source.file.path, named) or _is_database(source)
            ):
                follower = self._follow(source, session_id)
                if follower is not None and follower.holds_session():
                    yield follower

    # -- by folder ---

    def find_newest(
        self, folder: Path, *, host: str | None, since: datetime | None
    ) -> tuple[str, Path] | None:
        """The session in ``folder`` that was written to last, and its transcript.

        Only those written to since ``since`` count, and subagents only if there is
        nothing else: a fork may have a parent, too.
        """
        names = {str(each) for each in both_names(folder)}
        hosts = HOSTS if host is None else [get_host(host)]
        since_ns = 0 if since is None else int(since.timestamp() * 1e9)
        sources = [
            source
            for each in hosts
            if each.name not in self._excluded_hosts
            for source in iter_sources(each, self._machine)
            if isinstance(source, Source) and source.file.mtime_ns >= since_ns
        ]
        with_parent: tuple[str, Path] | None = None
        for source in sorted(sources, key=lambda s: s.file.mtime_ns, reverse=True):
            facts = self._find_beginning(source)
            if facts is None or facts.project not in names:
                continue
            found = (facts.native_id, source.file.path)
            if not facts.parent_id:
                return found
            with_parent = with_parent or found
        return with_parent

    def _find_beginning(self, source: Source) -> SessionFacts | None:
        try:
            follower = self._follow(source, None)
            return follower.find_beginning() if isinstance(follower, Follower) else None
        except SourceUnreadable:
            return None

    # -- both ---

    def _follow(self, source: Source, session_id: str | None) -> AnyFollower | None:
        """A follower; None for a file that does not grow line by line.

        In a database, only a session that is named can be followed.
        """
        path = source.file.path
        if source.host in self._excluded_hosts or self._exclude(path):
            raise SourceUnreadable(f"{path}: your settings exclude it")
        row = get_format(source.format)
        importer = row.load()
        if row.is_companion:
            return None
        if importer.kind == "database" and session_id is not None:
            return DatabaseFollower(source, importer, self._exclude, session_id)
        if importer.kind != "lines" or not is_seekable(source):
            return None
        return Follower(source, importer, self._exclude, session_id)


def _is_database(source: Source) -> bool:
    return get_format(source.format).load().kind == "database"


def _not_followed(path: Path) -> SourceUnreadable:
    return SourceUnreadable(
        f"{path}: not a transcript that can be followed while it grows",
        hint="transcripts of Claude Code, Codex, Gemini CLI and Copilot CLI can be",
    )
