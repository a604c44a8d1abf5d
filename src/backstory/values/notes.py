"""What is remembered about notes besides what their files say."""

from datetime import date
from enum import StrEnum

from backstory.values.structs import FrozenStruct


class SeenNote(FrozenStruct):
    """A note, and the day on which it was first seen.

    ``key`` identifies its words. ``text`` is kept while a file contains it, to
    recognize it after a small change; it is None once no file does.
    """

    key: str
    day: date
    text: str | None = None


class Teller(StrEnum):
    """Who told a fact."""

    USER = "user"
    AGENT = "agent"


class FactOrigin(FrozenStruct):
    """Where a fact comes from: who told it, in which session, on which day.

    If the teller is ``AGENT``, the agent saved it with a tool. ``messages`` are the
    messages that the fact rests on. Whatever is not known is None.
    """

    by: Teller
    host: str | None = None
    session: str | None = None
    day: date | None = None
    messages: tuple[int, ...] = ()
