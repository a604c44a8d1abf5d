"""Roo Code: a list of shown messages per task, in a format taken from Cline."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

from backstory.ingest.importers.base import Origin, ReadBeside
from backstory.ingest.parsing.json_documents import parse_json
from backstory.ingest.parsing.task_messages import (
    begins_with_task,
    is_task_list,
    parse_task,
)
from backstory.text.json_values import as_object, as_text
from backstory.values.history import Item


class RooCode:
    """Tasks of the Roo Code extension: ``ui_messages.json``.

    As https://github.com/RooCodeInc/Roo-Code writes them in
    ``src/core/task-persistence``, with the kinds of message in
    ``packages/types/src/message.ts`` (versions of 2025 and 2026, read 2026-11).
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.name == "ui_messages.json"
            and is_task_list(head)
            and not begins_with_task(head)
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        """The task's folder and the task it is part of, which newer versions record."""
        if not path.is_absolute():
            return {}
        try:
            about = as_object(parse_json(read(path.with_name("history_item.json"))))
        except ValueError:
            return {}
        found = {
            "project": as_text(about.get("workspace")),
            "parent": as_text(about.get("parentTaskId")),
        }
        return {key: text for key, text in found.items() if text is not None}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        session_id = origin.path.parent.name or origin.path.stem
        return parse_task(file, origin, session_id=session_id)
