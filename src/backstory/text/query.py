"""Turn what was typed into a Query value.

Every string is a query: operators, quotes and signs are never syntax, only hints about
where words end. A typed word that the index splits (``src/app.py:42``) stays one term,
spelled as the phrase that the index has for it.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from backstory.text.date_hints import may_ask_for_recent, may_name_days
from backstory.text.patterns import lazy_pattern
from backstory.text.words import (
    NAMED,
    SPACELESS,
    STOP_WORDS,
    character_pairs,
    fold,
    has_spaceless,
    is_spaceless,
    letters_and_digits,
    name_word,
    plain,
    word_parts,
)
from backstory.values.query import Query, Term

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date

    from backstory.values.query import FoundDays

_MAX_TERMS = 32
_MAX_PHRASES = 8
# Nobody types more than this, and pasted text names its subject near the beginning.
_READ_CHARS = 4_000
_MAX_WORDS_IN_TERM = 16
_LONG_RUN = 12
_MAX_PAIRS_IN_RUN = 24

_PHRASE = lazy_pattern(
    '(?<![A-Za-z0-9])"([^"]{1,300})"'
    "|“([^”“]{1,300})[”“]|„([^“”„]{1,300})[“”]|«([^«»]{1,300})»"
    "|「([^「」]{1,300})」|『([^『』]{1,300})』"
    # A single word between these is a name in code, which need not be in the answer.
    r"|(?<![\w'])'(?P<message>[^'\n]{1,300})'(?![\w'])|`(?P<code>[^`\n]{1,300})`"
)
_QUOTES = frozenset("\"“„«「『'`")
_LETTER = f"[^\\W_{SPACELESS}]"
# Signs that join the parts of one typed word; all others separate words.
_JOINERS = "-_./:'@#+~$%\\\\"
_TYPED = lazy_pattern(
    f"(?P<name>{NAMED.pattern})|(?P<run>[{SPACELESS}]+)"
    f"|(?P<word>{_LETTER}+(?:[{_JOINERS}]{{1,3}}{_LETTER}+)*)"
)
# The same for text without spaceless scripts: it compiles in a tenth of the time.
_TYPED_SPACED = lazy_pattern(
    f"(?P<name>{NAMED.pattern})|(?P<run>(?!))"
    f"|(?P<word>[^\\W_]+(?:[{_JOINERS}]{{1,3}}[^\\W_]+)*)"
)
_WORD = lazy_pattern(r"[^\W_]+")
_WORD_AND_ASTERISK = lazy_pattern(r"[\w-]{3,}\*")
# Forms that do not occur in sentences: src/app.py, user_id, --no-verify, ECONNREFUSED,
# parseJson, 3f2a9bc, v1.2.3, https://…; but not e-mail, 10:30 or and/or.
_CODE = lazy_pattern(
    r"[^\W_]_|_[^\W_]|^--?[A-Za-z]|[^\W_](?:\.|::|[=#@$])[^\W_]|://|/.*/|^[~.]?/."
    r"|[A-Za-z]:\\|[a-z][A-Z]|^[A-Z][A-Z0-9]{5,}$|^(?=.*[0-9])(?=.*[a-f])[0-9a-f]{7,40}$"
)
_MIN_CODE_CHARS = 4
# Words that say what kind of thing a name is, or that it is searched for.
_ABOUT = """
    called class command commit constant defined error file find flag function hash link
    look method module option path see seen set show url use used uses using variable
"""
_ABOUT_CODE = frozenset(_ABOUT.split())
_AROUND_CODE = "\"'`.,;:!?()[]{}<>“”„‘’«»"
# Names in which signs only replace spaces: auth-token, parse_json, e-mail.
_IDENTIFIER = lazy_pattern(r"(?=.*[^\W\d_])[^\W_]+(?:[-_'][^\W_]+){1,3}")
_SEGMENT = lazy_pattern(r"[^/\\:@#?]+")
_NO_LETTERS = lazy_pattern(r"[\W_]+")
_HIRAGANA = lazy_pattern("[\u3041-\u309f]+")
# Words that ask for what was said; with nothing but a day, for all of it.
_TALK = """
    chat chatted conversation conversations discuss discussed discussion go happen
    happened mention mentioned recap said say speak spoke spoken summarise summarize
    summary talk talked talking went work worked
    besprochen gemacht geredet gesagt gesprochen passiert zusammenfassung
