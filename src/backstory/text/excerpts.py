"""Cut out the part of a text that answers a query, and find where it is.

Positions are always positions in the original text, although texts are compared folded,
and folding may change their length.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from backstory.text.patterns import lazy_pattern
from backstory.text.words import SPACELESS, fold, has_spaceless, is_spaceless
from backstory.values.query import Query, Term

_CUT = "..."
# How much of a hit is shown at most.
EXCERPT_CHARS = 500
_ZERO_WIDTH_JOINER = "\N{ZERO WIDTH JOINER}"
# How far a cut may move in order to begin at a line or at a word.
_TO_LINE = 60
_TO_WORD = 24
_LONGEST_CLUSTER = 16

# A text is folded in steps of this size, to find where a place in the folded text was.
_STEP = 256
_MAX_FINDS_PER_TERM = 200


# -- one exact match ---


def find_match(text: str, folded_needle: str) -> tuple[int, int] | None:
    """Where the text has the needle, which is already folded; None if nowhere."""
    if not folded_needle:
        return None
    start = fold(text).find(folded_needle)
    if start < 0:
        return None
    end = start + len(folded_needle)
    if fold(text[start:end]) == folded_needle:
        # Folded, a text may be longer: ß is ss.
        return start, min(end, len(text))
    first, last = _unfolded(text, start)[0], _unfolded(text, end)[1]
    if folded_needle in fold(text[first:last]):
        return first, last
    # Only if letters combine with what the step cut off: extremely rare.
    return 0, len(text)


def _unfolded(text: str, place: int) -> tuple[int, int]:
    """The places in the text just before and just after a place in the folded text."""
    before = 0
    for start in range(0, len(text), _STEP):
        step = text[start : start + _STEP]
        length = len(fold(step))
        if before + length >= place:
            lengths = [len(fold(step[:size])) + before for size in range(len(step) + 1)]
            # After the marks, if a letter with marks ends here.
            size = bisect_right(lengths, place) - 1
            inside_letter = lengths[size] < place
            return start + size, start + size + inside_letter
        before += length
    return len(text), len(text)


# -- many words ---


def find_words(text: str, query: Query, *, limit: int = 50) -> list[tuple[int, int]]:
    """Where the text has the query's phrases and terms: in order, without overlaps."""
    spans = [span for span, _ in _find_terms(text, query)]
    for phrase in query.phrases:
        found = find_match(text, phrase)
        if found:
            spans.append(found)
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged[:limit]


def _find_terms(text: str, query: Query) -> list[tuple[tuple[int, int], int]]:
    """Each place of each term, with the number of the term, in no particular order."""
    flat, places = _flatten(text)
    found = []
    for number, needles in enumerate(_needles(query, not has_spaceless(flat))):
        for needle in needles:
            for start, end in _iter_finds(flat, needle):
                if places is not None:
                    start, end = places[start], places[end]
                found.append(((start, end), number))
    return found


_LETTER = f"[^\\W_{SPACELESS}]"
_SPACED_LETTER = r"[^\W_]"
# A pattern with such a large set of characters takes a millisecond to compile, so all
# of these are made here, and none for each query. The second of each pair is for text
# without spaceless scripts, where a small set does the same.
_IS_LETTER = (lazy_pattern(_LETTER), lazy_pattern(_SPACED_LETTER))
_ANYTHING = lazy_pattern("")
_WORD_END = (lazy_pattern(f"(?!{_LETTER})"), lazy_pattern(f"(?!{_SPACED_LETTER})"))
_LETTERS = (lazy_pattern(f"{_LETTER}*"), lazy_pattern(f"{_SPACED_LETTER}*"))
_LIKE_E = (
    lazy_pattern(f"e{_LETTER}*|ing"),
    lazy_pattern(f"e{_SPACED_LETTER}*|ing"),
)
_LIKE_Y = (
    lazy_pattern(f"y{_LETTER}*|ies|ied"),
    lazy_pattern(f"y{_SPACED_LETTER}*|ies|ied"),
)


class _Needle:
    """Words at the start of a word; the last one may have several endings.

    ``literal`` is the first word, which is looked for. A pattern matches the others, if
    there are any: compiling one for each query would take longer than looking.
    """

    __slots__ = ("_ending", "_is_letter", "_others", "literal")

    def __init__(
        self,
        literal: str,
        ending: re.Pattern[str],
        is_letter: re.Pattern[str] | None,
        others: re.Pattern[str] | None = None,
    ) -> None:
        self.literal = literal
        self._ending = ending
        # None if the needle may begin within a word.
        self._is_letter = is_letter
        self._others = others

    def find_end(self, flat: str, at: int) -> int | None:
        """Where the needle ends if its literal is at this place; None if it is not."""
        if at and self._is_letter and self._is_letter.match(flat, at - 1):
            return None
        end = at + len(self.literal)
        if self._others is not None:
            others = self._others.match(flat, end)
            if others is None:
                return None
            end = others.end()
        ending = self._ending.match(flat, end)
        return ending.end() if ending else None


