"""What people and programs are shown."""

import time
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from backstory.render.format import (
    render_count,
    render_path,
    render_size,
    render_span,
    render_time,
)
from backstory.render.layout import render_columns, wrap_to_width
from backstory.render.objects import (
    message_object,
    report_object,
    session_object,
    setting_object,
    status_object,
    to_json,
)
from backstory.render.people.messages import Folding
from backstory.render.people.reports import (
    render_problems,
    render_report,
    render_settings,
    render_sources,
    render_status,
)
from backstory.render.people.sessions import render_sessions
from backstory.render.people.transcript import render_transcript
from backstory.search.subagents import ListedConversation
from backstory.settings import Chosen, Setting
from backstory.text.escape import neutralize
from backstory.values.history import Message, Problem, Role, Session
from backstory.values.moments import Moment
from backstory.values.reports import (
    IndexReport,
    IndexStatus,
    LogStatus,
    SourceSummary,
    Status,
)
from backstory.values.structs import replace

HOME = Path("/home/dev")
STARTED = Moment(datetime(2026, 2, 20, 14, 32, 10, tzinfo=UTC), 60)
LATER = Moment(datetime(2026, 2, 21, 9, 5, tzinfo=UTC))
SESSION = Session(
    session_id=1,
    host="claude-code",
    native_id="5d0c1c53-8a57",
    title="Mend the parser",
    project="/home/dev/demo",
    git_branch="main",
    parent_id=None,
    started=STARTED,
    last_active=LATER,
    message_count=2,
    preview="The parser is broken",
    read_from="/home/dev/.claude/a.jsonl",
)
MESSAGE = Message(7, 1, "u1", 0, Role.USER, "It is broken.", sent=STARTED)


# -- for programs ---


def test_a_session_as_an_object_has_its_times_in_their_own_zones() -> None:
    assert session_object(SESSION) == {
        "host": "claude-code",
        "id": "5d0c1c53-8a57",
        "title": "Mend the parser",
        "project": "/home/dev/demo",
        "git_branch": "main",
        "parent": None,
        "started_at": "2026-02-20T15:32:10+01:00",
        "last_active_at": "2026-02-21T09:05:00+00:00",
        "messages": 2,
        "preview": "The parser is broken",
        "read_from": "/home/dev/.claude/a.jsonl",
        "last_logged_message_id": None,
        "resume": None,
    }


def test_a_message_as_an_object_carries_its_text_verbatim() -> None:
    message = replace(MESSAGE, text="a\x1b[31m\u202e\r\n", full_bytes=9, sent=None)

    assert message_object(message) == {
        "number": 7,
        "id": "u1",
        "position": 0,
        "role": "user",
        "text": "a\x1b[31m\u202e\r\n",
        "tool_name": None,
        "call_id": None,
        "sent_at": None,
        "full_bytes": 9,
    }


def test_a_report_as_an_object_has_every_problem() -> None:
    report = IndexReport(read=1, unknown=2, problems=(Problem("odd", 3, "/a"),) * 30)

    assert report_object(report) == {
        "read": 1,
        "unchanged": 0,
        "excluded": 0,
        "of_unknown_format": 2,
        "skipped": 30,
        "new_sessions": 0,
        "new_messages": 0,
        "changed_messages": 0,
        "read_bytes": 0,
        "problems": [{"path": "/a", "line": 3, "reason": "odd"}] * 30,
    }


def test_a_setting_as_an_object_says_where_it_came_from() -> None:
    chosen = Chosen(Setting("a.b", (), "What it does."), ("x", "y"), "--set")

    assert setting_object(chosen) == {
        "name": "a.b",
        "value": ["x", "y"],
        "from": "--set",
        "summary": "What it does.",
    }


def test_json_is_readable_and_can_be_read_again() -> None:
    status = Status("/x", 1, 2, 3, {"codex": 1}, LATER.at, (Problem("odd"),))
    value = status_object(status)

    text = to_json(value)

    assert text.startswith('{\n  "home": "/x",\n')
    assert orjson.loads(text) == value


# -- sessions ---


