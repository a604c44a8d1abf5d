"""Read a long JSON list one object at a time, whatever its size.

Exports are such lists. A list is cut where its items end, and each item is parsed by
itself, so memory holds one at a time and a damaged one affects no others. A streaming
JSON parser would end at the first damage, and the one we tried (ijson 3.6.0) read half
of a surrogate pair as another character and crashed on a number of 5,000 digits.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

from backstory.ingest.parsing.failures import UntilFailure, describe_failure
from backstory.text.escape import replace_surrogates
from backstory.text.json_values import JsonObject, parse_leniently
from backstory.values.history import Item, Problem
from backstory.values.structs import Struct, field

# Parsed, an item takes about six times its length in memory.
MAX_ITEM_BYTES = 24 * 1024 * 1024
_CHUNK = 256 * 1024
_BOM = b"\xef\xbb\xbf"

# Everything up to the next bracket, or up to a string that does not end in this chunk.
_PLAIN = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_REST_OF_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)


class ListItem(NamedTuple):
    """One object of a list, and its name in problems, such as ``conversation 7``."""

    name: str
    fields: JsonObject


def parse_each(
    file: IO[bytes], take: Callable[[ListItem], Iterator[Item]]
) -> Iterator[Item]:
    """What ``take`` yields for each conversation in an export, and the problems."""
    for item in iter_items(file):
        if isinstance(item, Problem):
            yield item
            continue
        said = UntilFailure(partial(take, item))
        yield from said
        if said.failure is not None:
            yield Problem(f"{item.name}: {describe_failure(said.failure)}")


def is_export(path: Path, head: bytes, marks: Iterable[bytes]) -> bool:
    """Whether a file is a JSON list whose beginning contains all the marks."""
    return (
        path.suffix.lower() == ".json"
        and begins_as_list(head)
        and all(mark in head for mark in marks)
    )


def begins_as_list(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a JSON list, as exports are."""
    return head.removeprefix(_BOM).lstrip().startswith(b"[")


def iter_items(
    file: IO[bytes], *, noun: str = "conversation", max_bytes: int = MAX_ITEM_BYTES
) -> Iterator[ListItem | Problem]:
    """The objects of the list in ``file``; what cannot be read is a problem.

    ``noun`` is what an object is called in problems.
    """
    cutter = _Cutter(noun, max_bytes)
    repaired: set[str] = set()
    while chunk := file.read(_CHUNK):
        for item in cutter.feed(chunk):
            found = _parse(item, f"{noun} {cutter.number}", repaired)
            # Free the bytes before the object is worked on: both may be large.
            del item
            yield from found
        if cutter.is_done:
            return
    yield from cutter.end()


# -- cutting --------------------------------------------------------------------------


