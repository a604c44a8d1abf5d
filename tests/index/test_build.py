"""The index follows the history and the notes, and is what a new one would be."""

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backstory.index import build
from backstory.memory import Memory
from backstory.store.base.history import Batch, KeptMessage
from backstory.store.sqlite import index_maintenance
from backstory.values.history import NewMessage, Role, SessionFacts, SessionKind
from backstory.values.moments import Moment
from tests.chance import examples
from tests.index_builders import (
    NOW,
    WordEmbedder,
    an_index,
    an_indexed_memory,
    close_index,
    contents,
    empty_session,
    found,
    say,
    say_all,
    traces,
    write_memory,
)
from tests.processes import kill_sometime

QUERIES = ("alpha", "beta gamma", "delta", "the quick", "日本", "tool", "fact two")


def results(memory: Memory) -> list[Any]:
    """What some queries find, with their scores but for how floats are rounded."""
    hits = [
        sorted(
            (
                (
                    hit.source,
                    hit.text,
                    hit.path,
                    hit.position,
                    hit.said,
                    round(hit.score, 4),
                )
                for hit in memory.search(query, limit=50).hits
            ),
            key=repr,
        )
        for query in QUERIES
    ]
    recalled = [
        sorted(
            (
                (each.source_type, each.text, round(each.score, 4))
                for each in memory.recall(q).found
            ),
            key=repr,
        )
        for q in QUERIES
    ]
    return [hits, recalled, [memory.episodes(query).episodes for query in QUERIES]]


def check_against_a_rebuild(memory: Memory) -> None:
    """That the index is sound, and the same as one that is made from scratch."""
    assert memory._parts.index_files.index.verify() == []
    followed = contents(memory)

    memory.rebuild()

    assert contents(memory) == followed
    assert memory._parts.index_files.index.verify() == []


# -- following ------------------------------------------------------------------------


