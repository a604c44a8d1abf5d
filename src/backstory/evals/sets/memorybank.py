"""MemoryBank: people and a companion (github.com/zhongwanjun/MemoryBank-SiliconFriend).

The set does not say what answers its questions. Only those that name a day can be
checked: every turn of that day is wanted.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from backstory.evals.questions import Case, Question, Turn, Wanted
from backstory.values.hits import HitSource

# All talks are from these months.
_YEAR = 2023
_MONTHS = {"April": 4, "Apr": 4, "May": 5}
_NAMED_DAY = re.compile(
    r"(?P<month>[45])月(?P<day>[0-9]{1,2})[日号]"
    r"|(?P<name>April|Apr|May) (?P<of>[0-9]{1,2})(?:st|nd|rd|th)?"
)


def read_memorybank(files: Iterable[Path]) -> Iterator[Case]:
    for file in files:
        language = file.stem.removeprefix("memory_bank_")
        asked = _read_questions(file.with_name(f"probing_questions_{language}.jsonl"))
        for person, kept in orjson.loads(file.read_bytes()).items():
            turns = tuple(_iter_turns(kept["history"]))
            name = f"memorybank {language} {person}"
            questions = _iter_questions(name, language, asked.get(person, []), turns)
            last = max(turn.sent_at for turn in turns)
            yield Case(name, turns, tuple(questions), last + timedelta(days=1))


def _read_questions(file: Path) -> dict[str, list[str]]:
    """The questions to each person, who have a line each."""
    asked: dict[str, list[str]] = {}
    for line in file.read_bytes().splitlines():
        if line.strip():
            asked |= orjson.loads(line)
    return asked


def _iter_turns(history: dict[str, list[dict[str, str]]]) -> Iterator[Turn]:
    for day, talk in history.items():
        morning = datetime.fromisoformat(day).replace(hour=9, tzinfo=UTC)
        for number, turn in enumerate(talk):
            sent_at = morning + timedelta(minutes=number)
            for role, field in (("user", "query"), ("assistant", "response")):
                name = f"{day}:{number}-{role}"
                yield Turn(name, day, role, turn.get(field, ""), sent_at)


def _iter_questions(
    name: str, language: str, asked: list[str], turns: tuple[Turn, ...]
) -> Iterator[Question]:
    for number, text in enumerate(asked, 1):
        day = _named_day(text)
        said = tuple(turn.name for turn in turns if turn.session == day)
        if day is not None and said:
            wanted = Wanted(messages=said, sessions=(day,))
            sources = (HitSource.MESSAGE,)
            yield Question(f"{name} {number}", text, language, wanted, sources=sources)


def _named_day(text: str) -> str | None:
    """The day that a question names; None if it names none or several."""
    days = {
        f"{_YEAR}-{int(each['month'] or _MONTHS[each['name']]):02}"
        f"-{int(each['day'] or each['of']):02}"
        for each in _NAMED_DAY.finditer(text)
    }
    return days.pop() if len(days) == 1 else None
