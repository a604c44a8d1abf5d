"""Whether a fact says nothing that another does not say already.

A fact that is kept twice is a line too many; one that is wrongly taken for known is
lost. So in doubt two facts differ: always when a number, a sign such as that of C++, a
name or a word that turns the meaning (not, only, never) is in one of them alone.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from backstory.text.similarity import DUPLICATE_SHARE, overlap
from backstory.text.words import fold, is_spaceless, word_set

# Words without which a fact says the same.
_FILLERS = """
    a also am an and are as be been being has have i is it its me my of s that the their
    there they this user we who with
    der das ein eine einen einer hat ist und
    le la les l un une des de du est et
    el los las una es y
"""
# Words that make another fact of it.
_TURNING = """
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
_TURNING_WORDS = frozenset(_TURNING.split())
_APOSTROPHES = str.maketrans(dict.fromkeys("’ʼ＇`´", "'"))
_NUMBER = re.compile(r"(?<![\w-])-\d[\d.,:/]*(?<![.,:/])|\d[\d.,:/]*(?<![.,:/])")
# Markdown's own; they only say how a text looks.
_FORMATTING = frozenset("`^~|*_\\")
_SOME_SIGNS = frozenset("%#&@")


@dataclass(frozen=True, slots=True)
class Said:
    """A fact as it is compared with others."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]
    signs: tuple[str, ...]
    names: tuple[str, ...]
    meaning: frozenset[str]

    @property
    def turns(self) -> list[str]:
        return sorted(word for word in self.words if word in _TURNING_WORDS)

    @property
    def stems(self) -> frozenset[str]:
        return _stems(self.words) - _FILLER_STEMS


def read_said(fact: str) -> Said:
    """What of a fact is compared: neither case nor spaces, marks or emphasis."""
    plain = unicodedata.normalize("NFC", fact.translate(_APOSTROPHES))
    # Where there are none, signs are what it says.
    words = "".join(map(_letter_or_space, plain)).split()
    words = words or plain.replace("\\", "").split()
    return Said(
        words=tuple(map(fold, words)),
        numbers=tuple(_NUMBER.findall(plain)),
        signs=tuple(sorted(filter(_is_sign, plain))),
        names=tuple(fold(word) for word in words if word[0].isupper()),
        meaning=_stems(word_set(plain)) - _FILLER_STEMS,
    )


def says_the_same(one: Said, other: Said) -> bool:
    """Whether the two are the same but for case, spaces, punctuation and emphasis."""
    return (one.words, one.numbers, one.signs) == (
        other.words,
        other.numbers,
        other.signs,
    )


def says_nothing_new(new: Said, known: Said) -> bool:
    """Whether what is known says all that the new fact says."""
    if says_the_same(new, known):
        return True
    if not new.meaning or overlap(new.meaning, known.meaning) < DUPLICATE_SHARE:
        return False
    if (new.numbers, new.signs) != (known.numbers, known.signs):
        return False
    if new.turns != known.turns or not _have_names_in_order(new, known):
        return False
    only_known = known.stems - new.stems
    return new.stems <= known.stems and not only_known & _stems(known.names)


def find_known(new: Said, known: Iterable[Said]) -> int | None:
    """The place of the first that says the same, else of one that says as much."""
    near: int | None = None
    for place, each in enumerate(known):
        if says_the_same(new, each):
            return place
        if near is None and says_nothing_new(new, each):
            near = place
    return near


def _have_names_in_order(one: Said, other: Said) -> bool:
    """Whether names that both have follow each other alike: who told whom."""
    shared = set(one.names) & set(other.names)
    return [name for name in one.names if name in shared] == [
        name for name in other.names if name in shared
    ]


def _stems(words: Iterable[str]) -> frozenset[str]:
    """The words, without the ending in which ``like`` and ``likes`` differ."""
    # In a script without spaces, a word is a sentence.
    return frozenset(
        word if is_spaceless(word[0]) else word.removesuffix("s") or word
        for word in words
    )


def _letter_or_space(sign: str) -> str:
    return sign if unicodedata.category(sign)[0] in "LMN" else " "


def _is_sign(sign: str) -> bool:
    if sign in _FORMATTING:
        return False
    return sign in _SOME_SIGNS or unicodedata.category(sign)[0] == "S"


_FILLER_STEMS = _stems(_FILLERS.split())
