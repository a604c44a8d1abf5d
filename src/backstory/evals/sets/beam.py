"""BEAM: long chats with an assistant (github.com/mohammadtavakoli78/BEAM)."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from backstory.evals.questions import Case, Question, Turn, Wanted
from backstory.text.json_values import JsonObject
from backstory.values.hits import HitSource

_UNANSWERABLE = "abstention"
# In the user's messages, this comes before their place in the plan of the chat.
_PLAN = "->->"
# The day of messages before the first one with a date.
_FIRST_DAY = datetime(2024, 1, 1, 9, tzinfo=UTC)
_NUMBER = re.compile(r"[0-9]+")


def read_beam(chats: Iterable[Path]) -> Iterator[Case]:
    for chat in sorted(chats, key=_in_order):
        turns = tuple(_iter_turns(orjson.loads(chat.read_bytes())))
        asked = chat.parent / "probing_questions" / "probing_questions.json"
        name = f"beam {chat.parent.parent.name} {chat.parent.name}"
        questions = _iter_questions(name, orjson.loads(asked.read_bytes()), turns)
        yield Case(name, turns, tuple(questions), turns[-1].sent_at)


def _in_order(chat: Path) -> tuple[int, ...]:
    """Sort by the numbers in the path: chat 10 comes after chat 9."""
    parts = f"{chat.parent.parent.name} {chat.parent.name}"
    return tuple(map(int, _NUMBER.findall(parts)))


def _iter_turns(chat: Iterable[JsonObject]) -> Iterator[Turn]:
    # Only some messages have a date; those after them are from the same day.
    day = _FIRST_DAY
    for batch in chat:
        session = f"B{batch['batch_number']}"
        for message in (each for turn in batch["turns"] for each in turn):
            if anchor := message.get("time_anchor") or batch.get("time_anchor"):
                day = datetime.strptime(anchor, "%B-%d-%Y").replace(hour=9, tzinfo=UTC)
            yield Turn(
                f"{session}:{message['id']}",
                session,
                message["role"],
                message["content"].partition(_PLAN)[0].rstrip(),
                day + timedelta(seconds=message["id"]),
            )


def _iter_questions(
    name: str, asked: JsonObject, turns: Iterable[Turn]
) -> Iterator[Question]:
    by_number = {int(turn.name.rpartition(":")[2]): turn for turn in turns}
    for kind, rows in asked.items():
        for number, row in enumerate(rows, 1):
            numbers = sorted(_numbers(row.get("source_chat_ids")))
            evidence = [by_number[each] for each in numbers if each in by_number]
            if not evidence and kind != _UNANSWERABLE:
                continue
            wanted = Wanted(
                messages=tuple(turn.name for turn in evidence),
                sessions=tuple({turn.session: None for turn in evidence}),
            )
            yield Question(
                f"{name} {kind} {number}",
                row["question"],
                kind,
                wanted,
                sources=(HitSource.MESSAGE,),
            )


def _numbers(nested: object) -> set[int]:
    """All numbers in nested lists and dictionaries."""
    match nested:
        case int():
            return {nested}
        case dict():
            return _numbers(list(nested.values()))
        case list():
            return set().union(*map(_numbers, nested))
        case _:
            return set()
