"""OpenAI's chat models, and those of any server that speaks its protocol."""

from collections.abc import Iterable

from backstory.providers.http import Json
from backstory.providers.llms.calls import Call, Ending, Reply, read_count
from backstory.providers.llms.http import HttpLlm

# OpenAI's own models refuse the second, and many other servers ignore the first.
_LIMITS = ("max_completion_tokens", "max_tokens")
_ENDINGS = {"length": Ending.CUT_OFF, "content_filter": Ending.FILTERED}


class OpenAiLlm(HttpLlm):
    """Asks ``/chat/completions`` below the base address, usually ending in ``/v1``.

    Shapes and refusals as of November 2026:
    https://developers.openai.com/api/reference/resources/chat
    """

    def _request(self, call: Call) -> tuple[str, Json]:
        messages = [{"role": "user", "content": call.prompt}]
        if call.system:
            messages.insert(0, {"role": "system", "content": call.system})
        body: Json = {"model": self._model, "messages": messages, "stream": False}
        limits = _LIMITS if self._server.is_default_server else _LIMITS[::-1]
        known = [name for name in limits if name not in self._rejected]
        if known:
            body[known[0]] = self._limit_with_thoughts(call)
        if self._server.is_default_server and "reasoning_effort" not in self._rejected:
            # The lowest effort that all of its thinking models accept.
            body["reasoning_effort"] = "low"
        if call.wants_json and "response_format" not in self._rejected:
            body["response_format"] = {"type": "json_object"}
        return "/chat/completions", body

    def _optional_parts(self, body: Json) -> Iterable[str]:
        names = (*_LIMITS, "reasoning_effort", "response_format")
        return [name for name in names if name in body]

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._key}"} if self._key else {}

    def _reply(self, answer: Json) -> Reply:
        choice, usage = answer["choices"][0], answer.get("usage")
        message, reason = choice["message"], choice.get("finish_reason")
        if reason == "error":
            raise ValueError("a gateway's model broke off")
        ending = _ENDINGS.get(reason, Ending.DONE)
        if message.get("refusal"):
            ending = Ending.FILTERED
        return Reply(
            _text(message.get("content")),
            ending,
            read_count(usage, "prompt_tokens"),
            read_count(usage, "completion_tokens"),
        )


def _text(content: Json) -> str:
    """The text of a message, which some servers send in pieces."""
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "".join(part["text"] for part in content if part["type"] == "text")
    raise TypeError("neither a text nor a list of pieces")
