"""The vectors of queries, from a server: waited for only so long, and made once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.memory import Memory
from backstory.store.sqlite.index import SqliteIndex
from tests.embedding_server import EmbeddingServer, running_server
from tests.faulty_server import Fault
from tests.index_builders import say
from tests.processes import comes_true
from tests.samples import a_memory

SETTINGS = ("embedder.name=openai", "embedder.in_background=false")
LATE = (
    "searched by words alone: the embedder gave no answer within 0.1 seconds "
    "(embedder.query_timeout_seconds)"
)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with running_server() as running:
        yield running


@pytest.fixture
def memory(tmp_path: Path, server: EmbeddingServer) -> Iterator[Memory]:
    """A memory with a vector for each text, whose searches wait 0.1 s for theirs."""
    settings = (
        *SETTINGS,
        f"embedder.url={server.url}/v1",
        "embedder.query_timeout_seconds=0.1",
    )
    with a_memory(tmp_path, settings=settings) as made:
        say(made, "the harbour opens at nine")
        made.embed()
        server.asked.clear()
        yield made


def notices_of(memory: Memory, query: str) -> tuple[list[str], tuple[str, ...]]:
    result = memory.search(query)
    return [hit.text for hit in result.hits], result.notices


def test_a_search_whose_server_hangs_goes_by_words_and_leaves_it_alone(
    memory: Memory, server: EmbeddingServer
) -> None:
    server.faults = [Fault(is_held=True, for_ever=True)]

    found = [notices_of(memory, query) for query in ("harbour", "opens", "nine")]

    assert found == [(["the harbour opens at nine"], (LATE,))] * 3
    assert server.texts() == [["harbour"]]


def test_a_server_that_answers_late_is_asked_again_at_once(
    memory: Memory, server: EmbeddingServer
) -> None:
    server.faults = [Fault(is_held=True)]
    late = notices_of(memory, "harbour")

    server.let_go.set()

    assert late == (["the harbour opens at nine"], (LATE,))
    assert comes_true(lambda: notices_of(memory, "harbour")[1] == ())
    assert server.texts() == [["harbour"]]


def test_the_index_gets_ready_while_the_vector_is_made(
    tmp_path: Path,
    memory: Memory,
    server: EmbeddingServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    get_ready = SqliteIndex.get_ready_to_compare

    def get_ready_and_let_go(index: SqliteIndex) -> None:
        get_ready(index)
        server.let_go.set()

    monkeypatch.setattr(SqliteIndex, "get_ready_to_compare", get_ready_and_let_go)
    settings = (*SETTINGS, f"embedder.url={server.url}/v1")
    server.faults = [Fault(is_held=True)]
    with a_memory(tmp_path, settings=settings) as patient:
        found = notices_of(patient, "harbour")

    assert found == (["the harbour opens at nine"], ())


def test_a_search_asks_for_its_vector_once(
    memory: Memory, server: EmbeddingServer
) -> None:
    tools = {tool.name: tool for tool in memory.tools()}

    tools["memory_search"].call({"query": "when does the harbour open?"})

    assert server.texts() == [["when does the harbour open?"]]
