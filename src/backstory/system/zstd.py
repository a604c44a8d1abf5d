"""Compress and unpack with zstd, which is part of Python from version 3.14 on."""

import io
import sys
from typing import IO, Any

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

ZstdError = zstd.ZstdError

# The most memory that unpacking may take; no transcript needs more.
MAX_WINDOW_BYTES = 32 * 1024 * 1024


def compress(data: bytes) -> bytes:
    return zstd.compress(data)


def decompress(
    packed: bytes, max_bytes: int, *, max_window_bytes: int = MAX_WINDOW_BYTES
) -> bytes:
    """Unpack data, or the first ``max_bytes`` of it.

    Raises ``ZstdError`` if it is damaged or was cut off, or if unpacking it takes more
    memory than ``max_window_bytes``.
    """
    unpacker = zstd.ZstdDecompressor(options=_limit_memory(max_window_bytes))
    unpacked = unpacker.decompress(packed, max_bytes)
    if not unpacker.eof and len(unpacked) < max_bytes:
        raise ZstdError("it was cut off")
    return unpacked


class Unpacked(io.RawIOBase):
    """The unpacked content of a file; of one that was cut off, all that can be read.

    Reading raises ``ZstdError`` if it is damaged or takes too much memory.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = zstd.ZstdFile(file, options=_limit_memory(MAX_WINDOW_BYTES))

    def readable(self) -> bool:
        return True

    # Any: io's own type for what bytes can be read into is not public.
    def readinto(self, buffer: Any) -> int:
        try:
            # Reads no more than is there at once, or damage would hide what comes
            # before it.
            return self._file.readinto1(buffer)
        except EOFError:
            return 0


def _limit_memory(max_bytes: int) -> dict[int, int]:
    return {zstd.DecompressionParameter.window_log_max: max_bytes.bit_length() - 1}
