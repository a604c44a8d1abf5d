"""Read JSON that another program keeps in a document or in a database column.

JavaScript may cut a string in the middle of a surrogate pair and write each half;
strict JSON refuses such text. The text is worth more than the rule it breaks, so it is
repaired.
"""

from typing import IO, Any

import orjson

from backstory.text.escape import replace_surrogates
from backstory.text.json_values import JsonObject, parse_leniently
from backstory.values.history import Problem

# Parsed, a document takes about six times its length in memory.
MAX_DOCUMENT_BYTES = 24 * 1024 * 1024


# Any: JSON written by other programs can hold anything; parsers check.
def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError with the reason for other text."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        try:
            return without_surrogates(parse_leniently(text))
        except (ValueError, RecursionError):
            raise ValueError(exc.msg) from exc


def without_surrogates(value: Any) -> Any:
    """The same JSON value with half characters replaced in all its strings."""
    match value:
        case str():
            return replace_surrogates(value)
        case list():
            return [without_surrogates(item) for item in value]
        case dict():
            return {
                replace_surrogates(key): without_surrogates(item)
                for key, item in value.items()
            }
        case _:
            return value


def read_object(
    file: IO[bytes], *, with_list: str | None = None
) -> tuple[JsonObject, Problem | None]:
    """Read a document that is one JSON object, and what is wrong with it.

    Empty if it cannot be read, or if nothing has been written into it yet; bytes that
    are not UTF-8 are replaced. An object without ``with_list``, its list of messages,
    is in another format.
    """
    content = file.read(MAX_DOCUMENT_BYTES + 1)
    if not content.strip():
        return {}, None
    if len(content) > MAX_DOCUMENT_BYTES:
        return {}, Problem(f"a document of more than {MAX_DOCUMENT_BYTES:,} bytes")
    try:
        text, problem = content.decode("utf-8"), None
    except UnicodeDecodeError:
        text = content.decode("utf-8", errors="replace")
        problem = Problem("bytes that are not UTF-8 were replaced")
    try:
        value = parse_json(text)
    except ValueError as exc:
        return {}, Problem(f"not valid JSON ({exc})")
    if not isinstance(value, dict):
        return {}, Problem("not a JSON object")
    if with_list is not None and not isinstance(value.get(with_list), list):
        return {}, Problem(f'unknown format: it has no list "{with_list}"')
    return value, problem
