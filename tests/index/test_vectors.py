"""Every unit gets its vector in the end, whatever the embedder does on the way."""

import os
import signal
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import chain
from pathlib import Path

import pytest

from backstory.errors import ProviderRefused, ProviderUnavailable
from backstory.memory import Memory
from backstory.store.base.index import UnitFilter
from backstory.text.redaction import mask_secrets
from backstory.values.units import UnitKind
from tests.chance import examples
from tests.index_builders import (
    ANYTHING,
    WordEmbedder,
    an_indexed_memory,
    found,
    say,
    say_all,
    write_memory,
)
from tests.processes import end_of, in_child
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
    return counts.embedded, counts.with_meaning


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


def test_what_turns_out_to_be_a_step_loses_its_vector(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say(memory, "let me check alpha", role="assistant")
        memory.embed()
        before = progress(memory)
        say(memory, "{}", role="tool_call")
        memory.index()
        memory.embed()

        assert (before, progress(memory)) == ((1, 1), (0, 0))
        index = memory._parts.index_files.index
        assert (index.embeddings.list_hashes(), index.verify()) == (set(), [])
        # By its words, it is found as before.
        assert [hit.text for hit in memory.search("alpha").hits] == [
            "let me check alpha"
        ]


KEY = "ghp_" + "Qzwxv1Qzwxv2" * 3


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("word " * 1_596 + KEY, id="a key at the end of what is embedded"),
        pytest.param("x" * 240 + f" password: {KEY[4:]}", id="a name before a passage"),
        pytest.param(
            "-----BEGIN RSA PRIVATE KEY-----\n"
            + "Qzwxv1Qzwxv2Qzwxv3Qzwxv4Qzwxv5Qzwxv6Qzwxv7Qzwxv8\n" * 30
            + "-----END RSA PRIVATE KEY-----\n"
            + "word " * 60,
            id="a key over many passages",
        ),
        pytest.param(
            f"eyJ{'Qzwxv1' * 30}.{'Qzwxv2' * 90}.{'Qzwxv3' * 30} " + "word " * 60,
            id="a token longer than a passage",
        ),
    ],
)
def test_no_part_of_a_secret_is_embedded_because_its_text_was_cut(
    tmp_path: Path, said: str
) -> None:
    embedder = WordEmbedder()
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        # Only in sessions with tools are passages embedded.
        say(memory, "ls", role="tool_call")
        say(memory, said, role="assistant")
        memory.index()
        memory.embed()

    # An embedder masks what it sends; here is what it would not recognize.
    sent = [mask_secrets(text) for text in embedder.embedded]
    assert len(sent) > 1
    assert [text for text in sent if "Qzwxv" in text] == []


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

        assert progress(memory) == (2, 2)
    assert [hit.text for hit in result.hits[:1]] == ["The cat sleeps on the sofa."]


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


# -- several processes, and several rounds ---


def embed_in_child(folder: Path, number: int, texts: int) -> int:
    """Embed in a forked child, which writes down what it embedded."""

    def embed() -> None:
        embedder = WordEmbedder()
        with an_indexed_memory(folder, embedder=embedder) as memory:
            assert memory.embed()
            assert progress(memory) == (texts, texts)
        (folder / f"embedded-{number}").write_text("\n".join(embedder.embedded))

    return in_child(embed)


def test_processes_that_embed_at_once_all_wait_for_all_and_do_nothing_twice(
    tmp_path: Path,
) -> None:
    texts = [f"text {n}" for n in range(examples(1_500))]
    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, texts)
        memory.index()

    children = [embed_in_child(tmp_path, n, len(texts)) for n in range(3)]
    ends = [end_of(child) for child in children]

    lists = [file.read_text().split("\n") for file in tmp_path.glob("embedded-*")]
    assert ends == ["well"] * 3
    assert sorted(filter(None, chain(*lists))) == sorted(texts)


