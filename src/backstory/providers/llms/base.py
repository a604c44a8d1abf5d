"""What a language model promises: a prompt in, a whole answer out, or an error.

One that cannot do its work raises ``ProviderError``: ``ProviderUnavailable`` when it
may work later, ``ProviderRefused`` when somebody must change a setting first, and the
two of this module when it is about this one prompt. Nothing here knows what the answers
are for; whoever asks masks secrets in what it sends.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol

from backstory.errors import ProviderError, ProviderRefused, ProviderUnavailable

# What a model that cannot be told not to think may write beyond the answer.
THOUGHT_TOKENS = 4_096


class PromptTooLong(ProviderRefused):
    """The prompt does not fit into the model; in parts it may."""

    hint = "set llm.context_tokens to what the model takes in one call"


class UnusableAnswer(ProviderError):
    """The answer was cut off, refused by a filter, or empty; another prompt may do."""

    hint = "take another model if it goes on: set llm.name or llm.model"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model wrote, whole, and the tokens it took.

    The tokens are as the provider counts them, thoughts included; estimated where it
    does not say.
    """

    text: str
    input_tokens: int
    output_tokens: int


class Llm(Protocol):
    """Answers prompts. One may be used from several threads at once, and in a child."""

    @property
    def title(self) -> str:
        """The provider and the model, such as ``openai gpt-6-luna``."""
        ...

    @property
    def context_tokens(self) -> int:
        """How many tokens one call may read and write together."""
        ...

    def complete(
        self,
        *,
        system: str,
        prompt: str,
        max_output_tokens: int,
        wants_json: bool = False,
    ) -> Answer:
        """The model's answer to any text, half surrogate pairs and all.

        ``max_output_tokens`` bounds the answer, as far as the provider can be told;
        thoughts may take ``THOUGHT_TOKENS`` more. With ``wants_json`` the model is
        asked for one JSON object, and a code fence around it is taken off; whether it
        is one, the caller finds out.

        Raises ``PromptTooLong``, before anything is sent when ``most_tokens`` says that
        it may not fit into ``context_tokens``; ``UnusableAnswer``;
        ``ProviderUnavailable``; and ``ProviderRefused``.
        """
        ...

    def close(self) -> None:
        """Let go of the connection; using it again takes up another."""
        ...


@dataclass(frozen=True, slots=True)
class LlmOptions:
    """What the settings say about a model; empty means the row's default.

    ``environ`` is what a program that is started gets to see.
    """

    model: str = ""
    url: str = ""
    key: str = field(default="", repr=False)
    timeout_s: float = 120.0
    context_tokens: int = 0
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class LlmRow:
    """One row of LLMS: a model's name, where its class stands, its defaults.

    ``target`` is empty for a row that stands for another, or for none. A row has a
    server or a program. ``key_variables`` hold a key for the server at ``default_url``,
    which needs one; a server of one's own may do without.
    """

    name: str
    target: str
    summary: str
    default_model: str = ""
    default_url: str = ""
    program: str = ""
    key_variables: tuple[str, ...] = ()
    context_tokens: int = 0

    def load(self, options: LlmOptions) -> Llm:
        module, _, attribute = self.target.partition(":")
        try:
            made: Llm = getattr(import_module(module), attribute)(self, options)
        except ImportError as exc:
            raise ProviderUnavailable(
                f"the language model '{self.name}' needs a package that cannot be "
                f"loaded ({exc})",
                hint="install Backstory again",
            ) from exc
        return made
