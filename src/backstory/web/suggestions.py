"""Suggest questions about the last day, and about topics of conversations.

They are made from titles alone, so that the first page need not wait for a search.
"""

from collections.abc import Iterator, Sequence
from datetime import date

from backstory.render.format import render_day
from backstory.text.query import parse_query
from backstory.text.words import fold
from backstory.values.history import Session

_MOST_WORDS = 5
_AROUND_WORDS = "\"'`()[]{}<>,.;:!?*#"
# Words at the beginning of a request that come before its subject.
_OPENINGS = """
add bug change create fix following hello help hey hi implement make need plan please
remove update want
"""


def suggest_questions(sessions: Sequence[Session]) -> list[str]:
    """Up to three questions that these sessions, the latest first, can answer."""
    found = [each for each in sessions if not each.parent_id]
    topics = _choose_topics(found)
    questions = [
        *(f"what did we do on {day}" for day in _iter_days(found)),
        *(f"what did we decide about {topic}" for topic in topics[:1]),
        *topics[1:],
    ]
    return questions[:3]


def _iter_days(sessions: Sequence[Session]) -> Iterator[str]:
    """The last day on which something was said."""
    days = (render_day(each.last_active, unknown="") for each in sessions)
    yield from [day for day in days if day][:1]


def _choose_topics(sessions: Sequence[Session]) -> list[str]:
    """The topics of the longest conversations, starting with one of each project."""

    def rank(session: Session) -> tuple[bool, bool, int]:
        # A title that was cut is just the beginning of a prompt, which is seldom its
        # subject.
        is_another = first_ones.get(session.project) is not session
        return session.title.endswith("…"), is_another, -session.message_count

    longest = sorted(sessions, key=lambda each: -each.message_count)
    first_ones = {each.project: each for each in reversed(longest)}
    topics = [find_topic(each.title) for each in sorted(longest, key=rank)]
    return list(dict.fromkeys(topic for topic in topics if topic))


def find_topic(title: str) -> str:
    """The longest run of words in a title that say what it is about; may be empty."""
    terms = {fold(term.text) for term in parse_query(title, today=date.min).subject}
    openings = _OPENINGS.split()
    runs: list[list[str]] = [[]]
    for written in title.rstrip("…").split():
        word = written.strip(_AROUND_WORDS)
        folded = fold(word)
        if folded in terms and folded not in openings:
            runs[-1].append(word)
        else:
            runs.append([])
    longest = max(runs, key=len)
    return " ".join(longest[:_MOST_WORDS]) if len(longest) > 1 else ""
