"""Escape foreign text for Markdown, so that it cannot pass for structure.

Anything that would begin a heading, a rule, HTML or an unclosed fence gets a backslash,
as usual in Markdown; invisible characters become visible ones.
"""

import re
import textwrap
from collections.abc import Callable, Iterator

from backstory.text.escape import neutralize, replace_surrogates
from backstory.text.markdown.lines import (
    closes_fence,
    fence_of,
    heading_of,
    is_rule,
    is_underline,
    marker_of,
)

# Including all backslashes before it.
_COMMENT = re.compile(r"(?<!\\)(\\*)<!--")
_HTML = re.compile(r"<[A-Za-z/!?]")
_BULLET = re.compile(r"[-+*](?:\s+|$)")


def read_lines(text: str) -> list[str]:
    """The lines of a text, whatever their ends, without blank lines around them.

    Several blank lines in a row become one.
    """
    shown = [
        neutralize(line).rstrip() for line in replace_surrogates(text).splitlines()
    ]
    lines: list[str] = []
    for line in shown:
        if line or (lines and lines[-1]):
            lines.append(line)
    return lines if not lines or lines[-1] else lines[:-1]


def without_bullet(text: str) -> str:
    """The text of an item, without the bullet it may have."""
    text = text.strip()
    found = _BULLET.match(text)
    return text[found.end() :] if found and not is_rule(text) else text


def to_fact_lines(fact: str) -> list[str]:
    """The lines of a fact, as they may be put into an item; they may contain lists."""
    first, *rest = read_lines(without_bullet(fact)) or [""]
    rest = textwrap.dedent("\n".join(rest)).split("\n") if rest else []
    escaped = list(_escape_lines([first, *rest], escape_start))
    if escaped[0] and marker_of(escaped[0]):
        escaped[0] = escape_marker(escaped[0])
    return escaped if escaped != [""] else []


def to_block_lines(block: str) -> list[str]:
    """The lines of a text between rules; it may contain headings."""
    # In a fence, a comment is text, but other programs may not know that.
    lines = _escape_lines(read_lines(block), _escape_in_block)
    return [escape_comment(line) for line in lines]


def escape_start(line: str) -> str:
    """The line, escaped so that it can only begin a paragraph, a quote or an item."""
    content = line.lstrip(" \t")
    indent = line[: len(line) - len(content)]
    is_structure = (
        heading_of(content)
        or is_rule(content)
        or is_underline(content)
        or fence_of(content)
        or _HTML.match(content)
    )
    return indent + escape_comment("\\" + content if is_structure else content)


def escape_marker(line: str) -> str:
    """The line, escaped so that it cannot begin an item."""
    content = line.lstrip(" \t")
    indent = line[: len(line) - len(content)]
    marker = marker_of(content)
    if marker is None:
        return line
    return f"{indent}{marker[:-1]}\\{marker[-1]}{content[len(marker) :]}"


def _escape_in_block(line: str) -> str:
    heading = heading_of(line.lstrip(" \t"))
    if heading is None:
        return escape_start(line)
    # The file has its own heading of the first level.
    level, name = heading
    return f"{'#' * max(2, level)} {escape_comment(name)}".rstrip()


def escape_comment(line: str) -> str:
    """The line, escaped so that no comment can begin in it."""
    return _COMMENT.sub(_escape_comment_start, line) if "<!--" in line else line


def _escape_comment_start(found: re.Match[str]) -> str:
    is_escaped = len(found[1]) % 2 == 1
    return found[0] if is_escaped else found[1] + "\\<!--"


def _escape_lines(lines: list[str], escape: Callable[[str], str]) -> Iterator[str]:
    """The lines, escaped except in fences, if every fence is closed."""
    opened = ""
    within: list[bool] = []
    for line in lines:
        content = line.strip()
        if opened:
            within.append(True)
            opened = "" if closes_fence(content, opened) else opened
        else:
            opened = fence_of(content) or ""
            within.append(bool(opened))
    for line, is_code in zip(lines, within, strict=True):
        yield line if is_code and not opened else escape(line)