"""
_TALK_WORDS = frozenset(_TALK.split())
# Words that ask for what was decided; the subject of the decision matters more.
_DECIDED = """
    agree agreed conclude concluded conclusion decide decided decision decisions settle
    settled
    beschlossen entscheidung entschieden
"""
_DECIDED_WORDS = frozenset(_DECIDED.split())
# In a question about somebody's days, these words ask for all that was done; elsewhere,
# they may be what is searched for: "the build".
_DONE = """
    accomplish accomplished achieve achieved activities activity add added ask asked
    build building built busy change changed complete completed finish finished fix
    fixed implement implemented list overview progress project projects repo repository
    session sessions ship shipped show spend spent stuff task tasks thing things time
    touched week weeks work working write written wrote
"""
_DONE_WORDS = frozenset(_DONE.split())
_ASKS_FOR_SOMEBODY = lazy_pattern(r"\b(?:i|me|my|we|our|us|you)\b", re.I)
_MAX_QUESTION_CHARS = 200
# In German, every noun has a capital letter.
_GERMAN = """
    auf bei beim das dem den der des die ein eine einem einen einer für hat haben ist
    mit nicht sind und uns unser unsere vom von wann warum welche welchen welcher
    welches wer wie wir wird wo wurde wurden zu zum zur über
"""
_GERMAN_WORDS = frozenset(_GERMAN.split())
_ENDS_SENTENCE = ".!?:"
_TALK_SIGNS = frozenset("我们你咱做了过什么说聊谈讨论干些都在有的事情吗呢")
_SCHEMES = frozenset({"http", "https", "file", "ssh", "www"})


@lru_cache(maxsize=64)
def parse_query(text: str, *, today: "date | None") -> Query:
    """Parse what was typed; never raises. Without words there are no terms.

    Without ``today``, no days are found.
    """
    text = text.strip()
    read = text[:_READ_CHARS]
    dates, recent = _find_days(read, today), _find_recent(read)
    terms = _choose_terms(_iter_terms(read))
    named = [(date_.start, date_.end) for date_ in dates]
    subject = _parse_subject(read, [*named, *recent])
    # "the restaurant we talked about" need not have the word "talked" in it.
    subject = tuple(each for each in subject if not _asks_for_talk(each)) or subject
    if dates:
        # Nor does what was decided on a day need to have the word "decided" in it.
        others = tuple(each for each in subject if not _asks_for_decision(each))
        subject = others or subject
    else:
        subject = subject or terms
    if dates and all(
        _is_function_word(term) or _asks_for_talk(term) for term in subject
    ):
        subject = ()
    return Query(
        text=text,
        folded=fold(_drop_asterisk(text)),
        terms=terms,
        subject=subject,
        phrases=_parse_phrases(read) or _parse_code(read),
        days=tuple(dict.fromkeys(one.days for one in dates)),
        wants_recent=bool(recent),
    )


def _drop_asterisk(text: str) -> str:
    """A word without the asterisk that stands for any ending in other tools.

    Here, all words that begin like it are found anyway.
    """
    is_prefix = text.endswith("*") and _WORD_AND_ASTERISK.fullmatch(text)
    return text[:-1] if is_prefix else text


def _find_days(text: str, today: "date | None") -> "tuple[FoundDays, ...]":
    if today is None or not may_name_days(text):
        return ()
    # It has many patterns, which are needed only here.
    from backstory.text.dates import find_days

    return find_days(text, today=today)


def _find_recent(text: str) -> tuple[tuple[int, int], ...]:
    if not may_ask_for_recent(text):
        return ()
    # It has many patterns, too.
    from backstory.text.dates import find_recent

    return find_recent(text)


def asks_what_was_done(query: Query, *, on_given_days: bool = False) -> bool:
    """Whether a query asks what was done on some days, and not for anything else.

    ``on_given_days``: the days need not be named, because the caller gives them.
    """
    if query.phrases or len(query.text) > _MAX_QUESTION_CHARS:
        return False
    if query.days and not query.subject:
        return True
    if not (query.days or on_given_days) or not query.subject:
        return False
    return bool(_ASKS_FOR_SOMEBODY.search(query.text)) and not _telling(query)


def find_asked_name(
    query: Query, *, today: "date | None", on_given_days: bool = False
) -> tuple[str, Query] | None:
    """The one word that makes a query ask for more than what was done on some days.

    It may be the name of a project, and is folded. With it comes the query without it.
    """
    if len(query.text) > _MAX_QUESTION_CHARS:
        return None
    if not _ASKS_FOR_SOMEBODY.search(query.text):
        return None
    telling = [fold(term.text) for term in _telling(query)]
    words = query.text.split()
    for place, word in enumerate(words):
        name = fold(word.strip(_AROUND_CODE).removesuffix("'s"))
        if telling and all(each in name for each in telling):
            rest = " ".join([*words[:place], *words[place + 1 :]])
            asked = parse_query(rest, today=today)
            if asks_what_was_done(asked, on_given_days=on_given_days):
                return name, asked
    return None


def _telling(query: Query) -> list[Term]:
    """What a query about somebody's days asks for besides what was done."""
    return [
        term
        for term in query.subject
        if not (
            _is_function_word(term)
            or _asks_for_talk(term)
            or fold(term.text) in _DONE_WORDS
        )
    ]


