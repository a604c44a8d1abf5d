"""Answer a query with ranked hits, as ``search_history`` does."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from backstory.search.by_words import says_something
from backstory.search.hydrate import Hydrator
from backstory.search.newer import differ_in_value
from backstory.search.rank import Candidate, Ranked
from backstory.search.request import Request
from backstory.search.retrieve import POOL, Retrieved
from backstory.search.strength import Coverage, CoverageMeter, judge_candidate
from backstory.search.tuned_profile import Profile
from backstory.search.warm_ups import find_warm_ups
from backstory.store.base.history import HistoryStore
from backstory.store.base.index import BestPassage, SearchIndex
from backstory.text.excerpts import EXCERPT_CHARS, excerpt, find_densest
from backstory.text.passages import cut_passages
from backstory.text.query import find_names
from backstory.text.similarity import DUPLICATE_SHARE, overlap
from backstory.text.words import fold, word_set
from backstory.values.hits import Hit, HitSource, ScorePart, SearchResult, Strength
from backstory.values.query import Query
from backstory.values.structs import FrozenStruct, Struct, field, replace

# The number of hits that are wanted must affect neither whether an answer is weak nor
# which hit comes first.
MIN_JUDGED = 10
# The words of a query must be this close together to count.
_COVERED_CHARS = 1_000
# How many times as much is retrieved, step by step, as long as most hits are repeats.
_WIDTHS = (1, 4, 16)


class HitSearch(FrozenStruct):
    """Finds the best hits that say different things."""

    history: HistoryStore
    index: SearchIndex

    def search(
        self, request: Request, profile: Profile, *, now: datetime, until: float
    ) -> SearchResult:
        """Search until ``until`` at the latest, a time on the monotonic clock."""
        query = request.query
        wanted = max(request.limit, MIN_JUDGED)
        hydrator = Hydrator(self.history, self.index)
        for width in _WIDTHS:
            found = profile.retrieve(
                query, request.to_filter(), until=until, width=width
            )
            ranked = profile.rank(query, found, request.weights, now=now)
            chosen = self._choose(
                request, found, ranked, profile, hydrator, limit=wanted
            )
            # More is retrieved as long as most hits are repeats.
            is_varied = chosen.repeats < len(ranked) / 2 or len(ranked) < POOL
            if chosen.is_full or is_varied or time.monotonic() >= until:
                break
        hits, notices = profile.finish(
            query,
            [add_excerpt(hit, query, found.passages) for hit in chosen.hits],
            chosen.noise,
            limit=request.limit,
        )
        shown = tuple(
            hit if hit.excerpt else add_excerpt(hit, query, found.passages)
            for hit in hits
        )
        return SearchResult(query, shown, (*found.notices, *notices))

    def _choose(
        self,
        request: Request,
        found: Retrieved,
        ranked: Sequence[Ranked],
        profile: Profile,
        hydrator: Hydrator,
        *,
        limit: int,
    ) -> "_Choice":
        """The first hits that say something new, and later ones that match better."""
        query = request.query
        choice = _Choice(limit)
        meter = CoverageMeter(
            found.rarity, found.highest_rarity, self.index, find_names(query)
        )
        in_warm_ups: list[Hit] = []

        def is_noise(hit: Hit) -> bool:
            return profile.is_noise(query, hit)

        def add(some: Sequence[Ranked]) -> None:
            hydrator.load(found.units[each.candidate.unit_id] for each in some)
            hits = [
                score_hit(query, each, profile, hydrator=hydrator, meter=meter)
                for each in some
            ]
            # Before cutting the list, which could drop hits of the agent's own project.
            kept = request.own.sort(hit for hit in hits if hit is not None)
            warm_ups = (
                self._find_warm_ups(kept) if profile.ranks_warm_ups_last else set()
            )
            in_warm_ups.extend(hit for hit in kept if _session_id(hit) in warm_ups)
            choice.add(
                [hit for hit in kept if _session_id(hit) not in warm_ups],
                is_noise=is_noise,
            )

        add(ranked[: 2 * limit])
        rest = ranked[2 * limit :]
        while rest and not choice.is_full:
            some, rest = rest[: 2 * limit], rest[2 * limit :]
            add([each for each in some if profile.may_help(query, each.candidate)])
        promising = profile.find_promising(
            query, choice.hits, [each.candidate for each in rest], meter
        )
        add([each for each in rest if each.candidate.unit_id in promising])
        if not choice.is_full:
            choice.add(in_warm_ups, is_noise=is_noise)
        return choice

    def _find_warm_ups(self, hits: Sequence[Hit]) -> set[int]:
        """The numbers of the hits' sessions in which nobody asked for anything."""
        sessions = {hit.session.session_id: hit.session for hit in hits if hit.session}
        return find_warm_ups(self.history, sessions.values())


def _session_id(hit: Hit) -> int | None:
    return None if hit.session is None else hit.session.session_id


