"""Tell whether the user said what a model took from a conversation.

A model may be fooled by what it reads: a page that an agent quotes can tell it what the
user wants. So whatever counts as the user's must be in words that the user wrote, which
is checked here, whatever the model says. An honest paraphrase in very different words
is refused, too: it is only missing from the notes, and stays in the history.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from backstory.text.own_words import own_words, split_sentences
from backstory.text.patterns import lazy_pattern
from backstory.text.words import STOP_WORDS, fold, is_spaceless, word_set
from backstory.values.notes import FactOrigin
from backstory.values.structs import FrozenStruct, replace

# This share of a note must be in the user's words, within this many sentences in a row.
_SAID_SHARE = 2 / 3
_SENTENCES = 4
# Words that report what somebody said, or are about remembering it.
_REPORTING = """
    user users agent agents assistant said says say told tells asked asks wants want
    wanted prefers prefer preferred preference preferences likes like liked dislikes
    dislike expects expect uses use used using remember remembered note noted
    always should needs need
    nutzer benutzer möchte will bevorzugt mag immer soll
    utilisateur préfère veut aime toujours
    usuario prefiere quiere siempre
    用户 偏好 喜欢 希望 总是 ユー ーザ ザー
"""
_SAY_LITTLE = STOP_WORDS | frozenset(_REPORTING.split())
# Names of files, commands, addresses, numbers: these are never paraphrased.
_EXACT = lazy_pattern(r"[\d/\\:@_~$=]|\w\.\w|^-")
_AROUND = "\"'`“”„«»()[]{}<>,.;:!?*"
_DAY = lazy_pattern(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
# Words match if they are the same up to this many letters before the shorter one's end.
_ENDING = 2
_SHORTEST_STEM = 4
_PIECE_CHARS = 4_000
_MAX_LINE_CHARS = 10_000

# Words that tell a reader how to behave from now on, in the most common languages. They
# only matter in lines that are no preference and that the user did not say.
_ORDER = lazy_pattern(
    r"\b(?:always|never|must|remember|ignore|disregard|whenever|from now on"
    r"|make sure|be sure|do not|don't|you should|obey|henceforth|going forward"
    r"|immer|nie|niemals|künftig|ab jetzt|ab sofort|merke?n? dir|musst|ignoriere"
    r"|toujours|jamais|désormais|souviens|rappelle|ignore[zr]?|dois|devez"
    r"|siempre|nunca|recuerda|debes?|ignora"
    r"|sempre|mai|ricorda|devi|lembre|lembra"
    r"|altijd|nooit|onthoud|zawsze|nigdy|pamiętaj|alltid|aldrig|kom ihåg"
    r"|her zaman|asla|unutma|всегда|никогда|запомни|помни|завжди|ніколи"
    r"|हमेशा|कभी)\b"
    r"|总是|永远|务必|必须|记住|始终|從現在|从现在|忽略|總是|必須"
    r"|常に|必ず|絶対|覚えて|無視|今後|항상|절대|반드시|기억|무시|앞으로"
    r"|دائم|أبد|تذكر|تجاهل|תמיד|לעולם|זכור",
    re.IGNORECASE,
)


class Saying(FrozenStruct):
    """A message of the user, and its number."""

    number: int
    text: str


class SaidInSession(FrozenStruct):
    """What the user said in a session; the numbers are the ids of the messages."""

    origin: FactOrigin
    sayings: Sequence[Saying]


class SaidOnDay(FrozenStruct):
    """What the user said on a day, session by session."""

    sessions: Sequence[SaidInSession]

    def find(self, fact: str, known: str = "") -> tuple[FactOrigin, ...]:
        """Where the user said what is in a fact, except for what is already known."""
        told: list[FactOrigin] = []
        for each in self.sessions:
            found = find_sayings(fact, each.sayings, known=known)
            if found:
                ids = tuple(saying.number for saying in found)
                told.append(replace(each.origin, messages=ids))
        return tuple(told)


def find_sayings(
    fact: str,
    sayings: Sequence[Saying],
    *,
    named: Collection[int] = (),
    known: str = "",
) -> list[Saying]:
    """The sayings that a fact rests on; none if the user did not say it.

    ``named`` are the numbers that the model gave; if none of them exists, every saying
    is examined. Words that are in ``known`` already are not looked for.
    """
    meant = [each for each in sayings if each.number in named] or list(sayings)
    wanted, exact = _wanted(fact, known)
    if not wanted and not exact:
        return []
    for some in _iter_windows(meant):
        said = " ".join(sentence for _, sentence in some)
        if _says(said, wanted, exact):
            numbers = {number for number, _ in some}
            return [each for each in meant if each.number in numbers]
    return []


def has_new_words(fact: str, known: str) -> bool:
    """Whether a fact has words that are not known already."""
    return any(_wanted(fact, known))


def _wanted(fact: str, known: str) -> tuple[frozenset[str], list[str]]:
    """The words of a fact that somebody must have said, and those said verbatim."""
    words, folded = _all_words(known), fold(known)
    wanted = frozenset(
        each for each in _content_words(fact) if not _is_said(each, words)
    )
    return wanted, [each for each in _exact_words(fact) if each not in folded]


def is_order(line: str) -> bool:
    """Whether the words of a line tell its reader what to do from now on.

    A line that is too long to be examined counts as an order.
    """
    return len(line) > _MAX_LINE_CHARS or _ORDER.search(line) is not None


def _iter_windows(
    sayings: Sequence[Saying],
) -> Iterator[Sequence[tuple[int, str]]]:
    """All runs of a few consecutive sentences of what the user wrote."""
    sentences = [
        (each.number, sentence)
        for each in sayings
        for sentence in split_sentences(own_words(each.text))
    ]
    for start in range(max(1, len(sentences) - _SENTENCES + 1)):
        yield sentences[start : start + _SENTENCES]


def _says(said: str, wanted: Collection[str], exact: Collection[str]) -> bool:
    folded = fold(said)
    if not all(word in folded for word in exact):
        return False
    words = _all_words(said)
    matched = sum(_is_said(word, words) for word in wanted)
    return matched >= _SAID_SHARE * len(wanted)


def _is_said(word: str, said: Collection[str]) -> bool:
    if word in said:
        return True
    if is_spaceless(word[0]):
        return False
    return any(_begin_alike(word, other) for other in said)


def _begin_alike(one: str, other: str) -> bool:
    length = min(len(one), len(other)) - _ENDING
    length = max(length, _SHORTEST_STEM)
    return one[:length] == other[:length] and min(len(one), len(other)) >= length


def _all_words(text: str) -> frozenset[str]:
    """The words of a whole text; ``word_set`` reads only its beginning."""
    starts = range(0, len(text), _PIECE_CHARS)
    return frozenset().union(
        *(word_set(text[start : start + _PIECE_CHARS]) for start in starts)
    )


def _content_words(fact: str) -> frozenset[str]:
    words = word_set(fact)
    return words - _SAY_LITTLE or words


def _exact_words(fact: str) -> list[str]:
    words = (word.strip(_AROUND) for word in fold(fact).split())
    return [
        word
        for word in words
        if _EXACT.search(word) and word_set(word) and not _DAY.fullmatch(word)
    ]
