"""Follow the transcript of one session while its program writes it.

Only what was added since the last look is read. A file may hold other sessions, such as
those of subagents; their messages are passed over.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from backstory.errors import SourceUnreadable
from backstory.files import describe, prefix_hash
from backstory.importers.base import LineFormat, Memo, Origin, Record
from backstory.importers.lines import LineReader
from backstory.importers.opening import open_source
from backstory.model import FoundFile, NewMessage, SessionFacts, Source
from backstory.moments import from_microseconds


@dataclass(slots=True)
class Follower:
    """Reads one session from the end of what was read before.

    ``session_id`` is that of the first session in the file if it is not given.
    ``exclude`` tells of folders in which nothing may be read.
    """

    source: Source
    importer: LineFormat
    exclude: Callable[[str], bool]
    session_id: str | None = None
    _read_to: int = 0
    _line: int = 0
    _signature: str = ""
    _prefix: str = ""
    _memo: Memo = field(default_factory=dict)

    def has_changed(self) -> bool:
        return self._describe().signature != self._signature

    def was_rewritten(self) -> bool:
        """Whether what was read before no longer stands there."""
        return self._read_to > 0 and self._hash(self._read_to) != self._prefix

    def start_over(self) -> None:
        """Read from the beginning the next time."""
        self._read_to, self._line = 0, 0
        self._signature = self._prefix = ""
        self._memo = {}

    def iter_new(self) -> Iterator[NewMessage]:
        """The messages that came since the last time, to the end of the file."""
        file = self._describe()
        origin = Origin(
            file.path,
            modified=from_microseconds(file.mtime_ns // 1000),
            beside=self.importer.look_beside(file.path),
        )
        with open_source(self.source) as stream:
            stream.seek(self._read_to)
            reader = LineReader(stream, self._read_to, self._line)
            records = (each for each in reader.records() if isinstance(each, Record))
            for item in self.importer.parse(records, origin, self._memo):
                match item:
                    case SessionFacts():
                        self._take_facts(item)
                    case NewMessage():
                        if self._is_own(item.session_id):
                            yield item
        self._read_to, self._line = reader.read_to, reader.line
        self._signature, self._prefix = file.signature, self._hash(reader.read_to)

    def _take_facts(self, facts: SessionFacts) -> None:
        is_own = self._is_own(facts.native_id)
        if is_own and facts.project and self.exclude(facts.project):
            raise SourceUnreadable(
                f"the session runs in {facts.project}, which your settings exclude"
            )

    def _is_own(self, session_id: str) -> bool:
        if self.session_id is None:
            self.session_id = session_id
        return session_id == self.session_id

    def _describe(self) -> FoundFile:
        try:
            return describe(self.source.file.path)
        except OSError as exc:
            raise self._unreadable(exc) from exc

    def _hash(self, length: int) -> str:
        try:
            return prefix_hash(self.source.file.path, length)
        except OSError as exc:
            raise self._unreadable(exc) from exc

    def _unreadable(self, exc: OSError) -> SourceUnreadable:
        return SourceUnreadable(
            f"{self.source.file.path}: it cannot be read ({exc.strerror})"
        )
