"""Put what was found in order, and keep the explanation.

Two profiles. ``tuned`` scores everything that any retriever found both by words and by
meaning, and only then compares; what is old is never worth less than a floor. ``spec``
is the literal reading of the designs: each list divided by its best, a miss in a list
counts nothing, and age counts in full.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from backstory.values.hits import HitSource, ScorePart, Strength

# What the rest of a session adds to what was said in it.
_SESSION_SHARE = 0.3
# What the messages right beside one add to it: the next but one is often by the same.
_BESIDE_SHARE = 0.1
_NEXT_BUT_ONE_SHARE = 0.05
# A cosine below this is no fit, even where it is the best there is.
_GOOD_COSINE = 0.4
# What is left of the oldest when the query asks for the recent.
_RECENT_FLOOR = 0.7
# A named day beats a somewhat better wording on another day.
_DAY_BONUS = 0.3
_PHRASE_BONUS = 0.3
# A unit without a vector is taken to mean about what its words say.
_UNEMBEDDED_SHARE = 0.6

_TUNED_PARTS = (
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
)
_DESIGNED_PARTS = ("fit", "source", "age")

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each thing counts; the designs' values are the defaults."""

    words: float = 0.3
    message_words: float = 0.4
    sources: Mapping[HitSource, float] | None = None
    decay_per_day: float = 0.01
    decay_floor: float = 0.95
    profile: str = "tuned"

    def words_share(self, source: HitSource) -> float:
        """What words count against meaning."""
        is_talk = source in (HitSource.MESSAGE, HitSource.SESSION)
        return self.message_words if is_talk else self.words

    def of(self, source: HitSource) -> float:
        return (self.sources or SOURCE_WEIGHTS)[source]

    def age_factor(
        self, age_days: float | None, *, wants_recent: bool = False
    ) -> float:
        """What age leaves of a score: all of it today, never less than the floor."""
        if age_days is None:
            return 1.0
        decay = math.exp(-self.decay_per_day * max(0.0, age_days))
        floor = min(self.decay_floor, _RECENT_FLOOR if wants_recent else 1.0)
        if self.profile == "spec":
            floor = 0.0
        return floor + (1 - floor) * decay


