"""What is exported and imported elsewhere is the same there, whatever it is."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backstory import HitSource, Memory, SearchResult, SessionKind
from backstory.store.base.summaries import Summary
from backstory.store.sqlite.summaries import SqliteSummaryStore
from backstory.values.moments import whole_day
from tests.chance import examples
from tests.exports.homes import (
    DAY,
    NOON,
    conversations_of,
    files_in,
    fill,
    held_by,
)
from tests.index_builders import WordEmbedder, an_indexed_memory
from tests.samples import a_memory, all_cases


def test_the_samples_of_every_format_are_the_same_elsewhere(tmp_path: Path) -> None:
    with a_memory(tmp_path / "one") as one, a_memory(tmp_path / "two") as two:
        for case in all_cases():
            one.index(path=case.lay_out(tmp_path / case.format / case.name))

        one.export(tmp_path / "out")
        first = two.import_export(tmp_path / "out")
        two.export(tmp_path / "again")

        assert (first.problems, first.new_sessions) == ((), len(one.sessions()))
        assert SessionKind.DAILY_LOG in {each.kind for each in two.sessions()}
        assert conversations_of(two) == conversations_of(one)
        assert files_in(tmp_path / "again") == files_in(tmp_path / "out")
        assert not two.import_export(tmp_path / "out").is_change


TEXTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "<private>no</private> yes",
            "> ## User · 2026-02-20",
            "```\n# not a heading\n",
            "</details><h1>x</h1>",
            "a\0b\x1b[31mred\r\nc\u2028d\u202ee",
            "\ud800 half",
            '{"a": [1, "two"]}',
            " \n\t",
            "sk-ant-api03-" + "a1B2" * 20,
        ]
    ),
)
NAMES = st.sampled_from(
    ["a", "a/b", "../../etc/passwd", "A", "x" * 300, "#1", "名前", "con", "-", "a b\n"]
)
OFFSETS = (timedelta(hours=5, minutes=30), timedelta(hours=-9))
TIMES = st.one_of(
    st.none(),
    st.datetimes(
        min_value=datetime(1900, 1, 2),
        max_value=datetime(2100, 1, 1),
        timezones=st.sampled_from(
            [
                UTC,
                timezone(timedelta(hours=5, minutes=30)),
                timezone(-timedelta(hours=9)),
            ]
        ),
    ),
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "session": NAMES,
            "role": st.sampled_from(["user", "assistant", "tool_call", "tool_result"]),
            "text": TEXTS,
            "host": st.sampled_from(["python", "claude-code", "bé/x"]),
            "sent_at": TIMES,
            "tool_name": st.one_of(st.none(), st.just("Bash`x`")),
            "call_id": st.one_of(st.none(), st.just("c1")),
            "title": st.one_of(st.none(), TEXTS),
            "project": st.one_of(st.none(), st.just("/p/`x`"), st.just("C:\\x")),
            "parent": st.one_of(st.none(), NAMES),
        }
    ),
    min_size=1,
    max_size=6,
)
SAID: dict[str, object] = {"session": "a", "role": "user", "text": "x"}
FACTS = st.lists(st.text(min_size=1, max_size=30).filter(str.strip), max_size=3)


@settings(max_examples=examples(12))
@given(messages=MESSAGES, facts=FACTS, memory_file=st.one_of(st.none(), TEXTS))
@example([{"session": "a", "role": "user", "text": "x"}], [], "- twice\n- twice\n")
@example(
    [{"session": "a", "role": "user", "text": "x"}], [], "\ufeff# T\r\n\r\n- a\r\n"
)
def test_any_history_is_the_same_elsewhere(
    tmp_path_factory: pytest.TempPathFactory,
    messages: list[dict[str, object]],
    facts: list[str],
    memory_file: str | None,
) -> None:
    folder = tmp_path_factory.mktemp("round-trip")
    with a_memory(folder / "one") as one, a_memory(folder / "two") as two:
        for message in messages:
            one.record(**message)  # type: ignore[arg-type]
        if memory_file is not None:
            one.notebook.change_memory(lambda text: memory_file)
        for fact in facts:
            one.notebook.add_fact(fact, mask=False)
        if one.export(folder / "out").is_empty:
            return

        report = two.import_export(folder / "out")
        two.export(folder / "again")

        assert (report.problems, report.damaged) == ((), ())
        assert held_by(two) == held_by(one)
        assert files_in(folder / "again") == files_in(folder / "out")
        again = two.import_export(folder / "out")
        assert not again.is_change
        assert held_by(two) == held_by(one)


def shown(result: SearchResult) -> list[tuple[object, ...]]:
    return [
        (
            hit.source,
            hit.session and (hit.session.host, hit.session.native_id),
            hit.position,
            hit.said,
            hit.parts,
            hit.excerpt,
        )
        for hit in result.hits
    ]


@pytest.mark.parametrize("query", ["ladder", "where is the ladder", "fence green"])
def test_searches_find_the_same_elsewhere(tmp_path: Path, query: str) -> None:
    embedder = WordEmbedder()
    one = an_indexed_memory(tmp_path / "one", embedder=embedder)
    two = an_indexed_memory(tmp_path / "two", embedder=embedder)
    with one, two:
        fill(one)
        one.index()
        one.embed()

        one.export(tmp_path / "out")
        two.import_export(tmp_path / "out")
        two.embed()

        assert shown(two.search(query)) == shown(one.search(query))
        assert shown(one.search(query))


def test_what_was_logged_is_not_logged_again_elsewhere(tmp_path: Path) -> None:
    with a_memory(tmp_path / "one") as one, a_memory(tmp_path / "two") as two:
        fill(one)
        logged = one.session("trip")
        numbers = [each.message_id for each in one.messages(logged)]
        store = SqliteSummaryStore(one.home / "history.db")
        store.finish(
            [Summary(logged.session_id, DAY, numbers[0], numbers[0], "mark", "{}")]
        )
        store.close()

        one.export(tmp_path / "out")
        two.import_export(tmp_path / "out")

        assert conversations_of(two) == conversations_of(one)
        (trip,) = [s for s, _ in conversations_of(two) if s.native_id == "trip"]
        assert trip.last_logged_message_id == 0


def test_a_fact_keeps_its_day_and_the_messages_it_rests_on(tmp_path: Path) -> None:
    later = NOON.replace(year=2027)
    with (
        a_memory(tmp_path / "one", clock=lambda: NOON) as one,
        a_memory(tmp_path / "two", clock=lambda: later) as two,
    ):
        # Something else has the numbers that the messages had.
        for number in range(5):
            two.record("before", "user", f"Something else {number}")
        fill(one)
        one.index()

        one.export(tmp_path / "out")
        two.import_export(tmp_path / "out")

        hits = two.search("has a ladder", scope="memory").hits
        days = [hit.said for hit in hits if hit.source is HitSource.MEMORY]
        assert days == [whole_day(DAY)]
        ((origin,),) = two.notebook.read_origins().values()
        (first, *_) = two.messages("trip")
        assert origin.messages == (first.message_id,)
        assert first.message_id > 5


def test_a_zip_file_is_the_same_as_a_folder(tmp_path: Path) -> None:
    with a_memory(tmp_path / "one") as one, a_memory(tmp_path / "two") as two:
        fill(one)
        one.export(tmp_path / "out")
        one.export(tmp_path / "one.zip")

        two.import_export(tmp_path / "one.zip")
        two.export(tmp_path / "again")
        two.export(tmp_path / "two.zip")

        assert held_by(two) == held_by(one)
        assert files_in(tmp_path / "again") == files_in(tmp_path / "out")
        zips = [tmp_path / name for name in ("one.zip", "two.zip")]
        assert zips[0].read_bytes() == zips[1].read_bytes()


def test_exporting_an_empty_memory_writes_nothing(
    memory: Memory, tmp_path: Path
) -> None:
    report = memory.export(tmp_path / "out")

    assert report.is_empty
    assert not (tmp_path / "out").exists()
