"""What text, Markdown and HTML of a conversation have in common."""

from collections.abc import Iterable, Iterator

from backstory.render.format import render_count
from backstory.text.cut import one_line
from backstory.text.tool_calls import ReadCall, parse_call
from backstory.values.history import Message, Role, Session
from backstory.values.structs import FrozenStruct

ROLE_NAMES = {
    Role.USER: "User",
    Role.ASSISTANT: "Assistant",
    Role.TOOL_CALL: "Tool call",
    Role.TOOL_RESULT: "Tool result",
    Role.SYSTEM: "System",
    Role.SUMMARY: "Summary",
    Role.ERROR: "Error",
}
# What people and models wrote, as opposed to programs.
PROSE = frozenset({Role.USER, Role.ASSISTANT, Role.SUMMARY})
# Of a text that is folded to one line.
_MAX_POINT_CHARS = 200


def name_role(session: Session, role: Role) -> str:
    """The name above a message of a session."""
    return session.name_speaker(role) if session.is_task(role) else ROLE_NAMES[role]


class Folding(FrozenStruct):
    """Which calls and results of tools take one line; the others are shown whole.

    All of them unless it ``is_off``, apart from the message with the number ``whole``.
    """

    is_off: bool = False
    whole: int | None = None

    def folds(self, message: Message) -> bool:
        is_tool = message.role in (Role.TOOL_CALL, Role.TOOL_RESULT)
        return is_tool and not self.is_off and message.message_id != self.whole


FOLDED = Folding()


class FoldedTool(FrozenStruct):
    """A tool's call or result on one line: how much it is, and what it is about."""

    size: str
    point: str


def name_tools(messages: Iterable[Message]) -> Iterator[tuple[Message, str]]:
    """Messages, and the tool that each belongs to; a result is named by its call."""
    tools: dict[str, str] = {}
    for message in messages:
        if message.call_id and message.tool_name:
            tools[message.call_id] = message.tool_name
        yield message, message.tool_name or tools.get(message.call_id or "", "")


def to_place(message: Message) -> int:
    """The number of a message in its session, from 1."""
    return message.position + 1


def fold_tool(message: Message, project: str | None) -> FoldedTool:
    """A call is named by its point, a result by its first line.

    A file in the ``project`` is named by its path there, as the line may be short.
    """
    if message.role is Role.TOOL_CALL:
        call = parse_call(message.text)
        point = call.point or message.text
        if project:
            point = point.removeprefix(f"{project}/")
        return FoldedTool(_count_changes(call), one_line(point, _MAX_POINT_CHARS))
    lines = message.text.strip().split("\n")
    size = render_count(len(lines), "line") if message.text.strip() else "empty"
    return FoldedTool(size, one_line(lines[0], _MAX_POINT_CHARS))


def _count_changes(call: ReadCall) -> str:
    signs = [line.sign for part in call.parts for line in part.changes]
    counts = {sign: signs.count(sign) for sign in "+-"}
    shown = " ".join(f"{sign}{count:,}" for sign, count in counts.items() if count)
    lines = "line" if sum(counts.values()) == 1 else "lines"
    return f"{shown} {lines}" if shown else ""