def test_sessions_are_listed_one_a_line() -> None:
    other = replace(
        SESSION,
        session_id=2,
        native_id="5d0c1c53-9999",
        title="",
        project=None,
        message_count=1234,
        last_active=None,
    )

    lines = list(
        render_sessions(
            [ListedConversation(SESSION), ListedConversation(other)],
            names={SESSION.session_id: "5d0c1c53-8", other.session_id: "5d0c1c53-9"},
            home=HOME,
            width=None,
        )
    )

    assert lines == [
        "LAST ACTIVE       HOST         ID          MESSAGES  PROJECT  TITLE",
        "2026-02-21 09:05  claude-code  5d0c1c53-8         2  ~/demo   Mend the parser",
        "                  claude-code  5d0c1c53-9     1,234           (no title)",
    ]


def test_one_long_id_moves_its_own_row_only() -> None:
    subagent = replace(SESSION, session_id=2, parent_id="5d0c", title="Look it up")

    lines = list(
        render_sessions(
            [ListedConversation(SESSION, (subagent,))],
            names={1: "5d0c", 2: "5d0c1c53-8a57/c6384fe5-bd58"},
            home=HOME,
            width=None,
            subagents=True,
        )
    )

    assert [line.partition("claude-code")[2] for line in lines[1:]] == [
        "  5d0c         2  ~/demo   Mend the parser",
        "  5d0c1c53-8a57/c6384fe5-bd58         2  ~/demo     subagent: Look it up",
    ]


@pytest.mark.parametrize("width", range(30, 56))
def test_what_stands_below_a_title_breaks_between_facts(width: int) -> None:
    listed = render_sessions(
        [ListedConversation(SESSION)], names={1: "5d0c"}, home=HOME, width=width
    )

    _title, *below = listed
    facts = [fact for line in below for fact in line.strip().split(" · ")]
    assert [line for line in below if cell_len(line) > width] == []
    assert facts[0].removeprefix("~/") == "demo"
    assert facts[1:] == ["2026-02-21 09:05", "claude-code", "2 messages"]


def test_nothing_from_a_transcript_can_break_a_line_or_move_the_cursor() -> None:
    bad = "x\x1b[2J\ny\tz"
    session = replace(
        SESSION, host=bad, native_id=bad, project=bad, title=bad, git_branch=bad
    )

    conversation = ListedConversation(session)
    listed = list(render_sessions([conversation], names={}, home=HOME, width=None))
    shown = list(
        render_transcript(
            replace(session, parent_id=bad),
            [replace(MESSAGE, tool_name=bad)],
            home=HOME,
        )
    )

    assert listed[1] == (
        "2026-02-21 09:05  x␛[2J y z  x␛[2J y z         2  x␛[2J y z  x␛[2J y z"
    )
    assert shown == [
        "title: x␛[2J y z",
        "x␛[2J y z · x␛[2J y z · x␛[2J y z (x␛[2J y z) · 2 messages · "
        "2026-02-20 14:32 – 2026-02-21 09:05",
        "part of x␛[2J y z",
        "",
        "— 2026-02-20 —",
        "",
        "[1] TASK  x␛[2J y z  14:32",
        "  │ It is broken.",
    ]


# -- transcripts ---


def test_a_transcript_reads_from_top_to_bottom() -> None:
    messages = [
        MESSAGE,
        replace(
            MESSAGE,
            message_id=8,
            position=1,
            role=Role.TOOL_CALL,
            text="{}",
            tool_name="Bash",
            call_id="c1",
        ),
        replace(
            MESSAGE,
            message_id=9,
            position=2,
            role=Role.TOOL_RESULT,
            text="a\nb",
            call_id="c1",
        ),
        replace(
            MESSAGE,
            message_id=10,
            position=3,
            role=Role.ASSISTANT,
            text="Mended.",
            sent=LATER,
        ),
        replace(MESSAGE, message_id=11, position=4, text="Thanks.", sent=None),
    ]

    whole = Folding(is_off=True)
    lines = list(render_transcript(SESSION, messages, home=HOME, folding=whole))

    assert lines == [
        "title: Mend the parser",
        "claude-code · 5d0c1c53-8a57 · ~/demo (main) · 2 messages · "
        "2026-02-20 14:32 – 2026-02-21 09:05",
        "",
        "— 2026-02-20 —",
        "",
        "[1] USER  14:32",
        "  │ It is broken.",
        "",
        "[2] TOOL CALL  Bash  14:32",
        "  │ {}",
        "",
        "[3] TOOL RESULT  Bash  14:32",
        "  │ a",
        "  │ b",
        "",
        "— 2026-02-21 —",
        "",
        "[4] ASSISTANT  09:05",
        "  │ Mended.",
        "",
        "[5] USER",
        "  │ Thanks.",
    ]


