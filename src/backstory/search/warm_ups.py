"""Find warm-ups: sessions that an agent program starts by itself, to be ready.

Claude Code 2.0 (seen in 2.0.37 to 2.0.44, 2025-11) starts subagents before anybody asks
for anything, so that the first real one starts quickly. Their only prompt is "Warmup",
or is not recorded at all; their only answer is that they are ready.
"""

from collections.abc import Collection

from backstory.store.base.history import HistoryStore
from backstory.values.history import Message, Role, Session

_HOST = "claude-code"
_PROMPT = "warmup"
# The prompt and the answer.
_MAX_MESSAGES = 2


def find_warm_ups(history: HistoryStore, sessions: Collection[Session]) -> set[int]:
    """The numbers of those sessions that are warm-ups."""
    # Few sessions get past this check, so only few messages are read.
    ranges = {
        (each.session_id, 0, each.message_count - 1): each
        for each in sessions
        if each.host == _HOST
        and each.message_count <= _MAX_MESSAGES
        and (each.title.casefold() == _PROMPT or each.parent_id is not None)
    }
    return {
        ranges[place].session_id
        for place, messages in history.get_ranges(list(ranges)).items()
        if _is_warm_up(ranges[place], messages)
    }


def _is_warm_up(session: Session, messages: Collection[Message]) -> bool:
    prompts = [each for each in messages if each.role is Role.USER]
    answers = [each for each in messages if each.role is Role.ASSISTANT]
    if len(prompts) + len(answers) < len(messages):
        return False
    if not prompts:
        return session.parent_id is not None and len(answers) == 1
    return all(each.text.strip().casefold() == _PROMPT for each in prompts)
