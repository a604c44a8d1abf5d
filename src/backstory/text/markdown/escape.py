"""Text of others as Markdown that is nothing but text: it cannot pass for structure.

What would begin a heading, a rule, HTML or a fence that is never closed is set behind a
backslash, as Markdown has it; characters that nobody can see become visible ones.
"""

import re
import textwrap
from collections.abc import Callable, Iterator

from backstory.text.escape import neutralise, replace_surrogates
from backstory.text.markdown.lines import (
    closes_fence,
    fence_of,
    heading_of,
    is_rule,
    is_underline,
    marker_of,
)

# With as many backslashes before it as there are.
_COMMENT = re.compile(r"(?<!\\)(\\*)<!--")
_HTML = re.compile(r"<[A-Za-z/!?]")
_BULLET = re.compile(r"[-+*](?:\s+|$)")


def read_lines(text: str) -> list[str]:
    """The lines of a text, whatever ends them, without blank ones around them.

    Of several blank lines in a row one is left.
    """
    shown = [
        neutralise(line).rstrip() for line in replace_surrogates(text).splitlines()
    ]
    lines: list[str] = []
    for line in shown:
        if line or (lines and lines[-1]):
            lines.append(line)
    return lines if not lines or lines[-1] else lines[:-1]


def without_bullet(text: str) -> str:
    """The text of an item that was given with its bullet."""
    text = text.strip()
    found = _BULLET.match(text)
    return text[found.end() :] if found and not is_rule(text) else text


def to_fact_lines(fact: str) -> list[str]:
    """The lines of a fact as an item may hold them; lists may be within."""
    first, *rest = read_lines(without_bullet(fact)) or [""]
    rest = textwrap.dedent("\n".join(rest)).split("\n") if rest else []
    escaped = list(_escape_lines([first, *rest], escape_start))
    if escaped[0] and marker_of(escaped[0]):
        escaped[0] = escape_marker(escaped[0])
    return escaped if escaped != [""] else []


def to_block_lines(block: str) -> list[str]:
    """The lines of a text that stands between rules; it may have headings."""
    # A comment in a fence would be text, but who looks for comments may not know.
    lines = _escape_lines(read_lines(block), _escape_in_block)
    return [escape_comment(line) for line in lines]


def escape_start(line: str) -> str:
    """A line that begins nothing but a paragraph, a quote or an item."""
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
    """A line that begins no item."""
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
    # The only heading of the first level is that of the file.
    level, name = heading
    return f"{'#' * max(2, level)} {escape_comment(name)}".rstrip()


def escape_comment(line: str) -> str:
    """A line in which no comment begins."""
    return _COMMENT.sub(_with_one_backslash_more, line) if "<!--" in line else line


def _with_one_backslash_more(found: re.Match[str]) -> str:
    is_escaped = len(found[1]) % 2 == 1
    return found[0] if is_escaped else found[1] + "\\<!--"


def _escape_lines(lines: list[str], escape: Callable[[str], str]) -> Iterator[str]:
    """The lines, escaped but for what stands in a fence, if every fence is closed."""
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
