"""Messages of OpenAI's Chat Completions, Ollama, and servers that speak the same."""

from collections.abc import Iterator, Sequence
from types import NoneType

from backstory.runs.dialects.base import Dialect, Piece
from backstory.runs.dialects.chat_messages import iter_chat_pieces
from backstory.runs.dialects.content import block_types
from backstory.runs.dialects.pieces import find_role
from backstory.text.json_values import JsonObject, as_list, as_object
from backstory.values.history import Role

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL_RESULT,
    "function": Role.TOOL_RESULT,
}
# Every message has one of these, except an assistant's message without words.
_NEEDED = {"content", "tool_call_id"}
_BLOCKS = {
    "text",
    "refusal",
    "image_url",
    "input_audio",
    "audio_url",
    "video_url",
    "file",
}


class OpenAiChat(Dialect):
    """Messages as in ``types/chat`` of openai 3.49 and in ollama 0.6 (read 2026-11).

    Ollama's calls have no ids, and their arguments are not text.
    """

    name = "openai-chat"

    def recognizes(self, message: JsonObject) -> bool:
        content, role = message.get("content"), find_role(message, _ROLES)
        return (
            role is not None
            and not message.keys() & {"type", "text"}
            and (role is Role.ASSISTANT or bool(message.keys() & _NEEDED))
            and isinstance(content, str | list | NoneType)
            and block_types(content) <= _BLOCKS
        )

    def iter_pieces(self, message: JsonObject) -> Iterator[Piece]:
        role = find_role(message, _ROLES) or Role.SYSTEM
        yield from iter_chat_pieces(message, role)

    def find_said(self, reply: JsonObject) -> Sequence[JsonObject] | None:
        choices = as_list(reply.get("choices"))
        # Ollama has no choices; until it is done, a message is only a fragment.
        holder = reply if reply.get("done") is True else (choices or [None])[0]
        message = as_object(as_object(holder).get("message"))
        return [{"role": "assistant", **message}] if message else None
