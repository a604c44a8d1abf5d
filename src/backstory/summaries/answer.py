"""What a model found worth writing down of a conversation, and how a log shows it.

A model may answer anything, also what somebody in the conversation told it to. So its
answer is taken for texts of one line each, under headings of ours, and for nothing
else: whatever it says, it can add lines to lists, few and short.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from backstory.notes.facts import DEFAULT_TOPIC
from backstory.text.cut import one_line
from backstory.text.escape import neutralise, replace_surrogates
from backstory.text.redaction import mask_secrets
from backstory.values.history import Session

MAX_ITEM_CHARS = 400
MAX_ITEMS = 12
MAX_REMEMBERED = 5
_MAX_TOPIC_CHARS = 60
_MAX_TITLE_CHARS = 80

# The marks that begin a block of Markdown; an item begins with none of them.
_BLOCK_MARK = re.compile(r"^(?:[-*+>#|=~`\s]+|[0-9]{1,9}[.)]\s)+")
_OBJECT = re.compile(r"\{.*\}", re.S)


class BadAnswer(ValueError):
    """A model's answer is not in the form that was asked for."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something to be known in every conversation, and the topic it belongs under."""

    topic: str
    fact: str


@dataclass(frozen=True, slots=True)
class Highlights:
    """The lists that a summary consists of; any may be empty."""

    topics: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    tasks_done: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    remember: tuple[Fact, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not any(getattr(self, each.name) for each in fields(self))


# How the lists are called in a log, in this order.
_HEADINGS = {
    "topics": "Topics",
    "decisions": "Decisions",
    "tasks_done": "Done",
    "preferences": "Preferences",
    "facts": "Facts",
}


def read_highlights(answer: str) -> Highlights:
    """The highlights in a model's answer, tidied.

    Raises ``BadAnswer`` when there is no JSON object with the lists in it.
    """
    found = read_object(answer)
    if not found.keys() & {*_HEADINGS, "remember"}:
        raise BadAnswer("it has none of the lists that were asked for")
    lists = {name: _items(name, found.get(name)) for name in _HEADINGS}
    remember: dict[str, Fact] = {}
    for each in _list("remember", found.get("remember")):
        if isinstance(each, str):
            each = {"fact": each}
        if not isinstance(each, dict):
            raise BadAnswer("'remember' holds something that is no fact")
        fact = tidy_line(each.get("fact"))
        if fact:
            remember.setdefault(fact.casefold(), Fact(_topic(each.get("topic")), fact))
    kept = tuple(remember.values())[:MAX_REMEMBERED]
    return Highlights(**lists, remember=kept)


# Any: a model's JSON can hold anything anywhere; it is checked on reading.
def read_object(answer: str) -> dict[str, Any]:
    """The JSON object in an answer, whatever stands around it."""
    found = _OBJECT.search(answer)
    if found is None:
        raise BadAnswer("there is no JSON object in it")
    try:
        value = json.loads(found.group())
    except (ValueError, RecursionError) as exc:
        raise BadAnswer(f"its JSON cannot be read ({exc})") from exc
    assert isinstance(value, dict)
    return value


def tidy_line(value: object) -> str:
    """A text of a model as one line that begins no Markdown but a plain item."""
    if not isinstance(value, str):
        return ""
    line = one_line(neutralise(replace_surrogates(value)), 4 * MAX_ITEM_CHARS)
    line = _BLOCK_MARK.sub("", line)
    # A comment would hide what follows it.
    line = line.replace("<!--", "< !--").replace("-->", "-- >")
    # Masked before it is cut: half a secret is not known for one.
    return one_line(mask_secrets(line), MAX_ITEM_CHARS)


def _items(name: str, value: object) -> tuple[str, ...]:
    items: dict[str, str] = {}
    for each in _list(name, value):
        if line := tidy_line(each):
            items.setdefault(line.casefold(), line)
    return tuple(items.values())[:MAX_ITEMS]


def _list(name: str, value: object) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise BadAnswer(f"'{name}' is no list")
    return value


def _topic(value: object) -> str:
    return one_line(tidy_line(value), _MAX_TOPIC_CHARS).rstrip(":") or DEFAULT_TOPIC


# -- keeping --------------------------------------------------------------------------


def to_json(highlights: Highlights) -> str:
    return json.dumps(asdict(highlights), ensure_ascii=False)


def from_json(text: str) -> Highlights:
    """What ``to_json`` wrote."""
    held: Mapping[str, Any] = json.loads(text)
    lists = {name: tuple(held[name]) for name in _HEADINGS}
    return Highlights(
        **lists, remember=tuple(Fact(**each) for each in held["remember"])
    )


def join(parts: Iterable[Highlights]) -> Highlights:
    """The highlights of several stretches as one, each thing once."""
    every = list(parts)
    return Highlights(
        **{
            each.name: tuple(
                dict.fromkeys(
                    item for part in every for item in getattr(part, each.name)
                )
            )
            for each in fields(Highlights)
        }
    )


# -- showing --------------------------------------------------------------------------


def heading_start(session: Session) -> str:
    """How the heading of every block about a session begins: title and program."""
    title = session.title or session.preview or session.native_id
    shown = one_line(mask_secrets(neutralise(title)), _MAX_TITLE_CHARS)
    return f"{shown.lstrip('#-*>+ ')} ({session.host}"


def to_markdown(highlights: Highlights, heading: str) -> str:
    """The block of a daily log; empty when there is nothing to tell."""
    sections = [
        f"### {title}\n" + "\n".join(f"- {item}" for item in items)
        for name, title in _HEADINGS.items()
        if (items := getattr(highlights, name))
    ]
    if not sections:
        return ""
    return "\n\n".join([f"## {heading}", *sections]) + "\n"
