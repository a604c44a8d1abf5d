"""Words of every script, as the full-text index stores them and as queries use them.

The index splits text with SQLite's ``porter unicode61 remove_diacritics 2``, which
finds no words in scripts written without spaces, does not split ``parseJson``, and
reads ``C++`` as ``C``. ``index_words`` rewrites a text so that all of that works. A
query must go through ``plain`` and ``word_parts`` just as the text did, or the two will
not match.
"""

import re
import unicodedata
from array import array
from functools import lru_cache

from backstory.text.patterns import lazy_pattern

# Letters of scripts written without spaces between words. Hangul is here although
# Korean has spaces, because its endings attach to the word. Digits are left out.
SPACELESS = (
    "\u0e01-\u0e4f\u0e81-\u0ecf\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\ua9e0-\ua9ef\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17dc"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"  # Hangul
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"  # repetition, numerals
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001b000-\U0001b16f"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
)
# Names with signs that the index drops. For speed, the pattern begins with a set of
# characters followed by another set, and only then looks behind.
NAMED = lazy_pattern(
    r"[cCfF.](?=[+#nN])(?:(?<![^\W_].)(?:(?<=[cC])\+\+|(?<=[cCfF])#|(?<=\.)[nN][eE][tT]\b)"
    r"|(?<=[aA][sS][pP]\.)[nN][eE][tT]\b)"
)

_DOT_N = lazy_pattern(r"\.[nN]")
_NAMES = {
    "c++": "cplusplus",
    "c#": "csharp",
    "f#": "fsharp",
    ".net": "dotnet",
}
_SPACELESS_RUN = lazy_pattern(f"[{SPACELESS}]+")
# The first character of each range and the one after its last, in order. The patterns
# take milliseconds to compile, so they are used only for texts with such characters.
_SPACELESS_BOUNDS = sorted(
    bound
    for first, last in zip(SPACELESS[::3], SPACELESS[2::3], strict=True)
    for bound in (first, chr(ord(last) + 1))
)
# Two or more spaceless letters that folding and indexing both leave as they are: kana,
# Han, Hangul syllables.
_UNCHANGED_RUN = lazy_pattern(
    "[\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]{2,}"
)
_SPACED_WORD = lazy_pattern(r"[^\W_]+")
_SPACELESS_RUN_OR_WORD = lazy_pattern(f"[{SPACELESS}]+|[^\\W_{SPACELESS}]+")
# Fullwidth Latin and halfwidth kana and Hangul: the same letters in another width.
_OTHER_WIDTH = lazy_pattern("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc]+")
# Python's \w and the index agree on letters and digits, but not on everything else: to
# the index, private use, unassigned characters and newer emoji are letters, too.
_NO_LETTERS = lazy_pattern(r"[^\w\x00-\x7f]+")

