"""Which hits are worth putting into a prompt that did not ask for them.

A search answers a question; a reminder interrupts. So a hit must be near the prompt in
meaning and share rare words with it; and a hit from another project must be much
nearer. If there is one, other hits that a search ranks high may help as well.
docs/explanation/reminding.md says how the numbers were chosen.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from backstory.search.by_words import says_something
from backstory.search.projects import is_same_project
from backstory.search.strength import VERY_NEAR, nearness, worth
from backstory.values.history import Role
from backstory.values.hits import Hit, Strength

# A hit with less worth than this is left out.
_LEAST_WORTH = 0.75
# So is one that helps much less than the one that helps most.
_SHARE_OF_MOST = 0.85
# The weight of a hit from another project.
_OTHER_PROJECT_SHARE = 0.65
# The minimum total rarity of the words shared with the prompt, unless the hit is very
# near: "fix the lint errors" and "make the tests pass" are near to many answers.
_LEAST_RARITY = 0.6
# The minimum for a hit without a vector: more than one of the rarest words.
_LEAST_RARITY_ALONE = 1.1
# On a day that the prompt names, this share of these minimums is enough; without a
# vector, this share of the prompt's words.
_SHARE_ON_DAY = 0.6
_COVERAGE_ON_DAY = 0.5

_SAID_BY_NOBODY = (Role.TOOL_CALL, Role.TOOL_RESULT, Role.SYSTEM, Role.ERROR)


class _Judged(NamedTuple):
    """A hit, what it is worth by itself, and how high a search ranks it."""

    hit: Hit
    worth: float
    score: float

    @property
    def help(self) -> float:
        return math.sqrt(self.worth * self.score)


def choose_worthy(
    hits: Sequence[Hit], project: Path | None, *, asks_for_days: bool = False
) -> list[Hit]:
    """The hits that are worth it, best first; ``project`` is the prompt's.

    ``asks_for_days``: the prompt asks what was said or done on some days, and for
    nothing else.
    """
    hits = [hit for hit in hits if _says_something(hit, project)]
    on_days = [
        hit
        for hit in hits
        if _answers_on_day(hit, project)
        and (asks_for_days or _helps_on_day(hit, project))
    ]
    if on_days:
        return on_days
    judged = (_judge(hit, project) for hit in hits)
    worthy = [each for each in judged if each.worth >= _LEAST_WORTH]
    if not worthy:
        return []
    by_help = sorted(worthy, key=lambda each: -each.help)
    most = by_help[0].help
    chosen = [
        # The best by either measure, whatever the other one says.
        max(by_help, key=lambda each: each.worth),
        max(by_help, key=lambda each: each.score),
        *(each for each in by_help if each.help >= _SHARE_OF_MOST * most),
    ]
    return list({id(each.hit): each.hit for each in chosen}.values())


def _judge(hit: Hit, project: Path | None) -> _Judged:
    share = 1.0 if is_of_project(hit, project) else _OTHER_PROJECT_SHARE
    return _Judged(hit, _measure(hit, project), share * hit.score)


def _says_something(hit: Hit, project: Path | None) -> bool:
    if hit.role in _SAID_BY_NOBODY:
        return False
    # The outcome of a step makes the step no better, and the answer to a short question
    # concerns only its own project.
    is_asked = hit.role is Role.USER and is_of_project(hit, project)
    answer = hit.reply.text if hit.reply is not None and is_asked else ""
    return says_something(hit.text, answer, is_agentic=bool(hit.part("agentic")))


def _answers_on_day(hit: Hit, project: Path | None) -> bool:
    is_strong_enough = hit.strength is not Strength.WEAK
    return hit.is_on_named_day and is_strong_enough and is_of_project(hit, project)


def _helps_on_day(hit: Hit, project: Path | None) -> bool:
    # "The tests fail since Monday" does not ask for what was said on Monday.
    if hit.strength is Strength.STRONG:
        return True
    if not hit.part("cosine"):
        return hit.part("coverage") >= _COVERAGE_ON_DAY
    return _measure(hit, project, _SHARE_ON_DAY) >= _SHARE_ON_DAY * _LEAST_WORTH


def _measure(hit: Hit, project: Path | None, share: float = 1.0) -> float:
    """The worth of a hit; 0 if it lacks this share of the words that it needs."""
    is_ours = is_of_project(hit, project)
    rarity, cosine = hit.part("rarity"), hit.part("cosine")
    if not hit.parts:
        # Found without an index, as it was typed or with all its words.
        return 1.0 if is_ours else 0.0
    if not cosine:
        # No vector: the words alone must suffice.
        return 1.0 if is_ours and rarity >= _LEAST_RARITY_ALONE else 0.0
    near = nearness(cosine, hit.part("passage"))
    if rarity < share * _LEAST_RARITY and near < VERY_NEAR:
        return 0.0
    value = worth(near, rarity)
    return value if is_ours else _OTHER_PROJECT_SHARE * value


def is_of_project(hit: Hit, project: Path | None) -> bool:
    """Whether a hit may be of the prompt's project, as far as both are known."""
    if project is None or hit.project is None:
        return True
    return is_same_project(hit.project, project)
