"""Questions, what answers them, and the memories that are asked."""

import random
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from backstory.values.hits import HitSource
from backstory.values.structs import FrozenStruct, replace

STRAY = "stray"
_MOST_STRAYS = 20


class Wanted(FrozenStruct):
    """What answers a question; a question that nothing answers wants nothing.

    A hit is right if it is one of the ``messages``, which must be in the ``sessions``,
    or contains one of the ``texts``, whatever their white space. With ``is_verbatim``,
    only a text counts, letter by letter. If only sessions are given, any hit in one of
    them or in a subagent's is right. All ids are native ids.
    """

    messages: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    is_verbatim: bool = False

    def __bool__(self) -> bool:
        return bool(self.messages or self.texts or self.sessions)


class Question(FrozenStruct):
    """A query to search for, or a prompt for which to be reminded.

    ``part`` divides a kind further; ``asked_at`` is the time at which it is asked, if
    it differs from that of the memory. ``project`` restricts a search; for a prompt, it
    is the folder that the prompt is about.
    """

    name: str
    text: str
    kind: str
    wanted: Wanted = Wanted()
    part: str = ""
    asked_at: datetime | None = None
    project: str | None = None
    is_prompt: bool = False
    sources: tuple[HitSource, ...] | None = None


class Turn(FrozenStruct):
    """A message in a public set, with the set's own name for it."""

    name: str
    session: str
    role: str
    text: str
    sent_at: datetime


class Case(FrozenStruct):
    """Questions and the memory to ask them of.

    ``content`` is what that memory is made from: turns to record, or a person's home
    folder to read. Without ``asked_at``, questions are asked three weeks after the last
    message.
    """

    name: str
    content: tuple[Turn, ...] | Path
    questions: tuple[Question, ...]
    asked_at: datetime | None = None


def only_kinds(cases: Iterable[Case], kinds: Sequence[str]) -> list[Case]:
    """The cases with only the questions of these kinds; all if none is given."""
    chosen = [
        replace(
            case,
            questions=tuple(
                each for each in case.questions if not kinds or each.kind in kinds
            ),
        )
        for case in cases
    ]
    return [case for case in chosen if case.questions]


def list_kinds(cases: Iterable[Case]) -> list[str]:
    """The kinds of all questions, in the order in which they come."""
    return list(dict.fromkeys(q.kind for case in cases for q in case.questions))


def add_strays(cases: Sequence[Case]) -> list[Case]:
    """Ask each memory some questions about the next one, which it cannot answer."""
    others = [*cases[1:], *cases[:1]]
    if len(cases) < 2:
        return list(cases)
    return [
        replace(case, questions=(*case.questions, *_strays(other)))
        for case, other in zip(cases, others, strict=True)
    ]


def _strays(other: Case) -> list[Question]:
    answered = [question for question in other.questions if question.wanted]
    step = max(1, len(answered) // _MOST_STRAYS)
    return [
        replace(question, kind=STRAY, part="", wanted=Wanted())
        for question in answered[::step]
    ]


def shuffle_labels(cases: Sequence[Case], seed: int) -> list[Case]:
    """Give each question the answer of another question of its case.

    A score that stays high with these labels does not measure what was found.
    """
    chance = random.Random(seed)
    return [replace(case, questions=_shuffled(case, chance)) for case in cases]


def _shuffled(case: Case, chance: random.Random) -> tuple[Question, ...]:
    questions = list(case.questions)
    places = [at for at, question in enumerate(questions) if question.wanted]
    chance.shuffle(places)
    # In a circle, the next question is always a different one, unless there is only
    # one.
    for at, other in zip(places, [*places[1:], *places[:1]], strict=True):
        wanted = case.questions[other].wanted
        questions[at] = replace(questions[at], wanted=wanted)
    return tuple(questions)
