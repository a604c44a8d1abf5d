"""The names of the files in an export.

They consist of letters, digits and dashes alone, whatever a session is called, so any
system can store them, and none leads out of the folder. Nothing is ever read or written
under a name that an export gives.
"""

import re
import unicodedata
from datetime import date
from pathlib import Path

from backstory.errors import BadQuery, show_value
from backstory.notes.find import parse_log_name
from backstory.system.files import has_text_name
from backstory.text.arguments import to_path
from backstory.values.history import Session
from backstory.values.identity import content_id

# The folders of an export, of which one alone can be imported.
ONLY = ("conversations", "notes")
MEMORY_NAME = "notes/MEMORY.md"
FACTS_NAME = "notes/facts.json"
README_NAME = "README.md"
# Written so that Git keeps every byte as it is, on every system.
GIT_NAME = ".gitattributes"
MARKDOWN_END = ".md"
DATA_END = ".backstory.jsonl"
UNDATED = "undated"

_CONVERSATION = re.compile(
    rf"conversations/(?:[0-9]{{4}}-[0-9]{{2}}|{UNDATED})/[a-z0-9-]{{1,100}}"
    r"\.(?:md|backstory\.jsonl)"
)
_SINGLE = frozenset({MEMORY_NAME, FACTS_NAME, README_NAME, GIT_NAME})
_NO_WORD = re.compile(r"[^a-z0-9]+")
_MAX_SLUG_CHARS = 50
_HASH_CHARS = 10
# No file system has longer ones.
_MAX_NAME_BYTES = 255


def to_place(path: str | Path) -> Path:
    """The path of an export. Raises ``BadQuery`` for what cannot be a path."""
    place = to_path(path, "path")
    if not str(place) or not has_text_name(place):
        raise BadQuery(f"path is {show_value(path)}, not the path of an export")
    if any(len(part.encode()) > _MAX_NAME_BYTES for part in Path(place).parts):
        raise BadQuery(f"path is {show_value(path)}, with too long a name in it")
    return Path(place)


def check_only(only: str | None) -> None:
    """Raise ``BadQuery`` unless it is one of the folders of an export, or none."""
    if only not in (None, *ONLY):
        raise BadQuery(f"only is {show_value(only)}", hint=f"use {' or '.join(ONLY)}")


def conversation_stem(session: Session, title: str) -> str:
    """The name of a conversation's files without their suffixes.

    The day and the title are for people; the hash tells two conversations apart.
    """
    at = session.started or session.last_active
    # In the time zone of the message, so that it is the same on every machine.
    day = at.in_own_zone().date().isoformat() if at else UNDATED
    month = day[:7] if at else UNDATED
    hash = content_id(session.host, session.native_id)[3 : 3 + _HASH_CHARS]
    parts = (day, _to_slug(title) or _to_slug(session.host), hash)
    return f"conversations/{month}/{'-'.join(part for part in parts if part)}"


def _to_slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text[:1_000]).encode("ascii", "ignore")
    words = _NO_WORD.sub("-", plain.decode().lower()).strip("-")
    if len(words) <= _MAX_SLUG_CHARS:
        return words
    return words[: _MAX_SLUG_CHARS + 1].rpartition("-")[0] or words[:_MAX_SLUG_CHARS]


def log_name(day: date) -> str:
    return f"notes/daily/{day.isoformat()}.md"


def is_export_name(name: str) -> bool:
    """Whether an export may have a file of this name."""
    return (
        name in _SINGLE
        or _CONVERSATION.fullmatch(name) is not None
        or parse_log_day(name) is not None
    )


def is_data(name: str) -> bool:
    """Whether a file has a conversation that can be imported."""
    return _CONVERSATION.fullmatch(name) is not None and name.endswith(DATA_END)


def parse_log_day(name: str) -> date | None:
    """The day of a daily log in an export; None for any other name."""
    folder, _, file = name.rpartition("/")
    return parse_log_name(file) if folder == "notes/daily" else None