def test_when_the_process_that_embeds_is_killed_the_next_goes_on_at_once(
    tmp_path: Path,
) -> None:
    def die_in_the_second_round(texts: Sequence[str]) -> None:
        calls.append(len(texts))
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    calls: list[int] = []
    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, (f"text {n}" for n in range(1_200)))

    def embed_and_die() -> None:
        dying = WordEmbedder(before=die_in_the_second_round)
        with an_indexed_memory(tmp_path, embedder=dying) as memory:
            memory.embed()

    end = end_of(in_child(embed_and_die))
    embedder = WordEmbedder()
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        is_complete = memory.embed()

        assert (end, is_complete, progress(memory)) == ("SIGKILL", True, (1_200, 1_200))
    assert len(embedder.embedded) == 1_200 - 512


def test_embedding_takes_in_what_was_said_and_noted_meanwhile(tmp_path: Path) -> None:
    def say_more(texts: Sequence[str]) -> None:
        if more:
            say(memory, more.pop())

    more = ["beta", "alpha again"]
    with an_indexed_memory(tmp_path, embedder=WordEmbedder(before=say_more)) as memory:
        say(memory, "alpha")
        write_memory(memory, "# Port\n\n- It is 8080.\n")

        is_complete = memory.embed()

        status = memory.status().index
        assert (is_complete, status.is_behind, status.embedded) == (True, False, 4)


def test_a_search_says_how_much_of_its_scope_has_no_vector(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        say(memory, "alpha")
        memory.embed()
        say(memory, "alpha beta")
        write_memory(memory, "# Port\n\n- It is 8080.\n")

        notices = {
            scope: memory.search("alpha", scope=scope).notices
            for scope in ("all", "memory", "sessions")
        }
        memory.embed()

        assert notices == {
            "all": ("texts without a vector yet, searched by words alone: 2 of 3",),
            "memory": ("texts without a vector yet, searched by words alone: 1 of 1",),
            "sessions": (
                "texts without a vector yet, searched by words alone: 1 of 2",
            ),
        }
        assert memory.search("alpha").notices == ()


@pytest.mark.parametrize("profile", ["tuned", "spec"])
def test_a_search_embeds_its_query_once(tmp_path: Path, profile: str) -> None:
    queries: list[Sequence[str]] = []
    with an_indexed_memory(
        tmp_path, embedder=WordEmbedder(), settings=(f"ranking.profile={profile}",)
    ) as memory:
        # Most chunks say the same, so that the search has to widen several times.
        for number in range(60):
            say(memory, "alpha beta gamma", session=f"s{number % 6}")
        memory.embed()
    embedder = WordEmbedder(before=queries.append)
    with an_indexed_memory(
        tmp_path, embedder=embedder, settings=(f"ranking.profile={profile}",)
    ) as memory:
        (tool,) = (each for each in memory.tools() if each.name == "memory_search")
        tool.run(query="alpha beta", limit=20)

    assert queries == [["alpha beta"]]


def test_vectors_made_another_way_are_not_called_those_of_another_model(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path, embedder=WordEmbedder("words:1")) as memory:
        say(memory, "alpha")
        memory.embed()
    with an_indexed_memory(tmp_path, embedder=WordEmbedder("words:2")) as memory:
        before = memory.search("alpha").notices
        memory.embed()
        after = memory.search("alpha").notices
    with an_indexed_memory(tmp_path, embedder=WordEmbedder("others:1")) as memory:
        of_another = memory.search("alpha").notices

    assert (before, after, of_another) == (
        ("searched by words alone: the vectors have to be made again",),
        (),
        ("searched by words alone: the vectors are from another model",),
    )


def test_a_clock_that_is_set_back_does_not_keep_the_embedder_resting(
    tmp_path: Path,
) -> None:
    embedder = WordEmbedder(before=failing(lambda call: call == 1))
    with an_indexed_memory(tmp_path, embedder=embedder) as memory:
        say(memory, "alpha")
        memory.work()
        maintainer = memory._parts.maintainer
        before = maintainer._has_work()
        now = maintainer._clock()
        maintainer._clock = lambda: now - timedelta(days=365)

        assert (before, maintainer._has_work()) == (False, True)
