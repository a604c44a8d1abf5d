"""The parts that read agents' files, and summarize, forget and export messages."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.assembly.home import HomeParts
from backstory.errors import (
    BackstoryError,
    BadQuery,
    StoreProblem,
    StoreUnreachable,
)
from backstory.ingest.announced import has_announced, iter_announced
from backstory.ingest.excluded import iter_kept_excluded
from backstory.ingest.refresh import Refresh
from backstory.ingest.seen_files import FileFinder, find_last_reading
from backstory.options import llm_loader, log_options, read_rules
from backstory.system.files import free_bytes
from backstory.system.loggers import lazy_logger
from backstory.system.machine import absolute
from backstory.text.arguments import show_name, to_path, to_text
from backstory.values.history import Problem, RecordedMessage, Session
from backstory.values.lazy import lazy_property
from backstory.values.reports import (
    IndexReport,
    KeptExcluded,
    LogStatus,
    OnCount,
    OnProgress,
    Status,
)
from backstory.values.structs import replace
from backstory.version import __version__

if TYPE_CHECKING:
    from backstory.exports.import_export import ExportImporter
    from backstory.exports.write_export import Exporter
    from backstory.forget import Forgetter
    from backstory.ingest.intake import Rules
    from backstory.ingest.record import MessageRecorder
    from backstory.ingest.sources import LocalSources
    from backstory.runs.text_results import FindResults
    from backstory.summaries.schedule import Summaries
    from backstory.summaries.triggers import Triggers

logger = lazy_logger(__name__)
# With this little room, SQLite may not even be able to begin a transaction: its log
# grows in pages, and a file beside it takes 32 KB.
_LITTLE_ROOM_BYTES = 64 * 1024
# When to try again if daily logs are left, such as because the budget is spent.
_LOGS_AGAIN_S = 600.0
# And when to try again to erase what others were reading.
_ERASE_AGAIN_S = 60.0
# How often one process looks for messages that are too old to be kept.
_FORGETTING_S = 3600.0


class ReadingParts(HomeParts):
    """The parts that bring things into a home, and out of it again."""

    @lazy_property
    def rules(self) -> "Rules":
        return read_rules(self.settings, self.excluded_folders, self.drop_injected)

    @lazy_property
    def recorder(self) -> "MessageRecorder":
        # Only programs with an agent loop of their own need it.
        from backstory.ingest.record import MessageRecorder

        return MessageRecorder(
            self.history,
            self.rules,
            self.own_answers,
            clock=self.clock,
            on_day_change=self._day_has_changed,
            on_recorded=self.maintainer.note_recording,
        )

    def record_messages(
        self,
        messages: Sequence[object],
        facts: RecordedMessage,
        find_results: "FindResults | None",
    ) -> int:
        """Keep messages in any dialect; returns how many parts of them were kept."""
        # Only programs with an agent loop of their own need it.
        from backstory.runs.to_history import read_messages

        read = read_messages(messages, facts, self.own_answers, find_results)
        written = self.recorder.record_all(read.kept)
        if read.error is not None:
            raise read.error
        return written.new_messages

    def _day_has_changed(self, session: Session) -> None:
        self.triggers.mark_day_change(session)

    @lazy_property
    def refresh(self) -> Refresh:
        in_background = self.settings.flag("embedder.in_background")
        return Refresh(
            self.home,
            self.history,
            self.excluded_folders,
            FileFinder(
                machine=self.machine,
                excluded_hosts=self.excluded_hosts,
                list_projects=self.list_projects,
                more_folders=self.settings.texts("index.folders"),
            ),
            lambda: self.local_sources,
            start_worker=self.start_worker if in_background else None,
        )

    @lazy_property
    def local_sources(self) -> "LocalSources":
        # All importers and their libraries come with it.
        from backstory.ingest.sources import LocalSources

        return LocalSources(
            home=self.home,
            machine=self.machine,
            store=self.history,
            rules=self.rules,
            excluded_hosts=self.excluded_hosts,
            list_projects=self.list_projects,
            more_folders=self.settings.texts("index.folders"),
            clock=self.clock,
            on_deleted=self._forget_deleted,
        )

    def read_changed(self) -> tuple[str, ...]:
        """Read what agents have written since the last reading; returns notices."""
        if not self.settings.flag("search.read_changed"):
            return ()
        return self.refresh.read_changed()

    def read_new(self) -> tuple[str, ...]:
        """Read and index what is new, as a search would, but do not search."""
        self.check_open()
        self._wake_for_announced()
        if self.settings.flag("search.read_changed") and self.refresh.want_all():
            return ()
        notices = (*self.read_changed(), *self.maintainer.catch_up(()))
        self.triggers.mark_quiet()
        return notices

    def _wake_for_announced(self) -> None:
        """Start a worker if a hook had no time to, since hosts kill slow hooks."""
        if self.start_worker is None or not has_announced(str(self.home)):
            return
        if self.settings.flag("embedder.in_background"):
            self.start_worker()

    def read_sources(
        self,
        host: str | None,
        path: str | Path | None,
        *,
        on_progress: OnProgress | None,
        on_taken: OnCount | None,
        on_wait: Callable[[], None] | None,
    ) -> IndexReport:
        """Read what is new in all sources, or in some, and make it findable."""
        self.check_open()
        if path is not None:
            # Few readings are of one path.
            from backstory.exports.sources import refuse_export

            refuse_export(Path(to_path(path, "path")))
        self.refresh.look_again()
        return self.local_sources.index(
            host,
            path,
            update=partial(self.update_index, on_taken),
            on_progress=on_progress,
            on_wait=on_wait,
        )

    def watch_sources(
        self,
        host: str | None,
        path: str | Path | None,
        *,
        on_lost: Callable[[StoreUnreachable], None] | None,
        on_back: Callable[[], None] | None,
        sleep: Callable[[float], None],
    ) -> Iterator[IndexReport]:
        """Read all sources, or some, again and again."""
        # Searches do without it.
        from backstory.ingest.watch import repeat_reading

        read = partial(
            self.read_sources, host, path, on_progress=None, on_taken=None, on_wait=None
        )
        return repeat_reading(
            read,
            self.settings.number("index.watch_seconds"),
            sleep,
            on_lost=on_lost or _log_loss,
            on_back=on_back or _log_return,
        )

    def update_index(self, on_taken: OnCount | None = None) -> IndexReport:
        """Index what was just read, and see which sessions have gone quiet."""
        self._forget_old()
        report = self.maintainer.update(on_taken)
        self._finish_erasing()
        self.triggers.mark_quiet()
        return report

    def _finish_erasing(self) -> bool:
        """Erase what earlier forgettings have left; False if some of it is still left.

        Whatever keeps it from being erased must not keep new messages from being found.
        """
        try:
            return self.history.finish_erasing()
        except StoreProblem as exc:
            logger.warning("deleted rows are not erased: %s", exc)
            return False

    def _mark_announced(self) -> None:
        """Read the sessions that hooks announced, and mark them as due."""
        announced = list(iter_announced(str(self.home)))
        for host in dict.fromkeys(each.host for each in announced):
            self._read_in_background(host)
        for each in announced:
            self.triggers.mark_one(each.cause, f"{each.host}/{each.session_id}")
            each.delete()

    def _read_in_background(self, host: str | None) -> None:
        # What was read is made findable by the work that follows.
        try:
            self.local_sources.index(host, None, update=IndexReport)
        except BackstoryError as exc:
            logger.warning("%s", exc)

    def _forget_deleted(self, host: str, native_ids: Sequence[str]) -> None:
        if not self.settings.flag("keep.deleted_sessions"):
            self.forgetter.forget_deleted(host, native_ids)

    def _forget_old(self) -> None:
        """Forget what the settings do not keep; only now and then, as it takes long."""
        days = self.settings.whole("keep.days")
        tool_output_days = self.settings.whole("keep.tool_output_days")
        if (days or tool_output_days) and time.monotonic() >= self._forgetting_due:
            self._forgetting_due = time.monotonic() + _FORGETTING_S
            self.forgetter.forget_old(days=days, tool_output_days=tool_output_days)

    def list_excluded(self) -> tuple[KeptExcluded, ...]:
        """What is still kept although the settings exclude it now."""
        folders = self.settings.texts("exclude.folders")
        return tuple(
            iter_kept_excluded(
                self.history,
                hosts=sorted(self.excluded_hosts),
                folders=[absolute(folder, self.machine) for folder in folders],
            )
        )

    @lazy_property
    def forgetter(self) -> "Forgetter":
        # Few uses of a memory forget anything.
        from backstory.forget import Forgetter

        return Forgetter(
            self.home,
            self.history,
            self.notebook,
            update_index=self.maintainer.update,
            check_host=self.check_host,
            clock=self.clock,
        )

    @lazy_property
    def exporter(self) -> "Exporter":
        # All importers and their libraries come with it.
        from backstory.exports.write_export import Exporter

        return Exporter(
            self.home,
            self.history,
            self.notebook,
            update_index=self.maintainer.update,
            check_host=self.check_host,
            clock=self.clock,
            program=f"backstory {__version__}",
        )

    @lazy_property
    def export_importer(self) -> "ExportImporter":
        # Few uses of a memory import anything.
        from backstory.exports.import_export import ExportImporter

        return ExportImporter(
            self.history,
            self.notebook,
            self.rules,
            excluded_hosts=self.excluded_hosts,
            clock=self.clock,
            update_index=self.update_index,
        )

    @lazy_property
    def summaries(self) -> "Summaries":
        # Language models and HTTP come with it.
        from backstory.summaries.schedule import Summaries

        excluded = self.excluded_folders
        return Summaries(
            self.home,
            log_options(self.settings),
            load_llm=llm_loader(self.settings, self.machine),
            history=self.history,
            store=self.stores.open_summaries(),
            locks=self.stores.locks,
            get_notebook=lambda: self.notebook,
            clock=self.clock,
            start_worker=self.start_worker,
            exclude=excluded.exclude if excluded.excluded_folders else None,
        )

    @lazy_property
    def triggers(self) -> "Triggers":
        # Searches do without it.
        from backstory.summaries.triggers import Triggers

        # A lambda, so that the summaries are built only if a session is marked.
        return Triggers(
            self.history,
            mark_due=lambda session, cause: self.summaries.mark_due(session, cause),
            mark_quiet=lambda: self.summaries.mark_quiet(),
            list_recorded=self.recorder.list_recorded,
            on_pause=self.maintainer.note_pause,
            clock=self.clock,
        )

    def work(self) -> None:
        """Do what waits for the background worker."""
        self._mark_announced()
        self.refresh.read_wanted(self._read_in_background)
        self._forget_old()
        self.maintainer.work()
        self.summaries.work()

    def do_job(self, kind: str) -> float | None:
        """Do what a job asks for; returns after how many seconds to do it again."""
        kind = to_text(kind, "kind")
        if kind == "index":
            self._forget_old()
            self.maintainer.work()
            return None if self._finish_erasing() else _ERASE_AGAIN_S
        if kind != "logs":
            raise BadQuery(f"there is no job called '{show_name(kind)}'")
        self.summaries.work()
        return _LOGS_AGAIN_S if self.summaries.status().due else None

    def status(self) -> Status:
        """The state of this home."""
        counts = self.history.count_by_host()
        return Status(
            home=str(self.home),
            store=self.stores.name,
            sessions=sum(count.sessions for count in counts),
            messages=sum(count.messages for count in counts),
            size_bytes=self.history.size_bytes(),
            sessions_by_host={c.host: c.sessions for c in counts if c.sessions},
            last_read_at=find_last_reading(self.home),
            problems=(
                *self._list_disk_problems(),
                *self.maintainer.list_problems(),
                *self.history.list_problems(),
                *self.maintainer.list_note_problems(),
            ),
            index=self.maintainer.status(),
            logs=self._log_status(),
            excluded=self.list_excluded(),
            last_forgetting=next(reversed(self.history.list_forgettings()), None),
        )

    def _list_disk_problems(self) -> list[Problem]:
        """Report a full disk, which no program could record there."""
        with suppress(OSError):
            if free_bytes(self.home) < _LITTLE_ROOM_BYTES:
                full = "the disk is full; nothing more can be kept"
                return [Problem(f"{self.home}: {full}")]
        return []

    def _log_status(self) -> LogStatus:
        status = self.summaries.status()
        if "triggers" not in self.__dict__:
            return status
        # If the disk is full, only this process knows of a trigger.
        return replace(status, problem=self.triggers.problem or status.problem)


def _log_loss(problem: StoreUnreachable) -> None:
    logger.warning("%s; it is tried again", problem)


def _log_return() -> None:
    logger.warning("the database can be reached again")
