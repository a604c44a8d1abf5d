"""Tell whether a fact is already known in other words.

Keeping a fact twice costs one line; mistaking a new fact for a known one loses it. When
in doubt, treat two facts as different: always if only one of them has a certain number,
symbol (C, C++), name or qualifier (not, only, never).
"""

import re
import unicodedata
from collections.abc import Iterable

from backstory.text.similarity import DUPLICATE_SHARE, overlap
from backstory.text.words import fold, is_spaceless, word_set
from backstory.values.structs import FrozenStruct

# Words that can be left out of a fact without changing it.
_FILLERS = """
    a also am an and are as be been being has have i is it its me my of s that the their
    there they this user we who with
    der das ein eine einen einer hat ist und
    le la les l un une des de du est et
    el los las una es y
"""
# Words that turn a fact into a different one.
_QUALIFIERS = """
    no not never none nor nobody nothing nowhere neither without cannot cant t n
    hardly scarcely barely rarely seldom sometimes occasionally often always usually
    only just except unless until till before after since anymore longer former
    formerly previously once used stopped quit instead but almost nearly less more most
    least any all every some few many on off up down in out maybe might may
    nicht kein keine keinen keiner nie niemals nur ohne ausser außer selten manchmal
    immer vor nach
    ne pas jamais sans sauf seulement toujours parfois
    nunca sin solo sólo excepto siempre
    не нет никогда без только кроме
"""
_QUALIFIER_WORDS = frozenset(_QUALIFIERS.split())
_APOSTROPHES = str.maketrans(dict.fromkeys("’ʼ＇`´", "'"))
# A sign counts only if no word ends right before it. For speed, the pattern begins with
# a set of characters, and only then looks behind.
_NUMBER = re.compile(r"[-\d](?:(?<=\d)|(?<![\w-]-)\d)[\d.,:/]*(?<![.,:/])")
# Markdown's own symbols: these only change how a text looks.
_FORMATTING = frozenset("`^~|*_\\")
_SOME_SYMBOLS = frozenset("%#&@")


class NormalizedFact(FrozenStruct):
    """A fact in the form in which it is compared with others."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]
    symbols: tuple[str, ...]
    names: tuple[str, ...]
    meaning: frozenset[str]

    @property
    def qualifiers(self) -> list[str]:
        return sorted(word for word in self.words if word in _QUALIFIER_WORDS)

    @property
    def stems(self) -> frozenset[str]:
        return _stems(self.words) - _FILLER_STEMS

    @property
    def telling(self) -> tuple[str, ...]:
        """The stems in order, without those that can be left out."""
        stems = (_stem(word) for word in self.words)
        return tuple(stem for stem in stems if stem not in _FILLER_STEMS)


def normalize_fact(fact: str) -> NormalizedFact:
    """What is compared of a fact: no case, no spaces, no punctuation, no emphasis."""
    plain = unicodedata.normalize("NFC", fact.translate(_APOSTROPHES))
    words = "".join(map(_letter_or_space, plain)).split()
    # A fact without any letters consists of its symbols.
    words = words or plain.replace("\\", "").split()
    return NormalizedFact(
        words=tuple(map(fold, words)),
        numbers=tuple(_NUMBER.findall(plain)),
        symbols=tuple(sorted(filter(_is_symbol, plain))),
        names=tuple(fold(word) for word in words if word[0].isupper()),
        meaning=_stems(word_set(plain)) - _FILLER_STEMS,
    )


def is_same_fact(one: NormalizedFact, other: NormalizedFact) -> bool:
    """Whether two facts differ at most in case, spaces, punctuation and emphasis."""
    return (one.words, one.numbers, one.symbols) == (
        other.words,
        other.numbers,
        other.symbols,
    )


def adds_nothing(new: NormalizedFact, known: NormalizedFact) -> bool:
    """Whether the known fact says everything that the new one says."""
    if is_same_fact(new, known):
        return True
    if not new.meaning or overlap(new.meaning, known.meaning) < DUPLICATE_SHARE:
        return False
    if (new.numbers, new.symbols) != (known.numbers, known.symbols):
        return False
    if new.qualifiers != known.qualifiers or not _have_names_in_order(new, known):
        return False
    only_known = known.stems - new.stems
    return new.stems <= known.stems and not only_known & _stems(known.names)


def find_duplicate_index(
    new: NormalizedFact, known: Iterable[NormalizedFact]
) -> int | None:
    """Where the same fact is, or else the first one that already says it all."""
    similar: int | None = None
    for index, each in enumerate(known):
        if is_same_fact(new, each):
            return index
        if similar is None and adds_nothing(new, each):
            similar = index
    return similar


def _have_names_in_order(one: NormalizedFact, other: NormalizedFact) -> bool:
    """Whether the names that are in both come in the same order: who told whom."""
    shared = set(one.names) & set(other.names)
    return [name for name in one.names if name in shared] == [
        name for name in other.names if name in shared
    ]


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_stem, words))


def _stem(word: str) -> str:
    """The word without a final s, so that ``like`` and ``likes`` are the same."""
    # In a script without spaces, a word may be an entire sentence.
    return word if is_spaceless(word[0]) else word.removesuffix("s") or word


def _letter_or_space(character: str) -> str:
    return character if unicodedata.category(character)[0] in "LMN" else " "


def _is_symbol(character: str) -> bool:
    if character in _FORMATTING:
        return False
    return character in _SOME_SYMBOLS or unicodedata.category(character)[0] == "S"


_FILLER_STEMS = _stems(_FILLERS.split())