SOURCE_WEIGHTS = {
    HitSource.MEMORY: 1.0,
    HitSource.DAILY_LOG: 1.0,
    HitSource.MESSAGE: 0.6,
    HitSource.SESSION: 0.5,
    HitSource.GUIDANCE: 1.0,
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something a retriever found, and how well it fits by each scorer.

    ``group`` is the session it belongs to. ``words`` is BM25 (0 without a word of the
    query), ``cosine`` None when it has no vector. ``role_weight`` is less than one for
    what nobody said, such as a tool's output.
    """

    unit_id: int
    source: HitSource
    group: int
    words: float = 0.0
    cosine: float | None = None
    has_phrase: bool = False
    is_on_named_day: bool = False
    age_days: float | None = None
    role_weight: float = 1.0
    position: int = 0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score in [0, 1] and how that came about.

    Of hundreds that are ranked, ten are explained: only those need ``parts``.
    """

    candidate: Candidate
    score: float
    names: tuple[str, ...] = ()
    values: tuple[float, ...] = ()

    @property
    def parts(self) -> tuple[ScorePart, ...]:
        return tuple(map(ScorePart, self.names, self.values))


def rank(
    candidates: Sequence[Candidate],
    weights: Weights,
    *,
    has_vectors: bool,
    wants_recent: bool = False,
) -> list[Ranked]:
    """All candidates, best first; equal scores go by age, then by number."""
    order = rank_as_designed if weights.profile == "spec" else _rank_tuned
    ranked = order(
        candidates, weights, has_vectors=has_vectors, wants_recent=wants_recent
    )
    return sorted(ranked, key=_order)


def _order(ranked: Ranked) -> tuple[float, float, int]:
    age = ranked.candidate.age_days
    return (-ranked.score, math.inf if age is None else age, -ranked.candidate.unit_id)


# -- tuned ----------------------------------------------------------------------------


def _rank_tuned(
    candidates: Sequence[Candidate],
    weights: Weights,
    *,
    has_vectors: bool,
    wants_recent: bool,
) -> list[Ranked]:
    words = _from_zero({each.unit_id: each.words for each in candidates})
    meaning = _normalise_cosines(
        {each.unit_id: each.cosine for each in candidates if each.cosine is not None}
    )
    fits: dict[int, float] = {}
    for each in candidates:
        by_words = words[each.unit_id]
        if has_vectors:
            by_meaning = meaning.get(each.unit_id, _UNEMBEDDED_SHARE * by_words)
            share = weights.words_share(each.source)
            fits[each.unit_id] = share * by_words + (1 - share) * by_meaning
        else:
            fits[each.unit_id] = by_words
    support = _session_support(candidates, fits)
    beside = _beside_support(candidates, fits)
    # Everything that can be added, so that no score passes one.
    whole = (
        1
        + _SESSION_SHARE
        + _BESIDE_SHARE
        + 2 * _NEXT_BUT_ONE_SHARE
        + _PHRASE_BONUS
        + _DAY_BONUS * any(each.is_on_named_day for each in candidates)
    )
    ranked = []
    for each in candidates:
        added = (
            fits[each.unit_id]
            + _SESSION_SHARE * support.get(each.group, 0.0)
            + beside[each.unit_id]
            + _PHRASE_BONUS * each.has_phrase
            + _DAY_BONUS * each.is_on_named_day
        )
        factors = (
            added / whole,
            weights.of(each.source),
            each.role_weight,
            weights.age_factor(each.age_days, wants_recent=wants_recent),
        )
        values = (
            words[each.unit_id],
            meaning.get(each.unit_id, 0.0),
            support.get(each.group, 0.0),
            beside[each.unit_id],
            float(each.has_phrase),
            float(each.is_on_named_day),
            *factors,
        )
        ranked.append(Ranked(each, math.prod(factors), _TUNED_PARTS, values))
    return ranked


def _session_support(
    candidates: Iterable[Candidate], fits: Mapping[int, float]
) -> dict[int, float]:
    """How well each session fits as a whole: as its best unit does."""
    by_group: dict[int, list[float]] = {}
    for each in candidates:
        if each.source is HitSource.MESSAGE:
            by_group.setdefault(each.group, []).append(fits[each.unit_id])
    return _from_zero({group: max(found) for group, found in by_group.items()})


def _beside_support(
    candidates: Iterable[Candidate], fits: Mapping[int, float]
) -> dict[int, float]:
    """What the fits of the messages before and after each add to it."""
    at = {
        (each.group, each.position): fits[each.unit_id]
        for each in candidates
        if each.source is HitSource.MESSAGE
    }
    added = {}
    for each in candidates:
        around = [
            at.get((each.group, each.position + step), 0.0) for step in (-2, -1, 1, 2)
        ]
        added[each.unit_id] = (
            _BESIDE_SHARE * max(around[1:3])
            + _NEXT_BUT_ONE_SHARE * (around[0] + around[3])
            if each.source is HitSource.MESSAGE
            else 0.0
        )
    return added


def _normalise_cosines(cosines: Mapping[int, float]) -> dict[int, float]:
    """From 0, the least, to 1, the best, if the best is good."""
    if not cosines:
        return {}
    least = min(cosines.values())
    best = max(*cosines.values(), _GOOD_COSINE)
    if best == least:
        return dict.fromkeys(cosines, 1.0)
    return {key: (cosine - least) / (best - least) for key, cosine in cosines.items()}


def normalise(scores: Mapping[Key, float]) -> dict[Key, float]:
    """Scores from 0, the least, to 1, the best; all 1 when they are all the same."""
    if not scores:
        return {}
    least, best = min(scores.values()), max(scores.values())
    if best == least:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - least) / (best - least) for key, score in scores.items()}


def _from_zero(scores: Mapping[Key, float]) -> dict[Key, float]:
    """Scores divided by the best; all 0 when there is none above 0."""
    best = max(scores.values(), default=0.0)
    if best <= 0:
        return dict.fromkeys(scores, 0.0)
    return {key: max(0.0, score) / best for key, score in scores.items()}


# -- as the designs have it -----------------------------------------------------------


