"""Find what answers a query in the items of one run.

What is ranked are passages, by BM25 as a share of the most that could be had; a passage
in which the query stands word by word comes before all others. What is shown is the
text around the match, as it stands there.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple

from backstory.runs.passages import PASSAGE_CHARS, cut_passages
from backstory.store.base.run_index import Match, RunIndex
from backstory.text.bm25 import MAX_SATURATION, rarity, saturation
from backstory.text.excerpts import find_window
from backstory.text.words import fold, is_spaceless
from backstory.values.history import Role
from backstory.values.query import Query
from backstory.values.runs import MAX_RESULTS, RunHit, RunItem

# So many passages are looked at closely. They may all be of one long log; then so many
# are ranked, and of each item the best comes before the others.
_POOL = 100
_RANKED = 2_000
# Passages are short by themselves: their length says less than that of documents.
_B = 0.5
# The question itself has all the words of the query, and none of the answer.
_ECHO_SHARE = 0.25
# A phrase lifts its passage above every other.
_PHRASE_SHARE = 0.5

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Kept:
    """An item with its number in the run, and where its passages begin and end.

    Passages of a run are numbered in a row: far apart, each entry of the index would
    take three bytes more. ``cuts`` is empty for an item that is one passage.
    """

    number: int
    item: RunItem
    size_bytes: int
    first_passage: int
    cuts: Sequence[int]

    @property
    def passage_ids(self) -> range:
        count = len(self.cuts) // 2 or 1
        return range(self.first_passage, self.first_passage + count)

    @property
    def passages(self) -> Iterable[tuple[int, str]]:
        for passage_id in self.passage_ids:
            start, end = self.span(passage_id)
            yield passage_id, self.item.text[start:end]

    def span(self, passage_id: int) -> Span:
        if not self.cuts:
            return 0, len(self.item.text)
        place = 2 * (passage_id - self.first_passage)
        return self.cuts[place], self.cuts[place + 1]


def keep_item(
    number: int, item: RunItem, size_bytes: int, *, first_passage: int
) -> Kept:
    cuts = cut_passages(item.text)
    # There are many: as a list of pairs they would take ten times as much.
    flat = array("Q", chain.from_iterable(cuts)) if len(cuts) > 1 else ()
    return Kept(number, item, size_bytes, first_passage, flat)


class _Found(NamedTuple):
    kept: Kept
    span: Span
    score: float


def search_items(
    query: Query,
    kept: dict[int, Kept],
    index: RunIndex,
    *,
    owner_of: Callable[[int], Kept],
    limit: int,
    snippet_chars: int,
    is_echo: Callable[[RunItem, bool], bool],
) -> tuple[RunHit, ...]:
    """The best places in the items, best first, and of equals the newest first.

    ``owner_of`` tells of a passage to which item it belongs.
    ``is_echo`` tells of items that most likely only ask what the query asks; it is told
    whether an item has it word by word.
    """
    found = _find_passages(query, index, owner_of) or _find_text(query, kept)
    found = [
        each._replace(score=each.score * _ECHO_SHARE)
        if is_echo(each.kept.item, each.score >= _PHRASE_SHARE)
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
    query: Query, index: RunIndex, owner_of: Callable[[int], Kept]
) -> list[_Found]:
    terms = [term.spellings for term in query.terms]
    if not terms:
        return []
    phrases = [
        each for each in (query.text, *query.phrases) if len(each) <= PASSAGE_CHARS
    ]
    pool = set(_choose(partial(index.rank, terms), owner_of))
    # Fewer are all that have any of the words, and so all that have a phrase.
    if len(pool) == _POOL:
        for phrase in phrases:
            pool.update(_choose(partial(index.rank_phrase, phrase), owner_of))
    weights = [rarity(index.count(spellings), len(index)) for spellings in terms]
    is_exact = _phrase_check(phrases)
    found: list[_Found] = []
    for each in index.match(terms, pool):
        owner = owner_of(each.passage_id)
        start, end = span = owner.span(each.passage_id)
        score = _PHRASE_SHARE * _share_of_best(each, weights)
        if is_exact(owner.item.text[start:end]):
            score += _PHRASE_SHARE
        found.append(_Found(owner, span, score))
    return found


def _choose(
    rank: Callable[[int], list[int]], owner_of: Callable[[int], Kept]
) -> list[int]:
    """The best passages, of so many items as can be shown, if there are so many."""
    best = rank(_POOL)
    owners = {owner_of(passage_id).number for passage_id in best}
    if len(best) < _POOL or len(owners) >= MAX_RESULTS:
        return best
    ranked = rank(_RANKED)
    firsts: dict[int, int] = {}
    for passage_id in ranked:
        firsts.setdefault(owner_of(passage_id).number, passage_id)
    return [*dict.fromkeys([*firsts.values(), *ranked])][:_POOL]


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
        return any(
            _is_apart(folded, *found.span())
            for pattern in patterns
            for found in pattern.finditer(folded)
        )

    return is_exact


def _is_apart(text: str, start: int, end: int) -> bool:
    """Whether a stretch of a text neither begins nor ends within a word."""
    return not (
        _is_within_word(text[start - 1 : start + 1] if start else "")
        or _is_within_word(text[end - 1 : end + 1])
    )


def _is_within_word(pair: str) -> bool:
    return len(pair) == 2 and pair.isalnum() and not any(map(is_spaceless, pair))


def _find_text(query: Query, kept: dict[int, Kept]) -> list[_Found]:
    """What has the query as it is: signs without words, a part of a word."""
    found: list[_Found] = []
    # To fold all texts takes longer than to look through them; signs need none of it.
    has_letters = any(map(str.isalnum, query.folded))
    for owner in reversed(kept.values()):
        if len(found) == _POOL or not query.folded:
            break
        text = owner.item.text
        if query.folded in (fold(text) if has_letters else text):
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
