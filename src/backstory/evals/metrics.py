"""Compute scores from the answers to all questions of a kind.

Shares are from 0 to 1.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from backstory.evals.ask import Answered, PromptAnswer, SearchAnswer
from backstory.values.structs import FrozenStruct

ALL = "all"

AnyAnswer = TypeVar("AnyAnswer", SearchAnswer, PromptAnswer)
AnyScore = TypeVar("AnyScore")


class SearchScore(FrozenStruct):
    """Scores for questions that have an answer.

    ``hit_at_k``: one of the first k hits is right. ``recall_at_k``: the share of the
    wanted messages among the first k hits. ``gain_at_10``: nDCG, where every right hit
    counts 1. ``session_at_k``: one of the first k sessions is wanted; None if no
    question says in which session its answer is. ``reply_at_3``: one of the first three
    hits is right, or the reply that is shown with it.
    """

    kind: str
    part: str
    questions: int
    hit_at_1: float
    hit_at_3: float
    hit_at_10: float
    reciprocal_rank: float
    recall_at_5: float
    recall_at_10: float
    gain_at_10: float
    session_at_3: float | None
    session_at_5: float | None
    session_at_10: float | None
    reply_at_3: float
    weak: float


class UnansweredScore(FrozenStruct):
    """Scores for questions without an answer: all hits should be weak."""

    kind: str
    part: str
    questions: int
    weak: float


class PromptScore(FrozenStruct):
    """Scores for prompts that a memory helps.

    ``empty``: nothing was given. ``text``, ``message``, ``session``: a wanted one was
    given. ``precision``: the share of right memories among all that were given. A
    message is given with its reply, so either may be the right one.
    """

    kind: str
    part: str
    questions: int
    empty: float
    text: float
    message: float
    session: float | None
    precision: float
    mean_tokens: float


class NeedlessScore(FrozenStruct):
    """Scores for prompts that no memory helps: nothing should be given."""

    kind: str
    part: str
    questions: int
    empty: float
    mean_tokens: float


Score = SearchScore | UnansweredScore | PromptScore | NeedlessScore


class Scores(FrozenStruct):
    """All scores of one set, by kind."""

    questions: int = 0
    searches: tuple[SearchScore, ...] = ()
    unanswered: tuple[UnansweredScore, ...] = ()
    prompts: tuple[PromptScore, ...] = ()
    needless: tuple[NeedlessScore, ...] = ()
    median_search_ms: float = 0.0
    median_context_ms: float = 0.0


def score_answers(answers: Sequence[Answered]) -> Scores:
    """The scores of each kind, and of its parts, in the order of the questions."""
    searches = [each for each in answers if isinstance(each, SearchAnswer)]
    prompts = [each for each in answers if isinstance(each, PromptAnswer)]
    answered = [each for each in searches if each.question.wanted]
    unanswered = [each for each in searches if not each.question.wanted]
    helped = [each for each in prompts if each.question.wanted]
    needless = [each for each in prompts if not each.question.wanted]
    by_kind = _score_kinds(answered, _score_searches)
    if len({score.kind for score in by_kind}) > 1:
        by_kind.append(_score_searches(ALL, "", answered))
    return Scores(
        len(answers),
        tuple(by_kind),
        tuple(_score_kinds(unanswered, _score_unanswered)),
        tuple(_score_kinds(helped, _score_prompts)),
        tuple(_score_kinds(needless, _score_needless)),
        _median_ms(searches),
        _median_ms(prompts),
    )


def _score_kinds(
    answers: Sequence[AnyAnswer],
    score: Callable[[str, str, Sequence[AnyAnswer]], AnyScore],
) -> list[AnyScore]:
    kinds: dict[str, list[AnyAnswer]] = {}
    for answer in answers:
        kinds.setdefault(answer.question.kind, []).append(answer)
    scores = []
    for kind, chosen in kinds.items():
        scores.append(score(kind, "", chosen))
        parts = sorted({each.question.part for each in chosen} - {""})
        scores += [
            score(kind, part, [each for each in chosen if each.question.part == part])
            for part in parts
        ]
    return scores


# -- searches ---


def _score_searches(
    kind: str, part: str, answers: Sequence[SearchAnswer]
) -> SearchScore:
    ranks = [answer.rank for answer in answers]
    sessions = [each.session_rank for each in answers if each.question.wanted.sessions]
    return SearchScore(
        kind,
        part,
        len(answers),
        hit_at_1=_share_within(ranks, 1),
        hit_at_3=_share_within(ranks, 3),
        hit_at_10=_share_within(ranks, 10),
        reciprocal_rank=_mean(1 / rank if rank else 0 for rank in ranks),
        recall_at_5=_mean(_recall(answer, 5) for answer in answers),
        recall_at_10=_mean(_recall(answer, 10) for answer in answers),
        gain_at_10=_mean(_gain(answer, 10) for answer in answers),
        session_at_3=_share_within(sessions, 3) if sessions else None,
        session_at_5=_share_within(sessions, 5) if sessions else None,
        session_at_10=_share_within(sessions, 10) if sessions else None,
        reply_at_3=_mean(
            any(hit.is_right_with_reply for hit in answer.hits[:3])
            for answer in answers
        ),
        weak=_mean(answer.is_weak for answer in answers),
    )


def _recall(answer: SearchAnswer, first: int) -> float:
    """The share of the wanted messages that is found; without any, whether one is."""
    wanted = answer.question.wanted.messages
    if not wanted:
        return float(any(hit.is_right for hit in answer.hits[:first]))
    found = {hit.message for hit in answer.hits[:first]} - {None}
    return len(found) / len(set(wanted))


def _gain(answer: SearchAnswer, first: int) -> float:
    """The discounted gain of the first hits, divided by the highest possible one."""
    gain = sum(
        _discount(place)
        for place, hit in enumerate(answer.hits[:first])
        if hit.is_right
    )
    wanted = max(1, len(answer.question.wanted.messages))
    best = sum(_discount(place) for place in range(min(first, wanted)))
    # More hits may be right than there are wanted messages, because of wanted texts.
    return min(1.0, gain / best)


def _discount(place: int) -> float:
    return 1 / math.log2(place + 2)


def _score_unanswered(
    kind: str, part: str, answers: Sequence[SearchAnswer]
) -> UnansweredScore:
    weak = _mean(answer.is_weak for answer in answers)
    return UnansweredScore(kind, part, len(answers), weak)


# -- prompts ---


def _score_prompts(
    kind: str, part: str, answers: Sequence[PromptAnswer]
) -> PromptScore:
    sessions = [
        any(hit.is_in_session for hit in each.hits)
        for each in answers
        if each.question.wanted.sessions
    ]
    return PromptScore(
        kind,
        part,
        len(answers),
        empty=_mean(answer.is_empty for answer in answers),
        text=_mean(answer.has_text for answer in answers),
        message=_mean(
            any(hit.is_right_with_reply for hit in each.hits) for each in answers
        ),
        session=_mean(sessions) if sessions else None,
        precision=_mean(
            hit.is_right_with_reply for each in answers for hit in each.hits
        ),
        mean_tokens=_mean(answer.tokens for answer in answers),
    )


def _score_needless(
    kind: str, part: str, answers: Sequence[PromptAnswer]
) -> NeedlessScore:
    return NeedlessScore(
        kind,
        part,
        len(answers),
        empty=_mean(answer.is_empty for answer in answers),
        mean_tokens=_mean(answer.tokens for answer in answers),
    )


# -- numbers ---


def _share_within(ranks: Sequence[int | None], first: int) -> float:
    return _mean(rank is not None and rank <= first for rank in ranks)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def _median_ms(answers: Sequence[Answered]) -> float:
    return 1000 * statistics.median([each.took_s for each in answers] or [0.0])
