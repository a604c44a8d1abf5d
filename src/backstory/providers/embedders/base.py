"""What an embedder promises: texts in, one vector of length 1 for each.

Vectors are comparable only if their embedders' fingerprints are equal. An embedder
that fails raises ``ProviderError``: ``ProviderUnavailable`` if it may work later,
``ProviderRefused`` if somebody must change a setting first. It never returns an invalid
vector.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeAlias

from backstory.errors import ProviderUnavailable
from backstory.values.structs import FrozenStruct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float32]"
# One row per text.
Vectors: TypeAlias = "NDArray[np.float32]"


class Embedder(Protocol):
    """Turns texts into vectors whose nearness is nearness of meaning.

    Any text is accepted: empty, a megabyte long, with NUL, half a surrogate pair. Only
    the beginning of a text counts if it is longer than the model reads. One embedder
    may be used from several threads at once, and in a forked child.
    """

    @property
    def fingerprint(self) -> str:
        """The model and whatever else changes its vectors; known without loading it.

        After the last colon, it says how the texts are prepared for the model.
        """
        ...

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """One row per text, in the order given; no rows for no texts."""
        ...

    def embed_query(self, text: str) -> Vector:
        """The vector of a query; some models embed queries unlike texts."""
        ...

    def can_read(self, text: str) -> bool:
        """Whether the model knows the script of most of the text."""
        ...

    def get_ready(self) -> None:
        """Load what takes long, in the background as far as possible; never raises.

        A search calls this first, and then does what needs no vector.
        """
        ...

    def close(self) -> None:
        """Release the model or the connection; the next use loads or opens it again."""
        ...


def model_of(fingerprint: str) -> str:
    """The model that a fingerprint names, without how texts are prepared for it."""
    return fingerprint.rpartition(":")[0] or fingerprint


class EmbedderOptions(FrozenStruct):
    """What the settings say about an embedder; empty means the row's default."""

    model: str = ""
    url: str = ""
    key: str = ""
    timeout_s: float = 30.0

    def __repr__(self) -> str:
        # Without the key, which has no place in a log or a traceback.
        return f"{type(self).__name__}(model={self.model!r}, url={self.url!r})"


class EmbedderRow(FrozenStruct):
    """One row of EMBEDDERS: an embedder's name, where its class is, its defaults.

    ``target`` is empty for the row that embeds nothing. ``needs_key`` is about the
    default server; another server may need no key. ``key_variables`` hold the key of
    the default server only.
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
