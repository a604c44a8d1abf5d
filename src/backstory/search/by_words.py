"""Choose the memories for a prompt by their words alone, where there are no vectors.

A ``Memory``, and a hook that no server answers, choose by the same rules, each with its
own reader. A hook has no time for more, and imports nothing that only others need.
"""

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from backstory.text.excerpts import find_words
from backstory.text.rarity import rarity
from backstory.text.similarity import DUPLICATE_SHARE, overlap
from backstory.text.words import STOP_WORDS, fold, word_set
from backstory.values.query import Query, Term

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Readable(Protocol):
        """A text that may become a memory.

        ``is_agentic``: it is a message of a session in which tools were used.
        """

        @property
        def unit_id(self) -> int: ...

        @property
        def text(self) -> str: ...

        @property
        def is_agentic(self) -> bool: ...

    class WordsReader(Protocol):
        """What is read to choose memories by their words."""

        def count_units(self) -> int: ...

        def count_documents(self, words: Sequence[tuple[str, ...]]) -> list[int]: ...

        def match(
            self, words: "NeededWords", limit: int, *, least: float = 0.0
        ) -> Sequence[tuple[int, float]]:
            """The units that somebody said or noted, best first, with BM25 scores.

            Those that score less than ``least`` may be left out.
            """
            ...

        def load(self, unit_ids: Sequence[int]) -> Mapping[int, Readable]:
            """Those of these units that belong to the project, by number."""
            ...


# The spellings of words of which a unit must have one, and of others that add to its
# score.
NeededWords = tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]

# How many units are found by words, and how many of the project's own are then read.
_POOL = 150
_CONSIDERED = 15
# The minimum BM25 score of a memory, where 1 is the rarity of a word that nothing has:
# the memory shares two rare words with the prompt, or is about little more than one.
_LEAST_SCORE = 1.1
# If there are fewer units than this, it is enough to share this many words.
_FEW_UNITS = 50
_LEAST_SHARED = 3
# In BM25, a word in a text counts at most this many times its rarity.
_MOST_PER_WORD = 2.2
# Where tools are used, a message with fewer words is an order, or just a step.
_LEAST_WORDS = 12
# With fewer words than this, it is not even a question.
_QUESTION_WORDS = 3
_READ_CHARS = 4_000
# What ends a sentence if another one follows.
_SENTENCE_ENDS = (". ", "! ", "? ", "\n", "。", "！", "？")
# If there are this many units, a word in more than this share says next to nothing.
_FREQUENT_SHARE = 0.1
_MANY_UNITS = 1_000
# A prompt is waiting, so fewer units are scored than for a search.
_MAX_SCORED = 2_000
# A prompt with only these words needs no memories.
_SMALL_TALK = """
    ok okay yes yep no nope thanks thank continue go going next done great good fine
    please proceed sure right nice cool hi hello hey perfect again retry resume start
    weiter danke ja nein gut genau bitte hallo merci oui non bonjour gracias vale hola
"""


def is_worth_searching(query: Query) -> bool:
    """Whether a prompt says enough to search for memories."""
    if query.days:
        return True
    words = {fold(term.text) for term in query.subject}
    return not words <= frozenset(_SMALL_TALK.split())


def choose_by_words(query: Query, reader: "WordsReader") -> dict[int, float]:
    """The units that are worth putting into a prompt, best first, with scores."""
    total = reader.count_units()
    scores = _match_rare(query.subject, total, reader)
    if total < _FEW_UNITS:
        scores |= {
            unit_id: score
            for unit_id, score in _match_several(query.subject, total, reader)
            if unit_id not in scores
        }
    chosen = _choose(list(scores), query, reader)
    return {unit_id: scores[unit_id] for unit_id in chosen}


def _match_rare(
    terms: Sequence[Term], total: int, reader: "WordsReader"
) -> dict[int, float]:
    """The units that share rare words with a prompt, best first."""
    counts = reader.count_documents([term.spellings for term in terms])
    words = choose_words(terms, counts, total, max_scored=_MAX_SCORED)
    least = _LEAST_SCORE * rarity(0, total)
    # Most prompts have no rare words, or none that anybody has used before.
    most = sum(rarity(count, total) for count in counts if count) * _MOST_PER_WORD
    if words is None or most < least:
        return {}
    return {
        unit_id: score
        for unit_id, score in reader.match(words, _POOL, least=least)
        if score >= least
    }


def _match_several(
    terms: Sequence[Term], total: int, reader: "WordsReader"
) -> list[tuple[int, float]]:
    """The units that share several words with a prompt, best first.

    In a person's first conversations, hardly any word is rare yet.
    """
    shared: dict[int, float] = {}
    for term in terms:
        for unit_id, _ in reader.match(((term.spellings,), ()), total):
            shared[unit_id] = shared.get(unit_id, 0.0) + 1
    least = max(_LEAST_SHARED, len(terms) / 2)
    best_first = sorted(shared.items(), key=lambda row: (-row[1], -row[0]))
    return [row for row in best_first if row[1] >= least]


