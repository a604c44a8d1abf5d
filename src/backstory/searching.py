"""Answer a query with ranked hits, with stretches of text, or with episodes.

Three retrievers work side by side under one deadline: by words, by meaning, and by any
part of the text. Whoever fails or is late is left out, and the result says so.
"""

import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from backstory.chunking import MAX_CHUNK_TOKENS, chunk_text
from backstory.dates import DayRange
from backstory.embedders.base import Embedder
from backstory.errors import (
    ConfigError,
    ProviderError,
    StoreDamaged,
    StoreProblem,
)
from backstory.excerpts import EXCERPT_CHARS, excerpt
from backstory.identity import content_id
from backstory.model import (
    Episode,
    Hit,
    HitSource,
    Message,
    Recalled,
    ScorePart,
    SearchResult,
    Session,
    Strength,
)
from backstory.moments import EPOCH, Moment, from_microseconds
from backstory.querying import Query, Term, parse_query
from backstory.ranking import (
    DUPLICATE_SHARE,
    Candidate,
    Ranked,
    Weights,
    drop_duplicates,
    is_relevant,
    judge,
    overlap,
    rank,
    rank_by_range,
)
from backstory.redaction import mask_secrets
from backstory.store.base import HistoryStore
from backstory.store.index import (
    Chunk,
    IndexedFile,
    Note,
    SearchIndex,
    Unit,
    UnitFilter,
    Words,
)
from backstory.units import MESSAGES, UnitKind, is_message
from backstory.words import index_words, is_spaceless, word_set

if TYPE_CHECKING:
    from backstory.embedders.base import Vector

# How many each retriever gives: enough that the other scorer can lift a good one.
_POOL = 150
_TEXT_POOL = 200
# The design of memory_search takes the best so many of each list.
DESIGNED_POOL = 20
_DAY_POOL = 50
# A word in more of the units than this tells next to nothing, once there are many.
_FREQUENT_SHARE = 0.1
_MANY_UNITS = 1_000
# About as many units as words are scored for: 0.5 microseconds each.
_MAX_SCORED = 40_000
# After an embedder failed, searches go by words alone for so long.
_EMBEDDER_REST_S = 30.0
_COVERAGE_CHARS = 20_000
_KEYWORDS = 2
_JUDGED = 10
# How often more is gathered when one long conversation has all the best.
_MORE_ROUNDS = 4
# Where nothing matches well, more of it would not help.
_MAX_WEAK = 3

