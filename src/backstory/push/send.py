"""Send what is new in a history to a server, and remember how far it has got.

Progress is only recorded once the server has acknowledged it. After a push that was
killed, the next one sends the last batch again, which changes nothing there.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from backstory.errors import StoreLocked
from backstory.exports.lines import Mask, message_line, session_line
from backstory.push.batches import (
    GOOD_RAW_BYTES,
    MAX_RAW_BYTES,
    KeptIds,
    Part,
    SentForgotten,
    part_size,
    session_part,
    write_batch,
)
from backstory.store.base.history import Change, HistoryStore
from backstory.system.files import storing
from backstory.system.locks import try_locked
from backstory.system.small_files import write_small_file
from backstory.values.history import Problem, Session
from backstory.values.pushes import PushReceipt, PushReport
from backstory.values.reports import OnCount
from backstory.values.structs import FrozenStruct, Struct, field, replace

STATE_NAME = "push.json"
_LOCK_NAME = "push.lock"
# After this many changes, or messages in them, progress is recorded.
_WINDOW_CHANGES = 500
_WINDOW_MESSAGES = 5_000
# One message must leave room for what is said about its session.
_MAX_MESSAGE_BYTES = MAX_RAW_BYTES // 2


class Destination(Protocol):
    """A server that takes batches."""

    @property
    def url(self) -> str: ...

    @property
    def token_hash(self) -> str: ...

    def push(self, batch: bytes) -> PushReceipt:
        """Send a batch, which is stored when this returns. Raises ``ProviderError``."""
        ...


class _Place(FrozenStruct):
    """How far a server has acknowledged the changes of a history.

    Another token may belong to another tenant, who has none of them.
    """

    history: str
    token_hash: str
    change_id: int
    tag: int


class Pusher(FrozenStruct):
    """Sends one history. ``is_excluded`` says which folders must not be sent."""

    home: Path
    history: HistoryStore
    is_excluded: Callable[[str], bool]
    excluded_hosts: Collection[str]
    mask: Mask

    def push(
        self, destination: Destination, on_count: OnCount | None = None
    ) -> PushReport:
        """Send everything that is new. Raises ``ProviderError``; what was sent stays.

        ``on_count`` is called with how many changes were sent and how many there are.
        """
        with try_locked(self.home / _LOCK_NAME) as lock:
            if lock is None:
                raise StoreLocked("another process is pushing this home")
            sending = _Sending(self, destination)
            sending.run(on_count or _ignore)
        return PushReport(
            destination.url, problems=tuple(sending.problems), **sending.counts
        )

    # -- how far it has got ---

    def find_place(self, destination: Destination) -> int:
        """The last change of this history that a server has; 0 if it has none."""
        place = self._read_places().get(destination.url)
        expected = self.history.identity, destination.token_hash
        if place is None or (place.history, place.token_hash) != expected:
            return 0
        # A history that was restored from a backup reuses numbers.
        is_known = self.history.find_tag(place.change_id) == place.tag
        return place.change_id if is_known else 0

    def note_place(self, destination: Destination, change: Change) -> None:
        """Remember that a server has all changes up to this one."""
        places = self._read_places()
        places[destination.url] = _Place(
            self.history.identity,
            destination.token_hash,
            change.change_id,
            change.tag,
        )
        path = self.home / STATE_NAME
        with storing(path):
            write_small_file(str(path), msgspec.json.encode(places))

    def _read_places(self) -> dict[str, _Place]:
        # A file that cannot be read means that everything is sent again.
        with suppress(OSError, msgspec.MsgspecError):
            raw = (self.home / STATE_NAME).read_bytes()
            return msgspec.json.decode(raw, type=dict[str, _Place])
        return {}


def _ignore(done: int, total: int) -> None:
    pass


class _Sending(Struct):
    """The steps of one push, and what they have done so far."""

    pusher: Pusher
    destination: Destination
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def _add(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number

    def run(self, on_count: OnCount) -> None:
        history = self.pusher.history
        first = done = self.pusher.find_place(self.destination)
        total = history.last_change_id()
        while changes := history.list_changes(done, _WINDOW_CHANGES):
            window = _cut_window(changes)
            self._send(self._iter_parts(window))
            self.pusher.note_place(self.destination, window[-1])
            done = window[-1].change_id
            on_count(done - first, max(total, done) - first)

    def _send(self, parts: Iterator[Part]) -> None:
        waiting: list[Part] = []
        size = 0
        for part in parts:
            if waiting and size + part_size(part) > GOOD_RAW_BYTES:
                self._send_batch(waiting)
                waiting, size = [], 0
            waiting.append(part)
            size += part_size(part)
        if waiting:
            self._send_batch(waiting)

    def _send_batch(self, parts: Sequence[Part]) -> None:
        batch = write_batch(self.pusher.history.identity, parts)
        receipt = self.destination.push(batch)
        self._add("sent_bytes", len(batch))
        self._add("new_messages", receipt.new_messages)
        self._add("forgotten", receipt.forgotten)
        self.problems += receipt.problems

    # -- what there is to send ---

    def _iter_parts(self, changes: Sequence[Change]) -> Iterator[Part]:
        by_session: dict[int, list[Change]] = {}
        for change in changes:
            by_session.setdefault(change.session_id, []).append(change)
        history = self.pusher.history
        sessions = history.get_sessions(by_session)
        titles = history.get_titles(sessions)
        for number, changed in by_session.items():
            session = sessions.get(number)
            is_emptied = any(change.is_emptying for change in changed)
            if session is None or (is_emptied and not session.message_count):
                yield SentForgotten(number), b""
            elif self._is_excluded(session):
                self._add("excluded")
            else:
                if is_emptied:
                    ids = (each.native_id for each in history.iter_messages(number))
                    yield KeptIds(number, tuple(ids)), b""
                yield from self._iter_session(session, titles.get(number), changed)

    def _is_excluded(self, session: Session) -> bool:
        return session.host in self.pusher.excluded_hosts or (
            session.project is not None and self.pusher.is_excluded(session.project)
        )

    def _iter_session(
        self, session: Session, title: str | None, changes: Sequence[Change]
    ) -> Iterator[Part]:
        """The messages that have changed, in parts that are not too large."""
        mask = self.pusher.mask
        # Paths of this machine are of no use elsewhere.
        head = session_line(
            replace(session, read_from=None),
            title=None if title is None else mask(title),
            logged_to=None,
        )
        self._add("sessions")
        lines, size = [head], len(head)
        for line in self._iter_lines(session, changes):
            if len(lines) > 1 and size + len(line) > GOOD_RAW_BYTES:
                yield session_part(session.session_id, lines)
                lines, size = [head], len(head)
            lines.append(line)
            size += len(line)
        yield session_part(session.session_id, lines)

    def _iter_lines(
        self, session: Session, changes: Sequence[Change]
    ) -> Iterator[bytes]:
        history = self.pusher.history
        runs = [
            (change.first_message_id, change.last_message_id)
            for change in changes
            if change.first_message_id and change.last_message_id
        ]
        if not runs:
            return
        first = min(each for each, _ in runs)
        last = max(each for _, each in runs)
        places = history.find_positions(session.session_id, first, last)
        if places is None:
            return
        for message in history.iter_messages(
            session.session_id, first=places[0], last=places[1]
        ):
            if not any(begin <= message.message_id <= end for begin, end in runs):
                continue
            if message.is_damaged:
                continue
            line = message_line(message, session, mask=self.pusher.mask)
            if len(line) > _MAX_MESSAGE_BYTES:
                name = f"{session.host}/{session.native_id}"
                self.problems.append(
                    Problem(f"message {message.position + 1} is too long", path=name)
                )
                continue
            self._add("messages")
            yield line


def _cut_window(changes: Sequence[Change]) -> Sequence[Change]:
    """As many changes as have about ``_WINDOW_MESSAGES`` messages, but at least one."""
    messages = 0
    for number, change in enumerate(changes):
        first, last = change.first_message_id, change.last_message_id
        messages += last - first + 1 if first and last else 1
        if number and messages > _WINDOW_MESSAGES:
            return changes[:number]
    return changes
