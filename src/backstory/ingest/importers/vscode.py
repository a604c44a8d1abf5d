"""Visual Studio Code: chats with Copilot, one file per session.

A session used to be one JSON document. Since 2026 it is a log of changes to the same
object; the log is replayed and read as the document would be.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

from backstory.ingest.importers.base import (
    Origin,
    ReadBeside,
)
from backstory.ingest.parsing.chat_requests import (
    is_needed,
    prune_session,
    prune_value,
    read_requests,
)
from backstory.ingest.parsing.file_urls import to_path
from backstory.ingest.parsing.json_documents import parse_json, read_object
from backstory.ingest.parsing.lines import LineReader
from backstory.text.json_values import JsonObject, as_list, as_object, as_text
from backstory.values.history import Item, Problem, SessionFacts

_INITIAL, _SET, _PUSH, _DELETE = range(4)


class VsCode:
    """Sessions in one document, as Visual Studio Code wrote them up to early 2026.

    As https://github.com/microsoft/vscode has them in ``chat/common/model`` and as
    converters quote them (2025 and 2026, read 2026-11). What Copilot's tools
    were given and gave back is in ``result.metadata``, which its extension writes.
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return (
            path.suffix == ".json"
            and head.lstrip().startswith(b"{")
            and b'"requests"' in head
            and (b'"responderUsername"' in head or b'"initialLocation"' in head)
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return _find_project(path, read)

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        session, problem = read_object(file, with_list="requests")
        if problem is not None:
            yield problem
        if session:
            yield from _session(prune_session(session), origin)


class VsCodeLog:
    """Sessions as a log of changes, one JSON object per line.

    As https://github.com/microsoft/vscode writes and reads them in
    ``chat/common/model/objectMutationLog.ts`` (2026, read 2026-11). Not seen with the
    program itself, which needs an account to chat.
    """

    # Not "lines": a line may change anything before it, so all are read again.
    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        # The first line alone may be longer than the head.
        begins = head.lstrip()[:4000].replace(b" ", b"")
        return path.suffix == ".jsonl" and (
            begins.startswith(b'{"kind":0,"v":{') and b'"version":' in begins
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return _find_project(path, read)

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        session: JsonObject = {}
        for found in LineReader(file).records():
            if isinstance(found, Problem):
                yield found
                continue
            line, entry = found
            if entry.get("kind") == _INITIAL:
                session = prune_session(as_object(entry.get("v")))
            elif not _apply(session, entry):
                yield Problem("a change that does not fit what it changes", line)
        if session:
            yield from _session(session, origin)


# -- the log --------------------------------------------------------------------------


def _apply(session: JsonObject, entry: JsonObject) -> bool:
    """Make one change to a session; returns whether it could be made."""
    path, kind = as_list(entry.get("k")), entry.get("kind")
    if not path or kind not in (_SET, _PUSH, _DELETE):
        return False
    if not is_needed(path):
        # Not kept in the session, because it would fill the memory.
        return True
    value = prune_value(path, entry.get("v"))
    place: object = session
    for key in path[:-1]:
        place = _find(place, key)
    key = path[-1]
    if kind == _PUSH:
        return _push(place, key, as_list(value), entry.get("i"))
    is_in_list = isinstance(place, list) and _find(place, key) is not None
    if is_in_list or (isinstance(place, dict) and isinstance(key, str)):
        place[key] = value  # type: ignore[index]  # both take such a key
        return True
    return False


def _push(place: object, key: object, values: list[object], start: object) -> bool:
    """Add to a list, replacing what it has from ``start`` on."""
    if isinstance(place, dict) and isinstance(key, str) and place.get(key) is None:
        place[key] = []
    items = _find(place, key)
    if not isinstance(items, list):
        return False
    if isinstance(start, int) and start >= 0:
        del items[start:]
    items.extend(values)
    return True


def _find(place: object, key: object) -> object:
    if isinstance(place, dict) and isinstance(key, str):
        return place.get(key)
    if isinstance(place, list) and isinstance(key, int) and 0 <= key < len(place):
        found: object = place[key]
        return found
    return None


# -- a session ------------------------------------------------------------------------


def _find_project(path: Path, read: ReadBeside) -> dict[str, str]:
    """The folder of a session at ``workspaceStorage/<hash>/chatSessions/…``."""
    if not path.is_absolute() or path.parent.name != "chatSessions":
        return {}
    try:
        workspace = parse_json(read(path.parent.parent / "workspace.json"))
    except ValueError:
        return {}
    folder = as_text(as_object(workspace).get("folder"))
    project = to_path(folder) if folder else None
    return {"project": project} if project else {}


def _session(session: JsonObject, origin: Origin) -> Iterator[Item]:
    requests = as_list(session.get("requests"))
    if not requests:
        # Every window has an empty session, which is not reported.
        return
    session_id = as_text(session.get("sessionId"))
    if session_id is None:
        yield Problem(
            "a chat without a session id; what was exported is not read, "
            "only the editor's own files are"
        )
        return
    folder = as_text(session.get("workingDirectory"))
    yield SessionFacts(
        session_id,
        title=as_text(session.get("customTitle")),
        project=origin.beside.get("project") or (to_path(folder) if folder else None),
        started=origin.moment(session.get("creationDate")),
    )
    yield from read_requests(requests, session_id, origin)
