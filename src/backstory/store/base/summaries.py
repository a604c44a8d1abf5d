"""What a summary store promises: which messages still have to go into the daily logs.

A message is summarized once, whatever happens in between. So three things are kept
beside the messages: how far each session has been logged, the summaries of later
messages until they are safely in the notes, and what every call of a model cost.
"""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Protocol

from backstory.values.reports import ModelCall
from backstory.values.structs import FrozenStruct


class Due(FrozenStruct):
    """A session whose messages up to ``last_message_id`` are to be summarized."""

    session_id: int
    last_message_id: int
    cause: str
    tries: int = 0


class Summary(FrozenStruct):
    """What a model made of some messages of one day, waiting to be written.

    ``lists`` holds the ``SummaryLists`` as JSON; ``marker`` is unique to the summary.
    """

    session_id: int
    day: date
    first_message_id: int
    last_message_id: int
    marker: str
    lists: str


class SetAside(FrozenStruct):
    """Messages of a session that a model could not summarize, and why."""

    session_id: int
    first_message_id: int
    last_message_id: int
    reason: str


class SummaryStore(Protocol):
    """Sessions due to be summarized, summaries waiting to be written, and model calls.

    Safe to use from several threads and processes; every write is durable. Failures are
    raised as ``StoreProblem``.
    """

    # -- what is due ---

    def mark_due(
        self, session_id: int, cause: str, *, now: datetime, timeout_s: float = 30.0
    ) -> bool:
        """Ask for a session's log, up to the last message that is there now.

        Returns whether there is anything to summarize. A session that was postponed may
        be tried at once. Raises ``StoreLocked`` if other writers take longer than
        ``timeout_s``.
        """
        ...

    def list_due(self, *, now: datetime | None) -> list[Due]:
        """The sessions that may be tried now, the oldest first.

        With None, includes those that were postponed.
        """
        ...

    def count_due(self) -> int:
        """How many sessions wait, including those that were postponed."""
        ...

    def postpone(self, due: Due, *, until: datetime) -> None:
        """Try a session again later."""
        ...

    def delete_due(self, due: Due) -> None:
        """Note that a session is done, unless it became due again since."""
        ...

    def list_quiet(self, *, before: datetime, read_since: datetime | None) -> list[int]:
        """Sessions that are not due though they have something to summarize.

        Nothing was said in them after ``before``. Those that were read from the files
        of other programs must have been active from ``read_since`` on; with None, there
        are none of them.
        """
        ...

    def next_position(self, session_id: int) -> int:
        """The position of the first message that is not summarized yet."""
        ...

    # -- what a model made of it ---

    def add_summary(self, summary: Summary, *, of: SetAside | None = None) -> None:
        """Keep a summary until it is written into the notes.

        If it is ``of`` messages that were set aside, they no longer are.
        """
        ...

    def list_summaries(self, session_id: int) -> list[Summary]:
        """The summaries waiting to be written, in the order of the messages."""
        ...

    def list_waiting_sessions(self) -> list[int]:
        """The sessions that have such summaries."""
        ...

    def finish(self, summaries: Sequence[Summary]) -> None:
        """Note that these are in the notes and their sessions are logged up to them."""
        ...

    # -- what it could not summarize ---

    def set_aside(self, messages: SetAside) -> None:
        """Leave out messages, so that those after them can be summarized."""
        ...

    def list_set_aside(self) -> list[SetAside]:
        """All messages that were left out, in the order in which that happened."""
        ...

    def take_back(self, messages: SetAside) -> None:
        """Undo ``set_aside``."""
        ...

    # -- what it cost ---

    def reserve_call(
        self,
        *,
        purpose: str,
        model: str,
        input_tokens: int,
        output_tokens: int,
        daily_tokens: int,
        now: datetime,
    ) -> int | None:
        """Record a call before it is made; None if it would exceed the day's tokens.

        Until it is settled, it counts as the most tokens that it can use.
        """
        ...

    def settle_call(
        self,
        call_id: int,
        *,
        input_tokens: int,
        output_tokens: int,
        took_ms: int,
        outcome: str,
    ) -> None:
        """Record how a call went."""
        ...

    def list_calls(self, day: date) -> list[ModelCall]:
        """The calls of a local day, in order."""
        ...

    # -- the rest ---

    def get_state(self, name: str) -> str | None: ...

    def set_state(self, name: str, value: str) -> None: ...

    def close(self) -> None: ...
