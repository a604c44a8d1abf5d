"""Log lines as JSON, without anything that a person or an agent wrote.

Of a message that any part of the program logs, only the fixed words are kept, without
the values in it; of an error, its kind and where it happened, without its text, which
may quote something. Of a database that cannot be reached, it is also said what to do.
"""

import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO

import orjson

from backstory.errors import StoreUnreachable

REQUESTS = "backstory.serve.requests"
_MAX_FRAMES = 20


class JsonLines(logging.Formatter):
    """Writes a record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": str(record.msg)[:200],
        }
        if record.name == REQUESTS and isinstance(record.args, dict):
            line |= record.args
        if record.exc_info and record.exc_info[0] is not None:
            kind, error, where = record.exc_info
            line["error"] = kind.__name__
            if isinstance(error, StoreUnreachable):
                # It is one of a few sentences, so it quotes nothing.
                line["hint"] = error.hint
            line["where"] = _list_frames(where)
        return orjson.dumps(line).decode()


def _list_frames(where: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(where)[-_MAX_FRAMES:]
    return [f"{each.filename}:{each.lineno} {each.name}" for each in frames]


def log_as_json(stream: TextIO = sys.stderr) -> None:
    """Have everything that this process logs written as JSON lines."""
    writer = logging.StreamHandler(stream)
    writer.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [writer]
    root.setLevel(logging.WARNING)
    logging.getLogger(REQUESTS).setLevel(logging.INFO)
    logging.getLogger("backstory.serve").setLevel(logging.INFO)
    # Its lines would contain addresses with queries in them.
    logging.getLogger("uvicorn.access").disabled = True
