"""A person's own questions about their own memory: a file of JSON lines.

A bad line is a problem with its number; the other lines are asked.
"""

from codecs import BOM_UTF8
from datetime import datetime
from pathlib import Path

import orjson

from backstory.errors import (
    BadQuery,
    SourceUnreadable,
    UnknownName,
    nearest_hint,
    show_value,
)
from backstory.evals.questions import Question, Wanted
from backstory.memory import Memory
from backstory.system.files import open_file
from backstory.text.arguments import MAX_QUERY_CHARS
from backstory.text.json_values import JsonObject
from backstory.values.history import Problem
from backstory.values.moments import parse_moment
from backstory.values.structs import replace

_FIELDS = (
    "question",
    "prompt",
    "text",
    "session",
    "message",
    "unanswerable",
    "kind",
    "id",
    "asked_at",
    "project",
)
_MAX_BYTES = 50_000_000


def read_questions(path: Path, memory: Memory) -> tuple[list[Question], list[Problem]]:
    """The questions in a file that ``memory`` can be asked, and problems with others.

    Raises ``SourceUnreadable``.
    """
    questions: list[Question] = []
    problems: list[Problem] = []
    for number, line in enumerate(_read_lines(path), 1):
        if not line.strip():
            continue
        try:
            questions.append(_look_up(memory, _parse_line(line, number)))
        except (ValueError, BadQuery, UnknownName) as exc:
            problems.append(Problem(str(exc), number, str(path)))
    return questions, problems


def _read_lines(path: Path) -> list[bytes]:
    try:
        with open_file(path) as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as exc:
        raise SourceUnreadable(f"{path}: {exc.strerror}") from exc
    if len(raw) > _MAX_BYTES:
        raise SourceUnreadable(f"{path}: it has more than {_MAX_BYTES:,} bytes")
    return raw.removeprefix(BOM_UTF8).split(b"\n")


def _parse_line(line: bytes, number: int) -> Question:
    """Parse a question. Raises ValueError, which says what is wrong."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise ValueError(f"not valid JSON ({exc.msg})") from None
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    for name in row:
        if name not in _FIELDS:
            raise ValueError(
                f"unknown field {show_value(name)}; {nearest_hint(name, _FIELDS)}"
            )
    is_prompt = "prompt" in row
    wanted = _wanted(row)
    return Question(
        _text(row, "id") or str(number),
        _asked(row),
        _text(row, "kind") or _default_kind(is_prompt, bool(wanted)),
        wanted,
        asked_at=_asked_at(row),
        project=_text(row, "project"),
        is_prompt=is_prompt,
    )


def _default_kind(is_prompt: bool, is_answerable: bool) -> str:
    if is_prompt:
        return "prompt" if is_answerable else "needless prompt"
    return "question" if is_answerable else "unanswerable"


def _asked(row: JsonObject) -> str:
    if ("question" in row) == ("prompt" in row):
        raise ValueError("it needs either a question or a prompt")
    name = "question" if "question" in row else "prompt"
    asked = _text(row, name)
    if asked is None:
        raise ValueError(f"'{name}' is null")
    if len(asked) > MAX_QUERY_CHARS:
        raise ValueError(f"'{name}' has more than {MAX_QUERY_CHARS:,} characters")
    return asked


def _wanted(row: JsonObject) -> Wanted:
    wanted = Wanted(
        messages=_texts(row, "message"),
        texts=_texts(row, "text"),
        sessions=_texts(row, "session"),
    )
    is_unanswerable = row.get("unanswerable", False)
    if not isinstance(is_unanswerable, bool):
        raise ValueError(
            f"'unanswerable' is {show_value(is_unanswerable)}, not true or false"
        )
    if wanted and is_unanswerable:
        raise ValueError("it is 'unanswerable', but says what answers it")
    if not wanted and not is_unanswerable:
        raise ValueError(
            "it does not say what answers it: give a text, a session or a message, "
            'or "unanswerable": true'
        )
    if wanted.messages and len(wanted.sessions) != 1:
        raise ValueError("a message needs the one session that it is in")
    return wanted


def _asked_at(row: JsonObject) -> datetime | None:
    written = row.get("asked_at")
    if written is None:
        return None
    moment = parse_moment(written)
    if moment is None:
        raise ValueError(
            f"'asked_at' is {show_value(written)}, not a time such as "
            "2026-03-02T09:00:00Z"
        )
    return moment.at


def _text(row: JsonObject, name: str) -> str | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"'{name}' is {show_value(value)}, not a text")
    return value


def _texts(row: JsonObject, name: str) -> tuple[str, ...]:
    """A text or a list of texts; message numbers become texts, too."""
    value = row.get(name)
    if value is None:
        return ()
    listed = value if isinstance(value, list) else [value]
    for each in listed:
        is_number = isinstance(each, int) and not isinstance(each, bool)
        is_text = isinstance(each, str) and each.strip()
        if not is_text and not (is_number and name == "message"):
            raise ValueError(f"'{name}' is {show_value(each)}, not a text")
    return tuple(map(str, listed))


def _look_up(memory: Memory, question: Question) -> Question:
    """The question with native ids in place of the names that the file uses.

    Raises ``UnknownName`` for anything that the memory does not have, and ``BadQuery``.
    """
    if question.project is not None:
        memory.sessions(project=question.project, limit=1)
    wanted = question.wanted
    sessions = [memory.session(name) for name in wanted.sessions]
    messages = [
        message.native_id
        for session in sessions
        for name in wanted.messages
        for message in memory.messages(session, around=name, context=0)
    ]
    return replace(
        question,
        wanted=replace(
            wanted,
            messages=tuple(messages),
            sessions=tuple(session.native_id for session in sessions),
        ),
    )
