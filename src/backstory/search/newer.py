"""Find the hits that were replaced later, and put what replaced them first.

A decision that was changed is found twice, and the older text often fits the query just
as well or better. Both are shown: the later one first if it fits about as well, and the
older one says that there is a newer one.
"""

from collections.abc import Sequence

from backstory.search.hydrate import add_replies
from backstory.search.projects import is_same_project
from backstory.store.base.history import HistoryStore
from backstory.text.patterns import lazy_pattern
from backstory.text.revisions import (
    Statement,
    read_statements,
    replaces,
    telling_words,
)
from backstory.values.history import Role
from backstory.values.hits import Hit, HitSource, Strength
from backstory.values.query import Query
from backstory.values.structs import replace

# A hit with this share of another one's score fits about as well.
_ABOUT_AS_WELL = 0.75
_SAYS = (Role.USER, Role.ASSISTANT)
_NOTES = (HitSource.MEMORY, HitSource.DAILY_LOG)
_ASKS_FOR_OLD = lazy_pattern(
    r"\b(?:original|originally|initially|previous|previously|at first|before|used to"
    r"|old)\b"
)


def mark_replaced(query: Query, hits: Sequence[Hit]) -> list[Hit]:
    """The hits; each that was replaced has the latest one that replaces it.

    Only the excerpts are compared, so all hits must have theirs.
    """
    asked = telling_words(" ".join(term.text for term in query.subject))
    said = {
        number: statements
        for number, hit in enumerate(hits)
        if _may_decide(hit)
        and (statements := read_statements(hit.excerpt, about=asked))
    }
    latest_first = sorted(said, key=lambda number: _age_key(hits[number]), reverse=True)
    marked = list(hits)
    for place, number in enumerate(latest_first):
        newer = [
            hits[later]
            for later in latest_first[:place]
            if _may_replace(hits[later], hits[number])
            and _replaces_any(said[later], said[number], hits[later])
        ]
        if newer:
            # From the latest conversation that replaces it, the best hit.
            last = [hit for hit in newer if hit.session == newer[0].session]
            best = max(last, key=lambda hit: hit.score)
            marked[number] = replace(hits[number], newer=best)
    return marked


def mark_questions(hits: Sequence[Hit], history: HistoryStore) -> list[Hit]:
    """The hits; a question whose answer was replaced points to the newer one, too."""
    newer = {
        hit.message_id: hit.newer
        for hit in hits
        if hit.newer is not None and hit.role is Role.ASSISTANT
    }
    if not newer:
        return list(hits)
    return [
        replace(hit, newer=newer.get(answered.reply.message_id))
        if hit.newer is None and answered.reply is not None
        else hit
        for hit, answered in zip(hits, add_replies(hits, history), strict=True)
    ]


def put_newer_first(query: Query, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, each one before those that it replaces if it fits about as well."""
    ordered = list(hits)
    if _ASKS_FOR_OLD.search(query.folded):
        return ordered
    for older in hits:
        if older.newer is None:
            continue
        places = {_key(hit): place for place, hit in enumerate(ordered)}
        place = places[_key(older)]
        newer_place = places.get(_key(older.newer), -1)
        if newer_place > place and _fits_about_as_well(older.newer, older):
            ordered.insert(place, ordered.pop(newer_place))
    return ordered


def add_newer(query: Query, chosen: Sequence[Hit], hits: Sequence[Hit]) -> list[Hit]:
    """Chosen hits, and those that replace them, each before what it replaces.

    It does not matter how little the later one resembles the query: a reader who learns
    what was decided must learn what became of it. If the query asks for an earlier
    state, each comes after what it replaces.
    """
    by_key = {_key(hit): hit for hit in hits}
    asks_for_old = _ASKS_FOR_OLD.search(query.folded)
    groups: dict[tuple[object, ...], tuple[Hit, ...]] = {}
    for older in chosen:
        newer = None if older.newer is None else by_key.get(_key(older.newer))
        if newer is not None and asks_for_old:
            groups[_key(older)] = groups[_key(newer)] = (older, newer)
        elif newer is not None:
            groups[_key(older)] = (newer, older)
    added: dict[tuple[object, ...], Hit] = {}
    for each in chosen:
        for hit in groups.get(_key(each), (each,)):
            added.setdefault(_key(hit), hit)
    return list(added.values())


def differ_in_value(one: Hit, other: Hit) -> bool:
    """Whether two hits say almost the same, but the later one replaces the other."""
    if not (_may_decide(one) and _may_decide(other)):
        return False
    earlier, later = sorted((one, other), key=_age_key)
    return _may_replace(later, earlier) and _replaces_any(
        read_statements(later.text), read_statements(earlier.text), later
    )


def _replaces_any(
    later: Sequence[Statement], earlier: Sequence[Statement], hit: Hit
) -> bool:
    by_person = hit.role is not Role.ASSISTANT
    return any(
        replaces(new, old, by_person=by_person) for new in later for old in earlier
    )


def _may_decide(hit: Hit) -> bool:
    is_said = hit.role in _SAYS or hit.source in _NOTES
    return is_said and hit.said is not None and not hit.is_damaged


def _may_replace(later: Hit, earlier: Hit) -> bool:
    if _age_key(later) == _age_key(earlier) or not _is_same_project(later, earlier):
        return False
    # In the same conversation, the agent only reports doing what it was told.
    is_same_session = (
        later.session is not None
        and earlier.session is not None
        and later.session.session_id == earlier.session.session_id
    )
    return not is_same_session or later.role is Role.USER


def _is_same_project(one: Hit, other: Hit) -> bool:
    if one.project == other.project:
        return True
    if one.project is None or other.project is None:
        # Notes are about all projects.
        return one.source in _NOTES or other.source in _NOTES
    return is_same_project(one.project, other.project)


def _fits_about_as_well(newer: Hit, older: Hit) -> bool:
    return (
        newer.score >= _ABOUT_AS_WELL * older.score
        and newer.part("exact") >= older.part("exact")
        and newer.is_on_named_day >= older.is_on_named_day
        and (newer.strength is not Strength.WEAK or older.strength is Strength.WEAK)
    )


def _age_key(hit: Hit) -> tuple[float, int]:
    at = 0.0 if hit.said is None else hit.said.at.timestamp()
    return (at, hit.message_id or 0)


def _key(hit: Hit) -> tuple[object, ...]:
    return (hit.source, hit.message_id, hit.path, hit.position)
