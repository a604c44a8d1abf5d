"""A tenant's searches see its own units, and are the same whoever else is there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.store.base.index import SearchIndex, Words
from backstory.store.postgres.database import Database
from backstory.store.postgres.embeddings import PostgresEmbeddings
from backstory.store.postgres.index import PostgresIndex
from backstory.store.postgres.word_writer import WordWriter
from backstory.values.units import NewChunk, SessionRef
from tests.chance import examples
from tests.index_builders import (
    ANYTHING,
    NOW,
    WordEmbedder,
    a_unit,
    set_vectors,
    store_units,
)
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.postgres

_COUNT = 3
_WORDS = ["walrus", "whale", "sea", "deep", "blue whale"]
_EMBEDDER = WordEmbedder()

_steps = st.tuples(
    st.integers(0, _COUNT - 1),
    st.one_of(
        st.tuples(
            st.just("store"),
            st.dictionaries(
                # The same numbers for all tenants.
                st.integers(1, 8),
                st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4).map(" ".join),
                max_size=4,
            ),
        ),
        st.tuples(st.just("delete"), st.lists(st.integers(1, 8), max_size=3)),
        st.tuples(st.just("embed"), st.none()),
        st.tuples(st.just("tidy"), st.none()),
        st.tuples(st.just("clear"), st.none()),
        st.tuples(st.just("replace"), st.none()),
        st.tuples(st.just("forget vectors"), st.none()),
    ),
)


def act(index: PostgresIndex, step: tuple[str, object]) -> None:
    match step:
        case ("store", dict(texts)):
            units = [a_unit(n, text, meaning=text) for n, text in texts.items()]
            store_units(index, *units)
            with index.writing() as writer:
                writer.set_state("last", str(sorted(texts)))
                writer.replace_chunks(SessionRef(1), [NewChunk(0, len(texts), 1)])
                writer.note_session(1, len(texts), NOW)
        case ("delete", list(unit_ids)):
            with index.writing() as writer:
                writer.delete_units(unit_ids)
        case ("embed", _):
            with index.writing() as writer:
                writer.set_vectors("model", [])
            waiting = [each.unit_id for each in index.list_to_embed(99)]
            texts = index.get_texts(waiting)
            vectors = {
                n: _EMBEDDER.embed_query(each.folded) for n, each in texts.items()
            }
            set_vectors(index, vectors)
        case ("tidy", _):
            index.tidy()
        case ("clear", _):
            with index.writing() as writer:
                writer.clear()
        case ("replace", _):
            other = PostgresIndex(
                index._transactions.tenant, index.embeddings, name="new"
            )
            store_units(other, *(a_unit(n, "a new whale") for n in (2, 9)))
            index.replace_with(other)
        case _:
            index.delete_unused_vectors()


def look(index: SearchIndex) -> dict[str, object]:
    """Everything that can be asked, apart from what is random by design."""
    ids = list(range(12))
    words = Words((("walrus",), ("blue whale",)), (("sea",),))
    vector = _EMBEDDER.embed_query("walrus sea")
    hashes = index.embeddings.list_hashes()
    return {
        "counts": (index.counts(), index.count_units(), index.size_bytes()),
        "documents": index.count_documents([(word,) for word in _WORDS]),
        "ranked": index.match_words(words, ANYTHING, 99),
        "scores": index.score_words(words, ids),
        "all words": index.find_all_words([("whale",)], ANYTHING, 99),
        "having words": index.having_words([("sea",)], ids),
        "text": index.find_text("wal", ANYTHING, 99),
        "having text": index.having_text("wal", ids),
        "newest": index.list_newest(ANYTHING, 99),
        "units": index.get_units(ids),
        "texts": sorted(index.iter_texts()),
        "last": index.list_last_messages(99),
        "states": {
            name: value
            for name, value in index.list_states().items()
            # Whether others could still see what was deleted is up to the server.
            if name not in ("vectors_of", "erase_is_due")
        },
        "chunks": index.find_chunks([(SessionRef(1), 5)]),
        "sessions": index.count_by_session([(0, 9)], ANYTHING),
        "waiting": (index.list_to_embed(99), index.count_to_embed(ANYTHING)),
        "near": index.nearest(vector, ANYTHING, 99),
        "cosines": index.cosines(vector, ids),
        "cache": (hashes, sorted(index.embeddings.find("model", hashes))),
        "read": sorted(index.embeddings.read(ids).values()),
        "sound": index.verify(),
    }


@settings(max_examples=examples(20))
@given(steps=st.lists(_steps, max_size=14), most=st.sampled_from([1, 512]))
def test_no_tenant_notices_another(
    postgres: PostgresServer,
    steps: list[tuple[int, tuple[str, object]]],
    most: int,
) -> None:
    # The same steps again, of each tenant alone.
    database = Database(postgres.url())

    def an_index() -> PostgresIndex:
        tenant = database.tenant(postgres.create_tenant())
        return PostgresIndex(tenant, PostgresEmbeddings(tenant))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(WordWriter, "max_tail", most)
        patched.setattr(WordWriter, "latest", 0)
        together = [an_index() for _ in range(_COUNT)]
        for number, step in steps:
            act(together[number], step)
        seen = [look(index) for index in together]
        for number, index_together in enumerate(together):
            alone = an_index()
            for whose, step in steps:
                if whose == number:
                    act(alone, step)
            assert seen[number] == look(alone) == look(index_together)
    database.close()


def test_what_one_tenant_says_is_nowhere_for_another(postgres: PostgresServer) -> None:
    database = Database(postgres.url())
    tenants = [database.tenant(postgres.create_tenant()) for _ in range(2)]
    one, other = (PostgresIndex(each, PostgresEmbeddings(each)) for each in tenants)
    nothing = look(other)

    for n in range(0, 2_000, 100):
        units = range(n + 1, n + 101)
        store_units(one, *(a_unit(k, f"walrus {k}", meaning=f"{k}") for k in units))
    set_vectors(
        one, {k: np.ones(64, np.float32) / np.float32(8) for k in range(1, 2_001)}
    )

    assert one.count_units() == 2_000
    assert look(other) == nothing
    assert nothing["sound"] == []
    database.close()
