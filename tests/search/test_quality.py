"""How often search finds what was meant, on a small corpus of our own, by difficulty.

The floors lie about one query below what was measured: a change that loses more has
made search worse. Raise them when it gets better.
"""

import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backstory.memory import Memory
from backstory.settings import read_settings
from backstory.system.machine import Machine
from backstory.values.hits import Hit

# One process embeds the corpus.
pytestmark = pytest.mark.xdist_group("quality")

DATA = Path(__file__).parents[1] / "data" / "quality"
# A Friday; the conversations end the day before.
NOW = datetime(2026, 3, 20, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Query:
    """A question, and the messages and notes any one of which answers it."""

    ask: str
    answer: tuple[str, ...]
    sources: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Filled:
    """A memory that holds the corpus, and what the corpus calls its messages."""

    memory: Memory
    names: Mapping[int, str]

    def find_place(self, query: Query) -> int | None:
        """The rank of the first answer, from 1; None if it is not there."""
        found = self.memory.search(query.ask, sources=query.sources, limit=10)
        for place, hit in enumerate(found.hits, 1):
            if any(self._is(hit, answer) for answer in query.answer):
                return place
        return None

    def abstains(self, query: Query) -> bool:
        """Whether search says that nothing answers: no hit, or only weak ones."""
        return self.memory.search(query.ask).is_weak

    def _is(self, hit: Hit, answer: str) -> bool:
        if hit.message_id is not None:
            return self.names[hit.message_id] == answer
        file, _, words = answer.partition(": ")
        return (
            hit.path is not None and Path(hit.path).name == file and words in hit.text
        )


def _read_queries() -> dict[str, list[Query]]:
    tables = tomllib.loads((DATA / "queries.toml").read_text(encoding="utf-8"))
    return {
        difficulty: [
            Query(
                row["ask"],
                tuple(row.get("answer", ())),
                tuple(row["sources"]) if "sources" in row else None,
            )
            for row in rows
        ]
        for difficulty, rows in tables.items()
    }


QUERIES = _read_queries()


@contextmanager
def _filled(folder: Path, embedder: str) -> Iterator[Filled]:
    """A memory with the corpus: conversations recorded, notes and guidance as files."""
    shutil.copytree(DATA / "memory", folder / "backstory" / "memory")
    settings = read_settings(
        user_file=folder / "config.toml",
        environ={},
        flags=(f"embedder.name={embedder}",),
    )
    machine = Machine("linux", folder / "nobody", {})
    with Memory(folder / "backstory", settings, machine, clock=lambda: NOW) as memory:
        names = _record_conversations(memory)
        memory.index()
        memory.embed()
        yield Filled(memory, names)


def _record_conversations(memory: Memory) -> dict[int, str]:
    """Record all conversations; returns what the corpus calls each message."""
    names = {}
    corpus = tomllib.loads((DATA / "conversations.toml").read_text(encoding="utf-8"))
    for session in corpus["session"]:
        for number, (role, text) in enumerate(session["messages"], 1):
            message_id = memory.record(
                session["name"],
                role,
                text,
                sent_at=session["began"] + timedelta(minutes=number),
                title=session["title"],
                project=DATA / session["project"] if "project" in session else None,
            )
            assert message_id is not None
            names[message_id] = f"{session['name']}/{number}"
    return names


@pytest.fixture(scope="module")
def by_meaning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """The corpus, searched by words and with the bundled model."""
    with _filled(tmp_path_factory.mktemp("by-meaning"), "minilm") as filled:
        yield filled


@pytest.fixture(scope="module")
def by_words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """The corpus, searched by words alone."""
    with _filled(tmp_path_factory.mktemp("by-words"), "none") as filled:
        yield filled


@dataclass(frozen=True, slots=True)
class Quality:
    """How many of some queries find an answer among the first, and how far up."""

    share_in_3: float
    share_in_5: float
    mean_reciprocal_rank: float
    not_in_3: tuple[str, ...]


def _measure(filled: Filled, difficulty: str) -> Quality:
    queries = QUERIES[difficulty]
    places = {query.ask: filled.find_place(query) for query in queries}
    found = [place for place in places.values() if place is not None]
    return Quality(
        sum(place <= 3 for place in found) / len(queries),
        sum(place <= 5 for place in found) / len(queries),
        sum(1 / place for place in found) / len(queries),
        tuple(ask for ask, place in places.items() if place is None or place > 3),
    )


# -- floors ---


@pytest.mark.parametrize(
    ("difficulty", "share_in_3", "mean_reciprocal_rank"),
    [
        ("word", 0.90, 0.88),
        ("paraphrase", 0.73, 0.62),
        ("cjk", 0.90, 0.92),
        ("code", 0.95, 0.93),
        ("date", 0.90, 0.75),
        ("phrase", 0.83, 0.85),
        ("name", 0.87, 0.80),
        ("accent", 0.88, 0.90),
    ],
)
def test_what_was_meant_stands_among_the_first_three(
    by_meaning: Filled, difficulty: str, share_in_3: float, mean_reciprocal_rank: float
) -> None:
    found = _measure(by_meaning, difficulty)

    assert found.share_in_3 >= share_in_3, found.not_in_3
    assert found.mean_reciprocal_rank >= mean_reciprocal_rank, found


@pytest.mark.parametrize(
    ("difficulty", "share_in_3", "mean_reciprocal_rank"),
    [
        ("word", 0.92, 0.90),
        ("paraphrase", 0.20, 0.15),
        ("cjk", 0.90, 0.92),
        ("code", 0.95, 0.93),
        ("date", 0.70, 0.58),
        ("phrase", 0.83, 0.85),
        ("name", 0.87, 0.80),
        ("accent", 0.88, 0.90),
    ],
)
def test_words_alone_find_what_is_said_in_the_same_words(
    by_words: Filled, difficulty: str, share_in_3: float, mean_reciprocal_rank: float
) -> None:
    found = _measure(by_words, difficulty)

    assert found.share_in_3 >= share_in_3, found.not_in_3
    assert found.mean_reciprocal_rank >= mean_reciprocal_rank, found


def test_search_says_so_when_nothing_answers(by_meaning: Filled) -> None:
    answered = [
        query.ask for query in QUERIES["none"] if not by_meaning.abstains(query)
    ]

    assert len(answered) <= 2, answered


def test_words_alone_answer_nothing_that_was_never_said(by_words: Filled) -> None:
    answered = [query.ask for query in QUERIES["none"] if not by_words.abstains(query)]

    assert len(answered) <= 1, answered


@pytest.mark.parametrize(
    ("difficulty", "most"),
    [
        ("word", 1),
        ("paraphrase", 11),
        ("cjk", 4),
        ("code", 1),
        ("date", 7),
        ("phrase", 0),
        ("name", 1),
        ("accent", 0),
    ],
)
def test_what_has_an_answer_is_seldom_called_weak(
    by_meaning: Filled, difficulty: str, most: int
) -> None:
    called_weak = [
        query.ask
        for query in QUERIES[difficulty]
        if by_meaning.memory.search(query.ask, sources=query.sources).is_weak
    ]

    assert len(called_weak) <= most, called_weak