def test_what_is_recorded_is_found_by_the_next_search(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        found_before = found(memory, "ferry")
        say(memory, "The ferry leaves at noon.")

        assert (found_before, found(memory, "ferry", sources=["message"])) == (
            [],
            ["The ferry leaves at noon."],
        )


def test_a_word_that_was_looked_for_in_vain_is_found_once_it_was_said(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, (f"message {n}" for n in range(40)))
        found(memory, "zanzibar spices")
        say(memory, "Spices are sold in Zanzibar.", session="s2", minute=99)

        assert "Spices are sold in Zanzibar." in found(memory, "zanzibar spices")


def test_a_replaced_message_is_found_by_its_new_text_only(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "alpha", name="m1")
        say(memory, "beta", name="m2")
        found(memory, "alpha")
        say(memory, "gamma", name="m1")

        assert found(memory, "gamma", sources=["message"]) == ["gamma"]
        assert found(memory, "alpha") == []
        check_against_a_rebuild(memory)


@pytest.mark.parametrize("emptied", ["", "  \n"])
def test_a_message_that_becomes_empty_leaves_the_index(
    tmp_path: Path, emptied: str
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "qzwxv", name="m1")
        say(memory, "beta", name="m2")
        found(memory, "qzwxv")
        say(memory, emptied, name="m1")

        memory.index()

        assert found(memory, "qzwxv") == []
        assert traces(memory.home, "qzwxv") == []
        check_against_a_rebuild(memory)


def test_a_tool_call_that_turns_out_to_be_a_recall_leaves_the_index(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "hello", name="m0")
        say(memory, "qzwxv", name="m1", role="tool_call", tool_name="Bash")
        found(memory, "qzwxv")
        say(
            memory,
            "qzwxv",
            name="m1",
            role="tool_call",
            tool_name="mcp__backstory__search_history",
        )

        assert found(memory, "qzwxv") == []
        check_against_a_rebuild(memory)


def test_a_session_emptied_and_filled_again_between_two_looks_keeps_nothing_old(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "qzwxv one", name="m1")
        say(memory, "qzwxv two", name="m2")
        say(memory, "elsewhere", session="s2")
        memory.index()
        empty_session(memory)
        say(memory, "fresh", name="m3")

        memory.index()

        assert found(memory, "qzwxv") == []
        assert traces(memory.home, "qzwxv") == []
        check_against_a_rebuild(memory)


def test_a_session_that_gets_another_title_is_found_by_it(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "hello", name="m1", title="Alpha plan")
        found(memory, "alpha")
        say(memory, "hello", name="m1", title="Omega plan")

        assert [hit.source for hit in memory.search("omega").hits] == ["session"]
        assert found(memory, "alpha") == []
        check_against_a_rebuild(memory)


def test_a_session_that_turns_out_to_be_notes_is_filed_as_such(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "The ferry leaves at noon.")
        found(memory, "ferry")
        facts = SessionFacts("s1", kind=SessionKind.MEMORY)
        memory._parts.history.write(Batch("python", facts=[facts]), now=NOW)

        assert [hit.source for hit in memory.search("ferry").hits] == ["memory"]
        check_against_a_rebuild(memory)


def test_messages_without_a_time_follow_the_time_their_session_began(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        timeless = [
            KeptMessage(NewMessage("s1", f"m{n}", Role.USER, f"alpha {n}"))
            for n in range(3)
        ]
        memory._parts.history.write(Batch("python", messages=timeless), now=NOW)
        found(memory, "alpha")
        say(memory, "beta", name="m3")
        found(memory, "alpha")

        check_against_a_rebuild(memory)


# -- the surroundings -----------------------------------------------------------------


def speak_in_turn(memory: Memory, roles: str, *, first: int = 0) -> None:
    """Record a message for each letter: u(ser), a(ssistant) or t(ool)."""
    names = {"u": "user", "a": "assistant", "t": "tool_result"}
    for place, letter in enumerate(roles, start=first):
        say(memory, f"word{place}", name=f"m{place}", role=names[letter], minute=place)


@pytest.mark.parametrize(
    ("roles", "changed"),
    [
        pytest.param("uauaua", 2, id="in the middle"),
        pytest.param("uttttttta", 0, id="as far as neighbours reach"),
        pytest.param("utttttttta", 0, id="farther than neighbours reach"),
        pytest.param(
            "u" + "t" * 11 + "a" + "t" * 5 + "u" + "t" * 3,
            0,
            id="next but one after what is read",
        ),
    ],
)
def test_a_changed_message_changes_the_words_around_its_neighbours(
    tmp_path: Path, roles: str, changed: int
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        speak_in_turn(memory, roles)
        found(memory, "anything")

        say(memory, "changed", name=f"m{changed}", role="user")
        found(memory, "anything")

        check_against_a_rebuild(memory)


def test_an_added_message_does_not_spoil_the_words_around_one_far_before_it(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "x" * 4_090, name="m0")
        speak_in_turn(memory, "ua" + "t" * 5 + "u" + "t" * 12, first=1)
        # So long that a chunk begins here, which is where reading begins.
        say(memory, "y " * 2_045, name="m21", role="assistant", minute=21)
        found(memory, "anything")
        say(memory, "z", name="m21", role="tool_result", minute=21)
        found(memory, "anything")

        check_against_a_rebuild(memory)


def test_a_message_that_begins_a_chunk_and_becomes_short_joins_the_chunk_before(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, ["a" * 3_000, "b" * 3_000, "c" * 100])
        found(memory, "anything")
        say(memory, "b", name="m1", role="assistant")
        found(memory, "anything")

        check_against_a_rebuild(memory)


@pytest.mark.parametrize("changed", [0, 5, 11, 24, 47, 59])
@pytest.mark.parametrize("size", [200, 2_500])
def test_a_message_changed_in_a_long_session_leaves_the_chunks_of_a_new_index(
    tmp_path: Path, changed: int, size: int
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, (f"{n} " * 150 for n in range(60)))
        found(memory, "anything")

        role = "assistant" if changed % 2 else "user"
        say(memory, "x" * size, name=f"m{changed}", role=role, minute=changed)
        found(memory, "anything")

        check_against_a_rebuild(memory)


def test_one_message_at_a_time_makes_the_index_of_all_at_once(tmp_path: Path) -> None:
    texts = [f"{n} alpha " * (n % 7 * 40 + 1) for n in range(40)]
    with an_indexed_memory(tmp_path / "whole") as whole:
        say_all(whole, texts)
        found(whole, "anything")
        with an_indexed_memory(tmp_path / "parts") as parts:
            for number, text in enumerate(texts):
                role = "assistant" if number % 2 else "user"
                say(parts, text, name=f"m{number}", role=role, minute=number)
                found(parts, "anything")

            held, expected = contents(parts), contents(whole)

    assert {name: held[name] for name in held if name != "sources"} == {
        name: expected[name] for name in held if name != "sources"
    }


# -- notes ----------------------------------------------------------------------------


def test_notes_are_followed_as_they_are_written_changed_and_deleted(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        file = write_memory(memory, "# Ports\n\n- The API is on 8080.\n- qzwxv\n")
        first = found(memory, "API", scope="memory")
        file.write_text("# Ports\n\n- The API is on 9090.\n")
        second = found(memory, "API", scope="memory")
        gone = found(memory, "qzwxv")
        check_against_a_rebuild(memory)
        file.unlink()

        assert (first, second, gone) == (
            ["The API is on 8080."],
            ["The API is on 9090."],
            [],
        )
        assert found(memory, "API") == []
        check_against_a_rebuild(memory)


def test_a_daily_log_has_the_date_of_its_name(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        write_memory(memory, "- alpha\n", name="daily/2026-02-03.md")
        (before,) = memory.search("alpha").hits

        memory.rebuild()

        (after,) = memory.search("alpha").hits
        assert before.said is not None
        assert before.said.at.date().isoformat() == "2026-02-03"
        assert after == before


def test_a_chunk_of_a_file_has_the_same_name_after_a_rebuild(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        write_memory(memory, "- The ferry leaves at noon.\n")
        found(memory, "ferry")
        say(memory, "hello")
        before = [each.chunk_id for each in memory.recall("ferry").found]

        memory.rebuild()

        assert [each.chunk_id for each in memory.recall("ferry").found] == before


def unit_numbers(memory: Memory) -> set[int]:
    db = apsw.Connection(str(memory.home / "index.db"))
    numbers = {number for (number,) in db.execute("SELECT unit_id FROM notes")}
    db.close()
    return numbers


@pytest.mark.parametrize("name", ["MEMORY.md", "daily/2026-02-03.md"])
def test_a_file_that_grew_leaves_nothing_to_tidy(tmp_path: Path, name: str) -> None:
    with an_indexed_memory(tmp_path) as memory:
        write_memory(memory, "# Ports\n\n- The API is on 8080.\n", name=name)
        found(memory, "API")

        write_memory(
            memory, "# New\n\n- one\n\n# Ports\n\n- The API is on 8080.\n", name=name
        )

        assert found(memory, "API") == ["The API is on 8080."]
        assert not memory._parts.index_files.index.get_state("deleted")
        check_against_a_rebuild(memory)


def test_what_stays_as_it_is_in_a_daily_log_is_not_filed_again(tmp_path: Path) -> None:
    name = "daily/2026-02-03.md"
    with an_indexed_memory(tmp_path, embedder=WordEmbedder()) as memory:
        write_memory(memory, "- one\n- two\n", name=name)
        found(memory, "one")
        memory.embed()
        before = unit_numbers(memory)

        write_memory(memory, "- one\n- two\n- three\n", name=name)
        found(memory, "three")

        assert before < unit_numbers(memory)
        assert memory._parts.index_files.index.counts().embedded == 2
        check_against_a_rebuild(memory)


def test_a_line_taken_out_of_a_file_is_tidied_away_however_large_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_maintenance, "_LARGE", 0)
    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, (f"alpha {n}" for n in range(300)))
        write_memory(memory, "# Kept\n\n- plain\n- the secret is qzwxv\n")
        memory.index()

        write_memory(memory, "# Kept\n\n- plain\n")
        memory.index()

        assert traces(memory.home, "qzwxv") == []


def test_of_messages_that_were_changed_nothing_stays_once_they_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_maintenance, "_LARGE", 0)
    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, (f"qzwxv {n}" for n in range(300)))
        memory.index()
        for number in range(2):
            say(memory, "alpha", name=f"m{number}")
            memory.index()
        waiting = memory._parts.index_files.index.get_state("deleted")
        for number in range(2, 5):
            say(memory, "alpha", name=f"m{number}")
        found(memory, "alpha")

        assert (waiting, memory._parts.index_files.index.get_state("deleted")) == (
            "some",
            "much",
        )
        memory.index()
        assert not memory._parts.index_files.index.get_state("deleted")


# -- the law --------------------------------------------------------------------------

_TEXTS = (
    "alpha",
    "beta gamma delta",
    "the quick brown fox " * 60,
    "日本語の本",
    "parseJson in C++ " + "x" * 900,
)
_NOTES = ("", "- fact one\n- fact two\n", "# A\n\nalpha\n\n## B\n\n" + "beta " * 900)

Step = Callable[[Memory], object]


def _saying(session: str, name: int, text: str, role: Role, minute: int) -> Step:
    return lambda memory: say(
        memory, text, session=session, name=f"m{name}", role=role, minute=minute
    )


def _noting(name: str, text: str) -> Step:
    def write(memory: Memory) -> None:
        file = write_memory(memory, text, name=name)
        if not text:
            file.unlink()

    return write


def _titling(session: str, title: str) -> Step:
    facts = SessionFacts(session, title=title)
    batch = Batch("python", facts=[facts])
    return lambda memory: memory._parts.history.write(batch, now=NOW)


def _emptying(session: str) -> Step:
    def empty(memory: Memory) -> None:
        if memory._parts.history.has_session("python", session):
            empty_session(memory, session)
            # Otherwise known to go wrong, see above.
            memory.search("x")

    return empty


_sessions = st.sampled_from(["s1", "s2"])
_steps = st.one_of(
    st.builds(
        _saying,
        _sessions,
        st.integers(0, 14),
        st.sampled_from(_TEXTS),
        st.sampled_from([Role.USER, Role.ASSISTANT, Role.SUMMARY, Role.TOOL_RESULT]),
        st.integers(0, 3),
    ),
    st.builds(
        _noting,
        st.sampled_from(["MEMORY.md", "daily/2026-02-03.md", "daily/2026-02-04.md"]),
        st.sampled_from(_NOTES),
    ),
    st.builds(_titling, _sessions, st.sampled_from(["Alpha", "日本"])),
    st.builds(_emptying, _sessions),
    st.sampled_from(
        [
            lambda memory: memory.search("alpha"),
            lambda memory: memory.index(),
            lambda memory: memory.embed(),
            lambda memory: memory.rebuild(),
            lambda memory: memory._parts.index_files.index.close(),
        ]
    ),
)


def follow(folder: Path, steps: list[Step], *, batch: int = 10_000) -> list[list[Any]]:
    """What an index holds and finds after some changes, and what a new one does.

    The first takes in ``batch`` messages at once, the other all that it can.
    """
    held = []
    with an_indexed_memory(folder, embedder=WordEmbedder()) as memory:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(build, "_BATCH_MESSAGES", batch)
            say(memory, "something", session="first")
            for step in steps:
                step(memory)
            memory.search("what is new")
        memory.embed()
        held.append([contents(memory), results(memory)])
        assert memory._parts.index_files.index.verify() == []
        memory.rebuild()
        held.append([contents(memory), results(memory)])
        assert memory._parts.index_files.index.verify() == []
    return held


_SAVES_THE_SAME: list[Step] = [
    _noting("daily/2026-02-03.md", "- fact one\n"),
    lambda memory: memory.search("alpha"),
    _noting("daily/2026-02-03.md", "- fact one\n"),
]


@settings(max_examples=examples(8))
@example(steps=_SAVES_THE_SAME)
@given(steps=st.lists(_steps, max_size=25))
def test_following_any_changes_finds_what_a_rebuilt_index_finds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    followed, rebuilt = follow(tmp_path_factory.mktemp("law"), steps)

    # Chunks are for the test below.
    for held in (followed, rebuilt):
        held[0].pop("chunks")
        held[1].pop(1)
    assert followed == rebuilt


_BEGINS_A_CHUNK: list[Step] = [
    _saying("s1", 0, "a" * 3_000, Role.USER, 0),
    _saying("s1", 1, "b" * 3_000, Role.USER, 0),
    lambda memory: memory.search("alpha"),
    _saying("s1", 1, "beta", Role.USER, 0),
]


@settings(max_examples=examples(3))
@example(steps=_BEGINS_A_CHUNK)
@given(steps=st.lists(_steps, max_size=25))
def test_following_any_changes_makes_the_index_of_a_rebuild(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    followed, rebuilt = follow(tmp_path_factory.mktemp("law"), steps)

    assert followed == rebuilt


# -- large changes --------------------------------------------------------------------


def a_builder(memory: Memory) -> build.IndexBuilder:
    return build.IndexBuilder(
        memory._parts.history, memory._parts.index_files.index, lambda: NOW
    )


def _saying_much(session: str, count: int) -> Step:
    texts = [_TEXTS[number % len(_TEXTS)] for number in range(count)]
    return lambda memory: say_all(memory, texts, session=session)


def _take_one_batch(memory: Memory) -> None:
    """As if whoever takes in more were killed then."""
    with memory._parts.index_files.index.writing() as writer:
        a_builder(memory)._take_batch(writer)


@settings(max_examples=examples(8))
@example(
    steps=[
        _saying_much("s1", 12),
        _take_one_batch,
        _saying("s1", 1, "beta", Role.USER, 0),
        _take_one_batch,
        _emptying("s1"),
        _saying_much("s1", 9),
        _take_one_batch,
    ],
    batch=5,
)
@given(
    steps=st.lists(
        st.one_of(
            _steps,
            st.builds(_saying_much, _sessions, st.integers(1, 25)),
            st.just(_take_one_batch),
        ),
        max_size=15,
    ),
    batch=st.integers(1, 12),
)
def test_following_changes_piece_by_piece_makes_the_index_of_a_rebuild(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], batch: int
) -> None:
    followed, rebuilt = follow(tmp_path_factory.mktemp("law"), steps, batch=batch)

    assert followed == rebuilt


def test_a_session_of_any_length_is_taken_in_in_pieces_between_which_others_write(
    tmp_path: Path,
) -> None:
    taken: list[int] = []
    with an_indexed_memory(tmp_path) as memory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_BATCH_MESSAGES", 1_000)
        say_all(memory, (f"alpha {n}" for n in range(2_500)))
        other = an_index(memory.home)

        def write_too(done: int, total: int) -> None:
            taken.append(done)
            with other.writing(timeout_s=0.0) as writer:
                writer.set_state("other", str(done))

        a_builder(memory).catch_up(on_taken=write_too)
        close_index(other)

        assert taken == [0, 1_000, 2_000, 2_500]
        check_against_a_rebuild(memory)


def test_killing_it_within_a_large_change_loses_nothing(tmp_path: Path) -> None:
    chance = random.Random(0)
    with an_indexed_memory(tmp_path) as memory:
        say_all(memory, (f"alpha {n} " + "beta " * (n % 50) for n in range(1_000)))

    def take_in() -> None:
        with (
            pytest.MonkeyPatch.context() as patch,
            an_indexed_memory(tmp_path) as memory,
        ):
            patch.setattr(build, "_BATCH_MESSAGES", 100)
            memory.index()

    deaths = 0
    while kill_sometime(take_in, chance, attempt=deaths):
        deaths += 1

    with an_indexed_memory(tmp_path) as memory:
        assert deaths > 0
        assert memory._parts.index_files.index.counts().units == 1_001
        check_against_a_rebuild(memory)


def test_an_older_copy_of_the_history_that_was_put_back_is_indexed_again(
    tmp_path: Path,
) -> None:
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "alpha")
        found(memory, "alpha")
    copy = (memory.home / "history.db").read_bytes()
    with an_indexed_memory(tmp_path) as memory:
        say(memory, "beta")
        found(memory, "beta")

    (memory.home / "history.db").write_bytes(copy)

    with an_indexed_memory(tmp_path) as memory:
        assert found(memory, "beta") == []
        assert found(memory, "alpha", sources=["message"]) == ["alpha"]
        check_against_a_rebuild(memory)


def test_a_long_history_is_taken_in_in_several_batches(tmp_path: Path) -> None:
    taken: list[tuple[int, int]] = []
    with an_indexed_memory(tmp_path) as memory:
        for session in range(4):
            say_all(memory, (f"alpha {n}" for n in range(3_000)), session=f"s{session}")

        memory.rebuild(on_taken=lambda done, total: taken.append((done, total)))

        assert taken[-1] == (12_000, 12_000)
        assert len(taken) > 1
        assert memory._parts.index_files.index.counts().units == 12_004
        assert memory._parts.index_files.index.verify() == []


def test_every_date_survives_a_rebuild(tmp_path: Path) -> None:
    with an_indexed_memory(tmp_path) as memory:
        sent = Moment(NOW - timedelta(days=400), -300)
        kept = KeptMessage(NewMessage("s1", "m1", Role.USER, "alpha", sent=sent))
        memory._parts.history.write(Batch("python", messages=[kept]), now=NOW)
        before = memory.search("alpha").hits

        memory.rebuild()

        assert {hit.said for hit in before} == {sent}
        assert [hit.said for hit in memory.search("alpha").hits] == [
            hit.said for hit in before
        ]