_SOURCES = {
    UnitKind.USER: HitSource.MESSAGE,
    UnitKind.ASSISTANT: HitSource.MESSAGE,
    UnitKind.SUMMARY: HitSource.MESSAGE,
    UnitKind.OTHER: HitSource.MESSAGE,
    UnitKind.SESSION: HitSource.SESSION,
    UnitKind.MEMORY: HitSource.MEMORY,
    UnitKind.DAILY_LOG: HitSource.DAILY_LOG,
    UnitKind.FILE: HitSource.FILE,
}
# What was said weighs more than what a tool put out, and than what sums it up.
_ROLE_WEIGHTS = {UnitKind.SUMMARY: 0.9, UnitKind.OTHER: 0.6}
# A long answer has a bit of everything; what was asked says what it was about.
_LONG_ANSWER_BYTES = 500
_LONG_ANSWER_WEIGHT = 0.75


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, and where it may be found.

    Times are microseconds, from the first up to but not including the second.
    ``sessions`` are those that may be searched, None for all; ``without`` are messages
    that may not be found, such as the one that asks.
    """

    text: str
    sources: frozenset[HitSource]
    limit: int = 10
    said_from: int | None = None
    said_before: int | None = None
    sessions: frozenset[int] | None = None
    without: frozenset[int] = frozenset()
    weights: Weights = field(default_factory=Weights)

    def keeps(self, message: Message) -> bool:
        """Whether a message may be found."""
        at = None if message.sent is None else message.sent.to_microseconds()
        return (
            HitSource.MESSAGE in self.sources
            and (self.sessions is None or message.session_id in self.sessions)
            and message.message_id not in self.without
            and (self.said_from is None or (at is not None and at >= self.said_from))
            and (self.said_before is None or (at is not None and at < self.said_before))
        )

    def to_filter(self) -> UnitFilter:
        kinds = {kind for kind, source in _SOURCES.items() if source in self.sources}
        return UnitFilter(
            frozenset(kinds),
            self.said_from,
            self.said_before,
            self.sessions,
            self.without,
        )


@dataclass(slots=True)
class _Gathered:
    """What the retrievers found: units, with the scores that are known."""

    words: dict[int, float] = field(default_factory=dict)
    cosines: dict[int, float] = field(default_factory=dict)
    texts: list[int] = field(default_factory=list)
    plan: Words | None = None
    rarity: dict[Term, float] = field(default_factory=dict)
    vector: "Vector | None" = None

    @property
    def unit_ids(self) -> set[int]:
        return {*self.words, *self.cosines, *self.texts}


class Searcher:
    """Searches an index and shows what it found from the history."""

    def __init__(
        self,
        history: HistoryStore,
        index: SearchIndex,
        find_embedder: Callable[[], Embedder | None],
        *,
        clock: Callable[[], datetime],
        timeout_s: float = 30.0,
        on_damage: Callable[[], None] = lambda: None,
    ) -> None:
        self._history = history
        self._index = index
        self._find_embedder = find_embedder
        self._clock = clock
        self._timeout_s = timeout_s
        self._on_damage = on_damage
        self._embedder_failed: tuple[float, str] | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._pool_pid = 0

    def close(self) -> None:
        if self._pool is not None and self._pool_pid == os.getpid():
            self._pool.shutdown(wait=True, cancel_futures=True)

    # -- hits ---

    def search(self, request: Request) -> SearchResult:
        """The best hits, without near-duplicates and what has nothing to do with it."""
        query = self._parse(request.text)
        notices: list[str] = []
        where = request.to_filter()
        if request.weights.profile == "spec":
            gathered = self._gather_as_designed(query, where, notices)
        else:
            gathered = self._gather(query, where, notices)
        units = self._index.get_units(gathered.unit_ids)
        candidates = self._to_candidates(query, gathered, units)
        ranked = rank(
            candidates,
            request.weights,
            has_vectors=bool(gathered.cosines),
            wants_recent=query.wants_recent and not query.days,
        )
        shown = _Shown(self._history, self._index, units)
        # How good the answer is must not depend on how much of it is wanted.
        wanted = max(request.limit, _JUDGED)
        hits = self._choose(query, gathered, ranked, shown, wanted)
        if request.weights.profile != "spec":
            hits = _without_noise(query, hits)
            if hits and _all_weak(hits):
                notices.append("nothing matches well; these are the nearest")
        return SearchResult(request.text, tuple(hits[: request.limit]), tuple(notices))

    def _parse(self, text: str) -> Query:
        return parse_query(text, today=self._clock().astimezone().date())

    def _choose(
        self,
        query: Query,
        gathered: _Gathered,
        ranked: Sequence[Ranked],
        shown: "_Shown",
        limit: int,
    ) -> list[Hit]:
        hits: dict[int, Hit] = {}
        kept: list[Ranked] = []
        # Some are dropped as alike or irrelevant, so more than wanted are looked at.
        for start in range(0, len(ranked), 2 * limit):
            some = ranked[start : start + 2 * limit]
            shown.load([each.candidate.unit_id for each in some])
            for each in some:
                hit = self._to_hit(query, gathered, each, shown)
                if hit is not None:
                    hits[each.candidate.unit_id] = hit
            words = {unit_id: word_set(hit.text) for unit_id, hit in hits.items()}
            distinct = hits.keys() - _told_by_messages(hits, words)
            kept = drop_duplicates(
                (each for each in ranked if each.candidate.unit_id in distinct),
                words,
                limit,
            )
            if len(kept) == limit:
                break
        return [hits[each.candidate.unit_id] for each in kept]

    def _to_hit(
        self, query: Query, gathered: _Gathered, each: Ranked, shown: "_Shown"
    ) -> Hit | None:
        candidate = each.candidate
        hit = shown.to_hit(candidate.unit_id)
        if hit is None:
            return None  # deleted a moment ago
        coverage = self._coverage(hit.text, gathered.rarity)
        words = _part(each, "words")
        # By the designs, what a list gives is a result.
        if words is not None and not is_relevant(coverage, candidate, words):
            return None
        return replace(
            hit,
            score=round(min(1.0, max(0.0, each.score)), 6),
            strength=judge(
                coverage,
                candidate.cosine,
                has_phrase=candidate.has_phrase,
                is_lenient=candidate.is_on_named_day or _is_spaceless(query),
            ),
            excerpt=excerpt(hit.text, query, max_chars=EXCERPT_CHARS),
            parts=(
                *each.parts,
                ScorePart("bm25", candidate.words),
                ScorePart("cosine", candidate.cosine or 0.0),
                ScorePart("coverage", coverage),
            ),
        )

    def _coverage(self, text: str, rarity: Mapping[Term, float]) -> float:
        """The share of the query's words that a text has; the rare ones count more."""
        whole = sum(rarity.values())
        if not whole:
            return 0.0
        there = set(self._index.tokenize(index_words(text[:_COVERAGE_CHARS])))
        covered = 0.0
        for term, weight in rarity.items():
            spellings = map(self._index.tokenize, term.spellings)
            if any(there.issuperset(tokens) for tokens in spellings):
                covered += weight
        return covered / whole

    # -- gathering ---

    def _gather(self, query: Query, where: UnitFilter, notices: list[str]) -> _Gathered:
        """Ask all retrievers, then let both scorers look at everything they found."""
        gathered = _Gathered()
        self._plan(query, gathered, notices)
        plan = gathered.plan
        frequent: list[str] = []

        def by_words() -> None:
            if plan is not None:
                gathered.words = dict(self._by_words(query, plan, where))

        def by_meaning() -> None:
            self._by_meaning(query, where, gathered, notices)

        def by_text() -> None:
            for part in dict.fromkeys((query.folded, *query.phrases)):
                few = self._index.find_few(part, where, _TEXT_POOL)
                if few is None:
                    frequent.append(part)
                else:
                    gathered.texts += few

        self._side_by_side(
            {"by words": by_words, "by meaning": by_meaning, "by text": by_text},
            notices,
        )
        if not gathered.words:
            # Parts of words, which nothing else finds.
            for part in frequent:
                gathered.texts += self._index.find_text(part, where, _DAY_POOL)
        found = gathered.unit_ids

        def check_text() -> None:
            # What very many have says little, and is looked for in what was found.
            for part in frequent:
                gathered.texts += self._index.having_text(part, found)

        def score_words() -> None:
            # Anew for all: the order in which they were found is not their score.
            if plan is not None:
                gathered.words = dict.fromkeys(found, 0.0)
                gathered.words |= self._index.score_words(plan, found)

        def score_meaning() -> None:
            if gathered.vector is not None:
                rest = found - gathered.cosines.keys()
                gathered.cosines |= self._index.cosines(gathered.vector, rest)

        self._side_by_side(
            {
                "by words": score_words,
                "by meaning": score_meaning,
                "by text": check_text,
            },
            notices,
        )
        return gathered

    def _plan(self, query: Query, gathered: _Gathered, notices: list[str]) -> None:
        """Find out which words of the query are rare, and look for those."""
        try:
            total = int(self._index.get_state("units") or 0)
            terms = tuple(dict.fromkeys((*query.terms, *query.subject)))
            found = self._index.count_documents([t.spellings for t in terms])
        except StoreProblem as exc:
            if isinstance(exc, StoreDamaged):
                self._on_damage()
            _say(notices, f"the search by words failed: {exc}")
            return
        counts = dict(zip(terms, found, strict=True))
        asked = [counts[term] for term in query.terms]
        gathered.plan = plan_words(query.terms, asked, total)
        gathered.rarity = {
            term: math.log(1 + (total - counts[term] + 0.5) / (counts[term] + 0.5))
            for term in query.subject
        }

    def _by_words(
        self, query: Query, plan: Words, where: UnitFilter
    ) -> list[tuple[int, float]]:
        found = self._index.match_words(plan, where, _POOL)
        for days in query.days:
            found += self._index.match_words(plan, _within(where, days), _DAY_POOL)
        return found

    def _by_meaning(
        self,
        query: Query,
        where: UnitFilter,
        gathered: _Gathered,
        notices: list[str],
    ) -> None:
        vector = self._embed(query.text, notices)
        if vector is None:
            return
        found = dict(self._index.nearest(vector, where, _POOL))
        for days in query.days:
            on_days = _within(where, days)
            found |= dict(self._index.nearest(vector, on_days, _DAY_POOL))
        gathered.vector, gathered.cosines = vector, found

    def _embed(self, text: str, notices: list[str]) -> "Vector | None":
        """The query's vector; None, with a notice, when there can be none."""
        if self._embedder_failed is not None:
            failed_at, reason = self._embedder_failed
            if time.monotonic() - failed_at < _EMBEDDER_REST_S:
                _say(notices, f"searched by words alone: {reason}")
                return None
        try:
            embedder = self._find_embedder()
            if embedder is None or not embedder.can_read(text):
                return None
            if not self._index.has_vectors_of(embedder.fingerprint):
                if self._index.list_to_embed(1) or self._index.get_state("vectors_of"):
                    _say(notices, "searched by words alone: vectors are still missing")
                return None
            return embedder.embed_query(text)
        except (ProviderError, ConfigError) as exc:
            self._embedder_failed = (time.monotonic(), str(exc))
            _say(notices, f"searched by words alone: {exc}")
            return None

    def _gather_lists(
        self, query: Query, where: UnitFilter, notices: list[str]
    ) -> _Gathered:
        """The best by words and the best by meaning, each with its own score alone."""
        gathered = _Gathered()
        self._plan(query, gathered, notices)
        plan = gathered.plan

        def by_words() -> None:
            if plan is not None:
                found = self._index.match_words(plan, where, DESIGNED_POOL)
                gathered.words = dict(found)

        def by_meaning() -> None:
            vector = self._embed(query.text, notices)
            if vector is not None:
                found = self._index.nearest(vector, where, DESIGNED_POOL)
                gathered.cosines = dict(found)

        self._side_by_side({"by words": by_words, "by meaning": by_meaning}, notices)
        return gathered

    def _gather_as_designed(
        self, query: Query, where: UnitFilter, notices: list[str]
    ) -> _Gathered:
        """Notes by words and meaning; messages and sessions by the text as typed."""
        gathered = _Gathered()
        self._plan(query, gathered, notices)
        plan = gathered.plan
        notes = replace(where, kinds=where.kinds - MESSAGES - {UnitKind.SESSION})
        talk = replace(where, kinds=where.kinds & (MESSAGES | {UnitKind.SESSION}))

        def by_words() -> None:
            if plan is not None:
                gathered.words = dict(self._index.match_words(plan, notes, _POOL))

        def by_meaning() -> None:
            self._by_meaning(query, notes, gathered, notices)

        def by_text() -> None:
            gathered.texts = self._index.find_text(query.folded, talk, _TEXT_POOL)

        self._side_by_side(
            {"by words": by_words, "by meaning": by_meaning, "by text": by_text},
            notices,
        )
        return gathered

    def _side_by_side(
        self, tasks: Mapping[str, Callable[[], None]], notices: list[str]
    ) -> None:
        """Run all at once and wait; notices tell of those that failed or are late.

        Raises what went wrong when nothing worked: a partial answer has to have parts.
        """
        pool = self._executor()
        futures = {name: pool.submit(task) for name, task in tasks.items()}
        _, late = wait(futures.values(), timeout=self._timeout_s)
        if late:
            self._index.interrupt()
        failures: list[StoreProblem] = []
        for name, future in futures.items():
            if future in late:
                future.cancel()
                if name == "by meaning":
                    reason = "the embedder did not answer in time"
                    self._embedder_failed = (time.monotonic(), reason)
                _say(notices, f"the search {name} did not finish in time")
                continue
            try:
                future.result()
            except StoreDamaged as exc:
                hint = "run 'backstory rebuild'"
                _say(notices, f"the search {name} met a damaged index; {hint} ({exc})")
                failures.append(exc)
                self._on_damage()
            except StoreProblem as exc:
                _say(notices, f"the search {name} failed: {exc}")
                failures.append(exc)
        if failures and len(failures) == len(futures):
            raise failures[0]

    def _executor(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pool_pid != os.getpid():
            self._pool = ThreadPoolExecutor(4, thread_name_prefix="backstory-search")
            self._pool_pid = os.getpid()
        return self._pool

    def _to_candidates(
        self, query: Query, gathered: _Gathered, units: Mapping[int, Unit]
    ) -> list[Candidate]:
        now = (self._clock() - EPOCH) / timedelta(microseconds=1)
        with_phrase = set(gathered.texts)
        spans = [_to_span(days) for days in query.days]
        return [
            Candidate(
                unit.unit_id,
                _SOURCES[unit.kind],
                unit.source_id,
                gathered.words.get(unit.unit_id, 0.0),
                gathered.cosines.get(unit.unit_id),
                unit.unit_id in with_phrase,
                unit.said_at is not None
                and any(first <= unit.said_at < end for first, end in spans),
                None
                if unit.said_at is None
                else max(0.0, (now - unit.said_at) / 86_400e6),
                _role_weight(unit),
                unit.position,
            )
            for unit in units.values()
        ]

    # -- stretches of text ---

    def recall(self, request: Request) -> tuple[list[Recalled], list[str]]:
        """The stretches of conversations and files in which something was found."""
        query = self._parse(request.text)
        notices: list[str] = []
        where = request.to_filter()
        where = replace(where, kinds=where.kinds - {UnitKind.OTHER, UnitKind.SESSION})
        gathered = self._gather_for_recall(query, where, request, notices)
        units = self._index.get_units(gathered.unit_ids)
        shown = _Shown(self._history, self._index, units)
        found: dict[int, Recalled] = {}
        seen: list[frozenset[str]] = []
        for each in self._rank_for_recall(query, gathered, units, request.weights):
            if len(found) == request.limit:
                break
            unit = units[each.candidate.unit_id]
            chunk = self._index.find_chunk(unit.source_id, unit.position)
            if chunk is None or chunk.chunk_id in found:
                continue
            shown.load([unit.unit_id])
            hit = self._to_hit(query, gathered, each, shown)
            if hit is None:
                continue
            text = self._chunk_text(chunk, request.without)
            words = word_set(text)
            if not any(overlap(words, other) > DUPLICATE_SHARE for other in seen):
                seen.append(words)
                found[chunk.chunk_id] = Recalled(
                    _chunk_id(chunk, hit),
                    "conversation" if chunk.source_id > 0 else "file",
                    _name(hit),
                    hit.score,
                    # Masked before it is cut: half a secret is not known for one.
                    excerpt(
                        mask_secrets(text),
                        query,
                        max_chars=4 * MAX_CHUNK_TOKENS,
                    ),
                    hit,
                )
        return list(found.values()), notices

    def _gather_for_recall(
        self, query: Query, where: UnitFilter, request: Request, notices: list[str]
    ) -> _Gathered:
        """Gather until there are enough stretches, not only enough messages of one."""
        is_literal = request.weights.profile == "spec"
        gather = self._gather_lists if is_literal else self._gather
        gathered = gather(query, where, notices)
        for _ in range(_MORE_ROUNDS):
            units = self._index.get_units(gathered.unit_ids)
            if len({unit.source_id for unit in units.values()}) >= request.limit:
                break
            without = where.without | gathered.unit_ids
            more = gather(query, replace(where, without=without), notices)
            if not more.unit_ids:
                break
            gathered.words |= more.words
            gathered.cosines |= more.cosines
            gathered.texts += more.texts
        return gathered

    def _chunk_text(self, chunk: Chunk, without: Collection[int]) -> str:
        """What a chunk says, but for messages that may not be found."""
        if chunk.text is not None:
            return chunk.text
        messages = self._history.iter_messages(
            chunk.source_id, first=chunk.first_position, last=chunk.last_position
        )
        return chunk_text(each for each in messages if each.message_id not in without)

    def _rank_for_recall(
        self,
        query: Query,
        gathered: _Gathered,
        units: Mapping[int, Unit],
        weights: Weights,
    ) -> list[Ranked]:
        candidates = self._to_candidates(query, gathered, units)
        if weights.profile == "spec":
            return rank_by_range(candidates, weights)
        return rank(candidates, weights, has_vectors=bool(gathered.cosines))

    # -- episodes ---

    def find_episodes(self, request: Request) -> tuple[list[Episode], list[str]]:
        """Messages with the query in them, or all its words, the newest first."""
        query = self._parse(request.text)
        notices: list[str] = []
        where = replace(
            request.to_filter(),
            kinds=frozenset({UnitKind.USER, UnitKind.ASSISTANT}),
        )

        found: list[int] = []

        def find() -> None:
            found.extend(self._index.find_text(query.folded, where, request.limit))
            if not found and query.terms:
                words = [term.spellings for term in query.terms]
                found.extend(self._index.find_all_words(words, where, request.limit))

        self._side_by_side({"by text": find}, notices)
        messages = self._history.get_messages(found)
        sessions = self._history.get_sessions({m.session_id for m in messages.values()})
        episodes = []
        for unit_id in found:
            message = messages.get(unit_id)
            if message is None or message.session_id not in sessions:
                continue
            before, after = self._history.find_beside(
                message.session_id, message.position
            )
            session = sessions[message.session_id]
            episodes.append(Episode(session, message, before, after))
        return episodes, notices


class _Shown:
    """What units say, fetched from the history and the index as it is needed."""

    def __init__(
        self, history: HistoryStore, index: SearchIndex, units: Mapping[int, Unit]
    ) -> None:
        self._history = history
        self._index = index
        self._units = units
        self._messages: dict[int, Message] = {}
        self._sessions: dict[int, Session] = {}
        self._notes: dict[int, Note] = {}
        self._files: dict[int, IndexedFile] | None = None

    def load(self, unit_ids: Collection[int]) -> None:
        messages = [u for u in unit_ids if is_message(u) and u not in self._messages]
        if messages:
            self._messages |= self._history.get_messages(messages)
        sessions = {
            self._units[u].source_id for u in unit_ids if self._units[u].source_id > 0
        } - self._sessions.keys()
        if sessions:
            self._sessions |= self._history.get_sessions(sessions)
        notes = [u for u in unit_ids if self._units[u].source_id < 0]
        if notes:
            self._notes |= self._index.get_notes(notes)
            if self._files is None:
                sources = {
                    each.source_id
                    for each in self._units.values()
                    if each.source_id < 0
                }
                self._files = self._index.get_files(sources)

    def to_hit(self, unit_id: int) -> Hit | None:
        """What was found, as yet without a score; None when it is gone."""
        unit = self._units[unit_id]
        said = None if unit.said_at is None else from_microseconds(unit.said_at)
        if unit.source_id < 0:
            return self._note_hit(unit, said)
        session = self._sessions.get(unit.source_id)
        if session is None:
            return None
        base = Hit(
            _SOURCES[unit.kind],
            0.0,
            Strength.WEAK,
            "",
            "",
            said=said,
            session=session,
            project=session.project,
        )
        if unit.kind is UnitKind.SESSION:
            text = f"{session.title}\n{session.preview}".strip()
            return replace(base, text=text, said=session.last_active)
        message = self._messages.get(unit_id)
        if message is None:
            return None
        return replace(
            base,
            text=message.text,
            said=message.sent or said,
            role=message.role,
            tool_name=self._tool_name(message),
            message_id=message.message_id,
            position=message.position,
        )

    def _tool_name(self, message: Message) -> str | None:
        """The tool that was called or answered; often only the call names it."""
        if message.tool_name or not message.call_id:
            return message.tool_name
        return self._history.find_tool_name(message.session_id, message.call_id)

    def _note_hit(self, unit: Unit, said: Moment | None) -> Hit | None:
        note = self._notes.get(unit.unit_id)
        file = (self._files or {}).get(unit.source_id)
        if note is None or file is None:
            return None
        return Hit(
            _SOURCES[unit.kind],
            0.0,
            Strength.WEAK,
            note.text,
            "",
            said=said,
            position=unit.position,
            path=file.path,
            heading=note.heading,
            project=file.project,
        )


# -- pieces ---------------------------------------------------------------------------


def plan_words(
    terms: Sequence[Term], counts: Sequence[int], total: int
) -> Words | None:
    """Which words must be there and which only help; None when none is anywhere.

    The rarest come first: what has none of them is not worth scoring.
    """
    known = sorted(
        (count, place, term)
        for place, (term, count) in enumerate(zip(terms, counts, strict=True))
        if count > 0
    )
    if not known:
        return None
    most = total * _FREQUENT_SHARE if total >= _MANY_UNITS else math.inf
    telling = [each for each in known if each[0] <= most] or known[:1]
    needed: list[tuple[str, ...]] = []
    helpful: list[tuple[str, ...]] = []
    scored = 0
    for count, _, term in telling:
        if not needed or scored + count <= _MAX_SCORED:
            needed.append(term.spellings)
            scored += count
        else:
            helpful.append(term.spellings)
    return Words(tuple(needed), tuple(helpful))


def _to_span(days: DayRange) -> tuple[int, int]:
    """The days as microseconds of local time, up to the next midnight."""
    return (
        start_of_day(days.first),
        start_of_day(days.last + timedelta(days=1)),
    )


def start_of_day(day: date) -> int:
    """The first moment of a day on this machine's clock."""
    start = datetime(day.year, day.month, day.day).astimezone(UTC)
    return Moment(start).to_microseconds()


def _within(where: UnitFilter, days: DayRange) -> UnitFilter:
    """The filter, narrowed to some days."""
    first, end = _to_span(days)
    return replace(
        where,
        said_from=max(first, where.said_from if where.said_from is not None else first),
        said_before=min(
            end, where.said_before if where.said_before is not None else end
        ),
    )


def _told_by_messages(
    hits: Mapping[int, Hit], words: Mapping[int, frozenset[str]]
) -> set[int]:
    """Sessions whose title or preview is but a message that was found as well."""
    messages: dict[int, list[frozenset[str]]] = {}
    for unit_id, hit in hits.items():
        if hit.source is HitSource.MESSAGE and hit.session is not None:
            messages.setdefault(hit.session.session_id, []).append(words[unit_id])
    return {
        unit_id
        for unit_id, hit in hits.items()
        if hit.source is HitSource.SESSION
        and hit.session is not None
        and any(
            each <= words[unit_id] for each in messages.get(hit.session.session_id, ())
        )
    }


def _part(ranked: Ranked, name: str) -> float | None:
    return dict(zip(ranked.names, ranked.values, strict=True)).get(name)


def _say(notices: list[str], words: str) -> None:
    if words not in notices:
        notices.append(words)


def _without_noise(query: Query, hits: list[Hit]) -> list[Hit]:
    """Fewer hits where more would not help."""
    if _all_weak(hits):
        return hits[:_MAX_WEAK]
    if len(query.terms) <= _KEYWORDS:
        # Who types a word or two wants to see them.
        return [
            hit for hit in hits if hit.strength is not Strength.WEAK or _has_words(hit)
        ]
    return hits


def _role_weight(unit: Unit) -> float:
    if unit.kind is UnitKind.ASSISTANT and unit.text_bytes > _LONG_ANSWER_BYTES:
        return _LONG_ANSWER_WEIGHT
    return _ROLE_WEIGHTS.get(unit.kind, 1.0)


def _has_words(hit: Hit) -> bool:
    return any(part.name == "coverage" and part.value > 0 for part in hit.parts)


def _is_spaceless(query: Query) -> bool:
    return bool(query.subject) and is_spaceless(query.subject[0].text[0])


def _all_weak(hits: Iterable[Hit]) -> bool:
    return all(hit.strength is Strength.WEAK for hit in hits)


def _chunk_id(chunk: Chunk, hit: Hit) -> str:
    """A name that stays the same when the index is made again."""
    if chunk.source_id > 0:
        return f"{chunk.source_id}.{chunk.first_position}"
    return f"{content_id(hit.path or '')}.{chunk.first_position}"


def _name(hit: Hit) -> str:
    if hit.session is not None:
        return hit.session.title or hit.session.native_id
    return os.path.basename(hit.path or "")  # noqa: PTH119  # a path of any system
