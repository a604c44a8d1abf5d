"""Which kinds of hits a search may find: scopes, sources and source types."""

from collections.abc import Collection

from backstory.errors import BadQuery, UnknownName, nearest_hint, shown
from backstory.text.arguments import to_name
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
    if to_name(scope, "scope") not in SCOPES:
        raise UnknownName(
            f"no scope is called '{scope}'", hint=nearest_hint(str(scope), SCOPES)
        )
    if sources is None:
        return SCOPES[scope]
    if not isinstance(sources, str | Collection):
        raise BadQuery(f"sources is {shown(sources)}, not a list of names")
    given = [sources] if isinstance(sources, str) else sources
    named = {to_name(each, "a source") for each in given}
    for name in named - set(HitSource):
        raise UnknownName(
            f"no source is called '{name}'", hint=nearest_hint(str(name), HitSource)
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


def to_source_type(source_type: str) -> frozenset[HitSource]:
    """The kinds of hits of a source type."""
    if to_name(source_type, "source_type") not in SOURCE_TYPES:
        raise UnknownName(
            f"no source type is called '{source_type}'",
            hint=nearest_hint(str(source_type), SOURCE_TYPES),
        )
    return SOURCE_TYPES[source_type]
