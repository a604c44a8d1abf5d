"""Every unit gets its vector in the end, whatever the embedder does on the way."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from backstory.errors import ProviderRefused, ProviderUnavailable
from backstory.memory import Memory
from backstory.store.base.index import UnitFilter
from backstory.values.units import UnitKind
from tests.index_builders import (
    ANYTHING,
    WordEmbedder,
    an_indexed_memory,
    found,
    say,
    say_all,
    write_memory,
)
from tests.samples import a_memory


def failing(until: Callable[[int], bool]) -> Callable[[Sequence[str]], None]:
    """Fail for as long as ``until`` says so, given the number of the call from 1 on."""
    calls = 0

    def fail(texts: Sequence[str]) -> None:
        nonlocal calls
        calls += 1
        if until(calls):
            raise ProviderUnavailable("nobody answers")

    return fail


def progress(memory: Memory) -> tuple[int, int]:
    counts = memory._parts.index_files.index.counts()
    return counts.embedded, counts.embeddable


def test_what_is_said_and_noted_is_embedded_once(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        say(memory, "alpha beta")
        say(memory, "alpha beta", role="assistant")
        say(memory, "a tool says", role="tool_result")
        say(memory, "summed up", role="summary")
        write_memory(memory, "# Port\n\n- It is 8080.\n")
        memory.index()
        done = memory.embed()
        again = memory.embed()

        assert (done, again) == (True, True)
        assert sorted(embedder.embedded) == [
            "Port: It is 8080.",
            "alpha beta",
            "summed up",
        ]
        assert progress(memory) == (4, 4)


def test_the_newest_are_embedded_first_and_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    embedder = WordEmbedder()
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        say_all(memory, (f"text {n}" for n in range(1_200)))

        memory.embed(on_embedded=lambda done, whole: told.append((done, whole)))

    assert told == [(512, 1_200), (1_024, 1_200), (1_200, 1_200)]
    assert set(embedder.embedded[:512]) == {f"text {n}" for n in range(688, 1_200)}


def test_without_an_embedder_there_is_nothing_to_do(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "alpha")

        assert memory.embed()
        assert found(memory, "alpha")


def test_an_embedder_that_always_fails_leaves_the_words(tmp_path: Path) -> None:
    embedder = WordEmbedder(before=failing(lambda call: True))
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        say(memory, "alpha")
        with pytest.raises(ProviderUnavailable, match="nobody answers"):
            memory.embed()

        result = memory.search("alpha", sources=["message"])

        assert [hit.text for hit in result.hits] == ["alpha"]
        assert result.notices == ("searched by words alone: nobody answers",)
        assert progress(memory) == (0, 1)


def test_an_embedder_that_fails_in_its_third_round_goes_on_from_there(
    tmp_path: Path,
) -> None:
    embedder = WordEmbedder(before=failing(lambda call: call == 3))
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        say_all(memory, (f"text {n}" for n in range(1_200)))
        with pytest.raises(ProviderUnavailable):
            memory.embed()
        half = progress(memory)

        done = memory.embed()

        assert (half, done, progress(memory)) == ((1_024, 1_200), True, (1_200, 1_200))
        assert sorted(embedder.embedded) == sorted(f"text {n}" for n in range(1_200))
        assert memory._parts.index_files.index.verify() == []


def test_a_search_rests_after_a_failure_and_tries_again_in_a_new_process(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say(memory, "alpha")
        memory.embed()
    calls: list[object] = []

    def refuse(texts: Sequence[str]) -> None:
        calls.append(texts)
        raise ProviderRefused("no such key")

    with an_indexed_memory(tmp_path, embedder=WordEmbedder(before=refuse)) as memory:
        notices = [memory.search("alpha").notices for _ in range(3)]

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        afterwards = memory.search("alpha")

    assert len(calls) == 1
    assert notices == [("searched by words alone: no such key",)] * 3
    assert afterwards.notices == ()


def test_the_worker_swallows_what_the_embedder_fails_on(tmp_path: Path) -> None:
    embedder = WordEmbedder(before=failing(lambda call: call == 1))
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        say(memory, "alpha")
        memory.work()
        before = progress(memory)

        memory.work()

        assert (before, progress(memory)) == ((0, 1), (1, 1))


def test_a_text_that_changes_while_it_is_embedded_gets_the_vector_of_the_new_one(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "old words", name="m1")

        def change(texts: Sequence[str]) -> None:
            if list(texts) == ["old words"]:
                with an_indexed_memory(tmp_path) as other:
                    say(other, "new words", name="m1")
                    found(other, "new")

        embedder = WordEmbedder(before=change)
        memory._parts.index_files.embedder = embedder
        memory.embed()
        memory.embed()

        (near,) = memory._parts.index_files.index.nearest(
            embedder.embed_query("new words"), ANYTHING, 5
        )
        assert near[1] == pytest.approx(1, abs=1e-5)
        assert memory._parts.index_files.index.verify() == []


def test_another_model_embeds_everything_again_and_the_first_is_still_known(
    tmp_path: Path,
) -> None:
    first, second, third = WordEmbedder(), WordEmbedder("other-30", 30), WordEmbedder()
    with an_indexed_memory(tmp_path, embedder=first) as memory:
        say_all(memory, (f"alpha {n}" for n in range(50)))
        memory.embed()
    with an_indexed_memory(tmp_path, embedder=second) as memory:
        during = memory.search("alpha 7").notices
        memory.embed()
        index = memory._parts.index_files.index
        ((unit_id, cosine),) = index.nearest(second.embed_query("alpha 7"), ANYTHING, 1)
        sound = index.verify()
    with an_indexed_memory(tmp_path, embedder=third) as memory:
        memory.embed()

    assert (len(first.embedded), len(second.embedded), third.embedded) == (50, 50, [])
    assert (during, unit_id, sound) == (
        ("searched by words alone: the vectors are from another model",),
        8,
        [],
    )
    assert cosine == pytest.approx(1, abs=1e-5)


def test_meaning_finds_what_words_do_not(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        say_all(memory, ["alpha beta gamma", "delta epsilon zeta"])
        memory.embed()

        near = memory._parts.index_files.index.nearest(
            embedder.embed_query("alpha gamma"),
            UnitFilter(frozenset({UnitKind.USER, UnitKind.ASSISTANT})),
            1,
        )

    assert [unit_id for unit_id, _ in near] == [1]


def test_the_bundled_model_finds_by_meaning_alone(tmp_path: Path) -> None:
    with a_memory(tmp_path) as memory:
        say_all(
            memory,
            ["The cat sleeps on the sofa.", "Invoices are due at the end of a month."],
        )
        memory.embed()

        result = memory.search("kitten napping on the couch", sources=["message"])

    assert [hit.text for hit in result.hits[:1]] == ["The cat sleeps on the sofa."]
    assert progress(memory) == (2, 2)


def test_one_text_that_is_refused_does_not_cost_the_others_their_vectors(
    tmp_path: Path,
) -> None:
    def refuse(texts: Sequence[str]) -> None:
        if "the bad one" in texts:
            raise ProviderRefused("it does not like a text")

    with an_indexed_memory(tmp_path, embedder=WordEmbedder(before=refuse)) as memory:
        say_all(memory, (*(f"text {n}" for n in range(20)), "the bad one"))

        assert not memory.embed()
        assert progress(memory) == (20, 21)


def test_an_embedder_that_does_not_work_costs_no_vector_of_another(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say(memory, "alpha")
        memory.embed()
    broken = WordEmbedder("other-30", 30, before=failing(lambda call: True))
    with (
        an_indexed_memory(tmp_path, embedder=broken) as memory,
        pytest.raises(ProviderUnavailable),
    ):
        memory.embed()

    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        assert progress(memory) == (1, 1)
