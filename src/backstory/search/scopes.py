"""Which kinds of hits a search may find: scopes, sources and source types."""

from collections.abc import Collection

from backstory.errors import BadQuery, UnknownName, nearest_hint
from backstory.text.arguments import show_name, show_value, to_text
from backstory.values.hits import HitSource

VIEWS = ("ranked", "episodes")
# Episodes are only found in conversations.
SCOPES_WITH_EPISODES = ("all", "sessions")
SCOPES = {
    "all": frozenset(
        {
            HitSource.MEMORY,
            HitSource.DAILY_LOG,
            HitSource.MESSAGE,
            HitSource.SESSION,
        }
    ),
    "memory": frozenset({HitSource.MEMORY, HitSource.DAILY_LOG}),
    "daily_log": frozenset({HitSource.DAILY_LOG}),
    "sessions": frozenset({HitSource.MESSAGE, HitSource.SESSION}),
}
_FILES = frozenset({HitSource.MEMORY, HitSource.DAILY_LOG, HitSource.GUIDANCE})
SOURCE_TYPES = {
    "conversation": frozenset({HitSource.MESSAGE}),
    "file": _FILES,
    "all": _FILES | {HitSource.MESSAGE},
}


def to_sources(
    scope: str, sources: Collection[HitSource | str] | str | None
) -> frozenset[HitSource]:
    """The kinds of hits in a scope, narrowed to ``sources`` if they are given."""
    if to_text(scope, "scope") not in SCOPES:
        typed = show_name(scope)
        raise UnknownName(
            f"no scope is called '{typed}'", hint=nearest_hint(typed, SCOPES)
        )
    if sources is None:
        return SCOPES[scope]
    named = _to_names(sources)
    for name in map(show_name, named - set(HitSource)):
        raise UnknownName(
            f"no source is called '{name}'", hint=nearest_hint(name, HitSource)
        )
    # The spec has no scope with guidance files; they are searched if asked for.
    allowed = SCOPES[scope] | ({HitSource.GUIDANCE} if scope == "all" else frozenset())
    wanted = frozenset(map(HitSource, named)) & allowed
    if not wanted:
        names = " or ".join(sorted(named)) or "an empty list of sources"
        raise BadQuery(
            f"scope '{scope}' does not include {names}",
            hint="it includes " + ", ".join(sorted(allowed)),
        )
    return wanted


def _to_names(sources: Collection[HitSource | str] | str) -> set[str]:
    if isinstance(sources, str):
        return {sources}
    if not isinstance(sources, Collection):
        raise BadQuery(f"sources is {show_value(sources)}, not a list of texts")
    return {to_text(name, "a source") for name in sources}


def to_source_type(source_type: str) -> frozenset[HitSource]:
    """The kinds of hits of a source type."""
    if to_text(source_type, "source_type") not in SOURCE_TYPES:
        typed = show_name(source_type)
        raise UnknownName(
            f"no source type is called '{typed}'",
            hint=nearest_hint(typed, SOURCE_TYPES),
        )
    return SOURCE_TYPES[source_type]
