"""Suggest what was meant by words of a query that nobody ever said."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain

from backstory.errors import BackstoryError, StoreProblem
from backstory.search.sessions import get_session
from backstory.store.base.history import HistoryStore
from backstory.store.base.index import SearchIndex, UnitFilter
from backstory.text.query import can_be_corrected, near_spellings
from backstory.text.shell import show_command
from backstory.text.words import word_set
from backstory.values.query import Query, Term
from backstory.values.units import MESSAGES

# Something shorter may be any number.
_MIN_ID_CHARS = 7
# How many messages are checked for a word that may have been meant.
_MAX_CHECKED = 20


def suggest(query: Query, history: HistoryStore, index: SearchIndex) -> tuple[str, ...]:
    """A notice with the query as it may have been meant, if there is a better one.

    Never raises: a suggestion is not worth an error.
    """
    meant = query.text
    with suppress(StoreProblem):
        for term, word in _find_near_words(query.subject, history, index):
            meant = meant.replace(term.text, word)
    return () if meant == query.text else (f"did you mean '{meant}'?",)


def tell_of_session(query: Query, history: HistoryStore) -> tuple[str, ...]:
    """A notice if what was typed is the id of a session, or how an id begins."""
    typed = query.text
    has_digit = any(map(str.isdigit, typed))
    if len(typed) < _MIN_ID_CHARS or len(typed.split()) > 1 or not has_digit:
        return ()
    try:
        session = get_session(history, typed)
    except BackstoryError:
        return ()
    return (f"a session has this id: {show_command(session.native_id)}",)


def _find_near_words(
    terms: Iterable[Term], history: HistoryStore, index: SearchIndex
) -> Iterator[tuple[Term, str]]:
    """For terms that were never said: the most frequent word one letter away, if any.

    All words are counted at once: one after the other would take several times as long.
    """
    correctable = [term for term in terms if can_be_corrected(term.text)]
    said = index.count_documents([term.spellings for term in correctable])
    near = {
        term: near_spellings(term.text)
        for term, count in zip(correctable, said, strict=True)
        if not count
    }
    words = list(dict.fromkeys(chain.from_iterable(near.values())))
    found = index.count_documents([(word,) for word in words])
    counts = dict(zip(words, found, strict=True))
    for term, spellings in near.items():
        known = sorted(filter(counts.get, spellings), key=counts.__getitem__)
        for word in reversed(known):
            if _was_said(word, history, index):
                yield term, word
                break


def _was_said(word: str, history: HistoryStore, index: SearchIndex) -> bool:
    # The index counts all that has the same stem, such as "bothing" for "both", and
    # finds parts of words.
    ids = index.find_text(word, UnitFilter(MESSAGES), _MAX_CHECKED)
    said = history.get_messages(ids).values()
    return any(word in word_set(message.text) for message in said)
