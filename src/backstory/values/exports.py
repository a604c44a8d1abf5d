"""What is exported and imported, and the results."""

from collections.abc import Collection
from datetime import date
from pathlib import Path

from backstory.values.history import Problem
from backstory.values.structs import FrozenStruct


class WhatToExport(FrozenStruct):
    """Sessions by name, or all that meet every given condition.

    ``since`` and ``until`` are days on which a session was active, both included.
    ``only`` is ``conversations`` or ``notes``. If only some sessions are exported, the
    notes are left out, unless only notes are wanted.
    """

    sessions: str | Collection[str] = ()
    host: str | None = None
    project: str | Path | None = None
    since: date | str | None = None
    until: date | str | None = None
    only: str | None = None


class ExportReport(FrozenStruct):
    """What an export contains, and what was done to bring it up to date.

    ``sessions``, ``messages``, ``daily_logs`` and ``has_memory`` describe what was
    exported; ``kept_sessions`` were in the folder before and are not part of this
    export. ``written`` and ``deleted`` count files. ``problems`` describe what could
    not be read.
    """

    path: Path
    sessions: int = 0
    messages: int = 0
    has_memory: bool = False
    daily_logs: int = 0
    is_masked: bool = False
    kept_sessions: int = 0
    written: int = 0
    unchanged: int = 0
    deleted: int = 0
    size_bytes: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to export, so that nothing was written."""
        return not (self.sessions or self.has_memory or self.daily_logs)


class ImportReport(FrozenStruct):
    """What an export contains, and what of it was new here, or would be if imported.

    ``new_messages`` were added to ``changed_sessions``, of which ``new_sessions`` are
    new; ``known_messages`` were here already. Two kinds were left out:
    ``forgotten_messages`` were forgotten here, and ``excluded_sessions`` are of
    programs and folders that the settings exclude. ``memory_blocks`` and ``log_blocks``
    were added to the notes, the latter to ``logs`` daily logs. ``damaged`` are files
    that differ from what was exported, and were left out; ``extra`` are names of files
    that do not belong to the export. ``problems`` are places that could not be read.
    """

    path: Path
    is_dry_run: bool = False
    sessions: int = 0
    changed_sessions: int = 0
    new_sessions: int = 0
    new_messages: int = 0
    known_messages: int = 0
    forgotten_messages: int = 0
    excluded_sessions: int = 0
    memory_blocks: int = 0
    log_blocks: int = 0
    logs: int = 0
    damaged: tuple[Problem, ...] = ()
    extra: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def is_change(self) -> bool:
        """Whether anything was added, or would be."""
        return bool(self.new_messages or self.memory_blocks or self.log_blocks)
