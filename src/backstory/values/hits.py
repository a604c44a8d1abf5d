"""What a search finds: hits with their scores, chunks, episodes."""

from enum import StrEnum

from backstory.values.activity import Activity
from backstory.values.history import Message, Role, Session
from backstory.values.moments import Moment
from backstory.values.query import Query
from backstory.values.structs import FrozenStruct
from backstory.values.units import UnitKind


class HitSource(StrEnum):
    """Where a hit was found."""

    MEMORY = "memory"
    DAILY_LOG = "daily_log"
    MESSAGE = "message"
    SESSION = "session"
    GUIDANCE = "guidance"


# Which kind of hit each kind of unit becomes.
HIT_SOURCES = {
    UnitKind.USER: HitSource.MESSAGE,
    UnitKind.ASSISTANT: HitSource.MESSAGE,
    UnitKind.SUMMARY: HitSource.MESSAGE,
    UnitKind.OTHER: HitSource.MESSAGE,
    UnitKind.TASK: HitSource.MESSAGE,
    UnitKind.SESSION: HitSource.SESSION,
    UnitKind.MEMORY: HitSource.MEMORY,
    UnitKind.DAILY_LOG: HitSource.DAILY_LOG,
    UnitKind.GUIDANCE: HitSource.GUIDANCE,
}


class Strength(StrEnum):
    """How well a hit answers by itself, regardless of what else was found."""

    STRONG = "strong"
    FAIR = "fair"
    WEAK = "weak"


class ScorePart(FrozenStruct):
    """One number that a score was computed from."""

    name: str
    value: float


class Hit(FrozenStruct):
    """Something that was found, and all that is known about it.

    ``text`` is the whole text, ``excerpt`` the part around the match; for a session,
    they are its title and preview. ``reply`` is what the agent answered to a message of
    the user before the user spoke again. ``passage`` is the beginning and end in
    ``text`` of the passage that is nearest in meaning, if the text is long. ``newer``
    is the hit that replaces what this one says, as far as that can be told. For a hit
    of a ``server``, ``path`` is the address of its page there.
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
    # Its message can no longer be read, and ``text`` says so instead.
    is_damaged: bool = False
    passage: tuple[int, int] | None = None
    newer: "Hit | None" = None
    # The server that it was found on; empty for this machine.
    server: str = ""

    @property
    def speaker(self) -> str:
        """The name that is shown before what was said; empty if nobody said it."""
        if self.role is None:
            return ""
        if self.session is None:
            return self.role.speaker
        return self.session.name_speaker(self.role)

    @property
    def host(self) -> str | None:
        return None if self.session is None else self.session.host

    @property
    def is_on_named_day(self) -> bool:
        """Whether it was said on a day that the query names."""
        return self.part("day") > 0

    def part(self, name: str) -> float:
        """A part of the score; 0 if there is no part with that name."""
        return next((part.value for part in self.parts if part.name == name), 0.0)


class SearchResult(FrozenStruct):
    """What a search found, best first.

    ``notices`` say what could not be searched, or that nothing answers well. If the
    query only asks what was done on certain days, ``activity`` answers it best.
    """

    parsed: Query
    hits: tuple[Hit, ...] = ()
    notices: tuple[str, ...] = ()
    activity: Activity | None = None

    @property
    def query(self) -> str:
        """The query as it was typed."""
        return self.parsed.text

    @property
    def is_weak(self) -> bool:
        """Whether nothing that was found answers the query well."""
        return all(hit.strength is Strength.WEAK for hit in self.hits)

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The sessions of the hits, and of what is newer than them."""
        newer = [hit.newer for hit in self.hits if hit.newer is not None]
        return tuple(hit.session for hit in (*self.hits, *newer) if hit.session)


class Recalled(FrozenStruct):
    """A chunk of a conversation or a file, and the best hit in it."""

    chunk_id: str
    source_type: str
    name: str
    score: float
    text: str
    hit: Hit


class Episode(FrozenStruct):
    """A message that was found, with the ones before and after it."""

    session: Session
    matched: Message
    before: Message | None = None
    after: Message | None = None


class RecallResult(FrozenStruct):
    """The chunks in which something was found, best first."""

    parsed: Query
    found: tuple[Recalled, ...] = ()
    notices: tuple[str, ...] = ()
    is_empty_index: bool = False

    @property
    def query(self) -> str:
        """The query as it was typed."""
        return self.parsed.text


class EpisodeResult(FrozenStruct):
    """Messages that contain the query, newest first."""

    parsed: Query
    episodes: tuple[Episode, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """The query as it was typed."""
        return self.parsed.text