def _iter_finds(flat: str, needle: _Needle) -> Iterator[tuple[int, int]]:
    """Search for the literal, which is fast, and match the rest only where it is."""
    at = flat.find(needle.literal)
    for _ in range(_MAX_FINDS_PER_TERM):
        if at < 0:
            return
        end = needle.find_end(flat, at)
        if end is not None:
            yield at, end
        at = flat.find(needle.literal, at + 1 if end is None else end)


# The same query is applied to every text that it found.
@lru_cache(maxsize=32)
def _needles(query: Query, is_spaced: bool) -> tuple[tuple[_Needle, ...], ...]:
    return tuple(tuple(_iter_needles(term, is_spaced)) for term in query.terms)


def _iter_needles(term: Term, is_spaced: bool) -> Iterator[_Needle]:
    """What to look for in a text without spaceless scripts, or in any text."""
    typed = _flatten(term.text)[0]
    if is_spaceless(typed):
        yield _Needle(typed, _ANYTHING, None)
        return
    is_letter = _IS_LETTER[is_spaced]
    yield _Needle(typed, _WORD_END[is_spaced], is_letter)
    for spelling in term.spellings:
        first, *others = _flatten(spelling)[0].split()
        if not others:
            stem, ending = _stem(first)
            yield _Needle(stem, ending[is_spaced], is_letter)
            continue
        stem, ending = _stem(others[-1])
        parts = map(re.escape, (*others[:-1], stem))
        pattern = re.compile("".join(f"[\\W_]{{0,3}}{part}" for part in parts))
        yield _Needle(first, ending[is_spaced], is_letter, pattern)


def _stem(word: str) -> tuple[str, tuple[re.Pattern[str], re.Pattern[str]]]:
    """What the forms of a word begin with, and a pattern for how they end."""
    if len(word) < 4:
        return word, _WORD_END
    for ending in ("ing", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending), _LETTERS
    if word.endswith("e"):
        return word[:-1], _LIKE_E
    if word.endswith("y"):
        return word[:-1], _LIKE_Y
    return word, _LETTERS


class _Bases(dict[int, str]):
    """Maps characters to their small letters without accents; marks become NUL."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if unicodedata.category(character)[0] == "M":
            base = "\0"
        elif is_spaceless(character):
            base = character
        else:
            apart = unicodedata.normalize("NFKD", character).casefold()
            base = next(filter(str.isalnum, apart), character)
        self[code] = base
        return base


_BASES = _Bases()


def _flatten(text: str) -> tuple[str, Sequence[int] | None]:
    """The text without case, accents and marks, and where each character came from.

    The places have one more item, for the end; they are None if nothing has moved.
    """
    if text.isascii():
        return text.lower(), None
    flat = text.translate(_BASES)
    if "\0" not in flat:
        return flat, None
    places = [place for place, base in enumerate(flat) if base != "\0"]
    return flat.replace("\0", ""), [*places, len(text)]


# -- cutting ---


def excerpt(
    text: str,
    query: Query,
    *,
    max_chars: int,
    passage: tuple[int, int] | None = None,
) -> str:
    """At most ``max_chars`` of the text, including what answers the query.

    That is where the text has the query or a phrase of it, else the beginning, unless
    another part has at least twice as many terms: the subject of a text tends to come
    first. If the text has no term at all, it is the passage nearest in meaning.

    Ellipses mark where the text was cut, and count as characters.
    """
    if len(text) <= max_chars:
        return text
    if max_chars <= len(_CUT):
        return _CUT[: max(0, max_chars)]
    head_chars = max_chars - len(_CUT)
    if query.days and not query.subject:
        # If a query only asks for a day, neither its name nor "did" is worth showing.
        match = _find_exact(text, query)
    else:
        match = _find_shown(text, query, head_chars) or passage
    if match is None or match[1] <= head_chars or head_chars <= 2 * len(_CUT):
        return text[: before_cluster(text, head_chars)] + _CUT
    return _cut_around(text, match, max_chars)


def find_densest(text: str, query: Query, *, max_chars: int) -> str:
    """At most ``max_chars`` of the text: where most of the query's terms meet."""
    if len(text) <= max_chars:
        return text
    match = _find_best(text, query, width=max_chars)
    if match is None or match[1] <= max_chars:
        return text[:max_chars]
    return _cut_around(text, match, max_chars)


