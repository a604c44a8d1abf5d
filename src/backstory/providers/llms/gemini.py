"""Google's Gemini models."""

from urllib.parse import quote

from backstory.providers.http import Json
from backstory.providers.llms.calls import Call, Ending, Reply, read_count
from backstory.providers.llms.http import HttpLlm

_DONE = ("STOP", "FINISH_REASON_UNSPECIFIED", None)


class GeminiLlm(HttpLlm):
    """Asks ``generateContent`` of v1beta.

    Shapes as of November 2026: https://ai.google.dev/api/generate-content
    """

    def _request(self, call: Call) -> tuple[str, Json]:
        model = f"models/{self._model.removeprefix('models/')}"
        config: Json = {"maxOutputTokens": self._limit_with_thoughts(call)}
        if call.wants_json:
            config["responseMimeType"] = "application/json"
        body: Json = {
            "contents": [{"role": "user", "parts": [{"text": call.prompt}]}],
            "generationConfig": config,
        }
        if call.system:
            body["systemInstruction"] = {"parts": [{"text": call.system}]}
        return f"/v1beta/{quote(model)}:generateContent", body

    def _headers(self) -> dict[str, str]:
        # In a header, not in the address: addresses end up in logs.
        return {"x-goog-api-key": self._key} if self._key else {}

    def _reply(self, answer: Json) -> Reply:
        usage = answer.get("usageMetadata")
        input_tokens = read_count(usage, "promptTokenCount")
        output_tokens = read_count(usage, "candidatesTokenCount", "thoughtsTokenCount")
        candidates = answer.get("candidates")
        if not candidates and answer["promptFeedback"]["blockReason"]:
            return Reply("", Ending.FILTERED, input_tokens, output_tokens)
        candidate = candidates[0]
        parts = candidate.get("content", {}).get("parts", [])
        texts = [part.get("text", "") for part in parts if not part.get("thought")]
        return Reply(
            "".join(texts),
            _ending(candidate.get("finishReason")),
            input_tokens,
            output_tokens,
        )


def _ending(reason: Json) -> Ending:
    if reason in _DONE:
        return Ending.DONE
    # There are many others, all set by filters: SAFETY, RECITATION, SPII, …
    return Ending.CUT_OFF if reason == "MAX_TOKENS" else Ending.FILTERED
