"""Cut text to a size, at a whole character, with a mark where something is missing."""


def cut_mark(kept_bytes: int, full_bytes: int) -> str:
    """What stands behind a text of which only the beginning was kept."""
    return f"\n[cut: {kept_bytes:,} of {full_bytes:,} bytes kept]"


def cut_bytes(
    text: str, max_bytes: int, *, full_bytes: int | None = None
) -> tuple[str, int | None]:
    """Keep at most ``max_bytes`` of UTF-8, at a whole character, and mark the cut.

    Returns the text to keep and its true length in bytes when it was cut, else None.
    ``full_bytes`` is the true length of a text that was cut before.
    """
    # A character takes at most four bytes, so most texts need not be encoded.
    if len(text) * 4 <= max_bytes:
        return text, None
    encoded = text.encode("utf-8")
    if len(encoded) <= max_bytes:
        return text, None
    kept = encoded[:max_bytes].decode("utf-8", errors="ignore")
    kept_bytes = len(kept.encode("utf-8"))
    full_bytes = len(encoded) if full_bytes is None else full_bytes
    return kept + cut_mark(kept_bytes, full_bytes), full_bytes


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
