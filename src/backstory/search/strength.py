"""How well a hit answers by itself, and which hits are only noise."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from backstory.search.rank import UNRELATED_COSINE, Candidate
from backstory.store.base.index import SearchIndex
from backstory.text.similarity import DUPLICATE_SHARE, overlap
from backstory.text.words import index_words, is_spaceless, word_set
from backstory.values.hits import Hit, Strength
from backstory.values.query import Query, Term
from backstory.values.structs import FrozenStruct

_COVERAGE_CHARS = 20_000
# How much the best passage of a long message counts, if it is nearer than the whole.
_PASSAGE_SHARE = 0.3
# Up to this many terms are keywords; more make a question.
_KEYWORDS = 2
# A hit with this share of the words has all that matter.
_ALL_WORDS = 0.8
# A hit with less worth than this is weak, unless it is this near in meaning alone.
_ENOUGH_WORTH = 0.65
_NEAR = 0.45
# A hit this near in meaning needs no words.
VERY_NEAR = 0.6
# A name with this share of the highest possible rarity is rare: in a memory of 4,000
# messages, at most four have it.
_RARE_NAME = 0.75
_MIN_NAME_PART = 5
# How much the rarest possible word counts.
_RAREST_WORD = 9.0
# How many of the best by words, and by meaning, are examined for a strong answer. A
# long text may have all the words and still score low.
_PROMISING_BY_WORDS = 100
_PROMISING_BY_MEANING = 20


class Coverage(FrozenStruct):
    """How many of the query's words a text has; rare ones count more.

    ``share`` is from 0 to 1; ``rarity`` is the sum of the words' rarities, where 1 is
    the rarity of a word that nothing has. ``lacks_name``: the query has a rare name
    that the text lacks.
    """

    share: float = 0.0
    rarity: float = 0.0
    lacks_name: bool = False


_FULL_COVERAGE = Coverage(1.0, math.inf)


class CoverageMeter:
    """Measures which of a query's words texts have.

    ``rarity`` has the rarity of each word; ``highest`` is the rarity of a word that
    nothing has. ``names`` are those of the words that name something.
    """

    def __init__(
        self,
        rarity: Mapping[Term, float],
        highest: float,
        index: SearchIndex,
        names: Collection[Term],
    ) -> None:
        self._rarity = rarity
        self._total = sum(rarity.values())
        self._highest = highest
        self._index = index
        self._tokens = {
            term: [frozenset(index.tokenize(each)) for each in term.spellings]
            for term in rarity
        }
        self._rare_names = [
            term for term in names if rarity.get(term, 0.0) >= _RARE_NAME * highest
        ]

    def measure(self, passage: str, text: str) -> Coverage:
        """Which words the best passage of a text has, and which names all of it has."""
        if not self._total:
            return Coverage()
        words = self._words_of(passage)
        covered = 0.0
        for term, rarity in self._rarity.items():
            if self._has(term, words):
                covered += rarity
        lacking = [each for each in self._rare_names if not self._has_name(each, words)]
        if lacking and len(passage) < len(text):
            words = self._words_of(text)
            lacking = [name for name in lacking if not self._has_name(name, words)]
        return Coverage(covered / self._total, covered / self._highest, bool(lacking))

    def _words_of(self, text: str) -> set[str]:
        return set(self._index.tokenize(index_words(text[:_COVERAGE_CHARS])))

    def _has(self, term: Term, words: set[str]) -> bool:
        return any(tokens <= words for tokens in self._tokens[term])

    def _has_name(self, name: Term, words: set[str]) -> bool:
        """Whether a name is among some words, or a longer or shorter form of it.

        Elastic and Elasticsearch are the same.
        """
        if self._has(name, words):
            return True
        spelled = {
            word
            for tokens in self._tokens[name]
            for word in tokens
            if len(word) >= _MIN_NAME_PART
        }
        longer = tuple(spelled)
        shorter = {
            word[:length]
            for word in spelled
            for length in range(_MIN_NAME_PART, len(word))
        }
        return not shorter.isdisjoint(words) or any(
            word.startswith(longer) for word in words
        )

    def find_covering(self, share: float, unit_ids: Collection[int]) -> frozenset[int]:
        """Which of some units may cover this share, as far as the index can tell."""
        if not self._total:
            return frozenset()
        needed = [
            term.spellings
            for term, rarity in self._rarity.items()
            if (self._total - rarity) / self._total < share
        ]
        if not needed:
            return frozenset(unit_ids)
        return frozenset(self._index.having_words(needed, unit_ids))


def judge_candidate(query: Query, candidate: Candidate, coverage: Coverage) -> Strength:
    """How well a candidate answers by itself."""
    if not query.subject and candidate.is_on_named_day:
        return Strength.STRONG  # the query asks for nothing but a day
    return judge(
        coverage,
        _nearness(candidate),
        has_phrase=candidate.has_phrase,
        was_said=candidate.was_said,
        is_lenient=candidate.is_on_named_day or _is_spaceless(query),
    )


def _nearness(candidate: Candidate) -> float | None:
    cosine, passage = candidate.cosine, candidate.passage
    if cosine is None or passage is None:
        return cosine
    return nearness(cosine, passage.cosine)


def nearness(cosine: float, passage: float) -> float:
    """A cosine, increased if the best passage of a long message is nearer."""
    return cosine + _PASSAGE_SHARE * max(0.0, passage - cosine)


def judge(
    coverage: Coverage,
    cosine: float | None,
    *,
    has_phrase: bool,
    was_said: bool = True,
    is_lenient: bool = False,
) -> Strength:
    """How well a hit answers by itself.

    The thresholds were measured on public sets of chats and of agents' transcripts; see
    docs/explanation/ranking.md.
    """
    near = -1.0 if cosine is None else cosine
    has_words = coverage.share >= _ALL_WORDS
    is_related = cosine is None or near >= UNRELATED_COSINE
    if has_phrase or (has_words and is_related) or near >= VERY_NEAR:
        return Strength.STRONG
    if has_words:
        return Strength.FAIR
    if is_lenient:
        # On a named day, less is needed; and in scripts without spaces, half of the
        # pairs of characters in the query are not words.
        is_weak = coverage.share < 0.25 and near < 0.3
    elif coverage.lacks_name or not was_said:
        # What tools return has some of the words of most questions about a project.
        is_weak = True
    elif cosine is None:
        is_weak = coverage.share < 0.5
    else:
        is_weak = cosine < _NEAR and worth(cosine, coverage.rarity) < _ENOUGH_WORTH
    return Strength.WEAK if is_weak else Strength.FAIR


def worth(cosine: float, rarity: float) -> float:
    """How much a hit has to do with the query, in meaning and in words.

    One without the other is worth little: much is near in meaning to any question in
    its field, and shares common words with it.
    """
    return cosine * math.log1p(_RAREST_WORD * rarity)


def is_relevant(coverage: float, candidate: Candidate, words: float) -> bool:
    """Whether a hit has anything to do with the query at all.

    ``words`` is how well the words in and around it fit, from 0 to 1.
    """
    near = -1.0 if candidate.cosine is None else candidate.cosine
    return (
        candidate.has_phrase
        or candidate.is_on_named_day
        or coverage > 0.15
        or near >= UNRELATED_COSINE
        or words >= 0.5
    )


def is_noise(query: Query, hit: Hit) -> bool:
    """Whether a hit does not help if anything better was found."""
    if query.days and not query.subject:
        # "Tuesday" may be a date, or a word that somebody said.
        return not (hit.is_on_named_day or _has_part(hit, "phrase"))
    # People who type a word or two want to see exactly those words.
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
        or judge_candidate(query, candidate, Coverage()) is not Strength.WEAK
    )


def find_promising(
    query: Query, candidates: Sequence[Candidate], meter: CoverageMeter
) -> frozenset[int]:
    """The candidates that may be strong, among the best by words and by meaning."""
    by_words = sorted(candidates, key=lambda each: -each.words)[:_PROMISING_BY_WORDS]
    by_meaning = sorted(
        (each for each in candidates if each.cosine is not None),
        key=lambda each: -(each.cosine or 0.0),
    )[:_PROMISING_BY_MEANING]
    best = {each.unit_id: each for each in (*by_words, *by_meaning)}

    def find_strong(coverage: Coverage) -> frozenset[int]:
        return frozenset(
            unit_id
            for unit_id, each in best.items()
            if judge_candidate(query, each, coverage) is Strength.STRONG
        )

    strong = find_strong(Coverage())
    with_words = find_strong(_FULL_COVERAGE) - strong
    return strong | meter.find_covering(_ALL_WORDS, with_words)


def choose_shown(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """The first hits; if all are weak, later strong ones take the last places.

    They stay in order.
    """
    shown, rest = list(hits[:limit]), hits[limit:]
    if are_all_weak(shown):
        strong = [hit for hit in rest if hit.strength is Strength.STRONG][:limit]
        shown = shown[: limit - len(strong)] + strong
    return shown


def find_nearest(hits: Iterable[Hit], limit: int) -> list[Hit]:
    """The best of hits that are all weak, without repeats."""
    nearest: list[tuple[Hit, frozenset[str]]] = []
    for hit in sorted(hits, key=lambda hit: -hit.score):
        words = word_set(hit.text)
        if not any(overlap(words, known) > DUPLICATE_SHARE for _, known in nearest):
            nearest.append((hit, words))
        if len(nearest) == limit:
            break
    return [hit for hit, _ in nearest]


def are_all_weak(hits: Iterable[Hit]) -> bool:
    return all(hit.strength is Strength.WEAK for hit in hits)


def _has_part(hit: Hit, name: str) -> bool:
    return hit.part(name) > 0


def _is_spaceless(query: Query) -> bool:
    return bool(query.subject) and is_spaceless(query.subject[0].text[0])
