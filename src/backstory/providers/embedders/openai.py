"""OpenAI's embeddings, and those of any server that speaks its protocol."""

from collections.abc import Sequence

from backstory.providers.embedders.http import HttpEmbedder, Json


class OpenAiEmbedder(HttpEmbedder):
    """Asks ``/embeddings`` below the base address, which usually ends in ``/v1``."""

    def _request(self, texts: Sequence[str], *, is_query: bool) -> tuple[str, Json]:
        return "/embeddings", {
            "model": self._model,
            "input": list(texts),
            "encoding_format": "float",
        }

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._key}"} if self._key else {}

    def _rows(self, answer: Json) -> list[Json]:
        # The order of the list is not guaranteed, but each entry has its index.
        by_index = {entry["index"]: entry["embedding"] for entry in answer["data"]}
        return [by_index[index] for index in range(len(answer["data"]))]
