"""Run the bundled model: tokens, and onnxruntime with one text at a time.

The model rounds to 8 bits on a scale that depends on everything in its input, so in a
batch a text would get a different vector each time; alone, it always gets the same one.
Each run uses one thread, and many texts are shared out among several threads. So a
query is as quick as possible (waking a second thread costs more than it saves), many
texts use several cores, and no thread outlives the call that needed it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backstory.providers.embedders.base import Vector, Vectors
from backstory.providers.embedders.minilm.wordpiece import WordPiece
from backstory.system.fork_safety import block_forks
from backstory.system.machine import set_variable
from backstory.system.threads import count_cores
from backstory.text.escape import replace_surrogates

if TYPE_CHECKING:
    import onnxruntime as ort

DIMENSIONS = 384

# How many tokens the model reads.
_MAX_TOKENS = 256
# This many characters of words always have more tokens than that.
_MAX_CHARS = 4_000
_MOST_THREADS = 4


class Model:
    """The loaded weights and tokenizer; may be used from several threads."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = WordPiece(folder / "tokenizer.json", _MAX_TOKENS)
        self._session = open_session(folder)

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), DIMENSIONS), np.float32)

        def embed(place: int) -> None:
            vectors[place] = self._embed_one(texts[place])

        threads = min(_MOST_THREADS, count_cores(), len(texts))
        if threads <= 1:
            for place in range(len(texts)):
                embed(place)
            return vectors
        # Imported here because it is slow, and not needed for a query.
        from concurrent.futures import ThreadPoolExecutor

        # The longest first, so that no thread is left with a long one at the end.
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(embed, order):
                pass
        return vectors

    def _embed_one(self, text: str) -> Vector:
        # A process that ends while a thread is in these libraries would be aborted.
        with block_forks():
            tokens = self.tokenize(text)
            lengths = np.array([len(tokens)], np.int32)
            (made,) = self._session.run(
                ["vectors"], {"ids": tokens[None, :], "lengths": lengths}
            )
        vector: Vector = made[0]
        return vector

    def tokenize(self, text: str) -> NDArray[np.int32]:
        known = replace_surrogates(text.lstrip()[:_MAX_CHARS])
        return np.array(self._tokenizer.encode(known), np.int32)


def import_onnxruntime() -> Any:  # it has no types
    """Import onnxruntime, which is done here and nowhere else.

    Otherwise, onnxruntime would write a device id and a queue of events to the user's
    cache folder, and soon send them to its maker.
    """
    set_variable("ORT_DISABLE_TELEMETRY", "1")
    # The variable must be set first, because the import already writes.
    import onnxruntime as ort

    # For Windows, and in case the program imported it before us.
    ort.disable_telemetry_events()
    return ort


def open_session(folder: Path, *, threads: int = 1) -> "ort.InferenceSession":
    """Load the weights."""
    ort = import_onnxruntime()
    options = ort.SessionOptions()
    # Its log goes to standard error, and what matters is raised anyway.
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return ort.InferenceSession(
        str(folder / "model.onnx"),
        options,
        providers=["CPUExecutionProvider"],
        # The fused node takes three times as long as the two that it replaces.
        disabled_optimizers=["SkipLayerNormFusion"],
    )
