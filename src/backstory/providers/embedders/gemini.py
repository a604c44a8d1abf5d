"""Google's Gemini embeddings."""

from collections.abc import Sequence
from urllib.parse import quote

from backstory.providers.embedders.http import HttpEmbedder, Json


class GeminiEmbedder(HttpEmbedder):
    """Asks ``batchEmbedContents`` of v1beta, which takes 100 texts at most."""

    max_batch = 100

    def _request(self, texts: Sequence[str], *, is_query: bool) -> tuple[str, Json]:
        model = f"models/{self._model.removeprefix('models/')}"
        task = "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT"
        return f"/v1beta/{quote(model)}:batchEmbedContents", {
            "requests": [
                {
                    "model": model,
                    "content": {"parts": [{"text": text}]},
                    "taskType": task,
                }
                for text in texts
            ]
        }

    def _headers(self) -> dict[str, str]:
        # In a header, not in the address: addresses end up in logs.
        return {"x-goog-api-key": self._key} if self._key else {}

    def _rows(self, answer: Json) -> list[Json]:
        return [entry["values"] for entry in answer["embeddings"]]
