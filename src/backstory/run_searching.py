"""Find what answers a query in the items of one run.

What is ranked are passages, by BM25 as a share of the most that could be had; a passage
in which the query stands word by word comes before all others. What is shown is the
text around the match, as it stands there.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from backstory.excerpts import find_window
from backstory.model import Role
from backstory.passages import PASSAGE_CHARS, cut_passages
from backstory.querying import Query
from backstory.ranking import MAX_SATURATION, rarity, saturation
from backstory.run_values import RunHit, RunItem
from backstory.store.sqlite.run_index import Match, RunIndex
from backstory.words import fold

# So many passages are looked at closely.
_POOL = 100
# More passages than any item has.
_PASSAGES = 1 << 24
# Passages are short by themselves: a turn of a few words is no better than one of many.
_B = 0.3
# The question itself has all the words of the query, and none of the answer.
_ECHO_SHARE = 0.25
# A phrase lifts its passage above every other.
_PHRASE_SHARE = 0.5

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Kept:
    """An item with its number in the run, and where its passages begin and end."""

    number: int
    item: RunItem
    size_bytes: int
    cuts: Sequence[Span]

    @property
    def passage_ids(self) -> range:
        first = self.number * _PASSAGES
        return range(first, first + len(self.cuts))

    @property
    def passages(self) -> Iterable[tuple[int, str]]:
        for passage_id, (start, end) in zip(self.passage_ids, self.cuts, strict=True):
            yield passage_id, self.item.text[start:end]


def keep_item(number: int, item: RunItem, size_bytes: int) -> Kept:
    return Kept(number, item, size_bytes, cut_passages(item.text))


class _Found(NamedTuple):
    kept: Kept
    span: Span
    score: float


def search_items(
    query: Query,
    kept: dict[int, Kept],
    index: RunIndex,
    *,
    limit: int,
    snippet_chars: int,
    is_echo: Callable[[RunItem], bool],
) -> tuple[RunHit, ...]:
    """The best places in the items, best first, and of equals the newest first.

    ``is_echo`` tells of items that most likely only ask what the query asks.
    """
    found = _find_passages(query, kept, index) or _find_text(query, kept)
    found = [
        each._replace(score=each.score * _ECHO_SHARE)
        if is_echo(each.kept.item)
        else each
        for each in found
    ]
    found = sorted(_prefer_results(sorted(found, key=_order)), key=_order)
    hits: list[RunHit] = []
    # First the best of every item, then more from the same ones.
    for each in [*_first_of_each(found), *found]:
        if len(hits) == limit:
            break
        hit = _to_hit(each, query, snippet_chars)
        if not any(_says_the_same(hit, other) for other in hits):
            hits.append(hit)
    # The sort is stable: of hits with the same score the newest stays first.
    return tuple(sorted(hits, key=lambda hit: -hit.score))


def _order(found: _Found) -> tuple[float, int, int]:
    return -found.score, -found.kept.number, found.span[0]


def _prefer_results(found: Sequence[_Found]) -> list[_Found]:
    """What a call asks for stands for its result, unless just that was looked for.

    Its best passage gets the call's score, and the call goes.
    """
    calls: dict[str | None, _Found] = {
        each.kept.item.call_id: each
        for each in found
        if each.kept.item.role is Role.TOOL_CALL
        and each.kept.item.call_id is not None
        and each.score < _PHRASE_SHARE
    }
    answered: set[int] = set()
    preferred: list[_Found] = []
    for each in found:
        call = calls.get(each.kept.item.call_id)
        is_result = each.kept.item.role is Role.TOOL_RESULT
        if call and is_result and call.kept.number not in answered:
            answered.add(call.kept.number)
            each = each._replace(score=max(each.score, call.score))
        preferred.append(each)
    return [
        each
        for each in preferred
        if each.kept.number not in answered or each.score >= _PHRASE_SHARE
    ]


def _first_of_each(found: Iterable[_Found]) -> list[_Found]:
    first: dict[int, _Found] = {}
    for each in found:
        first.setdefault(each.kept.number, each)
    return list(first.values())


# -- ranking --------------------------------------------------------------------------


def _find_passages(
    query: Query, kept: dict[int, Kept], index: RunIndex
) -> list[_Found]:
    terms = [term.spellings for term in query.terms]
    if not terms:
        return []
    matches = {each.passage_id: each for each in index.match(terms, _POOL)}
    phrases = [
        each for each in (query.text, *query.phrases) if len(each) <= PASSAGE_CHARS
    ]
    for phrase in phrases:
        for each in index.match(terms, _POOL, phrase=phrase):
            matches[each.passage_id] = each
    weights = [rarity(index.count(spellings), len(index)) for spellings in terms]
    is_exact = _phrase_check(phrases)
    found: list[_Found] = []
    for each in matches.values():
        owner = kept[each.passage_id // _PASSAGES]
        start, end = span = owner.cuts[each.passage_id % _PASSAGES]
        score = _PHRASE_SHARE * _share_of_best(each, weights)
        if is_exact(owner.item.text[start:end]):
            score += _PHRASE_SHARE
        found.append(_Found(owner, span, score))
    return found


def _share_of_best(match: Match, weights: Sequence[float]) -> float:
    """BM25 of a passage, divided by what a passage full of the words would have."""
    reached = sum(
        weight * saturation(count, match.length, _B)
        for weight, count in zip(weights, match.counts, strict=True)
    )
    return reached / (MAX_SATURATION * sum(weights))


def _phrase_check(phrases: Iterable[str]) -> Callable[[str], bool]:
    """Whether a text has one of the phrases, wherever its lines break."""
    patterns = [
        re.compile(r"\s+".join(map(re.escape, words)))
        for phrase in phrases
        if (words := fold(phrase).split())
    ]

    def is_exact(text: str) -> bool:
        folded = fold(text)
        return any(pattern.search(folded) for pattern in patterns)

    return is_exact


def _find_text(query: Query, kept: dict[int, Kept]) -> list[_Found]:
    """What has the query as it is: signs without words, a part of a word."""
    found: list[_Found] = []
    for owner in reversed(kept.values()):
        if len(found) == _POOL or not query.folded:
            break
        if query.folded in fold(owner.item.text):
            found.append(_Found(owner, (0, len(owner.item.text)), _PHRASE_SHARE))
    return found


# -- showing --------------------------------------------------------------------------


def _to_hit(found: _Found, query: Query, snippet_chars: int) -> RunHit:
    text = found.kept.item.text
    start, end = find_window(text, query, max_chars=snippet_chars, within=found.span)
    return RunHit(found.kept.item, start, text[start:end], found.score)


def _says_the_same(hit: RunHit, other: RunHit) -> bool:
    """Whether two hits overlap, or show the same text from two items."""
    if hit.item is other.item:
        return hit.start < other.end and other.start < hit.end
    return hit.snippet == other.snippet
