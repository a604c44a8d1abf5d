"""How well a hit answers by itself, and which hits are only noise."""

from collections.abc import Iterable, Mapping, Sequence

from backstory.search.rank import Candidate
from backstory.store.base.index import SearchIndex
from backstory.text.similarity import DUPLICATE_SHARE, overlap
from backstory.text.words import index_words, is_spaceless, word_set
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


def is_noise(query: Query, hit: Hit) -> bool:
    """Whether a hit does not help if anything better was found."""
    if query.days and not query.subject:
        # "Tuesday" may be a day, or what somebody said.
        return not (hit.is_on_named_day or _has_part(hit, "phrase"))
    # Someone who types a word or two wants to see those words.
    return (
        len(query.terms) <= _KEYWORDS
        and hit.strength is Strength.WEAK
        and not _has_part(hit, "coverage")
    )


def may_help(query: Query, candidate: Candidate) -> bool:
    """Whether a candidate may be more than noise, as far as the index can tell."""
    if query.days and not query.subject:
        return candidate.is_on_named_day or candidate.has_phrase
    return (
        len(query.terms) > _KEYWORDS
        or candidate.words > 0
        or judge_candidate(query, candidate, coverage=0.0) is not Strength.WEAK
    )


def may_be_strong(query: Query, candidate: Candidate) -> bool:
    """Whether a candidate may be strong, as far as the index can tell."""
    if candidate.words > 0:
        return True
    return judge_candidate(query, candidate, coverage=0.0) is Strength.STRONG


def choose_shown(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """The first hits; if they are all weak, strong ones after them take their places.

    They stay in order.
    """
    shown, rest = list(hits[:limit]), hits[limit:]
    if are_all_weak(shown):
        strong = [hit for hit in rest if hit.strength is Strength.STRONG][:limit]
        shown = shown[: limit - len(strong)] + strong
    return shown


def find_nearest(hits: Iterable[Hit], limit: int) -> list[Hit]:
    """The few best of hits that are all weak, without those that say the same."""
    nearest: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: -hit.score):
        words = word_set(hit.text)
        known = (overlap(words, word_set(each.text)) for each in nearest)
        if not any(share > DUPLICATE_SHARE for share in known):
            nearest.append(hit)
        if len(nearest) == min(limit, _MAX_WEAK):
            break
    return nearest


def are_all_weak(hits: Iterable[Hit]) -> bool:
    return all(hit.strength is Strength.WEAK for hit in hits)


def _has_part(hit: Hit, name: str) -> bool:
    return any(part.name == name and part.value > 0 for part in hit.parts)


def _is_spaceless(query: Query) -> bool:
    return bool(query.subject) and is_spaceless(query.subject[0].text[0])
