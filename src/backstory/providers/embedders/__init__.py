"""EMBEDDERS: one row per embedder; ``minilm/`` holds the bundled model.

Nothing leaves the machine unless a setting names an embedder that has a server.
"""

from collections.abc import Mapping

from backstory.errors import UnknownName, nearest_hint
from backstory.providers.embedders.base import Embedder, EmbedderOptions, EmbedderRow
from backstory.providers.keys import read_key

_HERE = "backstory.providers.embedders"
_NO_VARIABLES: Mapping[str, str] = {}

EMBEDDERS = (
    EmbedderRow(
        "auto",
        f"{_HERE}.minilm:MiniLmEmbedder",
        "The best that needs no server: the bundled model.",
        default_model="all-MiniLM-L6-v2",
    ),
    EmbedderRow(
        "minilm",
        f"{_HERE}.minilm:MiniLmEmbedder",
        "The bundled model, for Latin scripts; works offline.",
        default_model="all-MiniLM-L6-v2",
    ),
    EmbedderRow(
        "ollama",
        f"{_HERE}.ollama:OllamaEmbedder",
        "A model that an Ollama server runs, by default on this machine.",
        default_model="nomic-embed-text",
        default_url="http://localhost:11434",
    ),
    EmbedderRow(
        "openai",
        f"{_HERE}.openai:OpenAiEmbedder",
        "OpenAI, or any server that speaks its protocol.",
        default_model="text-embedding-3-small",
        default_url="https://api.openai.com/v1",
        needs_key=True,
        key_variables=("OPENAI_API_KEY",),
    ),
    EmbedderRow(
        "gemini",
        f"{_HERE}.gemini:GeminiEmbedder",
        "Google's Gemini API.",
        default_model="gemini-embedding-001",
        default_url="https://generativelanguage.googleapis.com",
        needs_key=True,
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    EmbedderRow("none", "", "No vectors; searches go by words alone."),
)


def get_embedder_row(name: str) -> EmbedderRow:
    """The row of that name. Raises ``UnknownName``, which lists all names."""
    for row in EMBEDDERS:
        if row.name == name:
            return row
    raise UnknownName(
        f"no embedder is called '{name}'",
        hint=nearest_hint(name, (row.name for row in EMBEDDERS)),
    )


def load_embedder(
    name: str,
    *,
    model: str = "",
    url: str = "",
    key: str = "",
    environ: Mapping[str, str] = _NO_VARIABLES,
    timeout_s: float = 30.0,
) -> Embedder | None:
    """The embedder of that name, with nothing loaded or asked yet; None for ``none``.

    ``key`` says where the key is: ``env:NAME``, ``file:/path``, or nothing for the
    provider's own variables. Raises ``UnknownName``, ``ConfigError`` for a setting that
    cannot work, and ``ProviderUnavailable`` if a package is missing.
    """
    row = get_embedder_row(name)
    if not row.target:
        return None
    found = ""
    if row.default_url:
        found = read_key(
            key,
            row.key_variables,
            environ,
            is_elsewhere=url.rstrip("/") not in ("", row.default_url),
            setting="embedder.key",
        )
    return row.load(EmbedderOptions(model, url, found, timeout_s))
