"""Read JSON lines that another program may still be writing, and repair what can be.

Only whole lines count as read: the last one, without its line end, waits for the next
reading unless it is a complete object already. However long a line is, memory stays
small: long strings in an over-long line are cut before it is parsed.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import orjson

from backstory.importers.base import Record
from backstory.model import Problem
from backstory.text import replace_surrogates

MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_STRING_BYTES = 256 * 1024
_CHUNK = 1024 * 1024


@dataclass(slots=True)
class LineReader:
    """Iterate over the records of a line file; ``read_to`` is where reading may go on.

    ``read_to`` and ``line`` move only when the next record is asked for, so they always
    stand behind the last record whose consumer is done with it.
    """

    file: IO[bytes]
    read_to: int = 0
    line: int = 0
    max_line_bytes: int = MAX_LINE_BYTES

    def records(self) -> Iterator[Record | Problem]:
        """Records and problems in the order of the lines, to the end of the file."""
        position, line = self.read_to, self.line
        while raw := self.file.readline(self.max_line_bytes):
            line += 1
            if len(raw) == self.max_line_bytes and not raw.endswith(b"\n"):
                short, length, is_whole = self._shorten(raw)
                if not is_whole:
                    yield _cut_off(line, length)
                    return
                raw, consumed = short, length
                if len(short) > self.max_line_bytes:
                    yield Problem(f"a line of {length:,} bytes, too long to read", line)
                    raw = b""
                else:
                    yield Problem(
                        f"a line of {length:,} bytes; strings in it longer than "
                        f"{MAX_STRING_BYTES:,} bytes were cut",
                        line,
                    )
            else:
                consumed = len(raw)
                if not raw.endswith(b"\n") and not _is_complete(raw):
                    if raw.strip():
                        yield _cut_off(line, consumed)
                    return
            if raw.strip():
                yield from _decode(raw, line)
            position += consumed
            self.read_to, self.line = position, line

    def _shorten(self, start: bytes) -> tuple[bytes, int, bool]:
        """Read the rest of an over-long line, keeping only the head of long strings.

        Returns the shortened line, the bytes consumed, and whether the line had an end.
        """
        shortener = _Shortener()
        chunk, length = start, 0
        while chunk:
            length += len(chunk)
            if len(shortener.kept) <= self.max_line_bytes:
                shortener.feed(chunk)
            if chunk.endswith(b"\n"):
                return bytes(shortener.kept), length, True
            chunk = self.file.readline(_CHUNK)
        return bytes(shortener.kept), length, _is_complete(bytes(shortener.kept))


class _Shortener:
    """Copy JSON text, leaving out what goes beyond the limit inside one string.

    A string is only ever cut between two characters, never inside an escape.
    """

    def __init__(self) -> None:
        self.kept = bytearray()
        self._in_string = False
        self._escaped = False
        self._hex_digits_due = 0
        self._string_bytes = 0
        self._is_full = False

    def feed(self, chunk: bytes) -> None:
        position = 0
        while position < len(chunk):
            if self._escaped:
                self._take_escaped(chunk[position : position + 1])
                position += 1
                continue
            end = self._find_mark(chunk, position)
            self._take_text(chunk[position:end])
            if end == len(chunk):
                return
            if chunk[end : end + 1] == b"\\":
                self._take_backslash()
            else:
                self._take_quote()
            position = end + 1

    def _find_mark(self, chunk: bytes, position: int) -> int:
        quote = chunk.find(b'"', position)
        end = len(chunk) if quote < 0 else quote
        if self._in_string:
            backslash = chunk.find(b"\\", position, end)
            if backslash >= 0:
                return backslash
        return end

    def _take_quote(self) -> None:
        if self._in_string and self._is_full:
            self.kept += (
                f"\\n[cut: {MAX_STRING_BYTES:,} of {self._string_bytes:,} bytes kept]"
            ).encode()
        self.kept += b'"'
        self._in_string = not self._in_string
        self._string_bytes, self._is_full = 0, False

    def _take_backslash(self) -> None:
        self._is_full = self._is_full or self._string_bytes >= MAX_STRING_BYTES
        self._escaped = True
        self._string_bytes += 1
        if not self._is_full:
            self.kept += b"\\"

    def _take_escaped(self, character: bytes) -> None:
        self._escaped = False
        self._string_bytes += 1
        if not self._is_full:
            self.kept += character
            self._hex_digits_due = 4 if character == b"u" else 0

    def _take_text(self, text: bytes) -> None:
        if not self._in_string:
            self.kept += text
            return
        if not self._is_full:
            room = max(MAX_STRING_BYTES - self._string_bytes, self._hex_digits_due)
            taken = text[:room]
            if len(taken) < len(text):
                self._is_full = True
                taken = taken.decode("utf-8", errors="ignore").encode()
            self.kept += taken
            self._hex_digits_due = max(0, self._hex_digits_due - len(text))
        self._string_bytes += len(text)


def _decode(raw: bytes, line: int) -> Iterator[Record | Problem]:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        yield from _repair(raw, line)
        return
    if isinstance(value, dict):
        yield Record(line, value)
    else:
        yield Problem("not a JSON object", line)


def _repair(raw: bytes, line: int) -> Iterator[Record | Problem]:
    """Read a line that strict JSON refuses: bad UTF-8, NUL bytes, half characters."""
    try:
        text = raw.decode("utf-8")
        repaired = "half of a surrogate pair or a control character in it was replaced"
    except UnicodeDecodeError:
        text = raw.decode("utf-8", errors="replace")
        repaired = "bytes that are not UTF-8 were replaced"
    if "\0" in text:
        text = text.replace("\0", "")
        repaired = "NUL bytes in it were left out"
    if not text.strip():
        yield Problem("a line of NUL bytes", line)
        return
    try:
        # strict=False lets control characters stand inside strings.
        value = json.loads(text, strict=False)
    except RecursionError:
        yield Problem("nested too deeply to be read", line)
    except json.JSONDecodeError as exc:
        yield Problem(f"not valid JSON ({exc.msg})", line)
    else:
        if isinstance(value, dict):
            yield Problem(f"the line was repaired: {repaired}", line)
            yield Record(line, _without_surrogates(value))
        else:
            yield Problem("not a JSON object", line)


def _without_surrogates(value: Any) -> Any:
    """The same JSON value with half characters replaced in every string of it."""
    match value:
        case str():
            return replace_surrogates(value)
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {
                replace_surrogates(key): _without_surrogates(item)
                for key, item in value.items()
            }
        case _:
            return value


def _is_complete(raw: bytes) -> bool:
    """Whether the bytes are one whole JSON object: no shorter part of one ever is."""
    if not raw.rstrip().endswith(b"}"):
        return False
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        return False
    return True


def _cut_off(line: int, length: int) -> Problem:
    return Problem(
        f"the last line is cut off after {length:,} bytes; "
        "it is read when the rest of it is there",
        line,
    )
