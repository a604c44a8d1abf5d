"""Find the shortest unambiguous name of each session.

A name finds the sessions with that id, or ``host/id``; if there is none, those whose
ids begin with it.
"""

from collections.abc import Callable, Iterable

from backstory.values.identity import is_below

# Beginnings of ids to try, from short to long, before the whole id.
_SHORT_ID_CHARS = (8, 13, 18)
_MAX_WHOLE_ID_CHARS = 12

# A name; an id, or the beginning of one, that it may mean; the host, or None for any;
# perhaps a session to leave out with its subagents: id and number.
Way = tuple[str, str, str | None, str | None, int | None]
# A name, and a session that it finds: id and number.
FoundByName = tuple[str, str, int]
ListByName = Callable[[list[Way]], Iterable[FoundByName]]


def find_short_ids(
    sessions: Iterable[tuple[int, str, str]],
    *,
    list_exact: ListByName,
    list_first: ListByName,
) -> dict[int, str]:
    """The names of sessions, given as number, host and id, by number.

    ``list_exact`` finds all sessions with an id; ``list_first`` finds the first one, by
    id, that has messages and an id that begins with it.
    """
    rows = list(sessions)
    tried = {native_id: _names_to_try(native_id) for _, _, native_id in rows}
    names = {name for names in tried.values() for name in names}
    only = _find_only(names, list_exact, list_first)
    found = {}
    for session_id, host, native_id in rows:
        own = (name for name in tried[native_id] if only.get(name) == session_id)
        found[session_id] = next(own, f"{host}/{native_id}")
    return found


def _names_to_try(native_id: str) -> list[str]:
    if len(native_id) <= _MAX_WHOLE_ID_CHARS:
        return [native_id]
    lengths = {*_SHORT_ID_CHARS, len(native_id)}
    if "/" in native_id:
        # Anything shorter is also a beginning of the parent's id, and would find that.
        before = native_id.rindex("/") + 1
        lengths |= {before + length for length in _SHORT_ID_CHARS}
    return list(dict.fromkeys(native_id[:length] for length in sorted(lengths)))


def _find_only(
    names: Iterable[str], list_exact: ListByName, list_first: ListByName
) -> dict[str, int]:
    """The sessions that names find, where a name finds exactly one.

    A subagent's id may begin with its parent's; then the parent is meant.
    """
    found = _group(list_exact([way for name in names for way in _ways(name)]))
    begun = [way for name in names if name not in found for way in _ways(name)]
    # If one session is the parent of all the others, it comes first by id.
    firsts = _group(list_first(begun))
    firsts = {name: [min(sessions)] for name, sessions in firsts.items()}
    others: list[Way] = [
        (name, start, host, *firsts[name][0])
        for name, start, host, _, _ in begun
        if name in firsts
    ]
    for name, sessions in _group(list_first(others)).items():
        firsts[name] += sessions
    only = {}
    for name, sessions in (found | firsts).items():
        ids = {native_id for native_id, _ in sessions}
        top = {each for native_id, each in sessions if not is_below(native_id, ids)}
        if len(top) == 1:
            only[name] = top.pop()
    return only


def _ways(name: str) -> list[Way]:
    host, _, rest = name.partition("/")
    ways: list[Way] = [(name, name, None, None, None)]
    return [*ways, (name, rest, host, None, None)] if rest else ways


def _group(rows: Iterable[FoundByName]) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for name, native_id, session_id in rows:
        found.setdefault(name, []).append((native_id, session_id))
    return found
