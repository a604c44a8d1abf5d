"""How a message from a damaged page compares with other records of it."""

from collections.abc import Callable, Sequence
from enum import Enum, auto

from backstory.values.history import Message


class Proof(Enum):
    """Whether a message is what was stored, according to another record of it."""

    PROVEN = auto()
    # Its text is; of the rest, such as the name of a tool, there is no other record.
    PARTLY = auto()
    REFUTED = auto()
    # There is no other record of it.
    UNKNOWN = auto()


# Gives a proof for each message, in the same order.
ProveMessages = Callable[[Sequence[Message]], Sequence[Proof]]


def prove_nothing(messages: Sequence[Message]) -> Sequence[Proof]:
    return [Proof.UNKNOWN for _ in messages]
