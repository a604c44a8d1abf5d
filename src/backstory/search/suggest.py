"""Suggest a spelling for words of a query that nobody ever said."""

from collections.abc import Iterator
from contextlib import suppress

from backstory.errors import StoreProblem
from backstory.store.base.history import HistoryStore
from backstory.store.base.index import SearchIndex, UnitFilter
from backstory.text.query import can_be_corrected, near_spellings
from backstory.text.words import word_set
from backstory.values.query import Query, Term
from backstory.values.units import MESSAGES

# How many messages are checked for a word that may have been meant.
_MAX_CHECKED = 20


def suggest(query: Query, history: HistoryStore, index: SearchIndex) -> tuple[str, ...]:
    """A notice with the query as it may have been meant, if there is a better one.

    Never raises: a suggestion is not worth an error.
    """
    meant = query.text
    with suppress(StoreProblem):
        for term in query.subject:
            for word in _find_near_word(term, history, index):
                meant = meant.replace(term.text, word)
    return () if meant == query.text else (f"did you mean '{meant}'?",)


def _find_near_word(
    term: Term, history: HistoryStore, index: SearchIndex
) -> Iterator[str]:
    """The most frequent word one letter away; nothing if the term itself was said."""
    if not can_be_corrected(term.text):
        return
    if any(index.count_documents([term.spellings])):
        return
    near = near_spellings(term.text)
    found = index.count_documents([(word,) for word in near])
    counts = dict(zip(near, found, strict=True))
    for word in sorted(filter(counts.get, near), key=counts.__getitem__)[::-1]:
        # The index counts all words with the same stem, such as "bothing" for "both",
        # and also finds parts of words.
        ids = index.find_text(word, UnitFilter(MESSAGES), _MAX_CHECKED)
        said = history.get_messages(ids).values()
        if any(word in word_set(message.text) for message in said):
            yield word
            return
