"""Cut text to a size, at a whole character, with a mark where something is missing."""

from collections.abc import Callable

# Where the search for a length begins: most texts have more characters per token.
_LIKELY_CHARS_A_TOKEN = 2
# No mark is longer than this.
MAX_MARK_BYTES = 100


def cut_mark(kept_bytes: int, full_bytes: int) -> str:
    """The mark at the end of a text of which only the beginning was kept."""
    return f"\n[cut: {kept_bytes:,} of {full_bytes:,} bytes kept]"


def cut_bytes(
    text: str, max_bytes: int, *, full_bytes: int | None = None
) -> tuple[str, int | None]:
    """Keep at most ``max_bytes`` of UTF-8, at whole characters, and mark the cut.

    One half is the beginning and the other the end, where errors are. Returns the text
    to keep, and its true length in bytes if it was cut, else None. ``full_bytes`` is
    the true length of a text that has already lost its end: then only its beginning is
    kept.
    """
    # A character takes at most four bytes, so most texts need not be encoded.
    if len(text) * 4 <= max_bytes:
        return text, None
    encoded = text.encode("utf-8")
    if len(encoded) <= max_bytes:
        return text, None
    if full_bytes is not None:
        head = _decode_whole(encoded[:max_bytes])
        return head + cut_mark(utf8_size(head), full_bytes), full_bytes
    tail_bytes = max_bytes // 2
    head = _decode_whole(encoded[: max_bytes - tail_bytes])
    tail = _decode_whole(encoded[len(encoded) - tail_bytes :])
    left_out = len(encoded) - utf8_size(head) - utf8_size(tail)
    mark = f"\n[cut: {left_out:,} of {len(encoded):,} bytes left out]\n"
    return head + mark + tail, len(encoded)


def _decode_whole(part: bytes) -> str:
    """The whole characters in part of a text."""
    return part.decode("utf-8", errors="ignore")


def utf8_size(text: str) -> int:
    """The size of a text in UTF-8; an unpaired surrogate counts as three bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def one_line(text: str, max_chars: int) -> str:
    """The text on one line, at most ``max_chars`` long, with an ellipsis when cut."""
    # This many words are sure to fill the line, so a long text is not split to its end.
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


def longest_within(
    max_tokens: int, max_chars: int, count_at: Callable[[int], int]
) -> int:
    """A length at which a text has at most ``max_tokens``: almost the longest, or 0.

    ``count_at`` returns the number of tokens at a length. Counting is slow, so the next
    length to try is guessed from the earlier ones, and the result may be 1 % too short.
    """
    low, low_tokens = 0, 0
    high, high_tokens = max_chars + 1, 0
    guess = min(max_chars, _LIKELY_CHARS_A_TOKEN * max_tokens)
    spare = max_tokens // 100
    tries = 0
    while high - low > 1 and (not low or max_tokens - low_tokens > spare):
        guess = min(max(guess, low + 1), high - 1)
        tokens = count_at(guess)
        if tokens <= max_tokens:
            low, low_tokens = guess, tokens
        else:
            high, high_tokens = guess, tokens
        tries += 1
        if not high_tokens:
            guess = 2 * low
        elif tries % 3:
            share = (max_tokens - low_tokens) / (high_tokens - low_tokens)
            guess = low + int(share * (high - low))
        else:
            # Guesses mislead for texts that are dense in one place and sparse in
            # another.
            guess = (low + high) // 2
    return low
