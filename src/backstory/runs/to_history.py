"""A loop's new messages in the form in which the history keeps them.

A run is gone when it ends; what is made here stays.
"""

from collections.abc import Sequence

from backstory.errors import BadQuery
from backstory.runs.record import CallMatcher
from backstory.runs.text_results import FindResults, MessageReader
from backstory.text.arguments import check_messages, to_text
from backstory.text.own_answers import OwnAnswers
from backstory.values.history import RecordedMessage, Role
from backstory.values.structs import FrozenStruct, replace


class ReadMessages(FrozenStruct):
    """The messages to keep, and the error of the first in an unknown format, if any."""

    kept: Sequence[RecordedMessage]
    error: BadQuery | None


def read_messages(
    messages: Sequence[object],
    facts: RecordedMessage,
    answers: OwnAnswers,
    find_results: FindResults | None = None,
) -> ReadMessages:
    """Read messages in any dialect; ``facts`` says which session they belong to.

    System prompts, thinking and the answers of our own tools are left out. A result
    gets the name of its tool, which most dialects only have in the call.
    """
    check_messages(messages)
    reader = MessageReader(find_results, answers)
    calls = CallMatcher(answers, session=to_text(facts.session, "session"))
    kept: list[RecordedMessage] = []
    error: BadQuery | None = None
    for message in messages:
        try:
            parts = reader.read(message)
        except BadQuery as exc:
            error = error or exc
            continue
        for part in parts:
            call = calls.match(part)
            is_recalled = part.role is Role.TOOL_RESULT and call.is_own_tool
            if part.role is Role.SYSTEM or is_recalled:
                continue
            kept.append(
                replace(
                    facts,
                    role=part.role,
                    text=part.text,
                    tool_name=part.tool_name or call.tool_name,
                    call_id=part.call_id,
                )
            )
    return ReadMessages(kept, error)
