"""``backstory stats``: when was how much said."""

import json
import shutil
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

import pytest

import backstory
from backstory import DayCount, GroupCount, Memory, StoreDamaged
from backstory.render.people.statistics import render_statistics
from backstory.store.sqlite.history import SqliteHistory
from tests.shell import Shell

SAMPLES = Path(backstory.__file__).parent / "cli" / "samples"
GOLDEN = Path(__file__).parents[1] / "data" / "stats"
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "stats.svg"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """The shell of a person whose sample conversations have been read."""
    folder = tmp_path_factory.mktemp("stats")
    shutil.copytree(SAMPLES, folder / "home")
    shell = Shell(folder / "home", folder / "kept")
    assert shell.run("index").returncode == 0
    return shell


@pytest.mark.parametrize("width", [60, 80, 160])
def test_it_draws_the_year_within_the_width_of_the_terminal(
    shell: Shell, width: int
) -> None:
    drawn = shell.on_terminal("stats", COLUMNS=str(width), NO_COLOR="1")

    assert drawn.replace("\r\n", "\n") == (GOLDEN / f"{width}.txt").read_text("utf-8")
    assert max(map(len, drawn.splitlines())) <= width


def test_colour_changes_no_sign(shell: Shell) -> None:
    coloured = shell.on_terminal("stats", COLUMNS="80").replace("\r\n", "\n")
    for code in ("\x1b[2m", "\x1b[36m", "\x1b[0m"):
        assert code in coloured
        coloured = coloured.replace(code, "")

    assert coloured == (GOLDEN / "80.txt").read_text("utf-8")


def test_in_a_pipe_it_is_the_same_without_colour(shell: Shell) -> None:
    assert shell.out("stats") == (GOLDEN / "80.txt").read_text("utf-8")


def test_where_the_output_is_ascii_it_has_plain_signs_in_the_same_places(
    shell: Shell,
) -> None:
    done = shell.process("stats", PYTHONUTF8="0", PYTHONIOENCODING="ascii")

    drawn = (GOLDEN / "80.txt").read_text("utf-8")
    plain = drawn.translate(str.maketrans("·░▒▓█▄", ".-+*#_"))
    assert (done.stdout, done.stderr, done.returncode) == (plain, "", 0)


def test_the_same_data_as_json(shell: Shell) -> None:
    found = json.loads(shell.out("stats", "--json"))

    assert found == {
        "first": "2025-02-24",
        "last": "2026-02-26",
        "sessions": 5,
        "messages": 25,
        "other_sessions": 0,
        "left_out_sessions": 0,
        "days": [
            a_day("2026-02-23", 7, {"claude-code": 1}),
            a_day("2026-02-24", 4, {"codex": 1}),
            a_day("2026-02-25", 10, {"claude-code": 1, "squidbot": 1}),
            a_day("2026-02-26", 4, {"gemini-cli": 1}),
        ],
        "hosts": [
            {"host": "claude-code", "sessions": 2, "messages": 13},
            {"host": "codex", "sessions": 1, "messages": 4},
            {"host": "gemini-cli", "sessions": 1, "messages": 4},
            {"host": "squidbot", "sessions": 1, "messages": 4},
        ],
        "projects": [
            {"project": "/home/dev/bookshelf", "sessions": 4, "messages": 21},
            {"project": None, "sessions": 1, "messages": 4},
        ],
        "hours": [0] * 8 + [4, 7, 4] + [0] * 4 + [6] + [0] * 3 + [4] + [0] * 4,
        "notices": [],
    }


def a_day(day: str, messages: int, sessions_by_host: dict[str, int]) -> dict[str, Any]:
    return {
        "day": day,
        "sessions": sum(sessions_by_host.values()),
        "messages": messages,
        "projects": 1,
        "sessions_by_host": sessions_by_host,
    }


def test_hours_and_days_are_local(shell: Shell) -> None:
    found = json.loads(shell.process("stats", "--json", TZ="Asia/Kolkata").stdout)

    # What was said at 19:12 in UTC was said after midnight there.
    assert found["hours"][0] == 4
    assert sum(found["hours"]) == 25
    assert [day["day"] for day in found["days"]][-1] == "2026-02-26"


def test_days_a_host_or_a_project_choose_what_is_counted(shell: Shell) -> None:
    def count(*words: str) -> tuple[int, int]:
        found = json.loads(shell.out("stats", "--json", *words))
        return found["sessions"], found["other_sessions"]

    assert {
        words: count(*words.split())
        for words in (
            "--year 2026",
            "--year 2025",
            "--since 2026-02-25",
            "--until 2026-02-24",
            "--days 1",
            "--host codex",
            "--project bookshelf",
        )
    } == {
        "--year 2026": (5, 0),
        "--year 2025": (0, 5),
        "--since 2026-02-25": (3, 2),
        "--until 2026-02-24": (2, 3),
        "--days 1": (0, 5),
        "--host codex": (1, 0),
        "--project bookshelf": (4, 0),
    }


