"""Indexes with little in them, and an embedder that is quick and always the same."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from backstory.memory import Memory
from backstory.store.base.history import Batch, KeptMessage
from backstory.store.base.index import MadeVector, SearchIndex, UnitFilter
from backstory.store.sqlite.embeddings import SqliteEmbeddings
from backstory.store.sqlite.index import SqliteIndex
from backstory.values.history import NewMessage, Role
from backstory.values.moments import Moment
from backstory.values.units import Container, NewUnit, SessionRef, UnitKind
from tests.samples import a_memory

NOW = datetime(2026, 2, 20, 12, 0, tzinfo=UTC)
_LATER = timedelta(days=30)
ALL_KINDS = frozenset(UnitKind)
ANYTHING = UnitFilter(ALL_KINDS)

Vector = NDArray[np.float32]


# -- an embedder ----------------------------------------------------------------------


@dataclass
class WordEmbedder:
    """Texts that share words are near: each word is a direction of its own.

    ``before`` is called with the texts of every batch, and may fail or interfere.
    """

    fingerprint: str = "words-64"
    dimensions: int = 64
    before: Callable[[Sequence[str]], None] = lambda texts: None
    embedded: list[str] = field(default_factory=list)
    is_closed: bool = False

    def embed_texts(self, texts: Sequence[str]) -> Vector:
        self.before(texts)
        self.embedded.extend(texts)
        vectors = [self._vector(text) for text in texts]
        return np.stack(vectors) if vectors else np.zeros((0, 1), np.float32)

    def embed_query(self, text: str) -> Vector:
        self.before([text])
        return self._vector(text)

    def can_read(self, text: str) -> bool:
        return True

    def get_ready(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True

    def _vector(self, text: str) -> Vector:
        whole = np.zeros(self.dimensions, np.float32)
        for word in text.lower().split() or [""]:
            whole += _direction(word, self.dimensions)
        made: Vector = (whole / np.linalg.norm(whole)).astype(np.float32)
        return made


@cache
def _direction(word: str, dimensions: int) -> Vector:
    raw = word.encode(errors="surrogatepass")
    seed = int.from_bytes(blake2b(raw, digest_size=8).digest())
    return np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)


# -- an index -------------------------------------------------------------------------


def an_index(
    folder: Path, name: str = "index", *, cache: str = "embeddings"
) -> SqliteIndex:
    """An index with its cache of vectors, both in ``folder``."""
    return SqliteIndex(folder / f"{name}.db", SqliteEmbeddings(folder / f"{cache}.db"))


def close_index(index: SearchIndex) -> None:
    index.close()
    index.embeddings.close()


_A_SESSION = SessionRef(1)


def a_unit(
    unit_id: int,
    text: str = "hello",
    *,
    kind: UnitKind = UnitKind.USER,
    container: Container = _A_SESSION,
    said_at: int | None = 0,
    around: str = "",
    meaning: str | None = None,
    heading: str | None = None,
) -> NewUnit:
    return NewUnit(
        unit_id, kind, container, unit_id, said_at, text, around, meaning, heading
    )


def store_units(index: SearchIndex, *units: NewUnit) -> None:
    with index.writing() as writer:
        writer.replace_units(units)


def set_vectors(
    index: SearchIndex, vectors: dict[int, Vector], *, fingerprint: str = "model"
) -> None:
    """Give units their vectors, by way of the cache as the embedding does."""
    wanted = {each.unit_id: each.meaning_hash for each in index.list_to_embed(100_000)}
    keys = {unit_id: wanted[unit_id] for unit_id in vectors}
    numbers = index.embeddings.add(
        fingerprint, {keys[unit_id]: vector for unit_id, vector in vectors.items()}
    )
    with index.writing() as writer:
        writer.set_vectors(
            fingerprint,
            [
                MadeVector(unit_id, keys[unit_id], numbers[keys[unit_id]], vector)
                for unit_id, vector in vectors.items()
            ],
        )


def file_vectors(index: SearchIndex, vectors: Vector, *, first: int = 1) -> None:
    """File a unit for each vector, numbered from ``first`` on."""
    numbers = range(first, first + len(vectors))
    store_units(
        index,
        *(
            a_unit(
                n,
                f"text {n}",
                said_at=n,
                container=SessionRef(n % 5 + 1),
                kind=UnitKind.USER if n % 2 else UnitKind.ASSISTANT,
                meaning=f"text {n}",
            )
            for n in numbers
        ),
    )
    set_vectors(index, dict(zip(numbers, vectors, strict=True)))


def some_vectors(count: int, dimensions: int, *, seed: int = 0) -> Vector:
    made = np.random.default_rng(seed).standard_normal((count, dimensions))
    scaled: Vector = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(
        np.float32
    )
    return scaled


# -- a memory -------------------------------------------------------------------------


def an_indexed_memory(
    folder: Path,
    *,
    embedder: WordEmbedder | None = None,
    home: Path | None = None,
    settings: tuple[str, ...] = (),
) -> Memory:
    """A memory that embeds with ``embedder``, or not at all."""
    # Ages count in scores; with a stopped clock, two searches are alike.
    memory = a_memory(folder, home=home, settings=settings, clock=lambda: NOW + _LATER)
    memory._parts.index_files.embedder = embedder
    return memory


def say(
    memory: Memory,
    text: str,
    *,
    session: str = "s1",
    name: str | None = None,
    role: Role | str = "user",
    minute: int = 0,
    **more: Any,
) -> int | None:
    """Record a message that was sent some minutes after noon."""
    sent_at = NOW + timedelta(minutes=minute)
    return memory.record(session, role, text, message=name, sent_at=sent_at, **more)


def say_all(memory: Memory, texts: Iterable[str], *, session: str = "s1") -> None:
    """Record many messages at once, a minute apart, in turns."""
    roles = (Role.USER, Role.ASSISTANT)
    memory._parts.history.write(
        Batch(
            "python",
            messages=[
                KeptMessage(
                    NewMessage(
                        session,
                        f"m{number}",
                        roles[number % 2],
                        text,
                        sent=Moment(NOW + timedelta(minutes=number), 0),
                    )
                )
                for number, text in enumerate(texts)
            ],
        ),
        now=NOW,
    )


def empty_session(memory: Memory, session: str = "s1") -> None:
    """Let nothing of a session stay, as when its folder is excluded."""
    memory._parts.history.write(Batch("python", emptied=[session]), now=NOW)


def write_memory(memory: Memory, text: str, *, name: str = "MEMORY.md") -> Path:
    file = memory.home / "memory" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def found(memory: Memory, query: str, **more: Any) -> list[str]:
    """The texts of the hits, best first."""
    return [hit.text for hit in memory.search(query, **more).hits]


def contents(memory: Memory) -> dict[str, list[Any]]:
    """All the index holds, apart from numbers that depend on the order of things.

    Words are compared by what the full-text index has of each unit.
    """
    path = memory.home / "index.db"
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    db.execute(
        "CREATE VIRTUAL TABLE temp.instances USING fts5vocab (main, words, instance)"
    )
    named = """
        SELECT unit_id, CASE WHEN source_id < 0 THEN path || position ELSE unit_id END
                            AS name
          FROM units LEFT JOIN (SELECT state_id, index_state.source_id AS path
                                  FROM index_state) ON state_id = -units.source_id
    """
    queries = {
        "units": f"""
            SELECT name, kind, CASE WHEN source_id > 0 THEN source_id END, position,
                   said_at, text_bytes, meaning_hash
              FROM units JOIN ({named}) USING (unit_id) ORDER BY 1
            """,
        "words": f"""
            SELECT name, term, col, offset
              FROM instances JOIN ({named}) ON unit_id = doc ORDER BY 1, 3, 4, 2
            """,
        "notes": f"""
            SELECT name, heading, text FROM notes JOIN ({named}) USING (unit_id)
             ORDER BY 1
            """,
        "passages": "SELECT unit_id, passages_hash FROM passages ORDER BY 1",
        "chunks": """
            SELECT source_type, COALESCE(path, chunks.source_id), first_position,
                   last_position, token_count, text
              FROM chunks LEFT JOIN (SELECT state_id, source_id AS path
                                       FROM index_state) ON state_id = -chunks.source_id
             ORDER BY 1, 2, 3
            """,
        "sources": """
            SELECT source_type, source_id, project, signature, hash
              FROM index_state ORDER BY 1, 2
            """,
    }
    held = {name: db.execute(query).fetchall() for name, query in queries.items()}
    db.close()
    return held


def traces(home: Path, word: str) -> list[str]:
    """The derived files of a home that still contain a word."""
    return sorted(
        file.name
        for file in home.iterdir()
        if file.is_file()
        and not file.name.startswith("history.db")
        and word.encode() in file.read_bytes().lower()
    )


def all_traces(home: Path, word: str) -> list[str]:
    """All files of a home that contain a word, in small letters or capitals."""
    return sorted(
        file.relative_to(home).as_posix()
        for file in home.rglob("*")
        if file.is_file() and word.encode() in file.read_bytes().lower()
    )
