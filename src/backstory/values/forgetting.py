"""What a person has forgotten, and what remains of it: numbers, and no content."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from backstory.values.history import Session


@dataclass(frozen=True, slots=True)
class WhatToForget:
    """What to forget: sessions by name, single messages, or all that meet conditions.

    With ``sessions``, ``messages`` are messages of those; the conditions narrow each
    other. ``before`` and ``after`` are days, which are not included.
    """

    sessions: str | Collection[str] = ()
    messages: str | int | Collection[str | int] = ()
    project: str | Path | None = None
    host: str | None = None
    before: date | str | None = None
    after: date | str | None = None


@dataclass(frozen=True, slots=True)
class Forgetting:
    """One time that something was forgotten; ``forgetting_id`` can be undone.

    ``sessions`` were forgotten whole; ``messages`` are all that were deleted.
    """

    forgetting_id: int
    forgotten_at: datetime
    sessions: int
    messages: int
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForgottenSession:
    """A session of which ``messages`` messages are forgotten, perhaps all of them."""

    session: Session
    messages: int

    @property
    def is_whole(self) -> bool:
        return self.messages == self.session.message_count


@dataclass(frozen=True, slots=True)
class LogEntry:
    """What a daily log says about a session."""

    day: date
    heading: str


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was forgotten, or would be if ``forgetting`` is None.

    ``log_entries`` are about those sessions; they went too if ``with_notes``.
    ``copies`` are files that may still contain what was forgotten. ``is_erased`` is
    false while another process reads an older state of the database: what was deleted
    is then still in its log.
    """

    sessions: tuple[ForgottenSession, ...] = ()
    log_entries: tuple[LogEntry, ...] = ()
    copies: tuple[Path, ...] = ()
    with_notes: bool = False
    forgetting: Forgetting | None = None
    is_erased: bool = True

    @property
    def messages(self) -> int:
        return sum(each.messages for each in self.sessions)
