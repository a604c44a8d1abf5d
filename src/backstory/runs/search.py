"""Find what answers a query in the items of one run.

Passages are ranked, so that a line in a long log counts as much as the same line alone.
The score is BM25 as a share of the best possible; a passage with the exact words of the
query comes before all others. A hit shows the text around the match, verbatim.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, Protocol

from backstory.store.base.run_index import Match, RunIndex
from backstory.text.bm25 import MAX_SATURATION, saturation
from backstory.text.excerpts import find_window
from backstory.text.rarity import rarity
from backstory.text.words import fold, is_spaceless
from backstory.values.history import Role
from backstory.values.query import Query
from backstory.values.runs import MAX_RESULTS, RunHit, RunItem
from backstory.values.structs import FrozenStruct

PASSAGE_CHARS = 1_600
# A longer phrase may be missed if it lies across a cut.
OVERLAP_CHARS = 200
# How much of a passage may be given up so that it ends at a line or between words.
_LINE_SLACK_CHARS = 400
_WORD_SLACK_CHARS = 40
_SPACE = re.compile(r"\s")

# How many passages are scored. If they are all from one long log, more are ranked, and
# the best passage of each item is put before the others.
_MAX_SCORED = 100
_MAX_RANKED = 2_000
# Passages are all short, so their length says less than that of documents.
_B = 0.5
# The question itself has all the words of the query, but not the answer.
_ECHO_SHARE = 0.25
# An exact phrase lifts its passage above all others.
_PHRASE_SHARE = 0.5
_NAMED_SCORE = 1.0

Span = tuple[int, int]


# -- passages -------------------------------------------------------------------------


class IndexedItem(FrozenStruct):
    """An item with its number in the run and the spans of its passages.

    The passages of a run are numbered consecutively: with gaps, each entry of the index
    would take three more bytes. ``cuts`` are alternately the starts and the ends of the
    passages; it is empty for an item that is a single passage.
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


def cut_item(
    number: int, item: RunItem, size_bytes: int, *, first_passage: int
) -> IndexedItem:
    """Cut an item into passages, numbered from ``first_passage``."""
    spans = cut_passages(item.text)
    # There are many of these: a list of pairs would take ten times the memory.
    cuts = array("Q", chain.from_iterable(spans)) if len(spans) > 1 else ()
    return IndexedItem(number, item, size_bytes, first_passage, cuts)


def cut_passages(text: str) -> list[Span]:
    """The spans of a text's passages, which overlap; an empty text is one passage.

    Because of the overlap, what lies across a cut is complete in one of the passages.
    """
    if len(text) <= PASSAGE_CHARS:
        return [(0, len(text))]
    passages = []
    start = 0
    while len(text) - start > PASSAGE_CHARS:
        end = _end_of_passage(text, start + PASSAGE_CHARS)
        passages.append((start, end))
        start = _start_of_passage(text, end - OVERLAP_CHARS)
    return [*passages, (start, len(text))]


def _end_of_passage(text: str, end: int) -> int:
    line = text.rfind("\n", end - _LINE_SLACK_CHARS, end) + 1
    return line or _after_last_space(text, end - _WORD_SLACK_CHARS, end) or end


def _start_of_passage(text: str, start: int) -> int:
    return _after_last_space(text, start - _WORD_SLACK_CHARS, start) or start


def _after_last_space(text: str, first: int, last: int) -> int:
    """The place after the last space between two places; 0 if there is none."""
    for place in range(last, first, -1):
        if _SPACE.match(text, place - 1):
            return place
    return 0


# -- searching ------------------------------------------------------------------------


class SearchedItems(Protocol):
    """The items of a run and the index of their passages."""

    @property
    def index(self) -> RunIndex: ...

    @property
    def by_number(self) -> dict[int, IndexedItem]: ...

    def item_of(self, passage_id: int) -> IndexedItem:
        """The item that a passage in the index belongs to."""
        ...


class _Found(NamedTuple):
    indexed: IndexedItem
    span: Span
    score: float


def search_items(
    query: Query,
    items: SearchedItems,
    *,
    limit: int,
    snippet_chars: int,
    is_echo: Callable[[RunItem, bool], bool],
    named: RunItem | None = None,
) -> tuple[RunHit, ...]:
    """The best places in the items, best first; of equal ones, the newest first.

    ``named`` is the item that the query names by its id; it comes before all others.
    ``is_echo`` says whether an item most likely repeats the query instead of answering
    it; its second argument is whether the item has the exact words.
    """
    found = _find_passages(query, items) or _find_text(query, items)
    found = [_lower_if_echo(each, is_echo) for each in found]
    found = sorted(_prefer_results(sorted(found, key=_order)), key=_order)
    hits: list[RunHit] = []
    if named is not None:
        hits.append(RunHit(named, 0, named.text[:snippet_chars], _NAMED_SCORE))
    # The best place of every item first, then more from the same items.
    for each in [*_first_of_each(found), *found]:
        if len(hits) == limit:
            break
        hit = _to_hit(each, query, snippet_chars)
        if not any(_is_duplicate(hit, other) for other in hits):
            hits.append(hit)
    # The sort is stable: of hits with the same score, the newest stays first.
    return tuple(sorted(hits, key=lambda hit: -hit.score))


def _order(found: _Found) -> tuple[float, int, int]:
    return -found.score, -found.indexed.number, found.span[0]


def _lower_if_echo(found: _Found, is_echo: Callable[[RunItem, bool], bool]) -> _Found:
    if is_echo(found.indexed.item, found.score >= _PHRASE_SHARE):
        return found._replace(score=found.score * _ECHO_SHARE)
    return found


