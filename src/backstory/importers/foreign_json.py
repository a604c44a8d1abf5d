"""Read JSON that another program keeps in a document or in a database column.

JavaScript cuts strings between the two halves of a character and writes each half down;
strict JSON refuses such text. What was written is worth more than the rule it breaks.
"""

import json
from typing import Any

import orjson


# Any: JSON written by other programs can hold anything; parsers check.
def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError with the reason for other text."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        try:
            return json.loads(text, strict=False)
        except (ValueError, RecursionError):
            raise ValueError(exc.msg) from exc
