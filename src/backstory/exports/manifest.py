"""manifest.json lists what an export has, to notice what is missing or changed."""

from collections.abc import Mapping
from typing import Any

import orjson

from backstory.errors import SourceUnreadable
from backstory.text.json_values import as_object
from backstory.text.patterns import lazy_pattern
from backstory.values.structs import FrozenStruct, field

MANIFEST_NAME = "manifest.json"
# Enough for more than a million conversations.
MAX_MANIFEST_BYTES = 500_000_000

_FORMAT = "backstory-export"
_VERSION = 1
_SHA256 = lazy_pattern("[0-9a-f]{64}")


class FileEntry(FrozenStruct):
    """The size of a file, and the SHA-256 of its content."""

    size_bytes: int
    sha256: str


class ConversationEntry(FrozenStruct):
    """A conversation, and the names of its two files."""

    host: str
    session: str
    title: str
    messages: int
    markdown: str
    data: str

    @property
    def key(self) -> tuple[str, str]:
        return self.host, self.session


class Manifest(FrozenStruct):
    """Everything that an export has.

    ``is_complete`` is false from when an export begins until all of it is written.
    Until then, ``files`` includes those that are about to be written, with None.
    """

    program: str
    is_complete: bool = True
    is_masked: bool = False
    conversations: tuple[ConversationEntry, ...] = ()
    files: Mapping[str, FileEntry | None] = field(default_factory=dict)

    @property
    def messages(self) -> int:
        return sum(each.messages for each in self.conversations)


def write_manifest(manifest: Manifest) -> bytes:
    """The manifest as a file. The same export always gives the same bytes."""
    held = {
        "format": _FORMAT,
        "version": _VERSION,
        "program": manifest.program,
        "complete": manifest.is_complete,
        "secrets": "masked" if manifest.is_masked else "kept",
        "sessions": len(manifest.conversations),
        "messages": manifest.messages,
        "conversations": [
            {
                "host": each.host,
                "session": each.session,
                "title": each.title,
                "messages": each.messages,
                "markdown": each.markdown,
                "data": each.data,
            }
            for each in manifest.conversations
        ],
        "files": {
            name: entry and {"bytes": entry.size_bytes, "sha256": entry.sha256}
            for name, entry in sorted(manifest.files.items())
        },
    }
    return orjson.dumps(held, option=orjson.OPT_INDENT_2) + b"\n"


def begins_manifest(beginning: bytes) -> bool:
    """Whether the first bytes of a file are those of a manifest."""
    return f'"format": "{_FORMAT}"'.encode() in beginning


def is_manifest(raw: bytes) -> bool:
    """Whether a file is the manifest of an export, of any version."""
    try:
        return as_object(orjson.loads(raw)).get("format") == _FORMAT
    except orjson.JSONDecodeError:
        return False


def parse_manifest(raw: bytes, name: str) -> Manifest:
    """Parse a manifest. Raises ``SourceUnreadable``; ``name`` is its path."""
    try:
        held = as_object(orjson.loads(raw))
    except orjson.JSONDecodeError as exc:
        raise SourceUnreadable(f"{name}: not valid JSON ({exc.msg})") from exc
    if held.get("format") != _FORMAT:
        raise SourceUnreadable(f"{name}: not the manifest of a Backstory export")
    version = held.get("version")
    if version != _VERSION:
        raise SourceUnreadable(
            f"{name}: version {version!r:.40} of the export format; this Backstory "
            f"reads version {_VERSION}",
            hint="upgrade this Backstory: pip install --upgrade backstory",
        )
    try:
        return _parse(held)
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise SourceUnreadable(
            f"{name}: not as an export writes it ({exc!r:.80})"
        ) from exc


# Any: JSON that anybody may have written; whatever is wrong with it raises.
def _parse(held: dict[str, Any]) -> Manifest:
    return Manifest(
        str(held["program"]),
        held["complete"] is True,
        held["secrets"] == "masked",
        tuple(map(_parse_conversation, held["conversations"])),
        {
            str(name): None if entry is None else _parse_entry(entry)
            for name, entry in held["files"].items()
        },
    )


def _parse_conversation(held: dict[str, Any]) -> ConversationEntry:
    names = ("host", "session", "title", "markdown", "data")
    host, session, title, markdown, data = (_to_text(held[name]) for name in names)
    return ConversationEntry(
        host, session, title, _to_count(held["messages"]), markdown, data
    )


def _parse_entry(held: dict[str, Any]) -> FileEntry:
    sha256 = _to_text(held["sha256"])
    if not _SHA256.fullmatch(sha256):
        raise ValueError("sha256")
    return FileEntry(_to_count(held["bytes"]), sha256)


def _to_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _to_count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError("not a count")
    return value
