"""Pi: one JSONL file per session, a tree of entries."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from backstory.ingest.importers.base import Memo, Origin, ReadBeside, Record
from backstory.ingest.importers.pi_entries import (
    is_in_agent_folder,
    is_session_header,
    parse_line,
)
from backstory.values.history import Item


class Pi:
    """Session files of Pi, versions 1 to 3 of its format.

    Shape as https://github.com/badlogic/pi-mono describes it
    (``packages/coding-agent``: ``docs/session.md``, ``src/core/session-manager.ts``),
    read in 2026-11.
    """

    kind: Literal["lines"] = "lines"
    revises = False

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.suffix == ".jsonl"
            and is_session_header(head)
            and not is_in_agent_folder(path)
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        yield from parse_line(record, origin, memo)
