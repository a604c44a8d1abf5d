"""Find what was said by anybody but the person whom a query names.

In conversations between people, as messengers export them, each message begins with the
name of the person who said it: "Maria: …". A question about Maria's plans is answered
by what she says far more often than by what others say, who use the same words and
mention her name.
"""

from collections.abc import Collection

from backstory.search.retrieve import Retrieved
from backstory.store.base.index import SearchIndex
from backstory.text.patterns import lazy_pattern
from backstory.text.words import STOP_WORDS, fold
from backstory.values.query import Query
from backstory.values.units import UnitKind

_WORD = lazy_pattern(r"[^\W\d_]+")
_MAX_NAMES = 4
# A name at the beginning of fewer messages may be a label, such as "Note: …".
_MIN_MESSAGES = 3


def find_said_by_others(
    query: Query, found: Retrieved, index: SearchIndex
) -> frozenset[int]:
    """The messages of others in conversations in which the named person speaks.

    There are none if the query names no speaker, or several.
    """
    names = _find_names(query.text)
    messages = [
        unit.unit_id
        for unit in found.units.values()
        if unit.kind in (UnitKind.USER, UnitKind.ASSISTANT)
        and unit.container not in found.agentic
    ]
    if not names or not messages:
        return frozenset()
    said = [_find_said_by(name, messages, index) for name in names]
    said = [each for each in said if len(each) >= _MIN_MESSAGES]
    if len(said) != 1:
        return frozenset()
    conversations = {found.units[unit_id].container for unit_id in said[0]}
    return frozenset(
        unit_id
        for unit_id in messages
        if found.units[unit_id].container in conversations and unit_id not in said[0]
    )


def _find_names(text: str) -> list[str]:
    """The words of a query that may be names: with a capital letter."""
    words = (fold(word) for word in _WORD.findall(text) if word[0].isupper())
    return [word for word in dict.fromkeys(words) if word not in STOP_WORDS][
        :_MAX_NAMES
    ]


def _find_said_by(
    name: str, messages: Collection[int], index: SearchIndex
) -> frozenset[int]:
    beginning = f"{name}:"
    texts = index.get_texts(index.having_text(beginning, messages))
    return frozenset(
        unit_id for unit_id, text in texts.items() if text.folded.startswith(beginning)
    )
