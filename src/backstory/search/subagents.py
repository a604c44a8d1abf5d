"""Conversations with the subagents that worked for them."""

from collections.abc import Sequence

from backstory.values.history import Session
from backstory.values.structs import FrozenStruct


class ListedConversation(FrozenStruct):
    """A session with its subagents, the most recently active one last."""

    session: Session
    subagents: tuple[Session, ...] = ()


def nest_subagents(sessions: Sequence[Session]) -> list[ListedConversation]:
    """Conversations in their order, each with its subagents at any depth.

    A subagent whose parent is not among them is listed by itself.
    """
    by_name = {(each.host, each.native_id): each for each in sessions}
    roots: dict[int, Session] = {}
    for session in sessions:
        root, seen = session, {session.session_id}
        while parent := by_name.get((root.host, root.parent_id or "")):
            if parent.session_id in seen:
                root = session  # their parents form a cycle
                break
            seen.add(parent.session_id)
            root = parent
        roots[session.session_id] = root
    nested: dict[int, list[Session]] = {each.session_id: [] for each in sessions}
    for session in reversed(sessions):
        root = roots[session.session_id]
        if root is not session:
            nested[root.session_id].append(session)
    return [
        ListedConversation(each, tuple(nested[each.session_id]))
        for each in sessions
        if roots[each.session_id] is each
    ]
