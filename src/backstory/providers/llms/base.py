"""What a language model promises: a prompt in, a complete answer out, or an error.

A model that fails raises ``ProviderError``: ``ProviderUnavailable`` if it may work
later, ``ProviderRefused`` if somebody must change a setting first, and
``PromptTooLong`` or ``UnusableAnswer`` if it is about this one prompt. The caller masks
secrets in its prompts.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Protocol

from backstory.errors import ProviderUnavailable
from backstory.values.structs import FrozenStruct, field

# What a model that always thinks may write in addition to the answer.
THOUGHT_TOKENS = 4_096


class Answer(FrozenStruct):
    """The model's complete answer, and the tokens it took.

    Tokens are as the provider counts them, including thoughts; estimated if it does not
    say.
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

        ``max_output_tokens`` limits the answer, if the provider supports that; thoughts
        may take ``THOUGHT_TOKENS`` more. With ``wants_json`` the model is asked for one
        JSON object, and a code fence around it is removed; the caller checks it.

        Raises ``PromptTooLong``, before anything is sent if ``most_tokens`` says that
        the prompt may not fit into ``context_tokens``; ``UnusableAnswer``;
        ``ProviderUnavailable``; and ``ProviderRefused``.
        """
        ...

    def check(self) -> None:
        """Check whether the model can be asked, as far as that costs no tokens.

        Raises ``ProviderError`` if it cannot: a program is missing, or a server on the
        user's own machine does not run or does not have the model.
        """
        ...

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        ...


class LlmOptions(FrozenStruct):
    """What the settings say about a model; empty means the row's default.

    ``environ`` is the environment for a program that is started.
    """

    model: str = ""
    url: str = ""
    key: str = ""
    timeout_s: float = 120.0
    context_tokens: int = 0
    environ: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        # Without the key and the environment, which must not get into a log.
        return f"LlmOptions(model={self.model!r}, url={self.url!r})"


class LlmRow(FrozenStruct):
    """One row of LLMS: a model's name, where its class is, its defaults.

    ``target`` is empty for a row that stands for another, or for no model. A row has a
    server or a program. ``key_variables`` hold the key of the server at
    ``default_url``, which needs one; another server may need no key.
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
