"""How well a hit answers by itself, and which hits are only noise."""

from collections.abc import Iterable, Mapping, Sequence

from backstory.search.rank import Candidate
from backstory.store.base.index import SearchIndex
from backstory.text.words import index_words, is_spaceless
from backstory.values.hits import Hit, Strength
from backstory.values.query import Query, Term

_COVERAGE_CHARS = 20_000
# Up to this many terms are keywords; more are a question.
_KEYWORDS = 2
# How many hits are shown if none matches well.
_MAX_WEAK = 3


def measure_coverage(
    text: str, rarity: Mapping[Term, float], index: SearchIndex
) -> float:
    """The share of the query's words that a text has; the rare ones count more."""
    total = sum(rarity.values())
    if not total:
        return 0.0
    words = set(index.tokenize(index_words(text[:_COVERAGE_CHARS])))
    covered = 0.0
    for term, weight in rarity.items():
        spellings = map(index.tokenize, term.spellings)
        if any(words.issuperset(tokens) for tokens in spellings):
            covered += weight
    return covered / total


def judge_candidate(query: Query, candidate: Candidate, coverage: float) -> Strength:
    """How well a candidate answers by itself."""
    if not query.subject and candidate.is_on_named_day:
        return Strength.STRONG  # a day is all that was asked for
    return judge(
        coverage,
        candidate.cosine,
        has_phrase=candidate.has_phrase,
        is_lenient=candidate.is_on_named_day or _is_spaceless(query),
    )


def judge(
    coverage: float,
    cosine: float | None,
    *,
    has_phrase: bool,
    is_lenient: bool = False,
) -> Strength:
    """How well a hit answers by itself.

    ``coverage`` is the share of the query's words it has; the rare ones count more.
    The thresholds were measured on a public set of chats: of questions about the right
    chats, 1 in 100 finds only weak hits; of questions about other chats, 9 in 10 do.
    """
    near = -1.0 if cosine is None else cosine
    has_words = coverage >= 0.8 and (cosine is None or near >= 0.2)
    if has_phrase or has_words or near >= 0.6:
        return Strength.STRONG
    # On a named day, less is needed; and in scripts without spaces, half of the pairs
    # of characters that are searched for are not words.
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


def drop_noise(query: Query, hits: Sequence[Hit]) -> list[Hit]:
    """Leave out hits that would not help."""
    if query.days and not query.subject:
        # "Tuesday" may be a day, or what somebody said.
        return [hit for hit in hits if hit.is_on_named_day or _has_part(hit, "phrase")]
    if are_all_weak(hits):
        return list(hits[:_MAX_WEAK])
    if len(query.terms) <= _KEYWORDS:
        # Someone who types a word or two wants to see those words.
        return [
            hit
            for hit in hits
            if hit.strength is not Strength.WEAK or _has_part(hit, "coverage")
        ]
    return list(hits)


def are_all_weak(hits: Iterable[Hit]) -> bool:
    return all(hit.strength is Strength.WEAK for hit in hits)


def _has_part(hit: Hit, name: str) -> bool:
    return any(part.name == name and part.value > 0 for part in hit.parts)


def _is_spaceless(query: Query) -> bool:
    return bool(query.subject) and is_spaceless(query.subject[0].text[0])
