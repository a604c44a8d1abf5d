"""LLMS: one row for each way to reach a language model.

Nothing leaves the machine unless a setting names a model. Only ``auto`` looks for the
key of a provider in the environment.
"""

from collections.abc import Mapping

from backstory.errors import ConfigError, UnknownName, nearest_hint
from backstory.providers.keys import read_key
from backstory.providers.llms.base import Llm, LlmOptions, LlmRow

_HERE = "backstory.providers.llms"

LLMS = (
    LlmRow(
        "auto",
        "",
        "What is set up: openai at llm.url, else the provider whose key is in the "
        "environment (anthropic, openai, gemini), else none.",
    ),
    LlmRow(
        "openai",
        f"{_HERE}.openai:OpenAiLlm",
        "OpenAI, or any server that speaks its protocol.",
        default_model="gpt-6-luna",
        default_url="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        context_tokens=128_000,
    ),
    LlmRow(
        "anthropic",
        f"{_HERE}.anthropic:AnthropicLlm",
        "Anthropic's API.",
        default_model="claude-haiku-5-5",
        default_url="https://api.anthropic.com",
        key_variables=("ANTHROPIC_API_KEY",),
        # Longer prompts cost five times as much per token.
        context_tokens=100_000,
    ),
    LlmRow(
        "gemini",
        f"{_HERE}.gemini:GeminiLlm",
        "Google's Gemini API.",
        default_model="gemini-3.5-flash-lite",
        default_url="https://generativelanguage.googleapis.com",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        context_tokens=128_000,
    ),
    LlmRow(
        "ollama",
        f"{_HERE}.ollama:OllamaLlm",
        "A model that an Ollama server runs, by default on this machine.",
        default_model="gemma4:e2b",
        default_url="http://localhost:11434",
        context_tokens=8_192,
    ),
    LlmRow(
        "claude",
        f"{_HERE}.claude:ClaudeLlm",
        "Claude Code on this machine, with the account it is logged in to.",
        default_model="haiku",
        program="claude",
        context_tokens=100_000,
    ),
    LlmRow(
        "codex",
        f"{_HERE}.codex:CodexLlm",
        "Codex on this machine, with the account it is logged in to.",
        program="codex",
        context_tokens=100_000,
    ),
    LlmRow("none", "", "No language model."),
)
# If several keys are in the environment, the first of these is used.
_BY_KEY = ("anthropic", "openai", "gemini")


def get_llm_row(name: str) -> LlmRow:
    """The row of that name. Raises ``UnknownName``, which lists all names."""
    for row in LLMS:
        if row.name == name:
            return row
    raise UnknownName(
        f"no language model is called '{name}'",
        hint=nearest_hint(name, (row.name for row in LLMS)),
    )


def load_llm(
    name: str,
    *,
    model: str = "",
    url: str = "",
    key: str = "",
    environ: Mapping[str, str],
    timeout_s: float = 120.0,
    context_tokens: int = 0,
) -> Llm | None:
    """The model of that name, with nothing asked or started yet; None for no model.

    ``key`` says where the key is: ``env:NAME``, ``file:/path``, or nothing for the
    provider's own variables. ``timeout_s`` is for one call with all its retries. Raises
    ``UnknownName``, ``ConfigError`` for a setting that cannot work, and
    ``ProviderUnavailable`` if a package is missing.
    """
    row = get_llm_row(name)
    if row.name == "auto":
        row = _pick(url=url, key=key, environ=environ)
    if not row.target:
        return None
    is_elsewhere = url.rstrip("/") not in ("", row.default_url)
    found = ""
    if row.default_url:
        found = read_key(
            key,
            row.key_variables,
            environ,
            is_elsewhere=is_elsewhere,
            setting="llm.key",
        )
    options = LlmOptions(model, url, found, timeout_s, context_tokens, environ)
    return row.load(options)


def _pick(*, url: str, key: str, environ: Mapping[str, str]) -> LlmRow:
    """What ``auto`` stands for. Contacts no server and starts no program."""
    if url:
        return get_llm_row("openai")
    if key:
        # Sent to whichever provider comes first, it could reach the wrong one.
        raise ConfigError(
            "llm.key is set, but neither llm.name nor llm.url says whose key it is",
            hint="set llm.name to openai, anthropic or gemini",
        )
    for name in _BY_KEY:
        row = get_llm_row(name)
        if any(environ.get(variable) for variable in row.key_variables):
            return row
    return get_llm_row("none")