def find_names(query: Query) -> frozenset[Term]:
    """The terms that name something: Redis, GraphQL, MP3.

    Answers may use other words than the question, but hardly another name.
    """
    if query.text.isupper():
        return frozenset()
    is_german = not _GERMAN_WORDS.isdisjoint(fold(query.text).split())
    return frozenset(
        term
        for term in query.subject
        if _has_form_of_name(term.text)
        or (not is_german and _is_capitalized_in_sentence(term.text, query.text))
    )


def _has_form_of_name(word: str) -> bool:
    """Whether a word is written as only names are: MP3, k6, GraphQL, API."""
    if not word.isalnum() or len(word) < 2:
        return False
    has_digit = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    return has_digit or any(map(str.isupper, word[1:]))


def _is_capitalized_in_sentence(word: str, text: str) -> bool:
    bare = word.removesuffix("'s")
    if not bare.isalpha() or not bare[0].isupper():
        return False
    before = text[: max(0, text.find(bare))].rstrip(" \t\n\"'“„«(")
    return bool(before) and before[-1] not in _ENDS_SENTENCE


def parse_words(text: str) -> Query:
    """Parse what was typed, if it does not matter which days are meant."""
    # Needed only here.
    from datetime import date

    return parse_query(text, today=date(2000, 1, 1))


def _parse_subject(text: str, leave_out: Iterable[tuple[int, int]]) -> tuple[Term, ...]:
    for start, end in leave_out:
        text = text[:start] + " " * (end - start) + text[end:]
    terms = _choose_terms(_iter_terms(text))
    telling = [
        term
        for term in terms
        if not is_spaceless(term.text[0]) or STOP_WORDS.isdisjoint(term.text)
    ]
    return tuple(telling) or terms


def _parse_phrases(text: str) -> tuple[str, ...]:
    if not _QUOTES.intersection(text):
        return ()
    phrases = dict.fromkeys(
        fold(inside.strip())
        for found in _PHRASE.finditer(text)
        if (inside := found[found.lastindex or 0])
        and (found.lastgroup is None or len(inside.split()) > 1)
    )
    phrases.pop("", None)
    return tuple(phrases)[:_MAX_PHRASES]


def _parse_code(text: str) -> tuple[str, ...]:
    """The identifiers, paths and the like in a text that asks for nothing else."""
    code: dict[str, None] = {}
    for typed in text.split():
        bare = typed.strip(_AROUND_CODE)
        if _may_be_code(bare) and _CODE.search(bare):
            code[fold(bare)] = None
        elif not all(map(_only_asks, _iter_terms(bare))):
            return ()
    return tuple(code)[:_MAX_PHRASES]


def _may_be_code(typed: str) -> bool:
    # Words as in a sentence are not code; this check is quick.
    is_plain = typed.isalpha() and typed[1:].islower()
    return len(typed) >= _MIN_CODE_CHARS and not is_plain


def _only_asks(term: Term) -> bool:
    is_about = fold(term.text) in _ABOUT_CODE
    return is_about or _is_function_word(term) or _asks_for_talk(term)


# -- terms ---


def _choose_terms(terms: Iterable[Term]) -> tuple[Term, ...]:
    """The first terms, without repeats; function words only if there are no others."""
    telling: dict[tuple[str, ...], Term] = {}
    others: dict[tuple[str, ...], Term] = {}
    for term in terms:
        kind = others if _is_function_word(term) else telling
        kind.setdefault(term.spellings, term)
        if len(telling) == _MAX_TERMS:
            break
    return tuple((telling or others).values())[:_MAX_TERMS]


