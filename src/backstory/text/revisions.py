"""Tell from the words alone whether a later statement replaces an earlier one.

A wrong mark is worse than none, so only plain cases count. A statement may give up what
the earlier one says, by name and about the same subject ("we moved the queue from
Postgres to SQLite"). It may announce a change ("deploy from the release branch from now
on"), be about the same thing, and choose something else. Or two statements are the same
except for one value ("the API listens on port 8080", "… on port 9090"). Anything else
may be another fact about the same subject, and replaces nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from backstory.text.patterns import lazy_pattern
from backstory.text.words import STOP_WORDS, fold

# A longer sentence is a list or a piece of code, not one statement.
_MAX_CHARS = 300
_MAX_STATEMENTS = 12
_MIN_WORDS = 3
# The maximum number of words in a value such as "the release branch".
_MAX_VALUE_WORDS = 3
# How far apart the words of one expression may be: "move … from … to".
_NEAR = 8
# A statement about the same thing shares this part of the shorter one's telling words.
_MIN_SHARE = 0.5
# A statement with more telling words is about several things.
_MAX_TOPIC = 14

_SENTENCE_END = lazy_pattern(r"(?<=[.!?;:])\s|\n")
_WORD = lazy_pattern(r"[^\W_]+(?:(?:[-./:_@']|,(?=\d))[^\W_]+)*")
_CHOOSE = lazy_pattern(r"\b(?:go|going|stick|sticking) with\b")
_AROUND_SENTENCE = " \t-*+>#`|"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A possibility is not a decision.
_UNSURE = _words(
    "aim aiming could hope hoping might maybe perhaps would whether if should consider "
    "considering propose proposal suggest suggestion option options or try trying "
    "könnte könnten vielleicht würde ob falls sollte sollten oder "
    "pourrait peut-être si ou podría quizás tal o"
)
_NOT = _words("not don't never won't cannot can't didn't shouldn't")
_CHANGES = _words(
    "adjust adjusted bump bumped change changed changing extend extended "
    "increase increased lower lowered migrate migrated migrates migrating move moved "
    "moves moving postpone postponed raise raised reduce reduced rename renamed "
    "reschedule rescheduled switch switched switches switching "
    "erhöht geändert gesenkt gewechselt migriert umgestellt umgestiegen umgezogen "
    "verlegt verschoben wechseln "
    "augmenté changé déplacé migré passé reporté "
    "aplazado cambiado cambiamos migrado migramos movido pasado pasamos subido"
)
# What is switched to replaces what was there; what is moved may not.
_SWITCHES = _words("migrate migrated migrating switch switched switches switching")
# "From Postgres to SQLite", in several languages.
_FROM = _words("from von vom de du desde")
_TO = _words("to auf zu zum à a al")
# What follows these words is given up.
_GIVES_UP = _words(
    "abandon abandoned ditch ditched drop dropped dropping replace replaced replaces "
    "replacing"
)
_GIVES_UP_IN_TWO = frozenset(
    {
        ("instead", "of"),
        ("no", "longer"),
        ("not", "using"),
        ("rather", "than"),
        ("rid", "of"),
        ("stop", "using"),
        ("stopped", "using"),
    }
)
# What precedes these words is given up.
_GIVEN_UP_BEFORE = _words("anymore overkill retired")
_ANNOUNCES = (
    *("instead", "from now on", "as of today", "after all", "second thought"),
    *("changed my mind", "changed our mind"),
)
_HINTS = (
    _CHANGES
    | _GIVES_UP
    | _GIVEN_UP_BEFORE
    | _FROM
    | _words(
        "actually after as away from instead mind no not now rather rid second stop "
        "stopped"
    )
)
# Words that end the name of what is given up.
_ENDS_NAME = _TO | _words(
    "and as at because but by for if in it on since so that them this with "
    "für mit und weil avec et parce pour con para porque y"
)
# Words that precede what was chosen. "For" is not one of them: a subject follows it.
_BEFORE_CHOICE = _words(
    "are at choose chose from has have is on pick picked port prefer prefers use used "
    "uses using version via was "
    "auf hat ist nehmen nutzen nutzt verwenden verwendet est sur utilise utilisons "
    "es tiene usa usamos"
)
# Words that are interchangeable in two statements: "CI runs on", "switch CI to".
_LIKE_IS = _words(
    "are choose chose is on pick picked port prefer prefers to use used uses using was"
)
# Words that need a subject before them: "we deploy from", but not "it is from".
_AFTER_SUBJECT = _words(
    "are at from has have is on via was auf hat ist est sur es tiene"
)
# Verbs of choosing. After "is" and "on", only a number is sure to be another value.
_CHOOSES = _words(
    "choose chose pick picked prefer prefers use used uses using "
    "nehmen nutzen nutzt verwenden verwendet utilise utilisons usa usamos"
)
# Words that say that something is decided, done or changed, but not what.
_SAYS_NOTHING = (
    _CHANGES
    | _GIVES_UP
    | _words(
        """
        actually add added after all already also always anymore any back because been
        choose chose decide decided decision did do done everything fine first from get
        go going good got great have here instead just keep kept know last later let
        let's like longer make made mind more need new no not now of off ok okay old on
        one only over overkill own please rather really recently retired right run runs
        running same second see set since so start still stop stopped sure than that's
        thanks then thing things think this thought through today too update updated
        use used uses using very want we we'll we're well will with work works yes yet
        """
    )
)
_NOT_TELLING = _SAYS_NOTHING | STOP_WORDS
# Words that make a sentence polite, or new, but say nothing else.
_POLITE = _words(
    "a actually again all an anymore instead just let's now ok okay please so the then "
    "today we we'll will yes"
)


class Statement(NamedTuple):
    """One sentence, as far as it matters for what it replaces.

    ``words`` are all its words, ``topic`` the telling ones, and ``choices`` those that
    look like what was chosen, after one of the words ``leads``. ``given_up`` are the
    names of what it gives up, as words, and ``moved_from`` those of them from which it
    says that something was moved. ``is_sure``: it is more than an idea.
    """

    words: tuple[str, ...]
    topic: frozenset[str]
    choices: frozenset[str]
    leads: frozenset[str]
    given_up: tuple[tuple[str, ...], ...]
    moved_from: tuple[tuple[str, ...], ...]
    is_sure: bool
    is_change: bool
    announces_change: bool


def read_statements(
    text: str, *, about: frozenset[str] | None = None
) -> list[Statement]:
    """The first statements of a text; questions do not count.

    ``about``: only those with one of these words, which ``telling_words`` returns.
    """
    statements: list[Statement] = []
    read = 0
    for line in _SENTENCE_END.split(fold(text.replace("’", "'"))):
        sentence = _CHOOSE.sub("choose", line.strip(_AROUND_SENTENCE))
        if sentence.endswith("?"):
            # "We are on 5.3 now, can you update the docs?"
            sentence = sentence.rpartition(",")[0]
        if not sentence or len(sentence) > _MAX_CHARS:
            continue
        whole = _WORD.findall(sentence)
        # "We deploy from main, tagged with the date": the first part is a statement,
        # too.
        beginning = _WORD.findall(sentence.partition(", ")[0])
        has_part = _MIN_WORDS <= len(beginning) < len(whole)
        for words in (whole, beginning) if has_part else (whole,):
            read += 1
            topic = _topic_of(words)
            if about is None or not about.isdisjoint(topic):
                statements.append(_read_statement(words, topic))
        if read >= _MAX_STATEMENTS:
            break
    return statements


def telling_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, in the form used in statements."""
    return _topic_of(_WORD.findall(fold(text.replace("’", "'"))))


