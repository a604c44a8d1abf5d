"""Sort what was found, and record why.

Everything that was found is scored both by words and by meaning before it is compared;
age never takes a score below a floor. Hits that contain the query as typed come before
all that only resemble it. The spec's formulas, which do none of this, are in
``spec_profile``.

A session is agentic if tools were used in it. There, most of what an agent says are
steps ("Let me run the tests"): close to many questions, the answer to none. So how much
a message says is judged by its length and by whether a tool was used right after it,
and what it is about, by the request it answers, not by its neighbours.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple, TypeVar

from backstory.search.retrieve import Retrieved, to_span, to_utc_span
from backstory.search.weights import Weights
from backstory.store.base.index import BestPassage, TurnPart, Unit
from backstory.values.hits import HIT_SOURCES, HitSource, ScorePart
from backstory.values.moments import EPOCH
from backstory.values.query import DayRange, Query
from backstory.values.units import OF_A_DAY, UNSPOKEN, Container, UnitKind

# How much a message's session adds to it.
_SESSION_SHARE = 0.3
# How much a message's neighbours add to it; the next but one often has the same
# speaker.
_BESIDE_SHARE = 0.1
_NEXT_BUT_ONE_SHARE = 0.05
# The share of the best passage of a long message; the rest is the whole message.
_PASSAGE_SHARE = 0.2
# A cosine below this is not a good fit, even if it is the best one.
_GOOD_COSINE = 0.4
# A cosine above this is some fit, even if it is the lowest.
UNRELATED_COSINE = 0.2
# A named day or week beats any wording from another time. A month or a year only beats
# a slightly better one: it often says when something happened, and it was told later.
_SHORT_DAYS = 7
_SHORT_BONUS = 1.0
_LONG_BONUS = 0.3
_PHRASE_BONUS = 0.3
# The meaning score of a unit without a vector, as a share of its word score.
_UNEMBEDDED_SHARE = 0.6
# What was said counts more than a tool's output or a summary.
_ROLE_WEIGHTS = {UnitKind.SUMMARY: 0.9, UnitKind.OTHER: 0.6, UnitKind.TASK: 0.6}
# In a chat, a long answer touches on many things; the question says what it is about.
_LONG_ANSWER_BYTES = 500
_LONG_ANSWER_WEIGHT = 0.75
# In an agentic session, the weights of very short messages, and the sizes between which
# it rises to one. What an agent says right before it uses a tool is a step.
_STEP_WEIGHT, _ANSWER_WEIGHT = 0.5, 0.75
_FEW_BYTES, _ANSWER_BYTES = 60, 300
# A shorter step only announces the next call: "Now let me run the tests" is no exact
# match of "run the tests". Whoever types more words than this means just these.
_STEP_BYTES = 150
_FEW_WORDS = 3
_NOD_WEIGHT, _NOD_BYTES, _REQUEST_BYTES = 0.8, 15, 60
# If a query names one of several people, the weight of what the others said.
_OTHERS_WEIGHT = 0.8
# How much the request adds to a message of the agent that answers it.
_REQUEST_SHARE = 0.1
_DAY_US = 86_400e6
_NOT_SAID = UNSPOKEN | {UnitKind.SESSION}

_PARTS = (
    "words",
    "meaning",
    "session",
    "beside",
    "phrase",
    "day",
    "fit",
    "source",
    "role",
    "age",
    "exact",
)

Key = TypeVar("Key")

_NO_TURN = TurnPart()


class Candidate(NamedTuple):
    """Something a retriever found, and how well it fits by each scorer.

    A tuple, because hundreds are made for every search.

    ``group`` is the session it belongs to. ``words`` is BM25 (0 if it has no word of
    the query), ``cosine`` is None if it has no vector. ``role_weight`` is less than one
    for what nobody said, such as a tool's output. ``request_id`` is the message of the
    user that a message of an agentic session answers, and ``is_step`` says that a tool
    was used right after it. ``passage`` is the nearest passage of a long message.
    ``was_said`` is false for tool calls and results, and for titles and previews.
    """

    unit_id: int
    source: HitSource
    group: Container
    words: float = 0.0
    cosine: float | None = None
    has_phrase: bool = False
    is_on_named_day: bool = False
    age_days: float | None = None
    role_weight: float = 1.0
    position: int = 0
    is_agentic: bool = False
    request_id: int | None = None
    is_step: bool = False
    passage: BestPassage | None = None
    was_said: bool = True


class Ranked(NamedTuple):
    """A candidate with its score in [0, 1], and the numbers it was made from.

    ``parts`` is made on demand: hundreds are ranked, but only about ten are explained.
    """

    candidate: Candidate
    score: float
    names: tuple[str, ...] = ()
    values: tuple[float, ...] = ()

    @property
    def parts(self) -> tuple[ScorePart, ...]:
        return tuple(map(ScorePart, self.names, self.values))

    def part(self, name: str) -> float:
        return self.values[self.names.index(name)]


# The candidates of each session and file.
_Groups = Sequence[Sequence[Candidate]]


def to_candidates(
    query: Query,
    found: Retrieved,
    *,
    now: datetime,
    said_by_others: Collection[int] = frozenset(),
) -> list[Candidate]:
    """What was found, with everything that the score depends on.

    ``said_by_others`` are messages by anyone but the person whom the query names.
    """
    now_us = (now - EPOCH) / timedelta(microseconds=1)
    with_text = set(found.with_text)
    is_plain = not query.phrases and 1 < len(query.terms) <= _FEW_WORDS
    on_days = _find_on_days(query, found.units.values())

    def to_candidate(unit: Unit) -> Candidate:
        unit_id, kind, container, position, said_at, size = unit
        is_agentic = container in found.agentic
        part = found.turn_parts.get(unit_id, _NO_TURN)
        # Positional, because keywords would take as long as everything else here.
        return Candidate(
            unit_id,
            HIT_SOURCES[kind],
            container,
            found.words.get(unit_id, 0.0),
            found.cosines.get(unit_id),
            unit_id in with_text
            and not (is_plain and part.is_step and size < _STEP_BYTES),
            unit_id in on_days,
            None if said_at is None else max(0.0, now_us - said_at) / _DAY_US,
            _role_weight(kind, size, is_agentic, part.is_step)
            * (_OTHERS_WEIGHT if unit_id in said_by_others else 1.0),
            position,
            is_agentic,
            part.request_id,
            part.is_step,
            found.passages.get(unit_id),
            kind not in _NOT_SAID,
        )

    return [to_candidate(unit) for unit in found.units.values()]


def _find_on_days(query: Query, units: Iterable[Unit]) -> frozenset[int]:
    """The units of the days that the query names."""
    if not query.days:
        return frozenset()
    spans = [to_span(days) for days in query.days]
    utc_spans = [to_utc_span(days) for days in query.days]
    return frozenset(
        unit.unit_id
        for unit in units
        if unit.said_at is not None
        and any(
            first <= unit.said_at < end
            for first, end in (utc_spans if unit.kind in OF_A_DAY else spans)
        )
    )


# Many units have the same size, and logarithms take time.
@lru_cache(maxsize=4_096)
def _role_weight(kind: UnitKind, size: int, is_agentic: bool, is_step: bool) -> float:
    match kind:
        case UnitKind.ASSISTANT if is_agentic:
            lowest = _STEP_WEIGHT if is_step else _ANSWER_WEIGHT
            return _rise(size, lowest, _FEW_BYTES, _ANSWER_BYTES)
        case UnitKind.USER if is_agentic:
            return _rise(size, _NOD_WEIGHT, _NOD_BYTES, _REQUEST_BYTES)
        case UnitKind.ASSISTANT if size > _LONG_ANSWER_BYTES:
            return _LONG_ANSWER_WEIGHT
    return _ROLE_WEIGHTS.get(kind, 1.0)


def _rise(size: int, lowest: float, low: int, high: int) -> float:
    """From ``lowest`` to 1, by the logarithm of a size from ``low`` to ``high``."""
    share = math.log(max(size, low) / low) / math.log(high / low)
    return lowest + (1 - lowest) * min(1.0, share)


def rank(
    candidates: Sequence[Candidate],
    weights: Weights,
    *,
    has_vectors: bool,
    wants_recent: bool = False,
    days: Sequence[DayRange] = (),
) -> list[Ranked]:
    """All candidates, best first; ties are broken by age, then by id.

    ``days`` are those that the query names. If some candidates are exact matches, they
    get the upper half of the scores.
    """
    words = divide_by_best({each.unit_id: each.words for each in candidates})
    meaning = _normalize_cosines(
        {
            each.unit_id: _mix(each.cosine, each.passage)
            for each in candidates
            if each.cosine is not None
        }
    )
    fits = words
    if has_vectors:
        fits = {}
        shares = {source: weights.words_share(source) for source in HitSource}
        for each in candidates:
            unit_id = each.unit_id
            by_words = words[unit_id]
            by_meaning = meaning.get(unit_id, _UNEMBEDDED_SHARE * by_words)
            share = shares[each.source]
            fits[unit_id] = share * by_words + (1 - share) * by_meaning
    groups = _group(candidates)
    support = _session_support(groups, fits)
    beside = _beside_support(groups, fits)
    exact = find_exact(candidates)
    is_short = all((each.last - each.first).days < _SHORT_DAYS for each in days)
    day_bonus = _SHORT_BONUS if is_short else _LONG_BONUS
    # The sum of all that can be added, so that no score exceeds one.
    whole = (
        1
        + _SESSION_SHARE
        + _BESIDE_SHARE
        + 2 * _NEXT_BUT_ONE_SHARE
        + _PHRASE_BONUS
        + day_bonus * any(each.is_on_named_day for each in candidates)
    )
    source_weights = {source: weights.of(source) for source in HitSource}
    ranked = []
    for each in candidates:
        unit_id = each.unit_id
        is_exact = unit_id in exact
        added = (
            fits[unit_id]
            + _SESSION_SHARE * support[unit_id]
            + beside[unit_id]
            + _PHRASE_BONUS * each.has_phrase
            + day_bonus * each.is_on_named_day
        )
        factors = (
            added / whole,
            source_weights[each.source],
            each.role_weight,
            # If several contain exactly what was typed, the newest is wanted first.
            weights.age_factor(each.age_days, wants_recent=wants_recent or is_exact),
        )
        score = math.prod(factors)
        if exact:
            score = (is_exact + score) / 2
        values = (
            words[unit_id],
            meaning.get(unit_id, 0.0),
            support[unit_id],
            beside[unit_id],
            float(each.has_phrase),
            float(each.is_on_named_day),
            *factors,
            float(is_exact),
        )
        ranked.append(Ranked(each, score, _PARTS, values))
    return sorted(ranked, key=best_first)


def find_exact(candidates: Sequence[Candidate]) -> frozenset[int]:
    """The candidates that contain what was typed; those with it as words, if any."""
    typed = [each for each in candidates if each.has_phrase]
    whole = [each for each in typed if each.words > 0]
    return frozenset(each.unit_id for each in whole or typed)


def _group(candidates: Iterable[Candidate]) -> _Groups:
    groups: defaultdict[Container, list[Candidate]] = defaultdict(list)
    for each in candidates:
        groups[each.group].append(each)
    return list(groups.values())


def _session_support(groups: _Groups, fits: Mapping[int, float]) -> dict[int, float]:
    """How well the session of each candidate fits: as well as its best message."""
    best_fits = {}
    for number, members in enumerate(groups):
        best_fit = 0.0
        for each in members:
            if each.source is HitSource.MESSAGE:
                best_fit = max(best_fit, fits[each.unit_id])
        best_fits[number] = best_fit
    best = divide_by_best(best_fits)
    return {
        each.unit_id: best[number]
        for number, members in enumerate(groups)
        for each in members
    }


def _beside_support(groups: _Groups, fits: Mapping[int, float]) -> dict[int, float]:
    """What the messages before and after each message add to it.

    In an agentic session, only the request adds to the messages that answer it.
    """
    added: dict[int, float] = {}
    for members in groups:
        at = {
            each.position: fits[each.unit_id]
            for each in members
            if not each.is_agentic and each.source is HitSource.MESSAGE
        }
        for each in members:
            if each.is_agentic:
                request = fits.get(each.request_id or 0, 0.0)
                added[each.unit_id] = _REQUEST_SHARE * request
            elif each.source is HitSource.MESSAGE:
                place = each.position
                nearest = max(at.get(place - 1, 0.0), at.get(place + 1, 0.0))
                next_but_one = at.get(place - 2, 0.0) + at.get(place + 2, 0.0)
                added[each.unit_id] = (
                    _BESIDE_SHARE * nearest + _NEXT_BUT_ONE_SHARE * next_but_one
                )
            else:
                added[each.unit_id] = 0.0
    return added


def _mix(cosine: float, passage: BestPassage | None) -> float:
    """How near a message is: as a whole and, if it is long, by its best passage."""
    if passage is None:
        return cosine
    return (1 - _PASSAGE_SHARE) * cosine + _PASSAGE_SHARE * passage.cosine


def _normalize_cosines(cosines: Mapping[int, float]) -> dict[int, float]:
    """Scale to 0 to 1, from the lowest to the best, or to fixed limits beyond these."""
    lowest = min([*cosines.values(), UNRELATED_COSINE])
    best = max([*cosines.values(), _GOOD_COSINE])
    return {key: (cosine - lowest) / (best - lowest) for key, cosine in cosines.items()}


def divide_by_best(scores: Mapping[Key, float]) -> dict[Key, float]:
    """Scores divided by the best; all 0 if none is above 0."""
    best = max(scores.values(), default=0.0)
    if best <= 0:
        return dict.fromkeys(scores, 0.0)
    return {key: max(0.0, score) / best for key, score in scores.items()}


def best_first(ranked: Ranked) -> tuple[float, float, int]:
    """A sort key; ties are broken by age, then by id."""
    age = ranked.candidate.age_days
    return (-ranked.score, math.inf if age is None else age, -ranked.candidate.unit_id)
