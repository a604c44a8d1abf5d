"""Describe in a few words the content of a file that could not be understood."""

import codecs
import io
import re

import orjson

from backstory.ingest.parsing.json_lists import ListItem, begins_as_list, iter_items
from backstory.text.json_values import JsonObject

_MAX_KEYS = 6
_MAX_KEY_CHARS = 30
_KEY = re.compile(rb'"([^"\\]{1,60})"\s*:')


def describe_content(head: bytes) -> str | None:
    """What a file that begins with ``head`` seems to be, for people.

    None if there is nothing in it.
    """
    content = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not content:
        return None
    if content.startswith(b"SQLite format 3\0"):
        return "an SQLite database"
    if content.startswith(b"PK\x03\x04"):
        return "a zip file"
    if begins_as_list(head):
        items = (item for item in iter_items(io.BytesIO(head)) if item)
        first = next((item for item in items if isinstance(item, ListItem)), None)
        keys = _name_keys(first.fields) if first else _guess_keys(content)
        return f"a JSON list whose first item has {keys}" if keys else "a JSON list"
    if content.startswith(b"{"):
        return _describe_objects(content)
    try:
        # The head may end within a character.
        codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return "neither text nor JSON"
    return "text without JSON"


def _describe_objects(content: bytes) -> str:
    first, _, rest = content.partition(b"\n")
    try:
        record = orjson.loads(first)
    except orjson.JSONDecodeError:
        keys = _guess_keys(content)
        return f"a JSON object with {keys}" if keys else "something like JSON"
    kind = "JSON lines, the first" if rest.strip() else "a JSON object"
    keys = _name_keys(record)
    return f"{kind} with {keys}" if keys else f"{kind} without anything in it"


def _guess_keys(content: bytes) -> str:
    """The first names in JSON that is too long to be parsed here."""
    found = [key.decode("utf-8", "replace") for key in _KEY.findall(content)]
    return _name_keys(dict.fromkeys(found))


def _name_keys(record: JsonObject) -> str:
    keys = [f'"{key:.{_MAX_KEY_CHARS}}"' for key in record]
    more = len(keys) - _MAX_KEYS
    return ", ".join(keys[:_MAX_KEYS]) + (f" and {more:,} more" if more > 0 else "")
