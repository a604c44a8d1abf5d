"""Follow the transcript of one session while its program writes it.

Only what was added since the last time is read, and a few bytes that tell whether the
rest is unchanged. A file may hold other sessions, such as those of subagents; their
messages are skipped.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO

from backstory.errors import SourceUnreadable
from backstory.ingest.importers.base import LineFormat, Memo, Origin, Record
from backstory.ingest.parsing.failures import UntilFailure
from backstory.ingest.parsing.lines import LineReader
from backstory.ingest.reading.beside import read_beside
from backstory.ingest.spilled_results import find_spilled, read_spilled
from backstory.system.files import describe, open_file
from backstory.values.history import (
    FoundFile,
    Item,
    NewMessage,
    Role,
    SessionFacts,
    Source,
)
from backstory.values.structs import Struct, field, replace

logger = logging.getLogger(__name__)

# How much is compared at the beginning and at the end of what was read. A rewritten
# file differs at one of the two, because everything after a change moves.
_COMPARED_BYTES = 4096
# The folder of a session is found in these: programs write it before the first answer.
_FIRST_ITEMS = 200


class Follower(Struct):
    """Reads one session, starting where the last reading ended.

    Without a ``session_id``, it reads the session that the file is named after, or else
    the first in it. ``exclude`` says whether a path must not be read.
    """

    source: Source
    importer: LineFormat
    exclude: Callable[[str | Path], bool]
    session_id: str | None = None
    _read_to: int = 0
    _line: int = 0
    _signature: str = ""
    _ends: bytes = b""
    _memo: Memo = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.source.file.path

    def has_changed(self) -> bool:
        return self._describe().signature != self._signature

    def start_over(self) -> None:
        """Read from the beginning the next time."""
        self._read_to, self._line = 0, 0
        self._signature, self._ends = "", b""
        self._memo = {}

    def iter_new(
        self, on_rewritten: Callable[[], object] = lambda: None
    ) -> Iterator[NewMessage]:
        """The messages added since the last time, to the end of the file.

        ``on_rewritten`` is called first if what was read before has changed: then
        everything is read again.
        """
        file = self._describe()
        with self._open() as stream:
            if self._read_to and self._read_ends(stream) != self._ends:
                self.start_over()
                on_rewritten()
            if self.session_id is None:
                self.session_id = self._find_session(stream, file)
            stream.seek(self._read_to)
            reader = LineReader(stream, self._read_to, self._line)
            for item in self._parse(reader, file, self._memo):
                match item:
                    case SessionFacts() if item.native_id == self.session_id:
                        self._check(item)
                    case NewMessage() if item.session_id == self.session_id:
                        yield self._whole(item)
            self._read_to, self._line = reader.read_to, reader.line
            self._ends = self._read_ends(stream)
        self._signature = file.signature

    def holds_session(self) -> bool:
        """Whether the session is in this file, or may come, as none is there yet."""
        file = self._describe()
        is_empty = True
        with self._open() as stream:
            for item in self._parse(LineReader(stream), file, {}):
                if isinstance(item, SessionFacts):
                    is_empty = False
                    if item.native_id == self.session_id:
                        return True
        return is_empty

    def find_beginning(self) -> SessionFacts | None:
        """The id, folder and parent of the session, as its first records say."""
        file = self._describe()
        found: SessionFacts | None = None
        with self._open() as stream:
            items = self._parse(LineReader(stream), file, {})
            for item in islice(items, _FIRST_ITEMS):
                if not isinstance(item, SessionFacts):
                    continue
                is_named = is_named_after(file.path, item.native_id)
                # A fork may begin with records of its parent.
                if found is None or is_named or item.native_id == found.native_id:
                    found = item
                if found.project and is_named_after(file.path, found.native_id):
                    break
        return found

    def _find_session(self, stream: IO[bytes], file: FoundFile) -> str | None:
        """Which session to follow when none was named; None while there is none."""
        stream.seek(0)
        first: SessionFacts | None = None
        for item in self._parse(LineReader(stream), file, {}):
            if not isinstance(item, SessionFacts):
                continue
            if is_named_after(file.path, item.native_id):
                return item.native_id
            # A subagent's lines may come before those of the session it belongs to.
            if first is None or (first.parent_id and not item.parent_id):
                first = item
        return first.native_id if first else None

    def _parse(self, reader: LineReader, file: FoundFile, memo: Memo) -> Iterator[Item]:
        origin = Origin(
            file.path,
            modified=file.modified,
            beside=self.importer.look_beside(file.path, _read_quietly),
        )
        for item in reader.records():
            if isinstance(item, Record):
                said = UntilFailure(partial(self.importer.parse, item, origin, memo))
                yield from said
                if said.failure is not None:
                    # Reported when the sources are read.
                    logger.debug("%s:%s", file.path, item.line, exc_info=said.failure)

    def _check(self, facts: SessionFacts) -> None:
        if facts.project and self.exclude(facts.project):
            raise SourceUnreadable(
                f"the session runs in {facts.project}, which your settings exclude"
            )

    def _whole(self, message: NewMessage) -> NewMessage:
        """The message, with the full text of a result that was saved to a file."""
        if message.role is not Role.TOOL_RESULT:
            return message
        spilled = find_spilled(self.source, message)
        if spilled is None or self.exclude(spilled):
            return message
        try:
            return replace(message, text=read_spilled(spilled))
        except OSError:
            return message

    # -- the file ---

    def _describe(self) -> FoundFile:
        try:
            return describe(self.path)
        except OSError as exc:
            raise self._unreadable(exc.strerror) from exc

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        try:
            with open_file(self.path) as stream:
                yield stream
        except OSError as exc:
            raise self._unreadable(exc.strerror) from exc

    def _read_ends(self, stream: IO[bytes]) -> bytes:
        """The first and last bytes of what was read; fewer if the file has shrunk."""
        stream.seek(0)
        head = stream.read(min(_COMPARED_BYTES, self._read_to))
        stream.seek(max(0, self._read_to - _COMPARED_BYTES))
        return head + stream.read(min(_COMPARED_BYTES, self._read_to))

    def _unreadable(self, reason: object) -> SourceUnreadable:
        return SourceUnreadable(f"{self.path}: it cannot be read ({reason})")


def _read_quietly(path: Path) -> bytes:
    """A file beside the transcript; reading the sources reports one that is bad."""
    return read_beside(path, report=lambda problem: None)


# -- names ----------------------------------------------------------------------------

# How much of a session's id Gemini CLI puts into the name of its file.
_SHORT_ID_CHARS = 8


def is_named_after(path: Path, session_id: str) -> bool:
    """Whether a file of this name may belong to the session with this id."""
    # Copilot CLI names the folder after the session, not the file.
    named = path.parent.name if path.name == "events.jsonl" else path.name
    name = named.partition(".jsonl")[0]
    ids = filter(None, {session_id, session_id[:_SHORT_ID_CHARS]})
    return any(name == each or name.endswith((f"-{each}", f"_{each}")) for each in ids)
