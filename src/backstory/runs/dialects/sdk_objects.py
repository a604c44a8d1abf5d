"""Convert messages and replies that are objects of a package to plain values.

The providers' packages return objects with ``model_dump``; people use dataclasses,
namespaces and our own values. A plain message is only copied if it contains such
objects.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import Any

from backstory.errors import BadQuery
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.json_values import JsonObject
from backstory.values.structs import Struct

# Fields that are not set are left out, as they would be when it is sent; a value that
# does not match its field's type is not our concern.
_WAYS_TO_DUMP: tuple[dict[str, Any], ...] = (
    {"mode": "json", "by_alias": True, "exclude_none": True, "warnings": False},
    {"by_alias": True, "exclude_none": True, "warnings": False},
    {"exclude_none": True},
    {},
)
_MARKS_OF_MESSAGES = ("role", "type")
_HINT = "give a dict with a role and its content, or the object that the API returned"


def to_plain(message: object) -> JsonObject:
    """The message as a dict; a dict of only plain values is returned as it is.

    Raises ``BadQuery`` for anything but a dict or an object with fields.
    """
    try:
        plain = _to_plain(message)
    except RecursionError:
        raise BadQuery("a message that is nested too deeply", hint=_HINT) from None
    if isinstance(plain, dict):
        return plain
    kind = one_line(neutralize(type(message).__name__), 60)
    raise BadQuery(f"a message that is a {kind}, not a dict", hint=_HINT)


# Any: JSON, and whatever is in its place.
def _to_plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return _same_or(value, {key: _to_plain(each) for key, each in value.items()})
    if isinstance(value, list):
        return _same_or(value, [_to_plain(each) for each in value])
    if isinstance(value, tuple):
        return [_to_plain(each) for each in value]
    found = _find_fields(value)
    return value if found is None else _to_plain(found)


def _same_or(value: Any, plain: Any) -> Any:
    """The value itself if nothing in it had to be converted."""
    pairs = (
        zip(value.values(), plain.values(), strict=True)
        if isinstance(value, dict)
        else zip(value, plain, strict=True)
    )
    return value if all(before is after for before, after in pairs) else plain


def _find_fields(value: object) -> dict[Any, Any] | None:
    """The fields of an object that is a message, or a part of one."""
    if isinstance(value, type):
        return None
    if isinstance(value, Mapping):
        return dict(value)
    if callable(getattr(value, "model_dump", None)):
        return _dump(value)
    if isinstance(value, Struct):
        named = {name: getattr(value, name) for name in value.__struct_fields__}
    elif is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
    else:
        named = getattr(value, "__dict__", {})
        is_namespace = isinstance(value, SimpleNamespace)
        if not is_namespace and not any(key in named for key in _MARKS_OF_MESSAGES):
            return None
    return {
        key: each
        for key, each in named.items()
        if each is not None and not key.startswith("_")
    }


# Any: an object of a package that we do not know.
def _dump(value: Any) -> dict[Any, Any] | None:
    for options in _WAYS_TO_DUMP:
        try:
            dumped = value.model_dump(**options)
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            continue
        return dumped if isinstance(dumped, dict) else None
    return None
