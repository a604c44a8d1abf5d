"""What was sent to a server, and what the server stored."""

from backstory.values.history import Problem
from backstory.values.structs import FrozenStruct


class PushReport(FrozenStruct):
    """What a push has sent.

    ``sessions`` and ``messages`` were sent, of which ``new_messages`` were new to the
    server; ``forgotten`` sessions and parts of sessions were forgotten there, too.
    ``excluded`` sessions were not sent because the settings exclude them. ``problems``
    describe what could not be sent or stored.
    """

    url: str
    sessions: int = 0
    messages: int = 0
    new_messages: int = 0
    forgotten: int = 0
    excluded: int = 0
    sent_bytes: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to send."""
        return not (self.sessions or self.forgotten)


class PushReceipt(FrozenStruct):
    """What a server has stored of a batch; it is durable.

    ``kept`` counts parts that were not forgotten, because other machines have sent the
    same session.
    """

    sessions: int = 0
    new_messages: int = 0
    changed_messages: int = 0
    forgotten: int = 0
    kept: int = 0
    excluded: int = 0
    problems: tuple[Problem, ...] = ()
