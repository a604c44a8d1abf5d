"""JSON values written by other programs, in which anything may be anywhere."""

from collections.abc import Callable
from typing import Any

# Any: JSON written by other programs can hold anything anywhere; parsers check.
JsonObject = dict[str, Any]


# Python may refuse to convert longer numbers, whatever its limit is set to.
_MAX_DIGITS = 640


# Any: whatever the JSON holds.
def parse_leniently(
    text: str | bytes, report: Callable[[str], object] = lambda what: None
) -> Any:
    """The value of JSON text, even with some things in it that strict JSON refuses.

    Control characters may occur in strings. Numbers that have no value are replaced,
    and ``report`` is told. Raises ValueError or RecursionError for any other text.
    """

    def replace_constant(name: str) -> None:
        report(f"{name}, which is not valid JSON, became null")

    def parse_int(digits: str) -> int | str:
        if len(digits) <= _MAX_DIGITS:
            return int(digits)
        report(f"a number of {len(digits):,} digits became text")
        return digits

    # Slow to import, and rarely needed: orjson reads and writes almost everything.
    import json

    return json.loads(
        text, strict=False, parse_int=parse_int, parse_constant=replace_constant
    )


def compact_json(value: object) -> str:
    """A value as compact JSON text; text stays as it is."""
    if isinstance(value, str):
        return value
    # Slow to import, and most commands write no JSON.
    import orjson

    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        pass  # foreign types, numbers beyond 64 bits, or deeper than orjson goes
    # Slow to import, too, and rarely needed.
    import json

    try:
        return json.dumps(value, default=str, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError):
        return "[nested too deeply to be shown]"


def as_text(value: object) -> str | None:
    """The value if it is text that is not blank, else None."""
    return value if isinstance(value, str) and value.strip() else None


def as_object(value: object) -> JsonObject:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value if it is a JSON list, else an empty one."""
    return value if isinstance(value, list) else []


def plain_text(content: object) -> str:
    """The text of a content value: a string, or a list of blocks with text in them.

    Other blocks leave a mark (``[image]``), so that a reader knows about them.
    """
    if isinstance(content, str):
        return content
    parts: list[str] = []
    for block in as_list(content):
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, dict):
            text = block.get("text")
            if isinstance(text, str):
                parts.append(text)
            else:
                parts.append(f"[{block.get('type') or 'attachment'}]")
    return "\n".join(parts)
