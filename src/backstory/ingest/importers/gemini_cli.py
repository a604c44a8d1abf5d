"""Gemini CLI: one event log per session; in older versions, one document."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO, Literal

from backstory.ingest.importers.base import (
    Memo,
    Origin,
    ReadBeside,
    Record,
    unknown_record,
)
from backstory.ingest.parsing.gemini_messages import (
    is_by_qwen,
    is_document,
    parse_changes,
    parse_document,
    parse_header,
    parse_message,
)
from backstory.ingest.parsing.json_documents import parse_json
from backstory.text.json_values import as_object, as_text
from backstory.values.history import Item


class GeminiCli:
    """Session files of Gemini CLI.

    Shape seen in 0.61.0 (2026-11). Rewinding, compression, masked results and the files
    of subagents as https://github.com/google-gemini/gemini-cli writes them in
    ``chatRecordingService.ts`` and ``toolOutputMaskingService.ts`` (read 2026-11).
    """

    kind: Literal["lines"] = "lines"
    revises = True

    def recognizes(self, path: Path, head: bytes) -> bool:
        first = head.partition(b"\n")[0]
        return (
            path.suffix == ".jsonl"
            and b'"sessionId"' in first
            and b'"projectHash"' in first
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return _find_project(path, read)

    def parse(self, record: Record, origin: Origin, memo: Memo) -> Iterator[Item]:
        line, value = record
        if "$rewindTo" in value:
            # Nothing to do: what was rewound was said, too.
            return
        if isinstance(value.get("$set"), dict):
            yield from parse_changes(value["$set"], line, origin, memo)
        elif as_text(value.get("id")):
            yield from parse_message(value, line, origin, memo)
        elif as_text(value.get("sessionId")) and "projectHash" in value:
            yield from parse_header(value, line, origin, memo)
        else:
            yield unknown_record(value.get("type"), line)


class GeminiCliDocument:
    """Sessions of Gemini CLI before its event log: the whole session is one document.

    As an older ``chatRecordingService.ts`` of https://github.com/google-gemini/gemini-cli
    wrote them (read 2026-11); messages have the shape they have in the log.
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return path.suffix == ".json" and is_document(head) and not is_by_qwen(head)

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return _find_project(path, read)

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        return parse_document(file, origin)


# -- where it was -----------------------------------------------------------------


def _find_project(path: Path, read: ReadBeside) -> dict[str, str]:
    """The project folder of a session at ``tmp/<name>/chats/…``, if it can be found.

    The name is a short one that ``projects.json`` explains, or, in older versions, the
    hash of the folder's path. A file inside an archive has nothing beside it.
    """
    chats = next((folder for folder in path.parents if folder.name == "chats"), None)
    if chats is None or not path.is_absolute():
        return {}
    folder = chats.parent
    owner = read(folder / ".project_root").decode("utf-8", errors="replace").strip()
    if owner:
        return {"project": owner}
    try:
        registry = parse_json(read(folder.parent.parent / "projects.json"))
    except ValueError:
        return {}
    for project, name in as_object(as_object(registry).get("projects")).items():
        if folder.name in (name, sha256(project.encode()).hexdigest()):
            return {"project": project}
    return {}
