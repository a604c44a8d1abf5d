"""Lines of Markdown: what a line begins, and how lines are replaced by others."""

import re
from collections.abc import Sequence

# Anything longer is a paragraph that begins with a number sign. The limit also keeps
# the paths of a file's sections from becoming many times larger than the file.
MAX_HEADING_CHARS = 200
# The signs that underline a heading, and its level.
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
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def splice(lines: Sequence[str], first: int, end: int, put: Sequence[str]) -> str:
    """The text with the lines from ``first`` to ``end`` replaced by others.

    The new lines come without line ends, and get those of their neighbours. If the last
    line of the text has no end, it has none afterwards.
    """
    eol = eol_near(lines, first)
    made = [*lines[:first], *(line + eol for line in put), *lines[end:]]
    if lines and not lines[-1].endswith("\n") and end == len(lines):
        if first == len(lines):
            made[first - 1] += eol
        made[-1:] = [line.removesuffix("\n").removesuffix("\r") for line in made[-1:]]
    return "".join(made)


def eol_near(lines: Sequence[str], place: int) -> str:
    """How the lines around a place end."""
    for line in (
        *lines[max(0, place - 1) : place],
        *lines[place : place + 1],
        *lines[:1],
    ):
        if line.endswith("\n"):
            return "\r\n" if line.endswith("\r\n") else "\n"
    return "\n"


def is_blank(text: str) -> bool:
    """Whether there are only spaces and line ends."""
    return not text.strip(_BLANK)


def front_matter_end(lines: Sequence[str]) -> int:
    """How many lines are front matter: YAML between two rules at the very start."""
    # Notes may also begin with a rule.
    if "".join(lines[:1]).rstrip() != "---" or not _YAML_KEY.match("".join(lines[1:2])):
        return 0
    for number, line in enumerate(lines[1:], start=2):
        if line.rstrip() in ("---", "..."):
            return number
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
    """Whether a line makes a heading of the one before it."""
    return content[:1] in UNDERLINES and content == content[0] * len(content)


def fence_of(content: str) -> str | None:
    """The signs that open a fence, such as three backticks; None if there is none."""
    sign = content[:1]
    if sign not in ("`", "~"):
        return None
    length = len(content) - len(content.lstrip(sign))
    if length < 3 or (sign == "`" and "`" in content[length:]):
        return None
    return sign * length


def closes_fence(content: str, fence: str) -> bool:
    """Whether a line closes the fence that these signs opened."""
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