def _choose(matched: Sequence[int], query: Query, reader: "WordsReader") -> list[int]:
    """The first units that belong to the project and say something new.

    A message is also found by the words of its neighbours. This helps to find the
    answer to a question, which is shown with the question anyway.
    """
    chosen: dict[int, frozenset[str]] = {}
    considered = 0
    # In portions: usually, the first few are enough.
    for start in range(0, len(matched), _CONSIDERED):
        some = matched[start : start + _CONSIDERED]
        loaded = reader.load(some)
        for each in (loaded[unit_id] for unit_id in some if unit_id in loaded):
            considered += 1
            own = word_set(each.text)
            is_repeat = any(
                overlap(own, other) > DUPLICATE_SHARE for other in chosen.values()
            )
            if (
                not is_repeat
                and says_something(each.text, is_agentic=each.is_agentic)
                and find_words(each.text, query, limit=1)
            ):
                chosen[each.unit_id] = own
            if considered == _CONSIDERED:
                return list(chosen)
    return list(chosen)


def choose_words(
    terms: Sequence[Term], counts: Sequence[int], total: int, *, max_scored: int
) -> NeededWords | None:
    """Which words are needed and which only help; None if none occurs anywhere.

    The rarest are needed: a unit with none of them is not worth scoring. This limits
    the units that are scored to roughly ``max_scored``.
    """
    known = sorted((count, place) for place, count in enumerate(counts) if count > 0)
    if not known:
        return None
    rare = known
    if total >= _MANY_UNITS:
        max_count = total * _FREQUENT_SHARE
        rare = [each for each in known if each[0] <= max_count] or known[:1]
    needed: list[tuple[str, ...]] = []
    helpful: list[tuple[str, ...]] = []
    scored = 0
    for count, place in rare:
        spellings = terms[place].spellings
        if not needed or scored + count <= max_scored:
            needed.append(spellings)
            scored += count
        else:
            helpful.append(spellings)
    return tuple(needed), tuple(helpful)


def says_something(text: str, reply: str = "", *, is_agentic: bool) -> bool:
    """Whether a message has enough words; in a chat, or as a note, it may be short.

    A question may be short, too, if its answer is not: both are shown together.
    """
    if not is_agentic:
        return True
    words = _find_words(text)
    if len(words) >= _QUESTION_WORDS:
        words |= _find_words(reply)
    return len(words) >= _LEAST_WORDS


def is_nod(text: str) -> bool:
    """Whether a message of a session with tools is only an order, or a "done"."""
    return len(_find_words(text)) < _QUESTION_WORDS


def judge_turn(
    text: str, last: str | None, *, is_question: bool, ends_in_step: bool
) -> tuple[bool, bool]:
    """Whether to show a message, and whether with it the last words of its turn.

    ``last`` is what the agent said last; None if that is the message itself, or
    nothing. ``ends_in_step``: a tool was called after that, but nothing was said any
    more, because the turn was interrupted. Text that ends in a colon is such a step as
    well: what it announces was not recorded. A step only says what the agent will do
    next, which helps nobody later, and resembles orders to do the same; its outcome is
    found separately.
    """
    ends_in_step = ends_in_step or (text if last is None else last).rstrip().endswith(
        ":"
    )
    is_step = not is_question and (last is not None or ends_in_step)
    is_shown = not is_step or _tells(text)
    # "Committed as 4f2a91c." is short, but an answer.
    return is_shown, last is not None and (not ends_in_step or _tells(last))


def _tells(step: str) -> bool:
    """Whether a step says more than what the agent will do next."""
    return len(_find_words(_without_announcement(step))) >= _LEAST_WORDS


def _without_announcement(text: str) -> str:
    """A step without its last sentence, which announces the next call."""
    text = text.strip()
    return text[: max(map(text.rfind, _SENTENCE_ENDS)) + 1]


def _find_words(text: str) -> frozenset[str]:
    words = word_set(text[:_READ_CHARS]) - STOP_WORDS
    return frozenset(word for word in words if len(word) > 1)


def leave_out_known(texts: Iterable[str], given: Collection[str]) -> list[int]:
    """The places of the texts that say something new, not in ``given`` yet."""
    known = fold("\n".join(given))
    known_words = [word_set(piece) for piece in given]
    new = []
    for place, text in enumerate(texts):
        words = word_set(text)
        is_known = fold(text) in known or any(
            overlap(words, other) > DUPLICATE_SHARE for other in known_words
        )
        if not is_known:
            new.append(place)
    return new


def show_replies_once(
    found: Sequence[int], replies: Mapping[int, int], questions: Collection[int]
) -> dict[int, int | None]:
    """Which of some messages to show, in which order, and each one's reply to show.

    An answer is shown once, next to its question, in the place of whichever comes
    first. With a step that leads to it, an answer is shown only if it is not shown
    elsewhere.
    """
    asked = {
        replies[each]: each for each in found if each in questions and each in replies
    }
    shown = {*found, *asked}
    kept: dict[int, int | None] = {}
    for number in found:
        each = asked.get(number, number)
        reply = replies.get(each)
        is_shown = each not in questions and reply in shown
        kept.setdefault(each, None if is_shown else reply)
        if reply is not None:
            shown.add(reply)
    return kept


def memory_key(text: str) -> str:
    """A short text that is the same for all memories that say the same thing."""
    words = " ".join(text.split()).encode("utf-8", errors="surrogatepass")
    return f"{zlib.crc32(words):08x}{zlib.adler32(words):08x}"
