"""The messages that a person names on the command line."""

from backstory.errors import UnknownName
from backstory.memory import Memory
from backstory.values.history import Message, Session

# No session has more messages.
_MAX_DIGITS = 12


def find_message(memory: Memory, session: Session, name: str) -> Message:
    """A message by its number in ``backstory show``, or by its native id."""
    if name.isascii() and name.isdecimal() and len(name) <= _MAX_DIGITS:
        try:
            return next(memory.messages(session, place=int(name), context=0))
        except UnknownName:
            # Some programs give numbers as ids.
            pass
    return next(memory.messages(session, around=name, context=0))
