"""Cut text to a size, at a whole character, with a mark where something is missing."""

import re

_CUT_MARK = re.compile(r"\n\[cut: [0-9,]+ of ([0-9,]*[0-9]) bytes kept\]\Z")


def cut_bytes(text: str, max_bytes: int) -> tuple[str, int | None]:
    """Keep at most ``max_bytes`` of UTF-8, at a whole character, and mark the cut.

    Returns the text to keep and its true length in bytes when it was cut, else None.
    """
    # A character takes at most four bytes, so most texts need not be encoded.
    if len(text) * 4 <= max_bytes:
        return text, None
    encoded = text.encode("utf-8")
    if len(encoded) <= max_bytes:
        return text, None
    kept = encoded[:max_bytes].decode("utf-8", errors="ignore")
    kept_bytes = len(kept.encode("utf-8"))
    # A very long line was already cut when it was read; its mark has the true length.
    earlier = _CUT_MARK.search(text, len(text) - 80)
    full_bytes = int(earlier[1].replace(",", "")) if earlier else len(encoded)
    return f"{kept}\n[cut: {kept_bytes:,} of {full_bytes:,} bytes kept]", full_bytes


def utf8_size(text: str) -> int:
    """The size of a text in UTF-8; an unpaired surrogate counts as three bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def one_line(text: str, max_chars: int) -> str:
    """The text on one line, at most ``max_chars`` long, with an ellipsis when cut."""
    # That many words more than fill the line, so a long text is not split to its end.
    line = " ".join(text.split(maxsplit=max_chars))
    if len(line) <= max_chars:
        return line
    return line[: max_chars - 1].rstrip() + "…"


def cut_middle(text: str, max_chars: int) -> str:
    """At most ``max_chars`` of a text: more of its beginning than of its end."""
    if len(text) <= max_chars:
        return text
    mark = f"\n[… {len(text) - max_chars:,} characters …]\n"
    kept = max(0, max_chars - len(mark))
    head = kept * 3 // 5
    return text[:head] + mark[: max_chars - kept] + text[len(text) - kept + head :]