def rank_as_designed(
    candidates: Sequence[Candidate],
    weights: Weights,
    *,
    has_vectors: bool,
    wants_recent: bool = False,
) -> list[Ranked]:
    """The literal formulas: normalise each source by its best, weigh, let it age."""
    ranked = []
    for sources in (
        {HitSource.MEMORY, HitSource.DAILY_LOG, HitSource.GUIDANCE},
        {HitSource.MESSAGE},
        {HitSource.SESSION},
    ):
        found = [each for each in candidates if each.source in sources]
        if HitSource.MEMORY in sources:
            fits = blend_by_best(
                {each.unit_id: each.words for each in found if each.words > 0},
                {e.unit_id: e.cosine for e in found if e.cosine is not None},
                weights.words,
            )
            fits = _from_zero({e.unit_id: fits.get(e.unit_id, 0.0) for e in found})
        else:
            # A text has what was asked for or has not: there is nothing in between.
            fits = dict.fromkeys((each.unit_id for each in found), 1.0)
        for each in found:
            factors = (
                fits[each.unit_id],
                weights.of(each.source),
                weights.age_factor(each.age_days),
            )
            ranked.append(Ranked(each, math.prod(factors), _DESIGNED_PARTS, factors))
    return ranked


def blend_by_best(
    words: Mapping[int, float], cosines: Mapping[int, float], words_weight: float
) -> dict[int, float]:
    """Each list divided by its best, then weighed; words alone without vectors."""
    return _blend(_from_zero(words), _from_zero(cosines), words_weight)


def rank_by_range(candidates: Sequence[Candidate], weights: Weights) -> list[Ranked]:
    """The literal formula of memory_search: both lists as ranges, weighed and added."""
    fits = blend_by_range(
        {each.unit_id: each.words for each in candidates if each.words > 0},
        {e.unit_id: e.cosine for e in candidates if e.cosine is not None},
        weights.message_words,
    )
    return sorted(
        (
            Ranked(each, score, ("fit",), (score,))
            for each in candidates
            for score in (fits.get(each.unit_id, 0.0),)
        ),
        key=_order,
    )


def blend_by_range(
    words: Mapping[int, float], cosines: Mapping[int, float], words_weight: float
) -> dict[int, float]:
    """Each list from its least to its best, then weighed; words alone without vectors.

    Unlike ``tuned``, what is missing from a list has nothing from it.
    """
    return _blend(normalise(words), normalise(cosines), words_weight)


def _blend(
    words: dict[int, float], meaning: Mapping[int, float], words_weight: float
) -> dict[int, float]:
    if not meaning:
        return words
    return {
        unit_id: words_weight * words.get(unit_id, 0.0)
        + (1 - words_weight) * meaning.get(unit_id, 0.0)
        for unit_id in words.keys() | meaning.keys()
    }


# -- how strong -----------------------------------------------------------------------


def judge(
    coverage: float,
    cosine: float | None,
    *,
    has_phrase: bool,
    is_lenient: bool = False,
) -> Strength:
    """How well a hit answers by itself.

    ``coverage`` is the share of the query's words it has, the rare ones counting more.
    The borders were read off a public set of chats: of questions put to the right
    chats 1 in 100 finds only weak hits, of those put to wrong ones 9 in 10.
    """
    near = -1.0 if cosine is None else cosine
    has_words = coverage >= 0.8 and (cosine is None or near >= 0.2)
    if has_phrase or has_words or near >= 0.6:
        return Strength.STRONG
    # On a named day less is needed; and of two-character words half are none.
    enough, near_enough = (0.25, 0.3) if is_lenient else (0.5, 0.42)
    is_weak = coverage < enough and near < near_enough
    return Strength.WEAK if is_weak else Strength.FAIR


def is_relevant(coverage: float, candidate: Candidate, words: float) -> bool:
    """Whether a hit has anything to do with the query at all.

    ``words`` is how well the words in it and around it fit, from 0 to 1.
    """
    near = -1.0 if candidate.cosine is None else candidate.cosine
    return (
        candidate.has_phrase
        or candidate.is_on_named_day
        or coverage > 0.15
        or near >= 0.3
        or words >= 0.5
    )
