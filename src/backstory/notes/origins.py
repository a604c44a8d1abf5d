"""Where the facts of MEMORY.md come from: a record beside it, which holds no text.

A fact is identified by a hash of its words. So if a person rewrites a fact, it no
longer has an origin: it is theirs. The record is only read together with MEMORY.md, and
entries for facts that are no longer there are dropped when it is next written.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import date
from typing import Any

from backstory.notes.facts import list_facts
from backstory.values.identity import content_id
from backstory.values.notes import FactOrigin, Teller

ORIGINS_NAME = "origins.json"
# If a fact came up in very many sessions, the latest of them suffice.
MAX_ORIGINS = 20
_MAX_MESSAGES = 20
_VERSION = 1

# The origins of each fact, by the fact's key.
Origins = Mapping[str, tuple[FactOrigin, ...]]


def fact_key(fact: str) -> str:
    """The hash that identifies a fact; white space between words does not matter."""
    return content_id("fact", " ".join(fact.split()))


def parse_origins(raw: bytes | None) -> dict[str, tuple[FactOrigin, ...]]:
    """What the record says, as far as it can be read."""
    found: dict[str, tuple[FactOrigin, ...]] = {}
    with suppress(ValueError, RecursionError):
        held = json.loads(raw or b"{}")
        facts = held.get("facts") if isinstance(held, dict) else None
        for key, entries in facts.items() if isinstance(facts, dict) else ():
            if isinstance(entries, list):
                found[key] = tuple(filter(None, map(_parse_entry, entries)))
    return {key: origins for key, origins in found.items() if origins}


def write_origins(origins: Origins) -> bytes:
    """The record as a file, which people can read, too."""
    facts = {key: [_to_entry(each) for each in told] for key, told in origins.items()}
    held = {"version": _VERSION, "facts": facts}
    return f"{json.dumps(held, ensure_ascii=False, indent=1)}\n".encode()


def origins_of(text: str, origins: Origins) -> dict[str, tuple[FactOrigin, ...]]:
    """The origins of the facts in a text, by what they say; only facts that have any.

    The text is that of MEMORY.md.
    """
    facts = {fact.text: fact_key(fact.text) for fact in list_facts(text)}
    return {fact: origins[key] for fact, key in facts.items() if key in origins}


def carry_over(
    old: Origins,
    text: str,
    new: Mapping[str, Iterable[FactOrigin]],
) -> dict[str, tuple[FactOrigin, ...]]:
    """The record after a change: the facts in the text, and what is known about them.

    ``new`` are additional origins, by what the facts say.
    """
    keys = {fact_key(fact.text) for fact in list_facts(text)}
    kept = {key: told for key, told in old.items() if key in keys}
    for fact, told in new.items():
        if (key := fact_key(fact)) in keys:
            both = dict.fromkeys((*kept.get(key, ()), *told))
            kept[key] = tuple(both)[-MAX_ORIGINS:]
    return {key: told for key, told in kept.items() if told}


def drop(
    origins: Origins, is_meant: Callable[[FactOrigin], bool]
) -> dict[str, tuple[FactOrigin, ...]]:
    """The record without the origins that ``is_meant`` selects."""
    kept = {
        key: tuple(each for each in told if not is_meant(each))
        for key, told in origins.items()
    }
    return {key: told for key, told in kept.items() if told}


def _to_entry(origin: FactOrigin) -> dict[str, object]:
    return {
        "by": origin.by.value,
        "host": origin.host,
        "session": origin.session,
        "day": None if origin.day is None else origin.day.isoformat(),
        "messages": list(origin.messages[:_MAX_MESSAGES]),
    }


# Any: a file that a person may have changed; it is checked on reading.
def _parse_entry(entry: Any) -> FactOrigin | None:
    if not isinstance(entry, dict):
        return None
    try:
        by = Teller(entry["by"])
        day = None if entry.get("day") is None else date.fromisoformat(entry["day"])
    except (KeyError, TypeError, ValueError):
        return None
    host, session = entry.get("host"), entry.get("session")
    messages = entry.get("messages")
    return FactOrigin(
        by,
        host if isinstance(host, str) else None,
        session if isinstance(session, str) else None,
        day,
        tuple(
            each
            for each in (messages if isinstance(messages, list) else ())
            if type(each) is int
        ),
    )
