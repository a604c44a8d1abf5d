"""Leave out private passages.

A passage between ``<private>`` and ``</private>`` of a message is never stored. A tag
that is never closed hides the rest of the message: what was hidden by mistake can be
said again, but what was stored by mistake cannot be taken back. A tag may contain white
space and attributes with values; attributes without values do not count, because people
write ``<private key>`` in instructions.
"""

from backstory.text.patterns import lazy_pattern

# What takes the place of a passage.
PRIVATE = "[private]"

# Every tag contains one of these; most texts contain neither, which is quick to see.
_SIGNS = ("<", "\\u003")
# Also as JSON escapes it: \u003cprivate\u003e, <\/private>.
_MARK = lazy_pattern(
    r"(?:<|\\u003[cC])\s{0,9}\\?(/?)\s{0,9}(?i:private)"
    r"(?:\s{1,9}[A-Za-z][\w:.-]{0,40}\s{0,9}=\s{0,9}"
    r"(?:\\?\"[^\"<>]{0,200}\"|\\?'[^'<>]{0,200}'|[^\s\"'<>=\\]{1,200})){0,9}"
    r"\s{0,99}(?:>|\\u003[eE])"
)


def drop_private(text: str) -> str:
    """Put ``[private]`` in place of every private passage."""
    return hide_private(text, 0)[0]


def drop_private_lines(text: str) -> str:
    """The same for a file, where all other lines keep their numbers."""
    if not _MARK.search(text):
        return text
    lines, depth = [], 0
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        before = depth
        shown, depth = hide_private(bare, depth)
        lines.append(shown.removeprefix(PRIVATE if before else "") + line[len(bare) :])
    return "".join(lines)


def closes_private(text: str) -> bool:
    """Whether the text ends a passage that began before it."""
    depth = 1
    for mark in _MARK.finditer(text):
        depth += -1 if mark.group(1) else 1
        if depth == 0:
            return True
    return False


def hide_private(text: str, depth: int) -> tuple[str, int]:
    """The same for a piece of a longer text that begins inside ``depth`` open passages.

    Returns the piece and the number of passages that are open after it.
    """
    if not any(sign in text for sign in _SIGNS):
        return (PRIVATE if depth else text), depth
    kept: list[str] = [PRIVATE] if depth else []
    kept_to = 0
    for mark in _MARK.finditer(text):
        closing = bool(mark.group(1))
        if not closing:
            if depth == 0:
                kept.append(text[kept_to : mark.start()])
                kept.append(PRIVATE)
            depth += 1
        elif depth:
            depth -= 1
            kept_to = mark.end()
    if depth == 0:
        kept.append(text[kept_to:])
    return "".join(kept), depth