def _find_shown(text: str, query: Query, head_chars: int) -> tuple[int, int] | None:
    """What an excerpt must show; the text begins with ``head_chars``."""
    exact = _find_exact(text, query)
    if exact is not None:
        return exact
    finds = sorted(_find_terms(text, query))
    best, most = _find_most(finds, width=max(1, head_chars - len(_CUT)))
    at_head = [find for find in finds if find[0][1] <= head_chars]
    if 2 * len({number for _, number in at_head}) > most:
        return at_head[0][0]
    return best


def find_window(
    text: str, query: Query, *, max_chars: int, within: tuple[int, int]
) -> tuple[int, int]:
    """A stretch of the text around the best match, as long as ``max_chars`` allows.

    The match is searched for in the part ``within``; the stretch may extend beyond it.
    """
    first, last = within
    match = _find_best(text[first:last], query, width=max_chars)
    begin, end = (0, 0) if match is None else match
    spare = max(0, max_chars - (end - begin))
    # What follows a match says more about it than what comes before.
    start = max(0, min(first + begin - spare // 3, len(text) - max_chars))
    start = _tidy_start(text, start, latest=first + begin)
    return start, before_cluster(text, min(len(text), start + max_chars))


def _cut_around(text: str, match: tuple[int, int], max_chars: int) -> str:
    room = max_chars - 2 * len(_CUT)
    start = max(0, match[0] - max(0, room - (match[1] - match[0])) // 3)
    # An excerpt that reaches the end needs no ellipsis after it.
    start = min(start, len(text) - room - len(_CUT))
    start = _tidy_start(text, start, latest=match[0])
    if start == 0:
        return text[: before_cluster(text, max_chars - len(_CUT))] + _CUT
    if len(text) - start <= room + len(_CUT):
        return _CUT + text[start:]
    return _CUT + text[start : before_cluster(text, start + room)] + _CUT


def _find_best(text: str, query: Query, *, width: int) -> tuple[int, int] | None:
    """The whole query if the text has it, else a phrase, else where most terms meet."""
    exact = _find_exact(text, query)
    if exact is not None:
        return exact
    return _find_most(sorted(_find_terms(text, query)), width=width)[0]


def _find_exact(text: str, query: Query) -> tuple[int, int] | None:
    found = (find_match(text, each) for each in (query.folded, *query.phrases))
    return next(filter(None, found), None)


def _find_most(
    finds: Sequence[tuple[tuple[int, int], int]], *, width: int
) -> tuple[tuple[int, int] | None, int]:
    """Where most terms meet within ``width``, and how many; ``finds`` are in order."""
    best, most = None, 0
    inside: Counter[int] = Counter()
    first = 0
    for (_, end), number in finds:
        inside[number] += 1
        while end - finds[first][0][0] > width and finds[first][0][1] < end:
            left = finds[first][1]
            inside[left] -= 1
            if not inside[left]:
                del inside[left]
            first += 1
        if len(inside) > most:
            best, most = (finds[first][0][0], end), len(inside)
    return best, most


def _tidy_start(text: str, start: int, *, latest: int) -> int:
    """The next line or word after a place, if one begins soon and not too late."""
    if start <= 0 or text[start - 1] == "\n":
        return max(0, start)
    line = text.find("\n", start, min(start + _TO_LINE, latest)) + 1
    if line:
        return line
    if not text[start - 1].isspace():
        for place in range(start, min(start + _TO_WORD, latest)):
            if text[place].isspace():
                return place + 1
    for place in range(start, min(start + _LONGEST_CLUSTER, latest)):
        if not _is_inside_cluster(text, place):
            return place
    return start


def before_cluster(text: str, place: int) -> int:
    """The place, or the beginning of the cluster of characters that it would split."""
    for earlier in range(place, max(0, place - _LONGEST_CLUSTER), -1):
        if not _is_inside_cluster(text, earlier):
            return earlier
    return place


def _is_inside_cluster(text: str, place: int) -> bool:
    if not 0 < place < len(text):
        return False
    character, before = text[place], text[place - 1]
    if before == _ZERO_WIDTH_JOINER:
        return True
    if character < "\u0300":
        return False
    return (
        character == _ZERO_WIDTH_JOINER
        or unicodedata.category(character)[0] == "M"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or ("\udc00" <= character <= "\udfff" and "\ud800" <= before <= "\udbff")
    )