def _read_statement(words: Sequence[str], topic: frozenset[str]) -> Statement:
    given_up: tuple[tuple[str, ...], ...] = ()
    moved_from: tuple[tuple[str, ...], ...] = ()
    is_change = announces_change = False
    is_sure = _UNSURE.isdisjoint(words)
    # Most sentences have none of these words, which is quick to check.
    if is_sure and not _HINTS.isdisjoint(words):
        moved_from = tuple(filter(None, _iter_moved_from(words)))
        given_up = (*moved_from, *filter(None, _iter_given_up(words)))
        announces_change = _announces_change(words)
        is_change = bool(given_up) or announces_change or _says_change(words)
    leads, choices = _find_choices(words, is_change=is_change)
    return Statement(
        tuple(words),
        topic,
        _topic_of(choices),
        leads,
        given_up,
        moved_from,
        is_sure,
        is_change,
        announces_change,
    )


def _find_choices(
    words: Sequence[str], *, is_change: bool
) -> tuple[frozenset[str], list[str]]:
    """The words that precede a choice, and the two words after each of them."""
    leads: set[str] = set()
    choices: list[str] = []
    left = 0
    for word in words:
        if left:
            choices.append(word)
        if word in _BEFORE_CHOICE or (is_change and word == "to"):
            leads.add("is" if word in _LIKE_IS else word)
            left = 2
        else:
            left = max(0, left - 1)
    return frozenset(leads), choices