def test_the_picture_says_in_words_what_it_shows_and_loads_nothing(
    shell: Shell,
) -> None:
    file = shell.home / "year.svg"
    done = shell.run("stats", "--svg", str(file))
    drawn = file.read_text("utf-8")

    assert (done.stdout, done.stderr) == ("", f"Wrote {file}.\n")
    assert drawn == shell.out("stats", "--svg", "-")
    # The picture in the docs, which ``browser.screenshots`` takes.
    assert drawn == PICTURE.read_text("utf-8")
    root = ElementTree.fromstring(drawn)
    assert root.findtext(f"{SVG}title") == "5 conversations, 25 messages"
    assert root.findtext(f"{SVG}desc") == (
        "From 2025-02-24 to 2026-02-26. Conversations by agent program: claude-code 2, "
        "codex 1, gemini-cli 1, squidbot 1. By project: /home/dev/bookshelf 4, no "
        "project 1. Most on 2026-02-25: 2 conversations, 10 messages, 1 project."
    )
    assert "href" not in drawn
    assert "url(" not in drawn
    assert "prefers-color-scheme: dark" in drawn


def test_a_picture_for_which_there_is_no_folder_is_told(shell: Shell) -> None:
    done = shell.run("stats", "--svg", "none/year.svg")

    assert (done.returncode, done.stdout) == (26, "")
    assert done.stderr.splitlines() == [
        "backstory: none/year.svg: No such file or directory",
        "  hint: choose another place, or check its permissions",
    ]


def test_without_conversations_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    shell = Shell(tmp_path / "home", tmp_path / "kept")

    assert shell.out("stats") == shell.out("sessions")
    assert shell.out("stats").startswith("No sessions. Run 'backstory index'")
    assert "There is nothing to show." in shell.out("stats", "--svg", "-")


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (
            ["--since", "2026-03-01"],
            "No conversations since 2026-03-01. There are 5 on",
        ),
        (
            ["--until", "2025-02-23"],
            "No conversations until 2025-02-23. There are 5 on",
        ),
        (
            ["--since", "2026-02-25"],
            "3 conversations, 14 messages from 2026-02-25 to 2026-02-26. "
            "There are 2 more on",
        ),
        (
            ["--until", "2026-02-25"],
            "4 conversations, 21 messages from 2026-02-23 to 2026-02-25. "
            "There is 1 more on",
        ),
    ],
)
def test_it_says_which_days_were_counted_and_what_is_on_others(
    shell: Shell, days: list[str], said: str
) -> None:
    first = " ".join(shell.out("stats", *days).partition("\n\n")[0].split())

    where = "other days, or without a date: see --since, --until and --year."
    assert first == f"{said} {where}"


def test_what_excludes_each_other_is_refused(shell: Shell) -> None:
    refused = {
        words: shell.run("stats", *words.split()).stderr.splitlines()[-1]
        for words in (
            "--year 2026 --days 3",
            "--svg - --json",
            "--year 20",
            "--year 20x",
            "--days 0",
        )
    }

    assert refused == {
        "--year 2026 --days 3": "Error: --year cannot be used with --since, --until "
        "or --days.",
        "--svg - --json": "Error: --svg cannot be used with --json.",
        "--year 20": "Error: Invalid value for '--year': '20' is not a year like 2025.",
        "--year 20x": (
            "Error: Invalid value for '--year': '20x' is not a year like 2025."
        ),
        "--days 0": "Error: Invalid value for '--days': '0' is not a whole number "
        "from 1 to 100,000.",
    }


def test_more_than_a_year_is_drawn_year_by_year(memory: Memory) -> None:
    for day in ("2024-03-01", "2026-02-25"):
        said_at = datetime.fromisoformat(f"{day}T12:00:00+00:00")
        memory.record(day, "user", "hello", sent_at=said_at)

    stats = memory.stats(since="2024-01-01")
    lines = list(render_statistics(stats, by="messages", home=Path("/x"), width=60))

    assert [line for line in lines if "-01 to " in line or "-31" in line] == [
        "2 conversations, 2 messages from 2024-01-01 to 2026-02-25.",
        "  2024-01-01 to 2024-12-31",
        "  2026-01-01 to 2026-02-25",
    ]
    assert "             2024 2025 2026" in lines
    assert "  python  2  █    ·    █" in lines


def test_a_subagent_counts_by_what_was_said_in_it(memory: Memory) -> None:
    said_at = datetime(2026, 2, 25, 12, tzinfo=UTC)
    memory.record("a", "user", "hello", sent_at=said_at)
    memory.record("b", "user", "look around", sent_at=said_at, parent="a")
    memory.record("c", "user", "alone", sent_at=said_at, parent="gone")

    stats = memory.stats()

    assert stats.days == (
        DayCount(date(2026, 2, 25), 2, 3, 0, sessions_by_host={"python": 2}),
    )
    assert stats.hosts == (GroupCount("python", 2, 3),)
    assert (stats.hours[12], stats.other_sessions) == (3, 0)
    assert (stats.left_out_sessions, memory.status().sessions) == (1, 3)


def test_a_damaged_history_leaves_the_hours_out_and_says_so(memory: Memory) -> None:
    memory.record("a", "user", "hello")
    damaged = StoreDamaged("history.db: damaged")

    with patch.object(SqliteHistory, "count_by_quarter_hour", side_effect=damaged):
        stats = memory.stats()

    assert (stats.sessions, sum(stats.hours)) == (1, 0)
    assert stats.notices == ("the hours are not known: the history is damaged",)
