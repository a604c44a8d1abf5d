"""Long messages of agentic sessions are found, and shown, by the passage that fits."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from backstory.memory import Memory
from tests.index_builders import (
    Vector,
    WordEmbedder,
    an_indexed_memory,
    contents,
    say,
)

FILLER = "Nothing of note happens in this sentence at all today. "
ANSWER = "violet umbrellas shelter every parking meter"
LONG = FILLER * 12 + "\n\n" + ANSWER + "\n\n" + FILLER * 3


class Synonyms(WordEmbedder):
    """Knows another word for the answer, which shares no word with it."""

    def embed_query(self, text: str) -> Vector:
        return super().embed_query(ANSWER if text == "rainproof" else text)


@pytest.fixture
def embedder() -> WordEmbedder:
    return Synonyms()


@pytest.fixture
def memory(tmp_path: Path, embedder: WordEmbedder) -> Iterator[Memory]:
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        yield memory


def stored_vectors(memory: Memory) -> list[int]:
    """The sizes of all vectors in the cache, in bytes."""
    path = memory.home / "embeddings.db"
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    return [size for (size,) in db.execute("SELECT LENGTH(vector) FROM embeddings")]


def test_a_long_answer_is_shown_by_the_passage_that_fits(memory: Memory) -> None:
    say(memory, "ls", role="tool_call")
    say(memory, LONG, role="assistant")
    memory.embed()

    (hit,) = memory.search("rainproof", sources=["message"]).hits

    assert hit.passage is not None
    assert ANSWER in hit.text[slice(*hit.passage)]
    assert ANSWER in hit.excerpt


def test_words_of_the_query_are_shown_before_the_passage(memory: Memory) -> None:
    say(memory, "ls", role="tool_call")
    say(memory, LONG + FILLER * 20 + "rainproof", role="assistant")
    memory.embed()

    (hit,) = memory.search("rainproof", sources=["message"]).hits

    assert hit.passage is not None
    assert hit.excerpt.endswith("rainproof")


def test_the_passage_ranks_a_long_answer_higher(memory: Memory) -> None:
    say(memory, "ls", role="tool_call")
    # As a whole, both are the same to the embedder; only one says it in one place.
    words = (FILLER * 15).split()
    for place, word in enumerate(ANSWER.split()):
        words.insert(place * 30, word)
    say(memory, " ".join(words), role="assistant")
    say(memory, FILLER * 15 + "\n\n" + ANSWER, role="assistant")
    say(memory, " ".join(reversed(words)), role="assistant")
    memory.embed()

    result = memory.search("rainproof", sources=["message"])

    assert result.hits[0].text.endswith(ANSWER)


def test_in_a_chat_nothing_is_cut_until_a_tool_is_used(
    memory: Memory, embedder: WordEmbedder
) -> None:
    say(memory, LONG, role="assistant")
    memory.embed()
    before = list(embedder.embedded)

    say(memory, "ls", role="tool_call")
    memory.embed()

    assert before == [LONG]
    assert any(ANSWER in each for each in embedder.embedded[1:])


def test_a_rebuild_makes_no_vector_of_a_passage_again(
    memory: Memory, embedder: WordEmbedder
) -> None:
    say(memory, "ls", role="tool_call")
    say(memory, LONG, role="assistant")
    memory.embed()
    made, held = list(embedder.embedded), contents(memory)

    memory.rebuild()
    memory.embed()

    assert embedder.embedded == made
    assert contents(memory) == held
    (hit,) = memory.search("rainproof", sources=["message"]).hits
    assert ANSWER in hit.excerpt


def test_an_index_without_passages_gets_them_by_itself(memory: Memory) -> None:
    say(memory, "ls", role="tool_call")
    say(memory, LONG, role="assistant")
    memory.embed()
    with memory._parts.index_files.index.writing() as writer:
        writer.set_state("chunker", "3")
    path = memory.home / "index.db"
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    db.execute("DELETE FROM passages")
    db.close()

    memory.embed()

    (hit,) = memory.search("rainproof", sources=["message"]).hits
    assert ANSWER in hit.excerpt


def test_another_model_embeds_the_passages_again(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say(memory, "ls", role="tool_call")
        say(memory, LONG, role="assistant")
        memory.embed()
    other = Synonyms(fingerprint="words-32", dimensions=32)
    with an_indexed_memory(tmp_path, embedder=other) as memory:
        memory.embed()

        (hit,) = memory.search("rainproof", sources=["message"]).hits

        assert ANSWER in hit.excerpt


def test_vectors_of_passages_are_forgotten_with_the_message(memory: Memory) -> None:
    say(memory, "ls", role="tool_call")
    say(memory, LONG, role="assistant")
    say(memory, "short", role="user")
    memory.embed()
    before = stored_vectors(memory)
    (hit,) = memory.search("umbrellas", sources=["message"]).hits
    assert hit.message_id is not None

    memory.forget(messages=[hit.message_id])

    assert sorted(before)[:2] == [256, 256]
    assert max(before) > 256
    assert stored_vectors(memory) == [256]
    assert contents(memory)["passages"] == []


def test_the_status_counts_the_passages_that_are_still_to_be_embedded(
    memory: Memory, embedder: WordEmbedder
) -> None:
    say(memory, "ls", role="tool_call")
    say(memory, LONG, role="assistant")
    say(memory, "short", role="assistant")
    memory.embed()
    before = memory.status().index
    told: list[tuple[int, int]] = []
    say(memory, LONG.replace("violet", "yellow"), role="assistant")
    memory.index()
    waiting = memory.status().index

    memory.embed(on_embedded=lambda done, total: told.append((done, total)))

    after = memory.status().index
    assert [
        (each.embedded, each.with_meaning) for each in (before, waiting, after)
    ] == [
        (3, 3),
        (3, 5),
        (5, 5),
    ]
    assert told == [(4, 5), (5, 5)]


def test_words_that_are_scattered_over_a_long_text_are_no_answer(
    tmp_path: Path,
) -> None:
    apart = f" {FILLER * 40} ".join(["lantern", "harbor", "ticket"])
    with an_indexed_memory(tmp_path, embedder=None) as memory:
        say(memory, apart)
        say(memory, f"{FILLER * 40} a ticket for the lantern in the harbor")
        hits = memory.search("lantern harbor ticket", sources=["message"]).hits

    assert [(hit.text == apart, hit.strength.value) for hit in hits] == [
        (False, "strong"),
        (True, "weak"),
    ]
