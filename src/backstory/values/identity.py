"""Stable ids made from content, tagged with the algorithm that made them."""

from collections.abc import Collection, Sequence

_TAG = "b2:"


def content_id(*parts: str) -> str:
    """An id that is the same for the same parts, on every machine and in every run."""
    # This loads OpenSSL, and most commands need no hash.
    from hashlib import blake2b

    digest = blake2b(digest_size=12)
    for part in parts:
        encoded = part.encode("utf-8", errors="surrogatepass")
        # The length keeps ("ab", "c") apart from ("a", "bc").
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return _TAG + digest.hexdigest()


def is_below(native_id: str, others: Collection[str]) -> bool:
    """Whether a session's id consists of one of the others, a slash, and more.

    A subagent's id may be its parent's, a slash and a name of its own.
    """
    return "/" in native_id and any(
        char == "/" and native_id[:at] in others for at, char in enumerate(native_id)
    )


def meaning_hash(meaning: str) -> bytes:
    """The key under which a text's vector is stored; short, as there are many."""
    # This loads OpenSSL, and most commands need no hash.
    from hashlib import blake2b

    raw = meaning.encode("utf-8", errors="surrogatepass")
    return blake2b(raw, digest_size=16).digest()


def passages_hash(passages: Sequence[str]) -> bytes:
    """The key under which the vectors of a text's passages are stored."""
    return meaning_hash("\0".join(("passages", *passages)))


def bytes_hash(data: bytes) -> str:
    """A hash of raw bytes, to detect changes."""
    # This loads OpenSSL, and most commands need no hash.
    from hashlib import blake2b

    return _TAG + blake2b(data, digest_size=16).hexdigest()
