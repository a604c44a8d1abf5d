"""LiveRun: the run of an agent program, read from the transcript that it writes.

Programs shorten what their model sees when a session grows long; the transcript keeps
it. Which session it is, the program itself says: by its id, or by the path of the file.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from backstory.dialects.base import Part
from backstory.errors import BackstoryError, BadQuery, SourceUnreadable, UnknownName
from backstory.following import Follower
from backstory.hosts import HOSTS, get_host
from backstory.hosts.base import Machine
from backstory.hosts.finding import iter_sources
from backstory.importers import FORMATS, get_format
from backstory.importers.opening import is_seekable
from backstory.importers.recognising import iter_recognised
from backstory.model import NewMessage, Problem, Role, Source
from backstory.places import absolute
from backstory.run_values import RunLimits
from backstory.runs import RunHistory

# Gemini CLI puts so much of a session's id into the name of its file.
_SHORT_ID_CHARS = 8
# What a person's own command printed is theirs; programs file it under the system's.
_COMMAND_OUTPUT = (
    "<bash-stdout>",
    "<bash-stderr>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<user_shell_command>",
)

FindFollower = Callable[[], Follower | None]


class LiveRun(RunHistory):
    """The history of the session that an agent program has under way.

    Each use of it first reads what the program has written since the last.
    """

    def __init__(self, find: FindFollower, limits: RunLimits | None = None) -> None:
        self._find = find
        self._follower: Follower | None = None
        super().__init__(limits)

    @property
    def session_id(self) -> str | None:
        """The session that is followed; None while nothing has been written."""
        with self._using():
            return None if self._follower is None else self._follower.session_id

    def _start_afresh(self) -> None:
        super()._start_afresh()
        if self._follower is not None:
            self._follower.start_over()

    def _expire(self) -> None:
        # What is forgotten here still stands in the transcript.
        self._shelf.close()
        self._start_afresh()

    def _catch_up(self) -> None:
        if self._follower is None:
            self._follower = self._find()
        follower = self._follower
        if follower is None or not follower.has_changed():
            return
        if follower.was_rewritten():
            self._expire()
        try:
            for message in follower.iter_new():
                self._record(_to_part(message), message=message.native_id)
        except BackstoryError:
            # What was read so far is not known to be all.
            self._expire()
            raise


def _to_part(message: NewMessage) -> Part:
    role = message.role
    if role is Role.SYSTEM and message.text.lstrip().startswith(_COMMAND_OUTPUT):
        role = Role.USER
    return Part(role, message.text, message.tool_name, message.call_id)


# -- finding --------------------------------------------------------------------------


class LiveSessions:
    """Finds the transcripts of sessions that are under way on one machine."""

    def __init__(
        self,
        machine: Machine,
        exclude: Callable[[str | Path], bool],
        excluded_hosts: Collection[str],
    ) -> None:
        self._machine = machine
        self._exclude = exclude
        self._excluded_hosts = excluded_hosts

    def open(
        self,
        session: str | None,
        *,
        transcript: str | Path | None,
        host: str | None,
        limits: RunLimits,
    ) -> LiveRun:
        """The run of a session, known by its id, its transcript's path, or both."""
        if transcript is not None:
            path = absolute(str(transcript), self._machine)
            return LiveRun(lambda: self.find_by_path(path, session), limits)
        if not session:
            raise BadQuery(
                "no session is named",
                hint="give the id of the session, or the path of its transcript",
            )
        follower = self.get_by_id(session, host)
        return LiveRun(lambda: follower, limits)

    def find_by_path(self, path: Path, session_id: str | None) -> Follower | None:
        """Follow a transcript by its path; None while there is none.

        Raises ``SourceUnreadable`` if it is no transcript that can be followed.
        """
        if self._exclude(path):
            raise SourceUnreadable(f"{path}: your settings exclude it")
        if not path.exists() and path.parent.is_dir():
            return None
        rows = [row for row in FORMATS if row.host not in self._excluded_hosts]
        for found in iter_recognised(path, rows):
            if isinstance(found, Problem):
                raise SourceUnreadable(str(found))
            if isinstance(found, Source):
                follower = self._follow(found, session_id)
                if follower is not None:
                    return follower
        raise SourceUnreadable(
            f"{path}: not a transcript that can be followed while it grows",
            hint="those of Claude Code, Codex, Gemini CLI and Copilot CLI can be",
        )

    def get_by_id(self, session_id: str, host: str | None) -> Follower:
        """Follow the session of that id. Raises ``UnknownName`` if there is none."""
        hosts = [get_host(host)] if host is not None else list(HOSTS)
        for each in hosts:
            if each.name not in self._excluded_hosts:
                sources = iter_sources(each, self._machine)
                for follower in self._followers(sources, session_id):
                    return follower
        raise UnknownName(
            f"no agent program has a transcript of a session '{session_id}' here",
            hint="give the id that the program gives to its hooks, or the transcript's "
            "path",
        )

    def _followers(
        self, sources: Iterable[Source | Problem], session_id: str
    ) -> Iterator[Follower]:
        short = session_id[:_SHORT_ID_CHARS]
        for source in sources:
            if isinstance(source, Source) and short in str(source.file.path):
                follower = self._follow(source, session_id)
                if follower is not None and _holds(follower):
                    yield follower

    def _follow(self, source: Source, session_id: str | None) -> Follower | None:
        row = get_format(source.format)
        importer = row.load()
        if importer.kind != "lines" or row.is_companion or not is_seekable(source):
            return None
        return Follower(source, importer, self._exclude, session_id)


def _holds(follower: Follower) -> bool:
    """Whether the session that is looked for is in this transcript."""
    try:
        return any(True for _ in follower.iter_new())
    finally:
        follower.start_over()