_ALL_BYTES = bytes(range(256))
_DIGITS = b"0123456789"
_CAPITALS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SMALL_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_NO_LETTERS_OR_DIGITS = _ALL_BYTES.translate(None, _DIGITS + _CAPITALS + _SMALL_LETTERS)
# Turns everything but letters and digits into spaces.
LETTERS_AND_DIGITS = bytes.maketrans(
    _NO_LETTERS_OR_DIGITS, b" " * len(_NO_LETTERS_OR_DIGITS)
)
# The same, with small letters as "a", capitals as "A", and digits as "0".
_SHAPES = LETTERS_AND_DIGITS.translate(
    bytes.maketrans(
        _DIGITS + _CAPITALS + _SMALL_LETTERS, b"0" * 10 + b"A" * 26 + b"a" * 26
    )
)
_NEITHER_CAPITALS_NOR_DIGITS = _ALL_BYTES.translate(None, _CAPITALS + _DIGITS)
_WORD = lazy_pattern(f"[^\\W_{SPACELESS}]+")
_PART = lazy_pattern(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_LETTERS_OR_DIGITS = lazy_pattern(r"[^\W\d_]+|\d+")
_LONGEST_JOINED = 60
# Texts this short often occur repeatedly.
_OFTEN_CHARS = 32

# Text as an array of characters, which is faster than joining pieces.
_FOUR_BYTES = "utf-32-le"
_SPACE = array("I", [ord(" ")])

_COMPARED_CHARS = 4_000


def is_spaceless(text: str) -> bool:
    """Whether a text begins in a script that is written without spaces."""
    if text.isascii():
        return False
    # Hooks must be quick, and rarely need it.
    from bisect import bisect_right

    return bisect_right(_SPACELESS_BOUNDS, text[0]) % 2 == 1


def has_spaceless(text: str) -> bool:
    """Whether some of a text is in a script that is written without spaces."""
    return not text.isascii() and any(map(is_spaceless, set(text)))


def fold(text: str) -> str:
    """The text in the form in which it is compared: composed, and without case."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", text).casefold()


# -- the index ---


def index_words(text: str) -> str:
    """The text in the form in which it is given to the full-text index.

    A run of a spaceless script becomes each character and each pair of neighbours. The
    parts of joined words (``parseJson``) and names for ``C++`` and the like are added
    at the end, where they break no phrase.
    """
    if len(text) <= _OFTEN_CHARS:
        return _cached_index_words(text)
    return _index_words(text)


def phrase_words(text: str) -> str:
    """The text as a phrase to search for in the output of ``index_words``."""
    if text.isascii():
        return plain(text)
    return " ".join(_spread_runs(_in_usual_form(text)).split())


def plain(text: str) -> str:
    """The text with letters in their usual width, and no non-ASCII signs.

    Marks on letters are dropped, so that a word of an Indic script or of Arabic stays
    one word; any other sign becomes a space.
    """
    if text.isascii():
        return text.replace("\0", " ") if "\0" in text else text
    return _without_marks(_in_usual_form(text))


def word_parts(word: str) -> tuple[str, ...]:
    """The parts of a joined word, such as ``HTTP``, ``Server``, ``2``; else ().

    A word with very short parts, such as a hash or a key, counts as having none.
    """
    # Most words are all small letters, so they have only one part.
    if len(word) > _LONGEST_JOINED or (word.isalpha() and word.islower()):
        return ()
    parts = tuple(_PART.findall(word))
    if len(parts) < 2 or (len(parts) > 2 and len(parts) * 2 > len(word)):
        return ()
    return parts


def letters_and_digits(word: str) -> list[str]:
    """The word's runs of letters and runs of digits: ``iPhone``, ``15``."""
    return _LETTERS_OR_DIGITS.findall(word)


def name_word(name: str) -> str:
    """The word that the index has for what ``NAMED`` matched."""
    return _NAMES[name.lower()]


def _index_words(text: str) -> str:
    if text.isascii():
        if "\0" in text:
            text = text.replace("\0", " ")
        more = _more_words(text, text.encode())
        return f"{text} {more}" if more else text
    text = _in_usual_form(text)
    more = _more_words(text, text.encode("ascii", "replace"))
    return _spread_runs(f"{text} {more}")


# Such as names of tools, "yes", "continue".
_cached_index_words = lru_cache(maxsize=4_096)(_index_words)


def _more_words(text: str, letters: bytes) -> str:
    """What is added at the end: parts of joined words, and names with signs."""
    more: list[str] = []
    # Most texts have neither, which this quickly establishes.
    if letters.translate(None, _NEITHER_CAPITALS_NOR_DIGITS) and _has_join(letters):
        more.extend(filter(None, map(_appended_parts, _words(text, letters))))
    if "+" in text or "#" in text or _DOT_N.search(text):
        more.extend(map(name_word, _names(plain(text))))
    return " ".join(more)


def _names(text: str) -> list[str]:
    if "++" in text or "#" in text or ".net" in text.lower():
        return NAMED.findall(text)
    return []


def _has_join(letters: bytes) -> bool:
    """Whether the shape changes within a word; a pattern would take far longer."""
    shapes = letters.translate(_SHAPES)
    if b"aA" in shapes or b"AAa" in shapes:
        return True
    return b"0" in shapes and (
        b"a0" in shapes or b"A0" in shapes or b"0a" in shapes or b"0A" in shapes
    )


def _words(text: str, letters: bytes) -> list[str]:
    if text.isascii():
        return letters.translate(LETTERS_AND_DIGITS).decode().split()
    return _WORD.findall(text)


# Programs use the same names over and over; a cache is ten times as fast.
@lru_cache(maxsize=8_192)
def _appended_parts(word: str) -> str:
    """The parts, separated by spaces; ``iPhone15`` also has the part ``iPhone``."""
    parts = word_parts(word)
    if not parts:
        return ""
    runs = letters_and_digits(word)
    further = [run for run in runs if run != word and run not in parts]
    return " ".join((*parts, *further))


def _spread_runs(text: str) -> str:
    folded = _without_marks(text.casefold())
    return _SPACELESS_RUN.sub(_spread, folded) if has_spaceless(folded) else folded


def _spread(found: re.Match[str]) -> str:
    """Each character and each pair of neighbours: `` a ab b bc c ``."""
    characters = found.group()
    if len(characters) == 1:
        return f" {characters} "
    run = array("I", characters.encode(_FOUR_BYTES))
    spread = _SPACE * (5 * len(run) - 2)
    spread[1::5] = run
    spread[3::5] = run[:-1]
    spread[4::5] = run[1:]
    return spread.tobytes().decode(_FOUR_BYTES)


def _in_usual_form(text: str) -> str:
    composed = unicodedata.normalize("NFC", text).replace("\0", " ")
    return _OTHER_WIDTH.sub(_in_usual_width, composed)


def _in_usual_width(found: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", found.group())


def _without_marks(text: str) -> str:
    return _NO_LETTERS.sub(_marks_or_space, text)


def _marks_or_space(found: re.Match[str]) -> str:
    for character in found.group():
        if unicodedata.category(character)[0] != "M":
            return " "
    return ""


# -- comparing ---


def word_set(text: str) -> frozenset[str]:
    """The distinct words at the start of a text, to compare it with another."""
    folded = fold(text[:_COMPARED_CHARS])
    if folded.isascii():
        return frozenset(_words(folded, folded.encode()))
    folded = _without_marks(folded)
    if not has_spaceless(folded):
        return frozenset(_SPACED_WORD.findall(folded))
    words: set[str] = set()
    for word in _SPACELESS_RUN_OR_WORD.findall(folded):
        if is_spaceless(word):
            words.update(character_pairs(word))
        else:
            words.add(word)
    return frozenset(words)


def character_pairs(run: str) -> list[str]:
    """Each pair of neighbours in a spaceless run; a lone character is itself."""
    if len(run) == 1:
        return [run]
    return [run[start : start + 2] for start in range(len(run) - 1)]


def unchanged_pairs(folded: str) -> list[str]:
    """Pairs of neighbours that the index has for every text with this part.

    They are from scripts written without spaces. No two of them overlap.
    """
    if not has_spaceless(folded):
        return []
    runs = _UNCHANGED_RUN.findall(folded)
    return [pair for run in runs for pair in character_pairs(run)[::2]]


# -- words that say little ---

# Words of other languages that are meaningful in English ("die", "son") are left out.
_STOP_WORDS = """
    a about above after again all also am an and any anyone anything are aren as at be
    because been before being below between both but by can cannot could couldn d did
    didn do does doesn doing don done each else ever every everything few for from
    further get got had hadn has hasn have haven having he her here hers herself him
    himself his how i if in into is isn it its itself just let ll m me might more most
    much must my myself no nor not now of off on once one only or other our ours
    ourselves out over own please re s same shall she should shouldn so some someone
    something such t tell than that the their theirs them themselves then there these
    they thing things this those through to too under until up upon us ve very was wasn
    we were weren what whatever when where which while who whom whose why will with
    without would wouldn yes yet you your yours yourself yourselves

    aber alle als auch auf aus bei bis bist da damit dann das dass dein dem den der des
    dich dir doch du durch ein eine einem einen einer eines er es euch für habe haben
    hatte hatten hier ich ihm ihn ihr im ist ja kann kein keine mein mich mir mit nach
    nicht noch nur ob oder sein sich sie sind um und uns unser unter vom von vor waren
    warum wegen weil welche welcher welches wenn wer werden wie wir wird wo wurde zu zum
    zur über

    au aux avec avons ce ces cet cette dans de dont du elle en est et il ils je la le
    les leur lui mais moi mon même ne nos notre nous ont ou où pas pourquoi qu quand que
    quel quelle quelles quels qui quoi sa sans se ses sont sur ta te tes toi ton tu un
    une vos votre vous j l n à été était être

    al como con cuando cuál cuándo cómo del donde dónde el ella ellos eres esa ese eso
    esta este esto está han hasta hay hemos las lo los mi mis muy más o para pero por
    porque qué quién si sobre su sus sí también tiene unas uno unos ya yo

    的 了 吗 呢 吧 啊 是 我 你 他 她 它 在 和 与 也 都 就 这 那 有 个 很 不
    我们 你们 他们 什么 怎么 为什 哪个 哪里 哪些 一个 这个 那个 是不 不是 是什
    么时 时候 有没 没有 的是 了吗 可以 是否 关于 告诉 诉我 一下 还是 以及 如何 我的 你的
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
