"""What an embedder promises: texts in, one vector of length 1 for each, nothing lost.

Vectors are comparable only when their embedders' fingerprints are equal. An embedder
that cannot do its work raises ``ProviderError``: ``ProviderUnavailable`` when it may
work later, ``ProviderRefused`` when somebody must change a setting first. It never
gives back a vector that is not one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeAlias

from backstory.errors import ProviderUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float32]"
# One row a text.
Vectors: TypeAlias = "NDArray[np.float32]"


class Embedder(Protocol):
    """Turns texts into vectors whose nearness is nearness of meaning.

    Any text will do: empty, a megabyte long, with NUL, half a surrogate pair. What is
    longer than the model reads is judged by its beginning. One embedder may be used
    from several threads at once, and in a forked child.
    """

    @property
    def fingerprint(self) -> str:
        """The model and all else that changes its vectors; known without loading it."""
        ...

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """One row a text, in the order given; no rows for no texts."""
        ...

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, where the model tells questions from texts."""
        ...

    def can_read(self, text: str) -> bool:
        """Whether the model knows the script that most of the text is in."""
        ...

    def close(self) -> None:
        """Let go of the model or the connection; using it again takes it up again."""
        ...


@dataclass(frozen=True, slots=True)
class EmbedderOptions:
    """What the settings say about an embedder; empty means the row's default."""

    model: str = ""
    url: str = ""
    key: str = ""
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class EmbedderRow:
    """One row of EMBEDDERS: an embedder's name, where its class stands, its defaults.

    ``target`` is empty for the row that embeds nothing. ``needs_key`` holds for the
    default server; a server of one's own may do without. ``key_variables`` may hold the
    key of the default server, and of no other.
    """

    name: str
    target: str
    summary: str
    default_model: str = ""
    default_url: str = ""
    needs_key: bool = False
    key_variables: tuple[str, ...] = ()

    def load(self, options: EmbedderOptions) -> Embedder:
        module, _, attribute = self.target.partition(":")
        try:
            made: Embedder = getattr(import_module(module), attribute)(self, options)
        except ImportError as exc:
            raise ProviderUnavailable(
                f"the embedder '{self.name}' needs a package that cannot be loaded "
                f"({exc})",
                hint="install Backstory again; until then searches go by words alone",
            ) from exc
        return made
