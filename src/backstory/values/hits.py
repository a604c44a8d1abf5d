"""What a search finds: hits with their scores, stretches of text, episodes."""

from dataclasses import dataclass
from enum import StrEnum

from backstory.values.history import Message, Role, Session
from backstory.values.moments import Moment
from backstory.values.query import Query
from backstory.values.units import UnitKind


class HitSource(StrEnum):
    """Where a hit was found."""

    MEMORY = "memory"
    DAILY_LOG = "daily_log"
    MESSAGE = "message"
    SESSION = "session"
    GUIDANCE = "guidance"


# What kind of hit each kind of unit is.
HIT_SOURCES = {
    UnitKind.USER: HitSource.MESSAGE,
    UnitKind.ASSISTANT: HitSource.MESSAGE,
    UnitKind.SUMMARY: HitSource.MESSAGE,
    UnitKind.OTHER: HitSource.MESSAGE,
    UnitKind.SESSION: HitSource.SESSION,
    UnitKind.MEMORY: HitSource.MEMORY,
    UnitKind.DAILY_LOG: HitSource.DAILY_LOG,
    UnitKind.GUIDANCE: HitSource.GUIDANCE,
}


class Strength(StrEnum):
    """How well a hit answers by itself, whatever else was found."""

    STRONG = "strong"
    FAIR = "fair"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class ScorePart:
    """One step of how a score came about."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found, with all that is known about where it stands.

    ``text`` is what was found, whole; ``excerpt`` the part of it around the match. Of a
    session, they are its title and preview. ``reply`` is what the agent had to say to a
    message of the user, before the user spoke again.
    """

    source: HitSource
    score: float
    strength: Strength
    text: str
    excerpt: str
    said: Moment | None = None
    role: Role | None = None
    tool_name: str | None = None
    session: Session | None = None
    message_id: int | None = None
    position: int | None = None
    path: str | None = None
    heading: str = ""
    project: str | None = None
    parts: tuple[ScorePart, ...] = ()
    reply: Message | None = None

    @property
    def host(self) -> str | None:
        return None if self.session is None else self.session.host

    @property
    def is_on_named_day(self) -> bool:
        """Whether it was said on a day that the query names."""
        return any(part.name == "day" and part.value > 0 for part in self.parts)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, best first, and what to know about it.

    ``notices`` say what could not be searched, or how good the answer is.
    """

    parsed: Query
    hits: tuple[Hit, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """The query as it was typed."""
        return self.parsed.text

    @property
    def is_weak(self) -> bool:
        """Whether nothing that was found answers the query well."""
        return all(hit.strength is Strength.WEAK for hit in self.hits)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A stretch of a conversation or a file around what was found in it."""

    chunk_id: str
    source_type: str
    name: str
    score: float
    text: str
    hit: Hit


@dataclass(frozen=True, slots=True)
class Episode:
    """A message that was found, between what was said before and after it."""

    session: Session
    matched: Message
    before: Message | None = None
    after: Message | None = None


@dataclass(frozen=True, slots=True)
class RecallResult:
    """Stretches of text in which something was found, best first."""

    parsed: Query
    found: tuple[Recalled, ...] = ()
    notices: tuple[str, ...] = ()
    is_empty_index: bool = False

    @property
    def query(self) -> str:
        """The query as it was typed."""
        return self.parsed.text


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """Messages with the query in them, the newest first."""

    parsed: Query
    episodes: tuple[Episode, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """The query as it was typed."""
        return self.parsed.text