def _iter_moved_from(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The names of what a sentence says something was moved from."""
    for number, word in enumerate(words):
        after = words[number + 1 : number + 1 + _NEAR]
        # In some languages, the verb comes last.
        around = [*words[max(0, number - _NEAR) : number], *after]
        if not _tells_of_change(around):
            continue
        is_away = words[max(0, number - 1)] == "away"
        is_from = word in _FROM and (is_away or not _TO.isdisjoint(after))
        if word == "off" or is_from:
            yield _name_after(words, number)


def _iter_given_up(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The names of what a sentence gives up in other ways."""
    for number, word in enumerate(words):
        before = words[max(0, number - _NEAR) : number]
        if (word in _GIVES_UP and _NOT.isdisjoint(before[-2:])) or (
            before and (before[-1], word) in _GIVES_UP_IN_TWO
        ):
            yield _name_after(words, number)
        elif word in _GIVEN_UP_BEFORE:
            yield tuple(map(_stem, filter(_is_telling, before[-2:])))


def _name_after(words: Sequence[str], number: int) -> tuple[str, ...]:
    name: list[str] = []
    for word in words[number + 1 : number + 1 + 2 * _MAX_VALUE_WORDS]:
        if word in _ENDS_NAME or len(name) == _MAX_VALUE_WORDS:
            break
        if _is_telling(word):
            name.append(_stem(word))
    return tuple(name)


def _tells_of_change(words: Sequence[str]) -> bool:
    return not _CHANGES.isdisjoint(words) and _NOT.isdisjoint(words)


def _announces_change(words: Sequence[str]) -> bool:
    """Whether a sentence says that something is no longer as it was."""
    sentence = " ".join(words)
    if any(expression in sentence for expression in _ANNOUNCES):
        return True
    return bool(words) and (
        words[0] == "actually" or _changes_to(words, _SWITCHES) is not None
    )


def _says_change(words: Sequence[str]) -> bool:
    return "now" in words[1:] or _changes_to(words, _CHANGES) is not None


def _changes_to(words: Sequence[str], verbs: frozenset[str]) -> int | None:
    """Where a sentence says that something changes to something else."""
    first = next((n for n, word in enumerate(words) if word in verbs), None)
    if first is None or not _NOT.isdisjoint(words[max(0, first - 3) : first]):
        return None
    after = words[first + 1 : first + 1 + _NEAR]
    # "Let's move on to another problem" changes nothing.
    return first if "to" in after and after[0] != "on" else None


def _topic_of(words: Iterable[str]) -> frozenset[str]:
    return frozenset([_stem(word) for word in words if word not in _NOT_TELLING])


def _is_telling(word: str) -> bool:
    return word not in _NOT_TELLING


@lru_cache(maxsize=8_192)
def _stem(word: str) -> str:
    for ending in ("ing", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e")


# -- comparing ---


def replaces(later: Statement, earlier: Statement, *, by_person: bool = True) -> bool:
    """Whether a later statement replaces an earlier one.

    An agent's statement has to name what something was moved from, or differ in a
    single number: most of what agents say is that something is changed.
    """
    shared = later.topic & earlier.topic
    if not shared or later.words == earlier.words or len(earlier.topic) > _MAX_TOPIC:
        return False
    if not (later.is_sure and earlier.is_sure):
        return False
    names = later.given_up if by_person else later.moved_from
    if any(_gives_up(later, earlier, name) for name in names):
        return True
    if by_person and later.is_change and _chooses_something_else(later, earlier):
        return True
    return _differs_in_a_value(later, earlier, by_person=by_person)


def _gives_up(later: Statement, earlier: Statement, name: tuple[str, ...]) -> bool:
    """Whether the earlier statement says what the later one gives up by this name."""
    if name in earlier.given_up or not _has_name(earlier, name):
        return False
    mine, theirs = later.topic - {*name}, earlier.topic - {*name}
    least = min(len(mine), len(theirs))
    if not least:
        return not earlier.choices.isdisjoint(name)
    return len(mine & theirs) >= max(1, _MIN_SHARE * least)


def _has_name(statement: Statement, name: tuple[str, ...]) -> bool:
    stems = list(map(_stem, statement.words))
    return any(tuple(stems[at : at + len(name)]) == name for at in range(len(stems)))


def _is_about_the_same(later: Statement, earlier: Statement) -> bool:
    least = min(len(later.topic), len(earlier.topic))
    return len(later.topic & earlier.topic) >= _MIN_SHARE * least


def _chooses_something_else(later: Statement, earlier: Statement) -> bool:
    shared = later.topic & earlier.topic
    # "The API …" and "the metrics …": if each has its own subject, they differ.
    are_different = (later.topic - later.choices - shared) and (
        earlier.topic - earlier.choices - shared
    )
    return (
        not are_different
        and not later.given_up  # if it gives something up, only that counts
        # "The port is 9090 now" is another value; "we are in March now" may be news.
        and (later.announces_change or _are_numbers(later, earlier))
        and not later.leads.isdisjoint(earlier.leads)
        and bool(later.choices - earlier.topic)
        and bool(earlier.choices)
        and _is_about_the_same(later, earlier)
    )


def _are_numbers(later: Statement, earlier: Statement) -> bool:
    return all(any(map(_has_digit, each.choices)) for each in (later, earlier))


def _differs_in_a_value(
    later: Statement, earlier: Statement, *, by_person: bool
) -> bool:
    """Whether two statements are the same except for one value."""
    new, old = _without_polite(later.words), _without_polite(earlier.words)
    if not new or not old or _stem(new[0]) != _stem(old[0]):
        return False
    before = _count_common(new, old)
    after = _count_common(new[before:][::-1], old[before:][::-1])
    values = new[before : len(new) - after], old[before : len(old) - after]
    if not all(0 < len(value) <= _MAX_VALUE_WORDS for value in values):
        return False
    subject = _topic_of(new[:before])
    around = subject | _topic_of(new[len(new) - after :])
    leads = _BEFORE_CHOICE.intersection(new[max(0, before - 2) : before])
    if not leads or not around or (leads <= _AFTER_SUBJECT and not subject):
        return False
    if all(map(_any_has_digit, values)):
        return True
    # "Redis as the cache" is not just another value for "Postgres".
    are_names = all(STOP_WORDS.isdisjoint(value) for value in values)
    is_choice = not _CHOOSES.isdisjoint(leads) or later.is_change
    return by_person and are_names and is_choice


@lru_cache(maxsize=512)
def _without_polite(words: tuple[str, ...]) -> list[str]:
    return [word for word in words if word not in _POLITE]


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words at the beginning of two lists are the same."""
    pairs = zip(one, other, strict=False)
    return next(
        (number for number, (a, b) in enumerate(pairs) if _stem(a) != _stem(b)),
        min(len(one), len(other)),
    )


def _any_has_digit(words: Sequence[str]) -> bool:
    return any(map(_has_digit, words))


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))