def _iter_terms(text: str) -> Iterator[Term]:
    # A curly apostrophe would separate words.
    typed_in = plain(text.replace("’", "'"))
    expression = _TYPED if has_spaceless(typed_in) else _TYPED_SPACED
    for found in expression.finditer(typed_in):
        typed = found.group()
        if found["name"]:
            yield Term(typed, (name_word(typed),))
        elif found["run"]:
            yield from (Term(pair, (fold(pair),)) for pair in _likely_pairs(typed))
        else:
            yield from _iter_word_terms(typed)


def _iter_word_terms(typed: str) -> Iterator[Term]:
    """The typed word as one term; a path or a long name also in pieces.

    This finds other paths to the same file if the whole path is not found.
    """
    yield from _spell(typed)
    if "/" in typed or "\\" in typed:
        pieces = _SEGMENT.findall(typed)
    elif "'" not in typed and len(words := _WORD.findall(typed)) > 2:
        pieces = words
    else:
        return
    for piece in pieces:
        if any(map(_is_distinctive, _WORD.findall(piece))):
            yield from _spell(piece.strip(_JOINERS))


def _spell(typed: str) -> Iterator[Term]:
    """One term, or none if folding leaves no letter."""
    words = _WORD.findall(typed)[:_MAX_WORDS_IN_TERM]
    spellings = [_fold_words(words)]
    if len(words) == 1:
        parts = word_parts(typed)
        spellings.append(_fold_words(parts))
        spellings.append(_fold_words(letters_and_digits(typed) if parts else ()))
    elif _IDENTIFIER.fullmatch(typed):
        spellings.append(_fold_words(["".join(words)]))
    telling = [word for word in words if fold(word) not in STOP_WORDS]
    if "'" in typed and len(telling) == 1:
        spellings.append(_fold_words(telling))
    distinct = dict.fromkeys(filter(None, spellings))
    if distinct:
        yield Term(typed, tuple(distinct))


def _fold_words(words: Iterable[str]) -> str:
    # Folding can turn one letter into a different letter and a mark.
    return " ".join(_NO_LETTERS.sub("", word.casefold()) for word in words).strip()


def _is_distinctive(word: str) -> bool:
    folded = fold(word)
    return (
        len(word) > 1
        and not word.isdigit()
        and folded not in STOP_WORDS
        and folded not in _SCHEMES
    )


def _is_function_word(term: Term) -> bool:
    return all(word in STOP_WORDS for word in term.spellings[0].split())


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MIN_LETTERS, _MAX_LETTERS = 5, 24


def can_be_corrected(word: str) -> bool:
    """Whether a word is all letters, and long enough to be corrected reliably."""
    typed = word.lower()
    return _MIN_LETTERS <= len(typed) <= _MAX_LETTERS and set(typed) <= {*_LETTERS}


def near_spellings(word: str) -> list[str]:
    """The words that differ from a word by one typing error, if it can be corrected."""
    if not can_be_corrected(word):
        return []
    typed = word.lower()
    places = [(typed[:at], typed[at:]) for at in range(len(typed) + 1)]
    meant = [
        *(head + tail[1] + tail[0] + tail[2:] for head, tail in places if tail[1:]),
        *(head + tail[1:] for head, tail in places if tail),
        *(head + letter + tail for head, tail in places for letter in _LETTERS),
        *(head + letter + tail[1:] for head, tail in places for letter in _LETTERS),
    ]
    return [each for each in dict.fromkeys(meant) if each != typed]


def _asks_for_talk(term: Term) -> bool:
    # The terms of a spaceless run are pairs, some of which span two words.
    return fold(term.text) in _TALK_WORDS or _TALK_SIGNS.issuperset(term.text)


def _asks_for_decision(term: Term) -> bool:
    return fold(term.text) in _DECIDED_WORDS


def _likely_pairs(run: str) -> list[str]:
    """The pairs of a spaceless run; of a long run, some that are likely words."""
    pairs = character_pairs(run)
    if len(run) <= _LONG_RUN:
        return pairs
    telling = [
        pair
        for pair in pairs
        if STOP_WORDS.isdisjoint(pair) and not _HIRAGANA.fullmatch(pair)
    ]
    pairs = telling or pairs
    step = max(1, len(pairs) / _MAX_PAIRS_IN_RUN)
    count = min(len(pairs), _MAX_PAIRS_IN_RUN)
    return [pairs[int(number * step)] for number in range(count)]
