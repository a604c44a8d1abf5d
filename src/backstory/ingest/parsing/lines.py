"""Read JSON lines that another program may still be writing, and repair what can be.

Only whole lines count as read: a last line without a line end waits for the next
reading, unless it is already a complete object. Memory stays small however long a line
is: long strings in an over-long line are cut before it is parsed.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO

import orjson

from backstory.ingest.importers.base import Record
from backstory.ingest.parsing.json_documents import without_surrogates
from backstory.text.cut import cut_mark
from backstory.text.json_values import parse_leniently
from backstory.values.history import CutString, Problem
from backstory.values.structs import Struct

MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_STRING_BYTES = 256 * 1024
_CHUNK = 1024 * 1024


class LineReader(Struct):
    """Iterate over the records of a line file; ``read_to`` is where to resume.

    ``read_to`` and ``line`` move only when the next record is asked for, so they never
    pass a record that is still being used.
    """

    file: IO[bytes]
    read_to: int = 0
    line: int = 0
    max_line_bytes: int = MAX_LINE_BYTES
    max_string_bytes: int = MAX_STRING_BYTES

    def records(self) -> Iterator[Record | Problem]:
        """Records and problems in the order of the lines, to the end of the file."""
        position, line = self.read_to, self.line
        while raw := self.file.readline(self.max_line_bytes):
            line += 1
            consumed, has_end = len(raw), raw.endswith(b"\n")
            # A zip entry may return a few bytes more than it was asked for.
            is_long = len(raw) >= self.max_line_bytes and not has_end
            cuts: tuple[CutString, ...] = ()
            if is_long:
                raw, consumed, has_end, cuts = self._shorten(raw)
            if position == 0:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            if not has_end and not _is_complete(raw):
                if raw.strip():
                    yield _cut_off(line, consumed)
                return
            if is_long and len(raw) > self.max_line_bytes:
                yield Problem(f"a line of {consumed:,} bytes, too long to read", line)
                raw = b""
            elif is_long:
                yield Problem(
                    f"a line of {consumed:,} bytes; strings in it longer than "
                    f"{self.max_string_bytes:,} bytes were cut",
                    line,
                    cuts=cuts,
                )
            if raw.strip():
                yield from _decode(raw, line)
            position += consumed
            # A line without a line end is counted once the line end is there.
            self.read_to, self.line = position, line if has_end else line - 1

    def _shorten(self, start: bytes) -> tuple[bytes, int, bool, tuple[CutString, ...]]:
        """Read the rest of an over-long line, keeping only the head of long strings.

        Returns the shortened line, the bytes consumed, whether the line had an end, and
        the strings that were cut.
        """
        shortener = _Shortener(self.max_string_bytes)
        for offset in range(0, len(start), _CHUNK):
            shortener.feed(start[offset : offset + _CHUNK])
        chunk, length = start, len(start)
        while not chunk.endswith(b"\n") and (chunk := self.file.readline(_CHUNK)):
            length += len(chunk)
            if len(shortener.kept) <= self.max_line_bytes:
                shortener.feed(chunk)
        has_end = chunk.endswith(b"\n")
        return bytes(shortener.kept), length, has_end, tuple(shortener.cuts)


# What a cut may leave at the end of a string: the first half of a surrogate pair, part
# of an escape, part of a character. An even number of backslashes is no part of one.
_CUT_ESCAPE = re.compile(
    rb"(?<!\\)((?:\\\\)*)"
    rb"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z"
)
# The most that it takes away.
_MAX_ESCAPE_BYTES = len(rb"\ud83d\ude0")
_LAST_CHARACTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]*\Z")


class _Shortener:
    """Copies JSON text, leaving out what exceeds the limit in any one string.

    A string is only ever cut between two characters, never inside an escape.
    """

    def __init__(self, max_string_bytes: int) -> None:
        self.max_string_bytes = max_string_bytes
        self.kept = bytearray()
        self.cuts: list[CutString] = []
        self._in_string = False
        self._head = bytearray()
        self._string_bytes = 0
        self._held = b""

    def feed(self, chunk: bytes) -> None:
        chunk = self._held + chunk
        # With the escapes that look like a string's end out of the way, every quote
        # begins or ends a string, and finding them is fast.
        masked = chunk.replace(b"\\\\", b"..").replace(b'\\"', b"..")
        # The first half of an escape waits for the second.
        end = len(chunk) - masked.endswith(b"\\")
        self._held = chunk[end:]
        position = 0
        while (quote := masked.find(b'"', position, end)) >= 0:
            self._take_text(chunk[position:quote])
            self._take_quote()
            position = quote + 1
        self._take_text(chunk[position:end])

    def _take_text(self, text: bytes) -> None:
        if self._in_string:
            self._head += text[: max(0, self.max_string_bytes - len(self._head))]
            self._string_bytes += len(text)
        else:
            self.kept += text

    def _take_quote(self) -> None:
        if self._in_string:
            self.kept += self._cut_head()
            self._head, self._string_bytes = bytearray(), 0
        self.kept += b'"'
        self._in_string = not self._in_string

    def _cut_head(self) -> bytes:
        if self._string_bytes <= self.max_string_bytes:
            return bytes(self._head)
        # Only the end is searched, with all backslashes before it, because their number
        # matters.
        before = self._head[:-_MAX_ESCAPE_BYTES].rstrip(b"\\")
        end = _CUT_ESCAPE.sub(rb"\1", self._head[len(before) :], count=1)
        head = _LAST_CHARACTER.sub(b"", before + end)
        mark = cut_mark(len(head), self._string_bytes)
        self.cuts.append(CutString(mark, self._string_bytes))
        # The line end in it is escaped, like any in a JSON string.
        return head + mark.replace("\n", "\\n").encode()


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
        replaced: list[str] = []
        value = parse_leniently(text, replaced.append)
        value = without_surrogates(value)
    except RecursionError:
        yield Problem("nested too deeply to be read", line)
    except json.JSONDecodeError as exc:
        yield Problem(f"not valid JSON ({exc.msg})", line)
    else:
        if replaced:
            repaired = replaced[0]
        if isinstance(value, dict):
            yield Problem(f"the line was repaired: {repaired}", line)
            yield Record(line, value)
        else:
            yield Problem("not a JSON object", line)


def _is_complete(raw: bytes) -> bool:
    """Whether the bytes are a whole JSON object; no beginning of one ever is."""
    if not raw.rstrip().endswith(b"}"):
        return False
    return any(isinstance(item, Record) for item in _decode(raw, 0))


def _cut_off(line: int, length: int) -> Problem:
    return Problem(
        f"the last line is cut off after {length:,} bytes; "
        "it will be read when it is complete",
        line,
    )
