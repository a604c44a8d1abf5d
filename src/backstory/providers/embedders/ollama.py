"""Models that an Ollama server runs, by default on this machine."""

from collections.abc import Sequence

from backstory.providers.embedders.http import HttpEmbedder, Json

# nomic-embed-text was trained with these prefixes, and is worse without them.
_PREFIXED = "nomic-embed-text"
_TEXT_PREFIX = "search_document: "
_QUERY_PREFIX = "search_query: "


class OllamaEmbedder(HttpEmbedder):
    """Asks ``/api/embed``, which Ollama has since version 0.3."""

    # A laptop's processor may take seconds for a batch, within one timeout.
    max_batch = 16

    def _request(self, texts: Sequence[str], *, is_query: bool) -> tuple[str, Json]:
        prefix = ""
        if self._model.startswith(_PREFIXED):
            prefix = _QUERY_PREFIX if is_query else _TEXT_PREFIX
        return "/api/embed", {
            "model": self._model,
            "input": [prefix + text for text in texts],
            "truncate": True,
        }

    def _headers(self) -> dict[str, str]:
        # Ollama itself asks for no key; a gateway in front of it may.
        return {"authorization": f"Bearer {self._key}"} if self._key else {}

    def _rows(self, answer: Json) -> list[Json]:
        return list(answer["embeddings"])