def _prefer_results(found: Sequence[_Found]) -> list[_Found]:
    """Show a result instead of its call, unless the call has the exact words.

    The best passage of the result gets the call's score.
    """
    calls: dict[str | None, _Found] = {
        each.indexed.item.call_id: each
        for each in found
        if each.indexed.item.role is Role.TOOL_CALL
        and each.indexed.item.call_id is not None
        and each.score < _PHRASE_SHARE
    }
    answered: set[int] = set()
    preferred: list[_Found] = []
    for each in found:
        call = calls.get(each.indexed.item.call_id)
        is_result = each.indexed.item.role is Role.TOOL_RESULT
        if call and is_result and call.indexed.number not in answered:
            answered.add(call.indexed.number)
            each = each._replace(score=max(each.score, call.score))
        preferred.append(each)
    return [
        each
        for each in preferred
        if each.indexed.number not in answered or each.score >= _PHRASE_SHARE
    ]


def _first_of_each(found: Iterable[_Found]) -> list[_Found]:
    first: dict[int, _Found] = {}
    for each in found:
        first.setdefault(each.indexed.number, each)
    return list(first.values())


# -- ranking --------------------------------------------------------------------------


def _find_passages(query: Query, items: SearchedItems) -> list[_Found]:
    terms = [term.spellings for term in query.terms]
    if not terms:
        return []
    index = items.index
    phrases = [
        each for each in (query.text, *query.phrases) if len(each) <= PASSAGE_CHARS
    ]
    chosen = set(_choose(partial(index.rank, terms), items))
    # If there are fewer, they are all that have any of the words, let alone a phrase.
    if len(chosen) == _MAX_SCORED:
        for phrase in phrases:
            chosen.update(_choose(partial(index.rank_phrase, phrase), items))
    weights = [rarity(index.count(spellings), len(index)) for spellings in terms]
    is_exact = _make_phrase_check(phrases)
    found: list[_Found] = []
    for match in index.match(terms, chosen):
        indexed = items.item_of(match.passage_id)
        start, end = span = indexed.span(match.passage_id)
        score = _PHRASE_SHARE * _share_of_best(match, weights)
        if is_exact(indexed.item.text[start:end]):
            score += _PHRASE_SHARE
        found.append(_Found(indexed, span, score))
    return found


def _choose(rank: Callable[[int], list[int]], items: SearchedItems) -> list[int]:
    """The best passages, from as many different items as can be shown, if possible."""
    best = rank(_MAX_SCORED)
    numbers = {items.item_of(passage_id).number for passage_id in best}
    if len(best) < _MAX_SCORED or len(numbers) >= MAX_RESULTS:
        return best
    ranked = rank(_MAX_RANKED)
    firsts: dict[int, int] = {}
    for passage_id in ranked:
        firsts.setdefault(items.item_of(passage_id).number, passage_id)
    return [*dict.fromkeys([*firsts.values(), *ranked])][:_MAX_SCORED]


def _share_of_best(match: Match, weights: Sequence[float]) -> float:
    """BM25 of a passage, divided by that of a passage full of the words."""
    reached = sum(
        weight * saturation(count, match.length, _B)
        for weight, count in zip(weights, match.counts, strict=True)
    )
    return reached / (MAX_SATURATION * sum(weights))


def _make_phrase_check(phrases: Iterable[str]) -> Callable[[str], bool]:
    """A check whether a text has one of the phrases, wherever its lines break."""
    patterns = [
        re.compile(r"\s+".join(map(re.escape, words)))
        for phrase in phrases
        if (words := fold(phrase).split())
    ]

    def has_phrase(text: str) -> bool:
        folded = fold(text)
        return any(
            _is_whole_words(folded, *found.span())
            for pattern in patterns
            for found in pattern.finditer(folded)
        )

    return has_phrase


def _is_whole_words(text: str, start: int, end: int) -> bool:
    """Whether a span of a text neither begins nor ends within a word."""
    return not (
        _is_within_word(text[start - 1 : start + 1] if start else "")
        or _is_within_word(text[end - 1 : end + 1])
    )


def _is_within_word(pair: str) -> bool:
    return len(pair) == 2 and pair.isalnum() and not any(map(is_spaceless, pair))


def _find_text(query: Query, items: SearchedItems) -> list[_Found]:
    """Items that contain the query literally, such as punctuation or part of a word."""
    found: list[_Found] = []
    # Folding every text takes longer than searching it, and punctuation needs no
    # folding.
    has_letters = any(map(str.isalnum, query.folded))
    for indexed in reversed(items.by_number.values()):
        if len(found) == _MAX_SCORED or not query.folded:
            break
        text = indexed.item.text
        if query.folded in (fold(text) if has_letters else text):
            found.append(_Found(indexed, (0, len(text)), _PHRASE_SHARE))
    return found


# -- showing --------------------------------------------------------------------------


def _to_hit(found: _Found, query: Query, snippet_chars: int) -> RunHit:
    item = found.indexed.item
    start, end = find_window(
        item.text, query, max_chars=snippet_chars, within=found.span
    )
    return RunHit(item, start, item.text[start:end], found.score)


def _is_duplicate(hit: RunHit, other: RunHit) -> bool:
    """Whether two hits overlap, or show the same text from two items."""
    if hit.item is other.item:
        return hit.start < other.end and other.start < hit.end
    return hit.snippet == other.snippet
