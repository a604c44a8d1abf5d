"""Lines of Markdown: what a line begins, and how to replace lines."""

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import overload

# Anything longer is a paragraph that begins with a number sign. The limit also keeps
# the paths of a file's sections from becoming many times larger than the file.
MAX_HEADING_CHARS = 200
# The characters that underline a heading, and its level.
UNDERLINES = {"=": 1, "-": 2}

_BLANK = " \t\r\n"
_BOM = "\ufeff"
_YAML_KEY = re.compile(r"[A-Za-z_][\w .-]*:(?:\s|$)")
_MARKER = re.compile(r"([-+*]|[0-9]{1,9}[.)])(?=[ \t]|$)")


def split_bom(text: str) -> tuple[str, str]:
    """The byte order mark that some editors write first, or nothing, and the text."""
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)


def split_lines(text: str) -> list[str]:
    """The lines with their ends; the last may have none. Only ``\\n`` ends a line."""
    return list(Lines(text))


class Lines(Sequence[str]):
    """The lines of ``split_lines``, each created on access.

    A list of very short lines takes thirty times as much memory as their text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = array("Q", _line_starts(text))

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        number = range(len(self))[place]
        return self._text[self._starts[number] : self._starts[number + 1]]

    def join(self, first: int, end: int) -> str:
        """The text of the lines from ``first`` to ``end``."""
        return self._text[self._starts[first] : self._starts[end]]


def _line_starts(text: str) -> Iterator[int]:
    """Where each line begins, and where the last one ends."""
    start = 0
    while start < len(text):
        yield start
        start = text.find("\n", start) + 1 or len(text)
    yield len(text)


def splice(lines: Sequence[str], first: int, end: int, put: Sequence[str]) -> str:
    """The text with the lines from ``first`` to ``end`` replaced by others.

    The new lines are given without line ends, and get those of their neighbours. If the
    text's last line has no line end, it has none afterwards.
    """
    eol = eol_near(lines, first)
    made = [*lines[:first], *(line + eol for line in put), *lines[end:]]
    if lines and not lines[-1].endswith("\n") and end == len(lines):
        if first == len(lines):
            made[first - 1] += eol
        made[-1:] = [line.removesuffix("\n").removesuffix("\r") for line in made[-1:]]
    return "".join(made)


def insert(lines: Sequence[str], puts: Mapping[int, Sequence[str]]) -> str:
    """The text with lines inserted in several places, in the way of ``splice``."""
    made: list[str] = []
    done = 0
    for at in sorted(puts):
        if at == len(lines):
            made.append(splice(lines[done:], at - done, at - done, puts[at]))
            done = at
            break
        eol = eol_near(lines, at)
        made += (*lines[done:at], *(line + eol for line in puts[at]))
        done = at
    return "".join([*made, *lines[done:]])


def eol_near(lines: Sequence[str], place: int) -> str:
    """The line end of the lines around a place."""
    for line in (
        *lines[max(0, place - 1) : place],
        *lines[place : place + 1],
        *lines[:1],
    ):
        if line.endswith("\n"):
            return "\r\n" if line.endswith("\r\n") else "\n"
    return "\n"


def is_blank(text: str) -> bool:
    """Whether a text has only spaces and line ends."""
    return not text.strip(_BLANK)


def front_matter_end(lines: Sequence[str]) -> int:
    """How many lines are front matter: YAML between two rules at the very start."""
    # Notes may also begin with a rule.
    if "".join(lines[:1]).rstrip() != "---" or not _YAML_KEY.match("".join(lines[1:2])):
        return 0
    for number in range(1, len(lines)):
        if lines[number].rstrip() in ("---", "..."):
            return number + 1
    return 0


# -- what a line begins ---------------------------------------------------------------


def heading_of(content: str) -> tuple[int, str] | None:
    """The level and the name of a heading; None if the line is not one."""
    level = len(content) - len(content.lstrip("#"))
    if not 1 <= level <= 6 or content[level : level + 1] not in ("", " ", "\t"):
        return None
    name = content[level:].strip(_BLANK)
    without_hashes = name.rstrip("#")
    if not without_hashes or without_hashes[-1] in " \t":
        name = without_hashes.rstrip(_BLANK)
    return (level, name) if len(name) <= MAX_HEADING_CHARS else None


def is_rule(content: str) -> bool:
    """Whether a line is a rule, such as ``---`` or ``* * *``."""
    if content[:1] not in ("-", "*", "_"):
        return False
    signs = content.replace(" ", "").replace("\t", "")
    return len(signs) >= 3 and signs == signs[0] * len(signs)


def is_underline(content: str) -> bool:
    """Whether a line turns the one before it into a heading."""
    return content[:1] in UNDERLINES and content == content[0] * len(content)


def fence_of(content: str) -> str | None:
    """The characters that open a fence, such as three backticks; None if none do."""
    sign = content[:1]
    if sign not in ("`", "~"):
        return None
    length = len(content) - len(content.lstrip(sign))
    if length < 3 or (sign == "`" and "`" in content[length:]):
        return None
    return sign * length


def closes_fence(content: str, fence: str) -> bool:
    """Whether a line closes the fence that these characters opened."""
    return content.startswith(fence) and not content.strip(fence[0])


def marker_of(content: str) -> str | None:
    """The marker of the item that a line begins, such as ``-`` or ``2.``."""
    found = _MARKER.match(content)
    return found[1] if found and not is_rule(content) else None


def indent_of(line: str, column: int = 0) -> int:
    """The column of the first character that is not a space; tabs stop every four."""
    for sign in line:
        if sign == " ":
            column += 1
        elif sign == "\t":
            column += 4 - column % 4
        else:
            break
    return column
