"""Decide under which id each message of a batch is stored, and with what content.

In every database, a message is known by its id within its session. An id that a source
gives twice, with different contents, stands for two messages.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from backstory.store.base.history import KeptMessage
from backstory.values.history import NewMessage
from backstory.values.identity import content_id
from backstory.values.structs import FrozenStruct, field

# Everything about a message that may change: role, text, tool_name, call_id, sent_at,
# utc_offset_min, full_bytes.
Content = tuple[str, str, str | None, str | None, int | None, int | None, int | None]

# Finds stored messages of one session by their ids: number and content of each.
FindStored = Callable[[Collection[str]], Mapping[str, tuple[int, Content]]]


class SessionMessages(FrozenStruct):
    """Messages that a batch has for one session, at least one.

    ``replaces`` and ``reread`` are those of ``Batch``.
    """

    session_id: int
    kept: Sequence[KeptMessage]
    is_new_session: bool = False
    replaces: bool = False
    reread: set[int] | None = None


class ResolvedMessages(FrozenStruct):
    """Messages by id: the number and content they have, and their new content."""

    stored: dict[str, tuple[int, Content]]
    wanted: dict[str, Content] = field(default_factory=dict)
    given_twice: list[KeptMessage] = field(default_factory=list)

    @property
    def new(self) -> list[tuple[str, Content]]:
        """The messages that are not stored yet, in order."""
        return [item for item in self.wanted.items() if item[0] not in self.stored]

    @property
    def changed(self) -> list[tuple[int, Content]]:
        """The messages that are stored with another content: number and new content."""
        return [
            (self.stored[native_id][0], content)
            for native_id, content in self.wanted.items()
            if native_id in self.stored and self.stored[native_id][1] != content
        ]


def resolve_ids(new: SessionMessages, find_stored: FindStored) -> ResolvedMessages:
    """Decide the id and content of each message, in the order in which they came.

    A message whose id is taken by another gets an id of its own.
    """
    native_ids = [item.message.native_id for item in new.kept]
    resolved = ResolvedMessages(
        {} if new.is_new_session else dict(find_stored(native_ids))
    )
    stored, wanted = resolved.stored, resolved.wanted
    for item in new.kept:
        native_id, content = item.message.native_id, to_content(item)
        if not new.replaces and _is_taken(native_id, content, resolved, new.reread):
            native_id = id_by_content(item.message)
            if native_id not in wanted:
                resolved.given_twice.append(item)
                stored.update(find_stored([native_id]))
        before = wanted.get(native_id) or stored.get(native_id, (0, None))[1]
        wanted[native_id] = _with_first_time(content, before)
    return resolved


def _is_taken(
    native_id: str,
    content: Content,
    resolved: ResolvedMessages,
    reread: set[int] | None,
) -> bool:
    """Whether the id was given to another message by the same source."""
    if native_id in resolved.wanted:
        return resolved.wanted[native_id] != content
    if native_id not in resolved.stored:
        return False
    message_id, stored = resolved.stored[native_id]
    return stored != content and (reread is None or message_id in reread)


def id_by_content(message: NewMessage) -> str:
    """The id under which a message is stored if its own is taken."""
    return f"{message.native_id}~{content_id(message.role, message.text)[3:]}"


def record_of(native_id: str) -> str:
    """The id of the record that a message is a part of.

    A title names the record or any part of it: when it is read, it is not known which
    parts are messages.
    """
    return native_id.partition("/")[0]


def to_content(kept: KeptMessage) -> Content:
    message = kept.message
    sent = message.sent
    return (
        message.role.value,
        message.text,
        message.tool_name,
        message.call_id,
        None if sent is None else sent.to_microseconds(),
        None if sent is None else sent.utc_offset_min,
        kept.full_bytes,
    )


def _with_first_time(content: Content, before: Content | None) -> Content:
    """The content, with the time at which the message was first sent.

    Programs that write a message again, or resume a session, give it a later time.
    """
    if before is None:
        return content
    role, text, tool_name, call_id, sent_at, _, full_bytes = content
    *_, first_sent_at, first_offset, _ = before
    if first_sent_at is None or (sent_at is not None and sent_at <= first_sent_at):
        return content
    return role, text, tool_name, call_id, first_sent_at, first_offset, full_bytes
