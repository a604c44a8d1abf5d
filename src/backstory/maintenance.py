"""The half of ``Memory`` that keeps it: indexing, daily logs, forgetting, exports."""

import time
from collections.abc import Callable, Collection, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Self

from backstory.assembly.parts import Parts
from backstory.errors import BadQuery, StoreUnreachable, show_value
from backstory.system.worker import run_as_worker
from backstory.text.arguments import to_number
from backstory.values.forgetting import ForgetReport, Forgetting, WhatToForget
from backstory.values.reports import (
    Curation,
    IndexReport,
    KeptExcluded,
    LogReport,
    ModelCall,
    OnCount,
    OnProgress,
    SavedTexts,
    SourceSummary,
    Status,
)

if TYPE_CHECKING:
    from backstory.values.exports import ExportReport, ImportReport
    from backstory.values.moving import MoveReport
    from backstory.values.pushes import PushReceipt, PushReport


class Maintenance:
    """What is done to a memory's content, by its owner or in the background."""

    def __init__(self, home: Path, parts: Parts) -> None:
        self.home = home
        self._all_parts = parts

    @property
    def _parts(self) -> Parts:
        self._all_parts.check_open()
        return self._all_parts

    # -- reading and indexing ---

    def index(
        self,
        *,
        host: str | None = None,
        path: str | Path | None = None,
        on_progress: OnProgress | None = None,
        on_taken: OnCount | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> IndexReport:
        """Read what the agents on this machine have written since the last time.

        Optionally only of one ``host``, or in one ``path``. ``on_progress`` is told how
        far the reading has got, ``on_taken`` then how many messages were made findable;
        ``on_wait`` is called if another process has to finish reading first.
        """
        return self._parts.read_sources(
            host, path, on_progress=on_progress, on_taken=on_taken, on_wait=on_wait
        )

    def read_new(self) -> tuple[str, ...]:
        """Read what is new if that is quick; the worker reads the rest.

        For long-running programs to call from time to time. Returns notices.
        """
        return self._parts.read_new()

    def count_unread(self) -> dict[str, int]:
        """How many files of each agent program have changed since they were read.

        Only of programs that have been read before. Nothing is read.
        """
        return self._parts.refresh.count_unread()

    def watch(
        self,
        *,
        host: str | None = None,
        path: str | Path | None = None,
        on_lost: Callable[[StoreUnreachable], None] | None = None,
        on_back: Callable[[], None] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[IndexReport]:
        """Index again and again; yields the report of each time.

        If the database server can no longer be reached, it waits until it can:
        ``on_lost`` is told why, and ``on_back`` is called afterwards; otherwise both
        are logged.
        """
        return self._parts.watch_sources(
            host, path, on_lost=on_lost, on_back=on_back, sleep=sleep
        )

    def embed(self, *, on_embedded: OnCount | None = None) -> bool:
        """Take in what is new and make all missing vectors; False if some were refused.

        Raises ``ProviderError`` if the embedder fails; vectors it made before are kept.
        """
        return self._parts.maintainer.embed(on_embedded=on_embedded)

    def rebuild(self, *, on_taken: OnCount | None = None) -> IndexReport:
        """Rebuild the index from the history and the notes; vectors are kept."""
        return self._parts.maintainer.rebuild(on_taken=on_taken)

    def salvage(self) -> SavedTexts | None:
        """Save the texts of messages that only the index still has, if any."""
        return self._parts.maintainer.salvage_texts()

    # -- the daily logs ---

    def end_session(self, session: str | None = None) -> bool:
        """Have a session, or the one recorded last, summarized in the daily log.

        Returns whether there is anything to log, which is done in the background.
        """
        return self._parts.triggers.mark_one("session end", session)

    def before_compaction(self, session: str | None = None) -> bool:
        """Like ``end_session``, before messages are left out of a session's prompt."""
        return self._parts.triggers.mark_one("compaction", session)

    def switch_session(self, session: str) -> bool:
        """Like ``end_session``, for all sessions recorded here except ``session``."""
        return self._parts.triggers.mark_all("session switch", except_for=session)

    def background(self) -> bool:
        """Like ``end_session``, for all: call it when going to the background."""
        return self._parts.triggers.mark_all("background")

    def write_logs(
        self,
        *,
        since: date | str | None = None,
        on_session: Callable[[str, int], None] | None = None,
    ) -> LogReport:
        """Write the daily logs that are due, and of sessions active ``since`` a day."""
        return self._parts.summaries.write(on_session, since=since)

    def curate(self) -> Curation:
        """Tidy the long-term memory with the language model; keeps a backup."""
        return self._parts.summaries.curate()

    def model_calls(self, *, days: int = 1) -> list[ModelCall]:
        """What the language model was called for, and what it cost, latest last.

        Covers today, or the last ``days``.
        """
        return self._parts.summaries.list_calls(max(1, to_number(days, "days")))

    # -- forgetting ---

    def forget(
        self,
        sessions: str | Collection[str] = (),
        *,
        messages: str | int | Collection[str | int] = (),
        project: str | Path | None = None,
        host: str | None = None,
        before: date | str | None = None,
        after: date | str | None = None,
        fact: str | None = None,
        with_notes: bool = False,
        dry_run: bool = False,
    ) -> ForgetReport:
        """Delete conversations for good; they are left out when they are read again.

        Name sessions, ``messages`` (of these, or by number), or conditions, all of
        which must be met; or a ``fact`` of MEMORY.md. ``dry_run`` only tells what would
        be deleted.
        """
        what = WhatToForget(sessions, messages, project, host, before, after, fact)
        run = self._parts.forgetter.forget
        return run(what, with_notes=with_notes, dry_run=dry_run)

    def forgettings(self) -> list[Forgetting]:
        """What has been forgotten so far: numbers, but no content."""
        return self._parts.forgetter.list_forgettings()

    def undo_forget(self, forgetting: int) -> Forgetting:
        """Let ``index`` read again what was forgotten under this number."""
        return self._parts.forgetter.undo(forgetting)

    # -- exporting and importing ---

    def export(
        self,
        path: str | Path,
        sessions: str | Collection[str] = (),
        *,
        host: str | None = None,
        project: str | Path | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        only: str | None = None,
        mask_secrets: bool = False,
        delete: bool = False,
        force: bool = False,
        on_count: OnCount | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> "ExportReport":
        """Write conversations and notes into a folder, or into a file ``*.zip``.

        Exports everything; or ``sessions`` by name, with their subagents; or those that
        meet the conditions. ``only`` is ``conversations`` or ``notes``. A folder that
        has an export is brought up to date; whatever else is in it stays unless
        ``delete``. ``force`` replaces what somebody has changed there. If ``on_count``
        raises, that stops the export, and what was written does not pass for one.
        """
        # Most programs export nothing.
        from backstory.values.exports import WhatToExport

        what = WhatToExport(sessions, host, project, since, until, only)
        return self._parts.exporter.export(
            path,
            what,
            mask=mask_secrets,
            delete=delete,
            force=force,
            on_count=on_count,
            on_wait=on_wait,
        )

    def import_export(
        self,
        path: str | Path,
        *,
        only: str | None = None,
        skip_damaged: bool = False,
        dry_run: bool = False,
        on_count: OnCount | None = None,
        on_taken: OnCount | None = None,
    ) -> "ImportReport":
        """Take in what is new in an export. Doing it twice changes nothing.

        ``only`` is ``conversations`` or ``notes``: notes are passed to agents as yours.
        The files are checked first; ``skip_damaged`` leaves out those that differ from
        what was exported, instead of refusing the whole export. ``dry_run`` only tells
        what is new. ``on_count`` is told how many files were checked and read,
        ``on_taken`` then how many messages were made findable. If either raises, that
        stops the import; what was taken in stays.
        """
        return self._parts.export_importer.run(
            path,
            only=only,
            skip_damaged=skip_damaged,
            dry_run=dry_run,
            on_count=on_count,
            on_taken=on_taken,
        )

    def move_to(
        self,
        target: Self,
        *,
        on_count: OnCount | None = None,
        on_taken: OnCount | None = None,
    ) -> "MoveReport":
        """Copy everything to another memory, which must be empty or a copy of this one.

        From files to a database, or back: everything keeps its number. The copy is
        compared with the original, which stays as it is. If this is stopped, call it
        again to continue. ``on_count`` is told how many messages were copied,
        ``on_taken`` then how many were made findable. Raises ``BadQuery`` or
        ``NotesConflict`` if the other memory has anything of its own.
        """
        if not isinstance(target, Maintenance):
            raise BadQuery(f"{show_value(target)} is not a memory to move to")
        return self._parts.move_to(target._parts, on_count=on_count, on_taken=on_taken)

    # -- sending to a server ---

    def push(
        self, to: str | None = None, *, on_count: OnCount | None = None
    ) -> "PushReport":
        """Send what is new in the history to a server: ``to``, or ``push.url``.

        The token comes from where ``push.token`` says. What was sent is not sent again,
        and what was forgotten here is forgotten there. Raises ``ProviderError`` if the
        server cannot be reached or refuses; what it has acknowledged stays.
        ``on_count`` is told how many changes were sent.
        """
        return self._parts.push(to, on_count)

    def check_push(self, to: str | None = None) -> None:
        """Raise ``ConfigError`` if ``push`` could not even contact a server."""
        self._parts.open_remote(to).close()

    def receive_push(self, batch: bytes) -> "PushReceipt":
        """Store what another machine has pushed; it is durable when this returns.

        Raises ``BadQuery`` if it is not a batch; then nothing is stored.
        """
        return self._parts.receive_push(batch)

    # -- the worker and the state ---

    def work(self, *, lock: int | None = None) -> None:
        """Do the background work, unless another process does; ``lock`` is its own."""
        run_as_worker(self.home, self._parts.work, lock=lock)

    def do_job(self, kind: str) -> float | None:
        """Do the background work of a kind: ``index`` or ``logs``.

        For a server that shares the work of many memories. Returns the number of
        seconds until there is more to do, if that is known.
        """
        return self._parts.do_job(kind)

    def sources(self) -> list[SourceSummary]:
        """What each agent program has on this machine, and how much was read."""
        return self._parts.local_sources.sources()

    def excluded(self) -> tuple[KeptExcluded, ...]:
        """What was read before the settings excluded it, and is still kept."""
        return self._parts.list_excluded()

    def status(self) -> Status:
        """How much is kept, when it was last read, and what went wrong."""
        return self._parts.status()
