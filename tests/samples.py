"""Sample transcripts: lay one out as real files, read it, and say what the store holds.

A case is a folder ``data/transcripts/<format>/<case>/``. What is in its ``home``
folder is found as on a person's machine; what is in ``files`` is read by ``--path``.
Files that would be unreadable in a review are kept as text and made here: ``x.db.sql``
becomes the database ``x.db``, ``x.zst.txt`` the compressed ``x.zst``, the folder
``x.zip.d`` the archive ``x.zip``. ``expected.json`` is everything the store must hold
afterwards.
"""

import os
import shutil
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import orjson

from backstory.ingest.importers.base import LineFormat, Memo, Origin, Record
from backstory.memory import Memory
from backstory.settings import read_settings
from backstory.system.machine import Machine
from backstory.system.zstd import compress
from backstory.values.history import Item
from backstory.values.moments import Moment
from backstory.values.reports import IndexReport
from tests.prepared_home import prepare_home

# When every sample was written, for formats that have no times of their own.
SAVED_AT = datetime(2026, 11, 18, tzinfo=UTC).timestamp()
TRANSCRIPTS = Path(__file__).parent / "data" / "transcripts"


@dataclass(frozen=True, slots=True)
class Case:
    """One sample: a format, a name, and its folder."""

    format: str
    name: str
    folder: Path

    @property
    def expected_file(self) -> Path:
        return self.folder / "expected.json"

    def lay_out(self, target: Path) -> Path:
        """Make the case's files below ``target``; return the folder to read."""
        part = "home" if (self.folder / "home").is_dir() else "files"
        root = target / part
        for file in sorted((self.folder / part).rglob("*")):
            if file.is_file():
                _make(file, root / file.relative_to(self.folder / part))
        for folder in sorted(root.rglob("*.zip.d")):
            _zip(folder)
        return root


def all_cases() -> list[Case]:
    return [
        Case(folder.parent.name, folder.name, folder)
        for folder in sorted(TRANSCRIPTS.glob("*/*"))
        if folder.is_dir()
    ]


def _make(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if file.name.endswith(".sql"):
        target = target.with_name(file.name.removesuffix(".sql"))
        db = apsw.Connection(str(target))
        for _ in db.execute(file.read_text(encoding="utf-8")):
            pass
        db.close()
    elif file.name.endswith(".zst.txt"):
        target = target.with_name(file.name.removesuffix(".txt"))
        target.write_bytes(compress(file.read_bytes()))
    else:
        shutil.copyfile(file, target)
    os.utime(target, (SAVED_AT, SAVED_AT))


def _zip(folder: Path) -> None:
    with zipfile.ZipFile(folder.with_name(folder.name.removesuffix(".d")), "w") as made:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                made.write(file, file.relative_to(folder))
    shutil.rmtree(folder)


# -- reading --------------------------------------------------------------------------


def a_memory(
    folder: Path,
    *,
    home: Path | None = None,
    environ: dict[str, str] | None = None,
    settings: tuple[str, ...] = (),
    clock: Callable[[], datetime] | None = None,
) -> Memory:
    """A memory in ``folder`` whose person has the home folder ``home``."""
    machine = Machine("linux", home or folder / "nobody", environ or {})
    chosen = read_settings(
        user_file=folder / "config.toml",
        environ=machine.environ,
        flags=settings,
    )
    prepare_home(folder / "backstory")
    if clock is None:
        return Memory(folder / "backstory", chosen, machine)
    return Memory(folder / "backstory", chosen, machine, clock=clock)


def read_sample(memory: Memory, root: Path) -> IndexReport:
    """Index what a case laid out: by looking around in a home, or by path."""
    return memory.index() if root.name == "home" else memory.index(path=root)


def contents(memory: Memory, root: Path) -> list[dict[str, Any]]:
    """Everything the store holds, without what differs from machine to machine."""
    return sorted(
        (
            {
                "host": session.host,
                "id": session.native_id,
                "title": session.title,
                "project": session.project,
                "git_branch": session.git_branch,
                "parent_id": session.parent_id,
                "started": _time(session.started),
                "last_active": _time(session.last_active),
                "preview": session.preview,
                "read_from": _relative(session.read_from, root),
                "messages": [
                    {
                        "id": message.native_id,
                        "role": message.role.value,
                        "text": message.text,
                        **(
                            {"tool_name": message.tool_name}
                            if message.tool_name
                            else {}
                        ),
                        **({"call_id": message.call_id} if message.call_id else {}),
                        "sent": _time(message.sent),
                    }
                    for message in memory.messages(session)
                ],
            }
            for session in memory.sessions()
        ),
        key=lambda session: (str(session["host"]), str(session["id"])),
    )


def _time(moment: Moment | None) -> str | None:
    """The time in the zone it was written in; '(no zone)' where it had none."""
    if moment is None:
        return None
    if moment.is_day:
        return f"{moment.at:%Y-%m-%d} (whole day)"
    zone = "" if moment.utc_offset_min is not None else " (no zone)"
    return moment.in_own_zone().isoformat() + zone


def _relative(path: str | None, root: Path) -> str | None:
    return None if path is None else str(Path(path).relative_to(root.resolve()))


def describe_reading(memory: Memory, root: Path, report: IndexReport) -> dict[str, Any]:
    """What ``expected.json`` holds: the store's content and the problems reported."""
    return {
        "sessions": contents(memory, root),
        "problems": [
            str(problem).replace(str(root.resolve()), "~")
            for problem in report.problems
        ],
    }


def write_expected(case: Case, folder: Path) -> None:
    """Write down what the case gives now; read the difference before you commit it."""
    root = case.lay_out(folder)
    with a_memory(folder, home=root) as memory:
        found = describe_reading(memory, root, read_sample(memory, root))
    case.expected_file.write_bytes(
        orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    )


def parse_records(
    importer: LineFormat, records: Iterable[Record], origin: Origin, memo: Memo
) -> list[Item]:
    """All that the records of a file say, one after the other."""
    return [item for record in records for item in importer.parse(record, origin, memo)]
