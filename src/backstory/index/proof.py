"""Compare messages from damaged pages with the index's record of them.

The index has a message's words, speaker, time and place, in files with checksums of
their own. It does not have the rest of a message, such as the name of a tool.
"""

from collections.abc import Sequence

from backstory.errors import StoreProblem
from backstory.index.chunks import SPOKEN_ROLES, meaning_of
from backstory.index.files import IndexFiles
from backstory.index.lost_texts import as_indexed
from backstory.store.base.index import IndexedText, SearchIndex
from backstory.values.history import Message, Role
from backstory.values.identity import meaning_hash
from backstory.values.moments import Moment
from backstory.values.proof import Proof, prove_nothing
from backstory.values.units import MESSAGES, SessionRef, UnitKind

# The time zone that is farthest from UTC.
_MAX_OFFSET_MIN = 14 * 60


def prove_by_files(files: IndexFiles, messages: Sequence[Message]) -> Sequence[Proof]:
    """The same with the index of a home, if there is an intact one."""
    if not files.place.has_index():
        return prove_nothing(messages)
    try:
        return prove_by_index(files.index, messages)
    except StoreProblem:
        return prove_nothing(messages)


def prove_by_index(index: SearchIndex, messages: Sequence[Message]) -> Sequence[Proof]:
    """Whether each message is what the index took in. Raises ``StoreProblem``."""
    texts = index.get_texts([message.message_id for message in messages])
    return [_prove(message, texts.get(message.message_id)) for message in messages]


def _prove(message: Message, text: IndexedText | None) -> Proof:
    if text is None:
        return Proof.UNKNOWN
    is_same = (
        text.folded == as_indexed(message.text)
        # The folded text has no upper case, but the hash is of the text as written.
        and text.meaning_hash in (None, meaning_hash(meaning_of(message)))
        and text.unit.container == SessionRef(message.session_id)
        and text.unit.position == message.position
        and _has_kind(message, text.unit.kind)
        and _has_time(message, text)
    )
    if not is_same:
        return Proof.REFUTED
    return Proof.PROVEN if _is_all_compared(message, text) else Proof.PARTLY


def _is_all_compared(message: Message, text: IndexedText) -> bool:
    """Whether a message has nothing that the index does not keep."""
    unknown = (message.tool_name, message.call_id, message.full_bytes)
    return (
        text.meaning_hash is not None
        and all(value is None for value in unknown)
        and _is_zone(message.sent)
    )


def _is_zone(sent: Moment | None) -> bool:
    """Whether a time has the offset of a time zone; the index keeps times in UTC."""
    offset_min = 0 if sent is None else sent.utc_offset_min or 0
    return offset_min % 15 == 0 and abs(offset_min) <= _MAX_OFFSET_MIN


def _has_kind(message: Message, kind: UnitKind) -> bool:
    # The kind of a message in notes is the kind of its session.
    if kind is UnitKind.TASK:
        return message.role is Role.USER
    own = SPOKEN_ROLES.get(message.role, UnitKind.OTHER)
    return kind == own or kind not in MESSAGES


def _has_time(message: Message, text: IndexedText) -> bool:
    if message.sent is None or text.unit.kind not in MESSAGES:
        return True
    return message.sent.to_microseconds() == text.unit.said_at
