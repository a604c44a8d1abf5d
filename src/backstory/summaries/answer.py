"""Read a model's answer as a summary, and show the summary in a daily log.

A model may answer anything, including what a text in the conversation told it to. So
whatever it says is reduced to a few short lines, in lists under headings of ours.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from backstory.notes.facts import DEFAULT_TOPIC
from backstory.text.cut import one_line
from backstory.text.escape import neutralize, replace_surrogates
from backstory.text.redaction import mask_secrets
from backstory.values.history import Session
from backstory.values.structs import FrozenStruct, fields, to_builtins

MAX_ITEM_CHARS = 400
MAX_ITEMS = 12
MAX_REMEMBERED = 5
_MAX_TOPIC_CHARS = 60
_MAX_TITLE_CHARS = 80

# What begins a block of Markdown; no item may begin with it.
_BLOCK_MARK = re.compile(r"^(?:[-*+>#|=~`\s]+|[0-9]{1,9}[.)]\s)+")


class BadAnswer(ValueError):
    """A model's answer does not have the form it was asked for."""


class NewFact(FrozenStruct):
    """A fact for MEMORY.md, and the topic to file it under.

    ``numbers`` are the numbers of the messages on which it rests, as the model claims;
    ``messages`` are the ids of the user's messages on which it does rest.
    """

    topic: str
    fact: str
    numbers: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()


class SummaryLists(FrozenStruct):
    """The lists that a summary consists of; any of them may be empty."""

    topics: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    tasks_done: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    remember: tuple[NewFact, ...] = ()

    @property
    def count(self) -> int:
        return sum(len(getattr(self, each.name)) for each in fields(self))


# The headings of the lists in a log, in this order.
_HEADINGS = {
    "topics": "Topics",
    "decisions": "Decisions",
    "tasks_done": "Done",
    "preferences": "Preferences",
    "facts": "Facts",
}


def parse_summary(answer: str) -> SummaryLists:
    """The lists in a model's answer, cleaned up.

    Raises ``BadAnswer`` if there is no JSON object with such lists in it.
    """
    found = parse_object(answer)
    if not found.keys() & {*_HEADINGS, "remember"}:
        raise BadAnswer("it has none of the lists that were asked for")
    lists = {name: _parse_items(name, found.get(name)) for name in _HEADINGS}
    return SummaryLists(**lists, remember=_parse_facts(found.get("remember")))


# Any: a model's JSON can hold anything anywhere; it is checked on reading.
def parse_object(answer: str) -> dict[str, Any]:
    """The JSON object in an answer, whatever text is around it."""
    first, last = answer.find("{"), answer.rfind("}")
    if not 0 <= first < last:
        raise BadAnswer("it contains no JSON object")
    try:
        value = json.loads(answer[first : last + 1])
    except (ValueError, RecursionError) as exc:
        raise BadAnswer(f"its JSON is not valid ({exc})") from exc
    assert isinstance(value, dict)
    return value


def tidy_line(value: object, *, max_chars: int = MAX_ITEM_CHARS) -> str:
    """A model's text as one line that is plain text in a Markdown list."""
    if not isinstance(value, str):
        return ""
    line = one_line(neutralize(replace_surrogates(value)), 4 * max_chars)
    line = _BLOCK_MARK.sub("", line)
    # A comment would hide what follows it.
    line = line.replace("<!--", "< !--").replace("-->", "-- >")
    # Masked before it is cut, or half a secret would not be recognized.
    return one_line(mask_secrets(line), max_chars)


def _parse_items(name: str, value: object) -> tuple[str, ...]:
    items: dict[str, str] = {}
    for each in _parse_list(name, value):
        if line := tidy_line(each):
            items.setdefault(line.casefold(), line)
    return tuple(items.values())[:MAX_ITEMS]


def _parse_facts(value: object) -> tuple[NewFact, ...]:
    facts: dict[str, NewFact] = {}
    for each in _parse_list("remember", value):
        if isinstance(each, str):
            each = {"fact": each}
        if not isinstance(each, dict):
            raise BadAnswer("an entry of 'remember' is not a fact")
        if fact := tidy_line(each.get("fact")):
            topic = _parse_topic(each.get("topic"))
            numbers = _parse_numbers(each.get("from"))
            facts.setdefault(fact.casefold(), NewFact(topic, fact, numbers))
    return tuple(facts.values())[:MAX_REMEMBERED]


def _parse_list(name: str, value: object) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise BadAnswer(f"'{name}' is not a list")
    return value


def _parse_numbers(value: object) -> tuple[int, ...]:
    named = value if isinstance(value, list) else [value]
    return tuple(each for each in named[:MAX_ITEMS] if type(each) is int)


def _parse_topic(value: object) -> str:
    return one_line(tidy_line(value), _MAX_TOPIC_CHARS).rstrip(":") or DEFAULT_TOPIC


# -- storing --------------------------------------------------------------------------


def to_json(lists: SummaryLists) -> str:
    return json.dumps(to_builtins(lists), ensure_ascii=False)


def from_json(text: str) -> SummaryLists:
    """Read what ``to_json`` wrote."""
    held: Mapping[str, Any] = json.loads(text)
    lists = {name: tuple(held[name]) for name in _HEADINGS}
    return SummaryLists(**lists, remember=tuple(map(_read_fact, held["remember"])))


def _read_fact(held: Mapping[str, Any]) -> NewFact:
    return NewFact(
        held["topic"],
        held["fact"],
        tuple(held.get("numbers", ())),
        tuple(held.get("messages", ())),
    )


def join(parts: Iterable[SummaryLists]) -> SummaryLists:
    """The lists of several summaries as one, without repeated items."""
    every = list(parts)
    return SummaryLists(
        **{
            each.name: tuple(
                dict.fromkeys(
                    item for part in every for item in getattr(part, each.name)
                )
            )
            for each in fields(SummaryLists)
        }
    )


# -- showing --------------------------------------------------------------------------


def heading_start(session: Session) -> str:
    """The beginning of the heading of a block about a session: title and host."""
    title = session.title or session.preview or session.native_id
    shown = one_line(mask_secrets(neutralize(title)), _MAX_TITLE_CHARS)
    return f"{shown.lstrip('#-*>+ ')} ({session.host}"


def to_markdown(lists: SummaryLists, heading: str) -> str:
    """The lists as a block of a daily log; empty if all of them are."""
    sections = [
        f"### {title}\n" + "\n".join(f"- {item}" for item in items)
        for name, title in _HEADINGS.items()
        if (items := getattr(lists, name))
    ]
    if not sections:
        return ""
    return "\n\n".join([f"## {heading}", *sections]) + "\n"
