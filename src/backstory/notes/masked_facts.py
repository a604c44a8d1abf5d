"""Facts with secrets, from the viewpoint of a model that is only shown masks."""

from backstory.errors import BadQuery, FactAmbiguous
from backstory.notes.facts import find_duplicate, iter_statements_of
from backstory.text.redaction import MASKED, mask_secrets
from backstory.text.unmask import find_secrets, restore_secrets, reveal_quote

_MAX_SHOWN = 3


def find_known(text: str, fact: str) -> str | None:
    """The statement that already says this, with its secrets or with masks for them."""
    known = find_duplicate(text, fact)
    if known is None and MASKED in fact:
        return find_duplicate(mask_secrets(text), fact)
    return known


def find_behind_masks(text: str, quote: str) -> str:
    """The words of the memory that a quote with masks stands for.

    A quote without masks, or one that is not in the memory, is returned as it is.
    Raises
    ``FactAmbiguous`` if several places differ only in their secrets.
    """
    if MASKED not in quote:
        return quote
    statements = iter_statements_of(text)
    found = set().union(*(reveal_quote(each, quote.strip()) for each in statements))
    if len(found) > 1:
        raise FactAmbiguous(
            f"'{quote}' is in several places that differ in what is masked",
            count=len(found),
            matches=[mask_secrets(each) for each in sorted(found)[:_MAX_SHOWN]],
        )
    return found.pop() if found else quote


def reword(fact: str, words: str) -> str:
    """New words for a fact or part of it: its own secrets stay, others are masked.

    Raises ``BadQuery`` if the words would put a mask in place of a secret.
    """
    if MASKED not in mask_secrets(words) or find_secrets(fact) == []:
        return mask_secrets(words)
    restored = restore_secrets(words, fact)
    if restored is None:
        raise BadQuery(
            "a mask would take the place of a secret in the long-term memory",
            hint="change it by hand: backstory memory edit",
        )
    return restored