def test_a_transcript_without_facts_still_has_a_head() -> None:
    bare = replace(
        SESSION, title="", project=None, started=None, last_active=None, parent_id="p1"
    )

    lines = list(render_transcript(bare, [], home=HOME))

    assert lines == [
        "(no title)",
        "claude-code · 5d0c1c53-8a57 · 2 messages",
        "part of p1",
    ]


def test_control_characters_in_a_message_are_shown_as_symbols() -> None:
    message = replace(MESSAGE, text="a\x1b[31mred\u202e", sent=None)

    lines = list(render_transcript(SESSION, [message], home=HOME))

    assert lines[-1] == "  │ a␛[31mred\ufffd"


def test_no_text_can_pass_for_the_head_of_another_message() -> None:
    message = replace(
        MESSAGE, text="Fine.\n\n[8] USER  14:33\nDelete it all.", sent=None
    )

    lines = list(render_transcript(SESSION, [message], home=HOME))

    assert lines[-4:] == [
        "  │ Fine.",
        "  │",
        "  │ [8] USER  14:33",
        "  │ Delete it all.",
    ]


def test_on_a_terminal_no_name_goes_on_at_the_beginning_of_a_line() -> None:
    name = "x" * 20 + " [8] USER  14:33 and more of it"
    session = replace(SESSION, title=name, project=f"/{name}", parent_id=name)
    message = replace(MESSAGE, text=name, tool_name=name)

    lines = render_transcript(session, [message], home=HOME, width=30)

    ours = ("title: ", "claude-code ·", "part of ", "— 2026", "[1] TASK ", "  ")
    assert [line for line in lines if line and not line.startswith(ours)] == []


# -- reports ---


def test_a_report_says_what_was_read_and_what_was_not() -> None:
    report = IndexReport(
        read=1,
        unchanged=2,
        excluded=3,
        unknown=4,
        new_sessions=1,
        new_messages=1200,
        changed_messages=5,
        read_bytes=2_500_000,
        problems=(Problem("odd", 3, "/home/dev/a.jsonl"),),
    )

    lines = list(render_report(report, home=HOME, took_s=0.25))

    assert lines == [
        "Read 1 source: 1 new session, 1,200 new messages, 5 changed "
        "(2.5 MB in 0.2 s).",
        "Not read: 2 unchanged, 3 excluded by your settings, 4 of unknown format.",
        "1 problem:",
        "  ~/a.jsonl:3: odd",
    ]


def test_a_report_of_nothing_is_one_line() -> None:
    lines = list(render_report(IndexReport(), home=HOME, took_s=0))

    assert lines == [
        "Found nothing to read; 'backstory index --path' reads any file or folder."
    ]


def test_a_folder_with_nothing_to_read_is_named() -> None:
    report = render_report(IndexReport(), home=HOME, took_s=0, path=HOME / "empty")

    assert list(report) == ["Found nothing to read in ~/empty."]


def test_only_a_screenful_of_problems_is_shown() -> None:
    problems = [Problem(f"number {number}") for number in range(1025)]

    lines = list(render_problems(problems, home=HOME))

    assert lines[:2] == ["1,025 problems:", "  number 0"]
    assert lines[-2:] == ["  number 19", "  … and 1,005 more (--json lists them all)"]


def test_a_problem_stays_on_its_line() -> None:
    problem = Problem("odd", path="/home/dev/a\n  b\x1b.jsonl")

    lines = list(render_problems([problem], home=HOME))

    assert lines == ["1 problem:", "  ~/a   b␛.jsonl: odd"]


def test_sources_are_listed_with_how_much_of_them_is_read() -> None:
    sources = [
        SourceSummary(
            "codex", "Codex", ("/home/dev/.codex", "/x"), 12, 1_500_000, 11, 10, 2000
        ),
        SourceSummary("pi", "Pi", (), 1, 10, 0, 0, 0, excluded=True),
    ]

    lines = list(render_sources(sources, home=HOME, width=None))

    assert lines == [
        "HOST   FOUND    SIZE   INDEXED  SESSIONS  MESSAGES  WHERE",
        "codex     12  1.5 MB  11 of 12        10     2,000  ~/.codex, /x",
        "pi         1    10 B  excluded         0         0",
    ]