class _Cutter(Struct):
    """Cuts a list into its items; ``number`` counts those begun so far."""

    noun: str
    max_bytes: int
    number: int = 0
    is_done: bool = False
    _depth: int = 0
    _item: bytearray = field(default_factory=bytearray)
    _item_bytes: int = 0
    _in_string: bool = False
    _is_escaped: bool = False
    _has_begun: bool = False

    def feed(self, chunk: bytes) -> Iterator[bytearray | Problem]:
        """The items that end in ``chunk``."""
        if not self._has_begun:
            chunk = chunk.removeprefix(_BOM).lstrip()
            if not chunk:
                return
            self._has_begun = True
            if not chunk.startswith(b"["):
                self.is_done = True
                yield Problem(f"not a list of {self.noun}s")
                return
        position = 0
        while position < len(chunk):
            end = self._skip(chunk, position)
            yield from self._keep(chunk[position:end])
            position = end
            if position < len(chunk) and not self._in_string:
                yield from self._take_bracket(chunk[position : position + 1])
                position += 1
                if self.is_done:
                    yield from self._check_rest(chunk[position:])
                    return

    def end(self) -> Iterator[Problem]:
        """The problem if the file ends at this point."""
        if self._depth > 1:
            yield Problem(
                f"the file ends in the middle of {self.noun} {self.number}, "
                "which cannot be read"
            )
        elif self._has_begun and not self.is_done:
            yield Problem(
                f"the file ends after {self.noun} {self.number}; it is cut off"
            )

    def _skip(self, chunk: bytes, position: int) -> int:
        """Where the next bracket is, or where the chunk ends."""
        if self._in_string:
            position = self._skip_string(chunk, position)
            if self._in_string:
                return position
        match = _PLAIN.match(chunk, position)
        assert match is not None  # it also matches the empty string
        end = match.end()
        if chunk[end : end + 1] == b'"':
            self._in_string = True
            return self._skip_string(chunk, end + 1)
        return end

    def _skip_string(self, chunk: bytes, position: int) -> int:
        """Where the string ends; ``_in_string`` stays true if it continues."""
        if self._is_escaped and position < len(chunk):
            self._is_escaped = False
            position += 1
        match = _REST_OF_STRING.match(chunk, position)
        assert match is not None  # it also matches the empty string
        end = match.end()
        if chunk[end : end + 1] == b'"':
            self._in_string = False
            return end + 1
        self._is_escaped = chunk[end : end + 1] == b"\\"
        return len(chunk)

    def _keep(self, data: bytes) -> Iterator[Problem]:
        if self._depth > 1:
            self._item_bytes += len(data)
            if self._item_bytes <= self.max_bytes:
                self._item += data
            else:
                self._item.clear()
        elif data.strip(b" \t\r\n,"):
            yield Problem(f"something after {self.noun} {self.number} is not one")

    def _take_bracket(self, bracket: bytes) -> Iterator[bytearray | Problem]:
        is_opening = bracket in b"{["
        if is_opening:
            self._depth += 1
            if self._depth == 2:
                self.number += 1
        if self._depth > 1:
            yield from self._keep(bracket)
        if not is_opening:
            self._depth -= 1
            if self._depth == 1:
                yield self._finish()
            self.is_done = self._depth == 0

    def _finish(self) -> bytearray | Problem:
        item, length = self._item, self._item_bytes
        self._item, self._item_bytes = bytearray(), 0
        if length > self.max_bytes:
            return Problem(
                f"{self.noun} {self.number} has {length:,} bytes, too long to read"
            )
        return item

    def _check_rest(self, rest: bytes) -> Iterator[Problem]:
        if rest.strip():
            yield Problem(f"what follows the list of {self.noun}s was not read")


# -- parsing --------------------------------------------------------------------------


def _parse(
    raw: bytearray | Problem, name: str, repaired: set[str]
) -> list[ListItem | Problem]:
    """The object in ``raw``; each kind of repair is reported once for a file."""
    if isinstance(raw, Problem):
        return [raw]
    problems: list[ListItem | Problem] = []
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as exc:
        value, what = _repair(raw, exc)
        if value is None:
            return [Problem(f"{name} {what}")]
        if what not in repaired:
            repaired.add(what)
            problems.append(Problem(f"{what}, first in {name}"))
    if not isinstance(value, dict):
        return [*problems, Problem(f"{name} is not a JSON object")]
    return [*problems, ListItem(name, value)]


# Any: whatever the JSON holds.
def _repair(raw: bytearray, exc: orjson.JSONDecodeError) -> tuple[Any, str]:
    """Parse an item that strict JSON refuses; returns it or None, and what is wrong."""
    try:
        text = raw.decode("utf-8")
        what = "half characters or other things that JSON forbids were replaced"
    except UnicodeDecodeError:
        text = raw.decode("utf-8", errors="replace")
        what = "bytes that are not UTF-8 were replaced"
    try:
        value = parse_leniently(text)
        # Written out and parsed again, so that no half character is left anywhere.
        value = json.loads(replace_surrogates(json.dumps(value, ensure_ascii=False)))
    except RecursionError:
        return None, "is nested too deeply to be read"
    except ValueError:
        return None, f"is not valid JSON ({exc.msg.partition(':')[0]})"
    return value, what
