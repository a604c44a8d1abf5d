"""What is known about the facts of MEMORY.md besides what they say.

Where a fact comes from, and on which day it was first seen, is kept under a hash of its
words. An export refers to messages by their own ids, because their numbers are only
valid on one machine.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any

import orjson

from backstory.errors import SourceUnreadable
from backstory.notes.origins import fact_key
from backstory.store.base.history import HistoryStore, find_exactly_named
from backstory.text.json_values import as_list, as_object, as_text
from backstory.values.history import Message
from backstory.values.notes import FactOrigin, SeenNote, Teller
from backstory.values.structs import FrozenStruct, field, replace

MAX_FACTS_BYTES = 50_000_000


class KnownFacts(FrozenStruct):
    """Facts by their keys: where they come from, and when they were first seen.

    An origin comes with the ids of the messages that it rests on.
    """

    origins: Mapping[str, tuple[tuple[FactOrigin, tuple[str, ...]], ...]] = field(
        default_factory=dict
    )
    first_seen: Mapping[str, date] = field(default_factory=dict)


def gather_facts(
    history: HistoryStore,
    origins: Mapping[str, Iterable[FactOrigin]],
    *,
    mask: Callable[[str], str],
) -> KnownFacts:
    """Gather what is known; ``origins`` are keyed by the texts of facts."""
    numbers = [n for told in origins.values() for each in told for n in each.messages]
    messages = history.get_messages(numbers)
    return KnownFacts(
        {
            fact_key(mask(fact)): tuple(
                (replace(each, messages=()), _to_ids(each, messages)) for each in told
            )
            for fact, told in origins.items()
        },
        {
            fact_key(mask(note.text)): note.day
            for note in history.list_seen_notes().values()
            if note.text is not None
        },
    )


def _to_ids(origin: FactOrigin, messages: Mapping[int, Message]) -> tuple[str, ...]:
    return tuple(messages[n].native_id for n in origin.messages if n in messages)


def write_facts(known: KnownFacts) -> bytes:
    keys = sorted(known.origins.keys() | known.first_seen.keys())
    held = {key: _to_object(known, key) for key in keys}
    return orjson.dumps({"facts": held}, option=orjson.OPT_INDENT_2) + b"\n"


def _to_object(known: KnownFacts, key: str) -> dict[str, object]:
    seen = known.first_seen.get(key)
    return {
        "first_seen": None if seen is None else seen.isoformat(),
        "origins": [
            {
                "by": origin.by.value,
                "host": origin.host,
                "session": origin.session,
                "day": None if origin.day is None else origin.day.isoformat(),
                "messages": list(ids),
            }
            for origin, ids in known.origins.get(key, ())
        ],
    }


def parse_facts(raw: bytes, name: str) -> KnownFacts:
    """Parse a file; odd entries are left out. Raises ``SourceUnreadable``."""
    try:
        held = as_object(as_object(orjson.loads(raw)).get("facts"))
    except orjson.JSONDecodeError as exc:
        raise SourceUnreadable(f"{name}: not valid JSON ({exc.msg})") from exc
    origins = {}
    first_seen = {}
    for key, about in held.items():
        fields = as_object(about)
        told = filter(None, map(_parse_origin, as_list(fields.get("origins"))))
        if found := tuple(told):
            origins[key] = found
        day = _parse_day(fields.get("first_seen"))
        if day is not None:
            first_seen[key] = day
    return KnownFacts(origins, first_seen)


# Any: a file that anybody may have written.
def _parse_origin(entry: Any) -> tuple[FactOrigin, tuple[str, ...]] | None:
    fields = as_object(entry)
    try:
        by = Teller(as_text(fields.get("by")) or "")
    except ValueError:
        return None
    origin = FactOrigin(
        by,
        as_text(fields.get("host")),
        as_text(fields.get("session")),
        _parse_day(fields.get("day")),
    )
    return origin, tuple(filter(None, map(as_text, as_list(fields.get("messages")))))


def _parse_day(value: object) -> date | None:
    try:
        return date.fromisoformat(as_text(value) or "")
    except ValueError:
        return None


# -- importing them -------------------------------------------------------------------


def with_numbers(
    history: HistoryStore, known: KnownFacts
) -> dict[str, tuple[FactOrigin, ...]]:
    """The origins by key, with the numbers that their messages have here."""
    return {
        key: tuple(
            replace(origin, messages=_find_numbers(history, origin, ids))
            for origin, ids in told
        )
        for key, told in known.origins.items()
    }


def _find_numbers(
    history: HistoryStore, origin: FactOrigin, ids: Iterable[str]
) -> tuple[int, ...]:
    sessions = find_exactly_named(history, f"{origin.host}/{origin.session}")
    found = [
        history.find_message(session.session_id, each)
        for session in sessions[:1]
        for each in ids
    ]
    return tuple(message.message_id for message in found if message is not None)


def note_first_days(
    history: HistoryStore, days: Mapping[str, date], *, today: date
) -> None:
    """Remember the days of facts that were seen earlier than here."""

    def change(seen: Mapping[str, SeenNote]) -> list[SeenNote]:
        return [
            SeenNote(key, day, seen[key].text if key in seen else None)
            for key, day in sorted(days.items())
            if day <= today and (key not in seen or day < seen[key].day)
        ]

    history.change_seen_notes(change)