class _Choice(Struct):
    """Hits that say something new, and the number of those that did not.

    Once there are enough, only strong ones are added. ``noise`` are hits that help only
    if there are no others.
    """

    limit: int
    repeats: int = 0
    noise: list[Hit] = field(default_factory=list)
    _kept: list[tuple[Hit, frozenset[str]]] = field(default_factory=list)
    _said_by_session: dict[int, list[str]] = field(default_factory=dict)

    @property
    def hits(self) -> list[Hit]:
        return [hit for hit, _ in self._kept]

    @property
    def is_full(self) -> bool:
        return len(self._kept) >= self.limit

    def add(self, hits: Sequence[Hit], *, is_noise: Callable[[Hit], bool]) -> None:
        """Choose from some more hits, best first."""
        self.noise += filter(is_noise, hits)
        hits = [hit for hit in hits if not is_noise(hit)]
        for hit in hits:
            if hit.source is HitSource.MESSAGE and hit.session is not None:
                said = self._said_by_session.setdefault(hit.session.session_id, [])
                said.append(hit.text)
        self._kept = [each for each in self._kept if not self._is_repeat(each[0])]
        for hit in hits:
            if self.is_full and hit.strength is not Strength.STRONG:
                continue
            words = word_set(hit.text)
            if not hit.is_damaged and self._says_nothing_new(hit, words):
                self.repeats += 1
            elif not self._is_repeat(hit):
                self._kept.append((hit, words))

    def _says_nothing_new(self, hit: Hit, words: frozenset[str]) -> bool:
        alike = [
            kept
            for kept, known in self._kept
            if overlap(words, known) > DUPLICATE_SHARE
        ]
        # If two differ only in a value, the later one may have replaced the other.
        return bool(alike) and not (len(alike) == 1 and differ_in_value(hit, alike[0]))

    def _is_repeat(self, hit: Hit) -> bool:
        return repeats_message(hit, self._said_by_session)


def score_hit(
    query: Query,
    ranked: Ranked,
    profile: Profile,
    *,
    hydrator: Hydrator,
    meter: CoverageMeter,
) -> Hit | None:
    """A hit with its score, and what the score was made from; without an excerpt.

    None if it was deleted just now, or has nothing to do with the query.
    """
    candidate = ranked.candidate
    hit = hydrator.to_hit(candidate.unit_id)
    if hit is None:
        return None
    # Words scattered over a long text do not add up to an answer.
    densest = find_densest(hit.text, query, max_chars=_COVERED_CHARS)
    coverage = meter.measure(densest, hit.text)
    if not profile.is_relevant(ranked, coverage.share):
        return None
    return replace(
        hit,
        score=round(min(1.0, max(0.0, ranked.score)), 6),
        strength=_judge(query, hit, candidate, coverage),
        parts=(
            *ranked.parts,
            ScorePart("bm25", candidate.words),
            ScorePart("cosine", candidate.cosine or 0.0),
            ScorePart(
                "passage", candidate.passage.cosine if candidate.passage else 0.0
            ),
            ScorePart("coverage", coverage.share),
            ScorePart("rarity", coverage.rarity),
            ScorePart("agentic", float(candidate.is_agentic)),
        ),
    )


def _judge(
    query: Query, hit: Hit, candidate: Candidate, coverage: Coverage
) -> Strength:
    """How well a hit answers by itself.

    An agent's "Let me run the tests" is close to many questions, but answers only those
    with the same words.
    """
    strength = judge_candidate(query, candidate, coverage)
    if strength is not Strength.FAIR or not candidate.is_step:
        return strength
    return strength if says_something(hit.text, is_agentic=True) else Strength.WEAK


def _find_passage(text: str, best: BestPassage | None) -> tuple[int, int] | None:
    if best is None:
        return None
    passages = cut_passages(text)
    # A message that turned out to be damaged has a different text.
    return passages[best.number] if best.number < len(passages) else None


def add_excerpt(hit: Hit, query: Query, passages: Mapping[int, BestPassage]) -> Hit:
    """The hit with the part of its text that is shown.

    ``passages`` are the nearest ones of long messages, by unit number.
    """
    passage = _find_passage(hit.text, passages.get(hit.message_id or 0))
    shown = excerpt(hit.text, query, max_chars=EXCERPT_CHARS, passage=passage)
    return replace(hit, excerpt=shown, passage=passage)


def repeats_message(hit: Hit, said_by_session: Mapping[int, Collection[str]]) -> bool:
    """Whether a hit is a session whose title or preview was also found as a message.

    A title is often the beginning of a message, cut in the middle of a word.
    """
    if hit.source is not HitSource.SESSION or hit.session is None:
        return False
    shown = fold(hit.text)
    beginning = fold((hit.session.title or "").rstrip("….").strip())
    return any(
        fold(message) in shown or (beginning and fold(message).startswith(beginning))
        for message in said_by_session.get(hit.session.session_id, ())
    )
