"""Put secrets back into text by a model that was shown only masks.

A model never sees a secret, so what it writes has a mask in the secret's place. If that
were written into the file that holds the secret, the mask would replace it for good. A
mask is matched to its secret by the words before it; if these leave any doubt, nothing
is put back.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from backstory.text.redaction import MASKED, mask_secrets
from backstory.values.structs import FrozenStruct

_WORD = re.compile(r"\w+")
# How many words before a mask identify what it stands for.
_WORDS_BEFORE = 3


class Secret(FrozenStruct):
    """A secret, and the text that a model sees before its mask."""

    value: str
    before: str


def find_secrets(text: str) -> list[Secret] | None:
    """The secrets that masking would hide, in order; None if they cannot be told apart.

    A mask that is already in the text counts as a secret with that value.
    """
    pieces = mask_secrets(text).split(MASKED)
    values = _values_between(text, pieces)
    backwards = _values_between(text[::-1], [each[::-1] for each in reversed(pieces)])
    if values is None or backwards is None:
        return None
    # Only if both directions agree is there just one way to read it.
    if values != [each[::-1] for each in reversed(backwards)]:
        return None
    return [Secret(*each) for each in zip(values, pieces, strict=False)]


def _values_between(text: str, pieces: Sequence[str]) -> list[str] | None:
    """The parts of the text between the pieces, each piece as early as possible."""
    first, *rest = pieces
    if not text.startswith(first):
        return None
    values: list[str] = []
    at = len(first)
    for number, piece in enumerate(rest, start=1):
        is_last = number == len(rest)
        found = len(text) - len(piece) if is_last else text.find(piece, at + 1)
        if found <= at or not text.startswith(piece, found):
            return None
        values.append(text[at:found])
        at = found + len(piece)
    return values if at == len(text) else None


def restore_secrets(
    written: str, original: str, others: Iterable[str] = ()
) -> str | None:
    """What a model wrote, with secrets in place of their masks.

    They are secrets of the ``original`` that it rewrote, or of ``others`` that it was
    also shown. None if a mask matches none of them, or several, or if the model names a
    secret that they do not have.
    """
    own, found = find_secrets(written), find_secrets(original)
    if own is None or found is None:
        return None
    known = [*found, *chain.from_iterable(find_secrets(each) or () for each in others)]
    values = {secret.value for secret in known}
    if any(each.value not in values | {MASKED} for each in own):
        return None
    first, *rest = written.split(MASKED)
    restored, before = first, first
    for piece in rest:
        secret = _find_behind_mask(before, known, found)
        if secret is None:
            return None
        # Each is used for one mask, or two masks could become the same secret.
        known.remove(secret)
        restored, before = restored + secret.value + piece, piece
    return restored if not _shows_any(restored, values) else None


def _find_behind_mask(
    before: str, known: Iterable[Secret], preferred: Collection[Secret]
) -> Secret | None:
    """The secret that has the same words before it, if there can be only one."""
    alike = [(_count_alike(before, each.before), each) for each in known]
    most = max((count for count, _ in alike), default=0)
    best = [secret for count, secret in alike if count == most]
    chosen = [secret for secret in best if secret in preferred] or best
    values = {secret.value for secret in chosen}
    return chosen[0] if most and len(values) == 1 else None


def _count_alike(text: str, other: str) -> int:
    """How many of the last words of two texts are the same; 0 unless all are."""
    words, asked = _last_words(text), _last_words(other)
    count = min(len(words), len(asked))
    return count if words[-count:] == asked[-count:] else 0


def _last_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())[-_WORDS_BEFORE:]


def _shows_any(text: str, values: Iterable[str]) -> bool:
    """Whether the next model that reads the text would be shown a secret."""
    shown = mask_secrets(text)
    return any(value in shown for value in values if value != MASKED)


def reveal_quote(original: str, quote: str) -> set[str]:
    """The parts of a text that read like the quote once its secrets are masked."""
    secrets = find_secrets(original)
    masked = mask_secrets(original)
    found: set[str] = set()
    at = masked.find(quote) if secrets is not None else -1
    while at >= 0:
        first = masked.count(MASKED, 0, at)
        values = [each.value for each in secrets or ()][first:]
        pieces = quote.split(MASKED)
        found.add(
            pieces[0]
            + "".join(
                value + piece for value, piece in zip(values, pieces[1:], strict=False)
            )
        )
        at = masked.find(quote, at + 1)
    return found


def keeps_secrets(before: str, after: str) -> bool:
    """Whether every secret of one text is in another; False if that is uncertain."""
    secrets = find_secrets(before)
    return secrets is not None and all(each.value in after for each in secrets)
