"""Lists as one bound value, to be read with ``json_each``.

A statement with one question mark for each number would be prepared anew for every
length, and SQLite allows only so many of them.
"""

from collections.abc import Iterable

import orjson


def to_json(values: Iterable[int | str | tuple[int | str, ...]]) -> str:
    return orjson.dumps(list(values)).decode()
