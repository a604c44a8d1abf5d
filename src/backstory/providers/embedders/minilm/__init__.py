"""The bundled model: all-MiniLM-L6-v2 in 8 bits, 384 numbers per text.

``inference`` loads onnxruntime and the weights for the first text, because most
commands never need a vector.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.errors import ProviderUnavailable
from backstory.providers.embedders.base import (
    EmbedderOptions,
    EmbedderRow,
    Vector,
    Vectors,
)
from backstory.system.fork_safety import block_forks, reset_in_child
from backstory.system.threads import DaemonThreadPool
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.patterns import lazy_pattern

if TYPE_CHECKING:
    from backstory.providers.embedders.minilm.inference import Model

_HERE = Path(__file__).parent
# models/build_minilm.py prints these; a test compares them with the files.
SHA256 = {
    "model.onnx": "e7ad698d6ff01c8e28f7ffc21740610e8c03f3c13574c8a8147a5a60e0bb1268",
    "model.weights": "96839a97edde59f12c521cc9bac0013669eec3d56fef2ae21c7168687fb942b1",
    "tokenizer.json": (
        "e171b61b8656515e456ac9582c014061085b2a74dc8a9cf408b316e7064e52e2"
    ),
}
# How much of a file is hashed at once.
_CHECKED_BYTES = 4 * 1024 * 1024
# How long to wait for the thread that loaded the model to end.
_END_WAIT_S = 1.0
# Incremented when the same files would give a text a different vector.
_PIPELINE = "2"

# This much is enough to judge the script; the model reads little more.
_JUDGED_CHARS = 2_000
_LATIN = lazy_pattern("[A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")
_LETTER = lazy_pattern(r"[^\W\d_]")
# Ideographs, kana and Hangul: one says about as much as three letters.
_DENSE = lazy_pattern(
    "[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
_DENSE_WEIGHT = 3


class MiniLmEmbedder:
    """Runs the bundled model in this process; nothing leaves the machine."""

    _lock: threading.Lock
    _model: "Model | None"

    def __init__(
        self, row: EmbedderRow, options: EmbedderOptions, folder: Path = _HERE
    ) -> None:
        self._folder = folder
        self.reset_after_fork()
        reset_in_child(self)

    @property
    def fingerprint(self) -> str:
        return ":".join(["minilm", *(each[:8] for each in SHA256.values()), _PIPELINE])

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        model = self._get_model()
        with _translated("cannot be run"):
            return model.embed(texts)

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self.embed_texts([text])[0]
        return vector

    def can_read(self, text: str) -> bool:
        """False when most of the text is in a script other than Latin."""
        if text.isascii():
            return True
        judged = text[:_JUDGED_CHARS]
        latin = len(_LATIN.findall(judged))
        dense = len(_DENSE.findall(judged))
        other = len(_LETTER.findall(judged)) - latin
        return latin >= other + (_DENSE_WEIGHT - 1) * dense

    def get_ready(self) -> None:
        """Load the libraries now and the model in another thread.

        Python runs one thread at a time, so imports cannot run in parallel with other
        work. onnxruntime can, because it opens a model without holding the GIL.
        """
        if self._model is not None:
            return
        # What fails here fails again, and is reported, when a vector is needed.
        loading = threading.Thread(target=self._try_model, daemon=True)
        loading.start()
        with suppress(ProviderUnavailable), _translated("cannot be loaded"):
            _import_model()

    def _try_model(self) -> None:
        with suppress(ProviderUnavailable):
            self._get_model()

    def close(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Start with nothing loaded."""
        self._lock = threading.Lock()
        self._model = None

    def _get_model(self) -> "Model":
        model = self._model
        if model is not None:
            return model
        # A child that is forked while the model is loaded would never finish loading
        # it.
        with block_forks(), self._lock:
            if self._model is None:
                self._model = _load_model(self._folder)
            return self._model


def _load_model(folder: Path) -> "Model":
    threads = DaemonThreadPool(1, "backstory-model")
    with _translated("cannot be loaded"):
        # In parallel with loading the libraries, because both take a while.
        checked = threads.submit(partial(_check_files, folder))
        try:
            model = _import_model()
        finally:
            checked.wait()
            threads.shutdown(wait_s=_END_WAIT_S)
        checked.result()
        return model(folder)


def _import_model() -> "type[Model]":
    """Import the class, with the libraries that it needs."""
    # numpy and onnxruntime take longer to load than a search by words takes.
    from backstory.providers.embedders.minilm import inference

    inference.import_onnxruntime()
    return inference.Model


def _check_files(folder: Path) -> None:
    """Refuse files that did not come with the package: a model runs like code."""
    # Imported here because only loading the model needs it.
    from hashlib import sha256

    # In large parts, because hashing only takes the GIL between them, which delays
    # imports.
    room = memoryview(bytearray(_CHECKED_BYTES))
    for name, expected in SHA256.items():
        digest = sha256()
        with (folder / name).open("rb", buffering=0) as file:
            while size := file.readinto(room):
                digest.update(room[:size])
        if digest.hexdigest() != expected:
            raise ValueError(f"{name} is not the one that this version comes with")


@contextmanager
def _translated(failure: str) -> Iterator[None]:
    """Raise ``ProviderUnavailable`` for whatever the libraries raise.

    A broken shared library, a missing file and a lack of memory raise errors of many
    kinds here.
    """
    try:
        yield
    except Exception as exc:
        raise ProviderUnavailable(
            f"the bundled model {failure} ({one_line(neutralize(str(exc)), 200)})",
            hint="install Backstory again; until then searches go by words alone",
        ) from exc
