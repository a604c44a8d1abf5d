"""Anthropic's models."""

from collections.abc import Iterable

from backstory.providers.http import Json
from backstory.providers.llms.calls import Call, Ending, Reply, read_count
from backstory.providers.llms.http import HttpLlm

_VERSION = "2023-06-01"
_ENDINGS = {
    "max_tokens": Ending.CUT_OFF,
    "model_context_window_exceeded": Ending.CUT_OFF,
    "refusal": Ending.FILTERED,
}


class AnthropicLlm(HttpLlm):
    """Asks ``/v1/messages``.

    Shapes as of November 2026: https://platform.claude.com/docs/en/api/messages
    """

    def _request(self, call: Call) -> tuple[str, Json]:
        body: Json = {
            "model": self._model,
            "max_tokens": call.max_output_tokens,
            "messages": [{"role": "user", "content": call.prompt}],
        }
        if call.system:
            body["system"] = call.system
        if "thinking" in self._rejected:
            # The model always thinks.
            body["max_tokens"] = self._limit_with_thoughts(call)
        else:
            body["thinking"] = {"type": "disabled"}
        return "/v1/messages", body

    def _optional_parts(self, body: Json) -> Iterable[str]:
        return ["thinking"] if "thinking" in body else []

    def _headers(self) -> dict[str, str]:
        headers = {"anthropic-version": _VERSION}
        return headers | {"x-api-key": self._key} if self._key else headers

    def _reply(self, answer: Json) -> Reply:
        # Thoughts are pieces of another type.
        texts = [part["text"] for part in answer["content"] if part["type"] == "text"]
        usage = answer.get("usage")
        return Reply(
            "".join(texts),
            _ENDINGS.get(answer.get("stop_reason"), Ending.DONE),
            read_count(
                usage,
                "input_tokens",
                "cache_creation_input_tokens",
                "cache_read_input_tokens",
            ),
            read_count(usage, "output_tokens"),
        )