def test_the_status_says_how_much_is_kept_and_what_went_wrong() -> None:
    status = Status(
        "/home/dev/store",
        3,
        4000,
        12_345,
        {"codex": 1, "pi": 2},
        LATER.at,
        (Problem("odd", 3, "/home/dev/a"),),
        IndexStatus(
            5000, 3000, 2900, 7_000_000, "ollama", is_behind=True, in_background=True
        ),
        LogStatus("openai small", True, 1, 2, 1_500, 9_000, "the key is wrong"),
    )

    lines = list(render_status(status, home=HOME))

    assert lines == [
        "Home:      ~/store",
        "Sessions:  3 (codex 1, pi 2)",
        "Messages:  4,000",
        "History:   12 KB",
        "Index:     5,000 units, 7.0 MB, not up to date",
        "Vectors:   2,900 of 3,000 texts (ollama); the rest are made in the background",
        "Logs:      openai small, 1 session to be summarized, "
        "2 calls and 1,500 of 9,000 tokens today (the key is wrong)",
        "Last read: 2026-02-21 09:05",
        "Problems:  1",
        "  ~/a:3: odd",
    ]


def test_settings_are_listed_with_their_origins() -> None:
    chosen = [
        Chosen(Setting("a.texts", (), "Texts."), (), "default"),
        Chosen(Setting("a.flag", False, "Flag."), True, "/home/dev/config.toml"),
        Chosen(Setting("a.number", 1.0, "Number."), 2.5, "--set"),
    ]

    lines = list(render_settings(chosen, home=HOME, width=None))

    assert lines == [
        "NAME      VALUE   FROM           WHAT IT DOES",
        "a.texts   (none)  default        Texts.",
        "a.flag    true    ~/config.toml  Flag.",
        "a.number  2.5     --set          Number.",
    ]


def test_a_narrow_terminal_shows_the_whole_status() -> None:
    status = Status("/home/dev/a", 3, 4, 5, {"codex": 1, "gemini-cli": 2}, LATER.at, ())

    lines = list(render_status(status, home=HOME, width=32))

    assert lines[:4] == [
        "Home:      ~/a",
        "Sessions:  3 (codex 1,",
        "           gemini-cli 2)",
        "Messages:  4",
    ]


LONG = "How long a search may take before it gives what it has found."


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        pytest.param(
            70,
            [
                "NAME    VALUE    FROM     WHAT IT DOES",
                "a.long  2.5      default  How long a search may take before it gives",
                "                          what it has found.",
                "a.text  (empty)  default  Text.",
            ],
            id="beside the others",
        ),
        pytest.param(
            40,
            [
                "NAME    VALUE    FROM",
                "  WHAT IT DOES",
                "a.long  2.5      default",
                "  How long a search may take before it",
                "  gives what it has found.",
                "a.text  (empty)  default",
                "  Text.",
            ],
            id="below the others",
        ),
        pytest.param(
            20,
            [
                "NAME  VALUE  FROM",
                "  WHAT IT DOES",
                "a.long  2.5",
                "  default",
                "  How long a search",
                "  may take before it",
                "  gives what it has",
                "  found.",
                "a.text  (empty)",
                "  default",
                "  Text.",
            ],
            id="no columns",
        ),
    ],
)
def test_what_a_setting_does_is_whole_at_any_width(
    width: int, expected: list[str]
) -> None:
    chosen = [
        Chosen(Setting("a.long", 1.0, LONG), 2.5, "default"),
        Chosen(Setting("a.text", "", "Text."), "", "default"),
    ]

    assert list(render_settings(chosen, home=HOME, width=width)) == expected


# -- pieces ---


def test_columns_are_aligned_by_what_a_terminal_shows() -> None:
    rows = [("漢字", "1", "wide"), ("abc", "22", "narrow")]

    lines = list(render_columns(("A", "B", "C"), rows, right={1}, width=None))

    assert lines == ["A      B  C", "漢字   1  wide", "abc   22  narrow"]


@given(
    st.lists(st.tuples(*[st.text("aé漢😀 ", max_size=12)] * 3), max_size=4),
    st.integers(2, 40),
)
def test_no_line_is_wider_than_the_terminal(
    rows: list[tuple[str, ...]], width: int
) -> None:
    lines = list(render_columns(("A", "B", "C"), rows, width=width))

    assert [line for line in lines if cell_len(line) > width] == []


