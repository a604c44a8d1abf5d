"""LongMemEval: questions, each with sessions of its own to answer it from.

The format is that of the public files: github.com/xiaowu0162/LongMemEval, 2025.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import orjson

from backstory.evals.questions import Case, Question, Turn, Wanted
from backstory.text.json_values import JsonObject
from backstory.values.hits import HitSource

# The suffix of questions whose sessions only look as if they had an answer.
_UNANSWERABLE = "_abs"


def read_longmemeval(files: Iterable[Path]) -> Iterator[Case]:
    for file in files:
        for row in orjson.loads(file.read_bytes()):
            yield _to_case(row)


def _to_case(row: JsonObject) -> Case:
    turns: list[Turn] = []
    marked: list[str] = []
    talks = zip(
        row["haystack_session_ids"],
        row["haystack_dates"],
        row["haystack_sessions"],
        strict=True,
    )
    for session, began, talk in talks:
        # A filler session may occur twice; the numbers of its turns continue.
        said = sum(turn.session == session for turn in turns)
        for number, message in enumerate(talk, said):
            name = f"{session}:{number}"
            role, text = message["role"], message["content"]
            turns.append(Turn(name, session, role, text, _to_time(began)))
            if message.get("has_answer"):
                marked.append(name)
    sessions = tuple(row["answer_session_ids"])
    messages = marked or [turn.name for turn in turns if turn.session in sessions]
    wanted = Wanted(messages=tuple(messages), sessions=sessions)
    name = row["question_id"]
    question = Question(
        name,
        row["question"],
        row["question_type"],
        Wanted() if name.endswith(_UNANSWERABLE) else wanted,
        sources=(HitSource.MESSAGE,),
    )
    asked_at = _to_time(row["question_date"])
    return Case(f"longmemeval {name}", tuple(turns), (question,), asked_at)


def _to_time(written: str) -> datetime:
    """Parse a time such as ``2023/05/20 (Sat) 02:21``."""
    return datetime.strptime(written, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
