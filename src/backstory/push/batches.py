"""What is sent in one request: parts of sessions, as exported, and what to forget.

A batch is compressed. Its first line says which history it comes from; then follows a
line about each part and, for messages, the lines of an export.
"""

from collections.abc import Iterable, Iterator
from io import BytesIO

import msgspec

from backstory.errors import BadQuery, show_value
from backstory.system.zstd import ZstdError, compress, decompress
from backstory.values.structs import FrozenStruct

VERSION = 1
# How large a batch may be, compressed and uncompressed.
MAX_SENT_BYTES = 16_000_000
MAX_RAW_BYTES = 64_000_000
# How much is put into one batch, unless a single message is longer than that.
GOOD_RAW_BYTES = 4_000_000
_MAX_ID_CHARS = 100
_MAX_WINDOW_BYTES = 8 * 1024 * 1024


class SentSession(FrozenStruct, tag="session"):
    """Messages of a session, or only what is known about it.

    ``number`` is the session's number in the history that it comes from. ``size`` is
    the number of bytes of its lines, which follow.
    """

    number: int
    size: int


class KeptIds(FrozenStruct, tag="kept"):
    """Which messages of a session are left: the others were forgotten."""

    number: int
    ids: tuple[str, ...]


class SentForgotten(FrozenStruct, tag="forgotten"):
    """A session that was forgotten."""

    number: int


class _Head(FrozenStruct):
    push: int
    history: str


About = SentSession | KeptIds | SentForgotten
Part = tuple[About, bytes]


class ReadBatch(FrozenStruct):
    """A batch that was read: where it comes from, and its parts with their lines."""

    history: str
    parts: tuple[Part, ...]


_ABOUT = msgspec.json.Decoder(About)
_HEAD = msgspec.json.Decoder(_Head)


def session_part(number: int, lines: Iterable[bytes]) -> Part:
    """A part with lines of an export, the first of which is about the session."""
    content = b"".join(lines)
    return SentSession(number, len(content)), content


def part_size(part: Part) -> int:
    """How many bytes a part has."""
    about, content = part
    return len(msgspec.json.encode(about)) + len(content) + 1


def write_batch(history: str, parts: Iterable[Part]) -> bytes:
    """A batch as it is sent."""
    lines = [msgspec.json.encode(_Head(VERSION, history)), b"\n"]
    for about, content in parts:
        lines += [msgspec.json.encode(about), b"\n", content]
    return compress(b"".join(lines))


def parse_batch(sent: bytes) -> ReadBatch:
    """What a batch says. Raises ``BadQuery`` for anything that is not one."""
    if not isinstance(sent, bytes):
        raise BadQuery(f"a batch is {show_value(sent)}, not bytes")
    raw = BytesIO(_decompress(sent))
    try:
        head = _HEAD.decode(raw.readline())
        if head.push != VERSION:
            raise BadQuery(
                f"the batch is of version {head.push}, and this server knows {VERSION}",
                hint="upgrade the server",
            )
        if not (0 < len(head.history) <= _MAX_ID_CHARS and head.history.isalnum()):
            raise BadQuery("the batch does not say which history it comes from")
        return ReadBatch(head.history, tuple(_iter_parts(raw)))
    except msgspec.MsgspecError as exc:
        raise BadQuery(f"this is not a batch ({exc})") from exc


def _iter_parts(raw: BytesIO) -> Iterator[Part]:
    while line := raw.readline():
        about = _ABOUT.decode(line)
        content = b""
        if isinstance(about, SentSession):
            content = raw.read(max(0, about.size))
            if len(content) != about.size:
                raise BadQuery("the batch was cut off")
        yield about, content


def _decompress(sent: bytes) -> bytes:
    """The content of a batch, if it is not much larger than any that is sent."""
    try:
        raw = decompress(sent, MAX_RAW_BYTES + 1, max_window_bytes=_MAX_WINDOW_BYTES)
    except (ZstdError, MemoryError) as exc:
        raise BadQuery("this is not a batch, or it was cut off") from exc
    if len(raw) > MAX_RAW_BYTES:
        raise BadQuery(f"the batch has more than {MAX_RAW_BYTES:,} bytes")
    return raw