@pytest.mark.parametrize(
    ("zone", "at", "expected"),
    [
        pytest.param("UTC", STARTED.at, "2026-02-20 14:32", id="UTC"),
        pytest.param("Asia/Tokyo", STARTED.at, "2026-02-20 23:32", id="east"),
        pytest.param(
            "UTC", datetime(1, 1, 1, tzinfo=UTC), "0001-01-01 00:00", id="the first"
        ),
        pytest.param(
            "America/Lima",
            datetime(1, 1, 1, tzinfo=UTC),
            "0001-01-01 00:00",
            id="the first moment, west",
        ),
        pytest.param(
            "Asia/Tokyo",
            datetime(9999, 12, 31, 23, 59, tzinfo=UTC),
            "9999-12-31 23:59",
            id="the last moment, east",
        ),
    ],
)
def test_a_time_is_shown_as_the_reader_s_clock_showed_it(
    monkeypatch: pytest.MonkeyPatch, zone: str, at: datetime, expected: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()

    assert render_time(Moment(at, 120)) == expected


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        pytest.param(None, None, "", id="unknown"),
        pytest.param(STARTED, None, "2026-02-20 14:32", id="no end"),
        pytest.param(STARTED, STARTED, "2026-02-20 14:32", id="one minute"),
        pytest.param(
            STARTED,
            Moment(STARTED.at.replace(hour=15)),
            "2026-02-20 14:32 – 15:32",
            id="one day",
        ),
        pytest.param(
            STARTED, LATER, "2026-02-20 14:32 – 2026-02-21 09:05", id="two days"
        ),
    ],
)
def test_a_span_says_no_more_than_it_must(
    first: Moment | None, last: Moment | None, expected: str
) -> None:
    assert render_span(first, last) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/home/dev", "~", id="the home folder"),
        pytest.param("/home/dev/a", "~/a", id="below it"),
        pytest.param("/home/dev\\a", "~\\a", id="below it on Windows"),
        pytest.param("/home/developer", "/home/developer", id="begins alike"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_the_home_folder_is_a_tilde(path: str, expected: str) -> None:
    assert render_path(path, HOME) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (12_345, "12 KB"),
        (1_500_000, "1.5 MB"),
        (2_340_000_000, "2.3 GB"),
        (1_500_000_000_000, "1500.0 GB"),
    ],
)
def test_a_size_is_short(size: int, expected: str) -> None:
    assert render_size(size) == expected


# -- whatever it is about ---

HOSTILE = "a\x1b[2J\x9b\u202e\nb"
TAMED = "a␛[2J\ufffd\ufffd b"


def test_json_has_everything_verbatim_and_nothing_that_a_terminal_obeys() -> None:
    written = to_json({"text": HOSTILE})

    assert written == '{\n  "text": "a\\u001b[2J\\u009b\\u202e\\nb"\n}'
    assert orjson.loads(written) == {"text": HOSTILE}


def test_a_status_is_safe_to_print() -> None:
    status = Status(
        "/x", 1, 2, 3, {HOSTILE: 1}, index=IndexStatus(units=1, problem=HOSTILE)
    )

    lines = list(render_status(status, home=HOME))

    assert lines[1] == f"Sessions:  1 ({TAMED} 1)"
    assert lines[4] == f"Index:     1 unit, 0 B ({TAMED})"


def test_columns_are_safe_to_print() -> None:
    source = SourceSummary(HOSTILE, "x", (HOSTILE,), 1, 2, 1, 1, 1)

    _, line = render_sources([source], home=HOME, width=None)

    assert line.startswith(f"{TAMED}  ")
    assert line.endswith(f"  {TAMED}")


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "0 sources"), (1, "1 source"), (2, "2 sources"), (1200, "1,200 sources")],
)
def test_a_count_is_in_the_singular_or_the_plural(number: int, expected: str) -> None:
    assert render_count(number, "source") == expected


@given(st.text(), st.integers(10, 50))
def test_a_line_that_is_wrapped_fits_and_loses_no_more_than_blanks(
    text: str, width: int
) -> None:
    line = " ".join(neutralize(text).split())

    wrapped = list(wrap_to_width(line, width))

    assert all(cell_len(piece) <= width for piece in wrapped)
    assert "".join(wrapped).replace(" ", "") == line.replace(" ", "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("one two three", ["one two", "three"]),
        ("one two th", ["one two th"]),
        ("onetwothreefour", ["onetwothre", "efour"]),
        ("a onetwothreefour", ["a onetwoth", "reefour"]),
        ("日本語の検索", ["日本語の検", "索"]),
        ("", [""]),
    ],
)
def test_a_line_is_wrapped_between_words_if_there_are_any(
    line: str, expected: list[str]
) -> None:
    assert list(wrap_to_width(line, 10)) == expected
