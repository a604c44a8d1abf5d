"""Models that an Ollama server runs, by default on this machine."""

from backstory.errors import ProviderRefused, ProviderUnavailable
from backstory.providers.http import Json, Patience
from backstory.providers.llms.calls import Call, Ending, Reply, read_count, read_text
from backstory.providers.llms.http import HttpLlm

# A server says at once what it knows about a model, without loading it.
_CHECK = Patience(max_tries=1, max_wait_s=0, max_total_s=10)


class OllamaLlm(HttpLlm):
    """Asks ``/api/chat``.

    Shapes as of Ollama 0.33 (2026): https://docs.ollama.com/api/chat
    """

    def check(self) -> None:
        try:
            self._server.ask("/api/show", {"model": self._model}, _CHECK)
        except ProviderUnavailable as exc:
            hint = "start Ollama, or set llm.url to where it runs"
            raise ProviderUnavailable(str(exc), hint=hint) from exc
        except ProviderRefused as exc:
            hint = f"run 'ollama pull {self._model}', or set llm.model to one it has"
            raise ProviderRefused(str(exc), hint=hint) from exc

    def _request(self, call: Call) -> tuple[str, Json]:
        messages = [{"role": "user", "content": call.prompt}]
        if call.system:
            messages.insert(0, {"role": "system", "content": call.system})
        body: Json = {
            "model": self._model,
            "messages": messages,
            "stream": False,
            "think": False,
            # Otherwise the beginning of a long prompt is dropped silently.
            "truncate": False,
            "options": {
                # Always the same, because a change would load the model again.
                "num_ctx": self._context_tokens,
                "num_predict": call.max_output_tokens,
            },
        }
        if call.wants_json:
            body["format"] = "json"
        return "/api/chat", body

    def _headers(self) -> dict[str, str]:
        # Ollama itself asks for no key; a gateway in front of it may.
        return {"authorization": f"Bearer {self._key}"} if self._key else {}

    def _reply(self, answer: Json) -> Reply:
        is_cut_off = answer.get("done_reason") == "length"
        return Reply(
            read_text(answer["message"]["content"]),
            Ending.CUT_OFF if is_cut_off else Ending.DONE,
            read_count(answer, "prompt_eval_count"),
            read_count(answer, "eval_count"),
        )
