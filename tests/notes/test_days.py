"""A day is a day: no zone, clock, copy or rebuild moves the date of a note."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backstory.memory import Memory
from backstory.notes.first_seen import changes_to_facts, date_facts
from backstory.render.models.hits import render_ranked
from backstory.render.objects import search_object
from backstory.values.notes import SeenNote
from tests.chance import examples
from tests.samples import a_memory
from tests.shell import Shell

ZONES = (
    "UTC",
    "Pacific/Kiritimati",  # 14 hours ahead
    "Pacific/Pago_Pago",  # 11 hours behind
    "Etc/GMT+12",
    "Asia/Kolkata",
    "America/St_Johns",
    "Europe/Berlin",
)
DAY = date(2026, 3, 14)
NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)


@contextmanager
def zone(name: str) -> Iterator[None]:
    before = os.environ["TZ"]
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        os.environ["TZ"] = before
        time.tzset()


@dataclass
class Clock:
    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now


def write(memory: Memory, name: str, text: str) -> Path:
    file = memory.home / "memory" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def days_of(memory: Memory, query: str, **more: object) -> dict[str, str]:
    """The date of each hit as programs get it, by its text."""
    found = memory.search(query, **more)  # type: ignore[arg-type]
    objects = search_object(found, scope="all")["results"]
    assert isinstance(objects, list)
    return {each["excerpt"]: each["date"] for each in objects}


# -- daily logs -----------------------------------------------------------------------


@settings(max_examples=examples(12))
@given(
    day=st.dates(date(2001, 1, 1), date(2037, 12, 30)),
    indexed_in=st.sampled_from(ZONES),
    read_in=st.sampled_from(ZONES),
    is_indexed=st.booleans(),
)
@example(DAY, "Pacific/Kiritimati", "Pacific/Pago_Pago", True)
@example(DAY, "Etc/GMT+12", "Pacific/Kiritimati", True)
@example(DAY, "UTC", "Pacific/Kiritimati", False)
def test_a_daily_log_is_of_its_day_in_every_zone(
    day: date, indexed_in: str, read_in: str, is_indexed: bool
) -> None:
    with TemporaryDirectory() as folder:
        with zone(indexed_in), a_memory(Path(folder)) as memory:
            write(memory, f"daily/{day}.md", "Deployed the zebra\n")
            memory.index()
        if not is_indexed:
            (memory.home / "index.db").write_bytes(b"damaged" * 1000)
        with zone(read_in), a_memory(Path(folder)) as memory:
            found = memory.search("zebra")
            near = timedelta(days=1)

            assert days_of(memory, "zebra") == {"Deployed the zebra": f"{day}"}
            assert f"date: {day})" in render_ranked(found, scope="all").replace(
                ", weak match", ""
            )
            assert days_of(memory, "zebra", date_from=day, date_to=day)
            assert not days_of(memory, "zebra", date_to=day - near)
            assert not days_of(memory, "zebra", date_from=day + near)
            assert days_of(memory, f"zebra on {day}") == {
                "Deployed the zebra": f"{day}"
            }


@pytest.mark.parametrize("name", ZONES)
def test_the_command_line_shows_the_day_of_a_log(tmp_path: Path, name: str) -> None:
    shell = Shell(tmp_path, tmp_path / "kept", now=NOW)
    log = tmp_path / "kept" / "memory" / "daily" / "2026-03-14.md"
    log.parent.mkdir(parents=True)
    log.write_text("Deployed the zebra\n")
    (tmp_path / ".oneclaw/memory/daily").mkdir(parents=True)
    (tmp_path / ".oneclaw/memory/daily/2026-03-14.md").write_text(
        "# Daily Log - 2026-03-14\n\nFed another zebra\n"
    )
    with zone("Pacific/Kiritimati"):
        shell.run("index")

    with zone(name):
        found = shell.run("search", "zebra", "--by-date", TZ=name).stdout
        listed = shell.run("sessions", "--since", "2026-03-14", TZ=name).stdout
        later = shell.run("sessions", "--since", "2026-03-15", TZ=name).stdout
        shown = shell.run("show", "memory/daily/2026-03-14.md", TZ=name).stdout
        context = shell.run("context", "what happened on 2026-03-14?", TZ=name).stdout

    heads = [line for line in found.splitlines() if line and not line.startswith(" ")]
    assert len(heads) == 3
    assert all("2026-03-14" in head for head in heads)
    assert "2026-03-14" in listed
    assert "2026-03-14" not in later
    assert "2026-03-1" in shown
    assert "2026-03-13" not in shown
    assert "2026-03-15" not in shown
    assert "[Daily log 2026-03-14] Deployed the zebra" in context


def test_the_last_days_are_those_of_the_calendar_with_today(tmp_path: Path) -> None:
    for name in ZONES[:3]:
        with zone(name), a_memory(tmp_path / name, clock=Clock()) as memory:
            today = NOW.astimezone().date()
            for ago in range(4):
                write(memory, f"daily/{today - timedelta(days=ago)}.md", f"zebra {ago}")

            found = days_of(memory, "zebra", days=2)

            assert set(found) == {"zebra 0", "zebra 1"}


# -- facts ----------------------------------------------------------------------------


def test_a_fact_has_the_day_on_which_it_was_first_seen(tmp_path: Path) -> None:
    clock = Clock()
    with a_memory(tmp_path, clock=clock) as memory:
        file = write(memory, "MEMORY.md", "## A\n- zebra one\n- zebra two\n")
        os.utime(file, (1, 1))
        days_of(memory, "zebra")

        clock.now += timedelta(days=30)
        file.write_text("## B\n- zebra three\n- zebra two\n\n## A\n- zebra one\n")
        found = days_of(memory, "zebra")
        clock.now += timedelta(days=30)
        memory.rebuild()
        rebuilt = days_of(memory, "zebra")
        for derived in memory.home.glob("index*"):
            derived.unlink()
    with a_memory(tmp_path, clock=clock) as memory:
        made_again = days_of(memory, "zebra")

    assert (
        found
        == rebuilt
        == made_again
        == {
            "zebra one": "2026-03-20",
            "zebra two": "2026-03-20",
            "zebra three": "2026-04-19",
        }
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("User likes the zebra", "The user likes the zebra."),
        ("User likes the zebra.", "**User** likes the  Zebra"),
        ("the user has a zebra named Bob", "User has the zebra named Bob"),
        ("likes the zebra", "likes the zebra\n  "),
    ],
)
def test_a_fact_that_is_reworded_keeps_its_day(
    tmp_path: Path, before: str, after: str
) -> None:
    clock = Clock()
    with a_memory(tmp_path, clock=clock) as memory:
        file = write(memory, "MEMORY.md", f"- {before}\n- zebra of another kind\n")
        days_of(memory, "zebra")
        clock.now += timedelta(days=30)
        file.write_text(f"- zebra of another kind\n\n# Moved\n\n- {after}\n")

        memory.rebuild()

        assert set(days_of(memory, "zebra").values()) == {"2026-03-20"}


def test_a_fact_that_says_something_else_is_new(tmp_path: Path) -> None:
    clock = Clock()
    with a_memory(tmp_path, clock=clock) as memory:
        file = write(memory, "MEMORY.md", "- The zebra is 3 years old\n")
        days_of(memory, "zebra")
        clock.now += timedelta(days=365)
        file.write_text("- The zebra is 4 years old\n")

        assert days_of(memory, "zebra") == {"The zebra is 4 years old": "2027-03-20"}


def test_a_fact_that_was_gone_for_a_while_keeps_its_day_but_not_its_words(
    tmp_path: Path,
) -> None:
    clock = Clock()
    with a_memory(tmp_path, clock=clock) as memory:
        file = write(memory, "MEMORY.md", "- a zebra in secret\n")
        days_of(memory, "zebra")
        file.write_text("")
        clock.now += timedelta(days=30)

        assert days_of(memory, "zebra") == {}
        kept = [path.read_bytes() for path in memory.home.glob("history.db*")]
        file.write_text("- a zebra in secret\n")
        assert days_of(memory, "zebra") == {"a zebra in secret": "2026-03-20"}

    assert not any(b"in secret" in raw for raw in kept)


def test_touching_a_file_makes_nothing_new(tmp_path: Path) -> None:
    clock = Clock()
    project = tmp_path / "project"
    project.mkdir()
    with a_memory(tmp_path, clock=clock) as memory:
        memory.record("s", "user", "hello", project=project)
        guidance = project / "CLAUDE.md"
        guidance.write_text("Feed the zebra at noon\n")
        os.utime(guidance, (1_700_000_000, 1_700_000_000))
        files = [
            guidance,
            write(memory, "MEMORY.md", "- zebra fact\n"),
            write(memory, "daily/2026-03-14.md", "zebra log\n"),
        ]
        everywhere = ["memory", "daily_log", "guidance"]
        memory.index()
        before = days_of(memory, "zebra", sources=everywhere)
        index = memory._parts.index_files.index
        rows = index.list_files(), index.get_state("text_bytes")

        clock.now += timedelta(days=400)
        for file in files:
            file.touch()
        memory._parts.maintainer._guidance_due = 0.0
        memory.index()
        touched = index.list_files(), index.get_state("text_bytes")
        after = days_of(memory, "zebra", sources=everywhere)
        memory.rebuild()
        rebuilt = days_of(memory, "zebra", sources=everywhere)

    assert before == {
        "Feed the zebra at noon": "2023-11-14",
        "zebra fact": "2026-03-20",
        "zebra log": "2026-03-14",
    }
    assert before == after == rebuilt
    assert [(f.path, f.hash, f.modified_at) for f in rows[0]] == [
        (f.path, f.hash, f.modified_at) for f in touched[0]
    ]
    assert rows[1] == touched[1]


def test_no_time_of_a_file_is_too_odd(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with a_memory(tmp_path, clock=Clock()) as memory:
        memory.record("s", "user", "hello", project=project)
        for number, name in enumerate(("CLAUDE.md", "AGENTS.md", "GEMINI.md")):
            file = project / name
            file.write_text(f"zebra {'abc'[number]}\n")
            at = (-(2**33), 2**34, 253_402_300_800)[number]
            os.utime(file, (at, at))

        memory.index()

        found = days_of(memory, "zebra", sources=["guidance"])
        assert set(found) == {"zebra a", "zebra b", "zebra c"}
        assert max(found.values()) == "2026-03-20"


# -- laws -----------------------------------------------------------------------------

FACTS = st.lists(
    st.sampled_from([f"fact about {what}" for what in ("ants", "bees", "cats")]),
    max_size=4,
)
JUMPS = st.integers(-3000, 3000).map(lambda hours: timedelta(hours=hours))


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(FACTS, JUMPS, st.sampled_from(ZONES)), max_size=8))
def test_whatever_the_clock_does_a_fact_keeps_the_first_day_it_could_have(
    steps: list[tuple[list[str], timedelta, str]],
) -> None:
    seen: dict[str, SeenNote] = {}
    expected: dict[str, date] = {}
    now = NOW
    for facts, jump, name in steps:
        now += jump
        with zone(name):
            today = now.astimezone().date()

        dated = date_facts(facts, seen, today=today)
        seen |= {each.key: each for each in changes_to_facts(dated, seen)}

        for fact in facts:
            first = expected.get(fact, today)
            # Nothing was first seen later than tomorrow.
            expected[fact] = today if first > today + timedelta(days=1) else first
        assert [(fact.text, fact.day) for fact in dated] == [
            (fact, expected[fact]) for fact in facts
        ]
        assert not changes_to_facts(dated, seen)
        assert {each.text for each in seen.values()} - {None} == set(facts)
