"""What a person has forgotten, and what remains of it: numbers, but no content."""

from collections.abc import Collection
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path

from backstory.values.history import Session
from backstory.values.structs import FrozenStruct

# Why something was forgotten, unless a setting says so.
ASKED_FOR = "asked for"


class WhatToForget(FrozenStruct):
    """What to forget: sessions by name, messages, a fact, or all that meet conditions.

    With ``sessions``, ``messages`` are messages of these; every condition must be met.
    ``before`` and ``after`` are days that are not included.
    """

    sessions: str | Collection[str] = ()
    messages: str | int | Collection[str | int] = ()
    project: str | Path | None = None
    host: str | None = None
    before: date | str | None = None
    after: date | str | None = None
    fact: str | None = None


class Forgetting(FrozenStruct):
    """One act of forgetting, which can be undone by its ``forgetting_id``.

    ``sessions`` counts those that were forgotten whole; ``messages``, all that were
    deleted. The ``reason`` is that it was asked for, or the setting that demands it.
    """

    forgetting_id: int
    forgotten_at: datetime
    sessions: int
    messages: int
    hosts: tuple[str, ...]
    facts: int = 0
    reason: str = ASKED_FOR


class ForgottenSession(FrozenStruct):
    """A session with the number of its forgotten messages, perhaps all of them."""

    session: Session
    messages: int

    @property
    def is_whole(self) -> bool:
        return self.messages == self.session.message_count


class LogEntry(FrozenStruct):
    """What a daily log says about a session."""

    day: date
    heading: str


class ForgottenFact(FrozenStruct):
    """A fact of MEMORY.md, and how many backups and edited copies contain it, too."""

    text: str
    copies: int = 0


class Erasure(StrEnum):
    """Whether deleted data is gone from a database's files as well.

    It is not while another process reads an older state (``blocked``), or if only the
    server, with time, or the owner of its tables can erase it (``left``).
    """

    DONE = "done"
    BLOCKED = "blocked"
    LEFT = "left"


class ForgetReport(FrozenStruct):
    """What was forgotten, or would be if ``forgetting`` is None.

    ``log_entries`` are about those sessions; with ``with_notes``, they were deleted,
    too. So were the ``facts``, unless they are themselves what was to be forgotten.
    ``kept_messages`` is the number of all messages before that. ``copies`` are files
    that may still contain what was forgotten; ``erasure`` says whether the database's
    own files may.
    """

    sessions: tuple[ForgottenSession, ...] = ()
    log_entries: tuple[LogEntry, ...] = ()
    copies: tuple[Path, ...] = ()
    with_notes: bool = False
    forgetting: Forgetting | None = None
    erasure: Erasure = Erasure.DONE
    facts: tuple[ForgottenFact, ...] = ()
    kept_messages: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.sessions and not self.facts

    @property
    def messages(self) -> int:
        return sum(each.messages for each in self.sessions)
