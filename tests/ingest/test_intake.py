"""What of a source reaches the history, and what must not."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backstory.ingest.intake import (
    MAX_BATCH_CHARS,
    MAX_BATCH_MESSAGES,
    Intake,
    Rules,
)
from backstory.store.base.history import SessionFilter, SourceKey, SourceState
from backstory.store.sqlite.history import SqliteHistory
from backstory.values.history import (
    Item,
    Message,
    NewMessage,
    Problem,
    Role,
    SessionFacts,
)

KEY = SourceKey("/transcripts/a.jsonl")
PROGRESS = SourceState(KEY, "agent", "lines", "signature")
LIMIT = 64 * 1024
SECRET = Rules((Path("/home/dev/secret"),), LIMIT)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteHistory]:
    store = SqliteHistory(tmp_path / "history.db")
    yield store
    store.close()


def an_intake(store: SqliteHistory, rules: Rules | None = None) -> Intake:
    return Intake(
        store=store,
        rules=rules or Rules((), LIMIT),
        clock=lambda: datetime(2026, 2, 20, tzinfo=UTC),
        host="agent",
        key=KEY,
        replaces=False,
    )


def a_message(text: str, role: Role = Role.USER, **more: Any) -> NewMessage:
    fields: dict[str, Any] = {"session_id": "s1", "native_id": text[:20]}
    return NewMessage(**{**fields, "role": role, "text": text, **more})


def a_call(name: str, call_id: str, text: str = "{}") -> NewMessage:
    return a_message(
        text,
        Role.TOOL_CALL,
        native_id=f"{name} {call_id} call",
        tool_name=name,
        call_id=call_id,
    )


def a_result(text: str, call_id: str | None, name: str | None = None) -> NewMessage:
    return a_message(text, Role.TOOL_RESULT, tool_name=name, call_id=call_id)


def take(intake: Intake, *items: Item) -> None:
    for number, item in enumerate(items, start=1):
        intake.add(item, number)
    intake.commit(PROGRESS)


def kept(store: SqliteHistory) -> list[Message]:
    return [
        message
        for session in store.list_sessions(SessionFilter())
        for message in store.iter_messages(session.session_id)
    ]


def texts(store: SqliteHistory) -> list[str]:
    return [message.text for message in kept(store)]


# -- how much is kept ---


@pytest.mark.parametrize("role", [role for role in Role if role != Role.TOOL_RESULT])
def test_what_was_said_is_kept_whole_however_long(
    store: SqliteHistory, role: Role
) -> None:
    text = "  words, verbatim\r\n\x00\u202e " * 10_000

    take(an_intake(store), a_message(text, role))

    assert [(message.text, message.full_bytes) for message in kept(store)] == [
        (text, None)
    ]


def test_tool_output_is_kept_up_to_its_limit_with_its_true_length(
    store: SqliteHistory,
) -> None:
    output = "x" * 69_988 + "Error: port 1"

    take(an_intake(store), a_result(output, "c1"))

    mark = "\n[cut: 4,465 of 70,001 bytes left out]\n"
    assert [(message.text, message.full_bytes) for message in kept(store)] == [
        (output[:32_768] + mark + output[-32_768:], 70_001)
    ]


def test_the_limit_of_tool_output_can_be_set(store: SqliteHistory) -> None:
    take(an_intake(store, Rules((), max_tool_output_bytes=2)), a_result("aéé", "c1"))

    assert texts(store) == ["a\n[cut: 4 of 5 bytes left out]\n"]


def test_half_characters_are_replaced_wherever_they_stand(store: SqliteHistory) -> None:
    half = "x\ud83d"

    take(
        an_intake(store),
        SessionFacts("s\ud83d", title=half, project="/p\ud83d", git_branch=half),
        NewMessage("s\ud83d", half, Role.TOOL_CALL, half, half, half),
    )

    (session,) = store.list_sessions(SessionFilter())
    (message,) = kept(store)
    assert (session.native_id, session.title, session.project, session.git_branch) == (
        "s\ufffd",
        "x\ufffd",
        "/p\ufffd",
        "x\ufffd",
    )
    assert (message.native_id, message.text, message.tool_name, message.call_id) == (
        ("x\ufffd",) * 4
    )


# -- private passages ---


@pytest.mark.parametrize("role", list(Role))
def test_a_private_passage_is_never_stored(
    store: SqliteHistory, tmp_path: Path, role: Role
) -> None:
    take(
        an_intake(store),
        SessionFacts("s1", title="About <private>hunter2</private>"),
        a_message("It is <private>hunter2</private>.", role, native_id="m1"),
    )

    (session,) = store.list_sessions(SessionFilter())
    assert (session.title, texts(store)) == ("About [private]", ["It is [private]."])
    files = [file.read_bytes() for file in tmp_path.glob("history.db*")]
    assert b"hunter2" not in b"".join(files)


def test_a_private_passage_is_dropped_before_tool_output_is_cut(
    store: SqliteHistory,
) -> None:
    text = "<private>" + "x" * 100 + "</private>the rest"

    take(an_intake(store, Rules((), max_tool_output_bytes=20)), a_result(text, "c1"))

    assert texts(store) == ["[private]the rest"]


# -- excluded folders ---


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        pytest.param("/home/dev/secret", [], id="the folder itself"),
        pytest.param("/home/dev/secret/deep/down", [], id="below it"),
        pytest.param("/home/dev/secrets", ["hello"], id="a name that begins alike"),
        pytest.param("/home/dev", ["hello"], id="above it"),
        pytest.param(None, ["hello"], id="a session that does not say"),
    ],
)
def test_a_session_in_an_excluded_folder_is_not_kept(
    store: SqliteHistory, project: str | None, expected: list[str]
) -> None:
    intake = an_intake(store, SECRET)

    take(
        intake,
        SessionFacts("s1", project=project),
        SessionFacts("s1", title="a title"),
        a_message("hello"),
    )

    assert texts(store) == expected


def test_other_sessions_of_the_same_source_are_kept(store: SqliteHistory) -> None:
    take(
        an_intake(store, SECRET),
        SessionFacts("s1", project="/home/dev/secret"),
        SessionFacts("s2", project="/home/dev/open"),
        a_message("hidden"),
        a_message("seen", session_id="s2"),
    )

    assert texts(store) == ["seen"]


def test_a_reading_that_goes_on_still_excludes_what_was_excluded(
    store: SqliteHistory,
) -> None:
    first = an_intake(store, SECRET)
    take(first, SessionFacts("s1", project="/home/dev/secret"))
    memo = first.save({"of the parser": 1}, is_last=True)
    second = an_intake(store, SECRET)

    second.restore(memo)
    take(second, a_message("hello"))

    assert texts(store) == []
    assert memo == {"of the parser": 1}


def test_an_intake_says_by_which_rules_it_left_something_out(
    store: SqliteHistory,
) -> None:
    left_out, took_all = an_intake(store, SECRET), an_intake(store, SECRET)

    take(left_out, SessionFacts("s1", project="/home/dev/secret"))
    take(took_all, SessionFacts("s2", project="/home/dev/open"))

    assert (left_out.excluded_by, took_all.excluded_by) == (SECRET.fingerprint, "")


def test_rules_are_told_apart_by_the_folders_they_exclude() -> None:
    one, other = Path("/a"), Path("/b")

    prints = [
        Rules(folders, LIMIT).fingerprint
        for folders in ((), (one,), (one, other), (other, one))
    ]

    assert prints[0] == ""
    assert prints[2] == prints[3]
    assert len(set(prints)) == 3


# -- what our own tools returned ---


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param(
            [a_call("mcp__backstory__search_history", "c1"), a_result("old", "c1")],
            ["{}"],
            id="a tool of ours",
        ),
        pytest.param(
            [a_call("Bash", "c1", "backstory search x"), a_result("old", "c1")],
            ["backstory search x"],
            id="our command",
        ),
        pytest.param(
            [a_result("old", None, "backstory-search_history")],
            [],
            id="by its name",
        ),
        pytest.param(
            [a_call("Bash", "c1", "ls"), a_result("files", "c1")],
            ["ls", "files"],
            id="another tool",
        ),
        pytest.param(
            [
                a_call("backstory-search_history", "c1"),
                a_result("old", "c1"),
                a_call("Bash", "c1", "ls"),
                a_result("files", "c1"),
            ],
            ["{}", "ls", "files"],
            id="another tool under the id of an earlier call",
        ),
        pytest.param([a_result("files", None)], ["files"], id="a result of no call"),
    ],
)
def test_what_our_own_tools_returned_is_not_kept_again(
    store: SqliteHistory, items: list[Item], expected: list[str]
) -> None:
    take(an_intake(store), *items)

    assert texts(store) == expected


def test_a_reading_that_goes_on_still_knows_the_calls_of_our_tools(
    store: SqliteHistory,
) -> None:
    first = an_intake(store)
    take(first, a_call("backstory-search_history", "c1"))
    second = an_intake(store)

    second.restore(first.save({}, is_last=True))
    take(second, a_result("old", "c1"))

    assert texts(store) == ["{}"]


def test_a_reading_with_nothing_to_remember_leaves_the_memo_as_it_is(
    store: SqliteHistory,
) -> None:
    assert an_intake(store).save({"a": 1}, is_last=True) == {"a": 1}


# -- problems and batches ---


def test_a_problem_gets_the_place_it_was_met_at(store: SqliteHistory) -> None:
    intake = an_intake(store)

    take(intake, Problem("first"), Problem("second", line=17))

    expected = [Problem("first", 1, KEY.path), Problem("second", 17, KEY.path)]
    assert intake.problems == expected
    assert store.list_problems() == expected


def test_problems_wait_for_the_progress_they_belong_to(store: SqliteHistory) -> None:
    intake = an_intake(store)
    intake.add(Problem("early"), 1)
    intake.add(a_message("hello"), 2)

    intake.commit(None)
    meanwhile = (texts(store), store.list_problems())
    intake.commit(PROGRESS)

    assert meanwhile == (["hello"], [])
    assert store.list_problems() == [Problem("early", 1, KEY.path)]


@pytest.mark.parametrize(
    ("count", "chars", "expected"),
    [
        pytest.param(0, 0, False, id="nothing"),
        pytest.param(MAX_BATCH_MESSAGES - 1, 1, False, id="nearly enough messages"),
        pytest.param(MAX_BATCH_MESSAGES, 1, True, id="enough messages"),
        pytest.param(1, MAX_BATCH_CHARS, True, id="enough text"),
    ],
)
def test_a_batch_is_full_by_messages_or_by_text(
    store: SqliteHistory, count: int, chars: int, expected: bool
) -> None:
    intake = an_intake(store)

    for _ in range(count):
        intake.add(a_message("x" * chars))

    assert intake.is_full is expected


def test_a_batch_is_empty_again_after_it_was_written(store: SqliteHistory) -> None:
    intake = an_intake(store)
    intake.add(a_message("x" * MAX_BATCH_CHARS))

    intake.commit(None)

    assert not intake.is_full


# -- whose words they are ---


def said(store: SqliteHistory) -> list[tuple[str, Role, str]]:
    return [(each.native_id, each.role, each.text) for each in kept(store)]


def test_what_a_program_wrote_into_a_message_is_kept_as_the_system_s(
    store: SqliteHistory,
) -> None:
    opened = "<ide_opened_file>a.py is open</ide_opened_file>"
    clear = "<command-name>/clear</command-name>"
    nothing = "<local-command-stdout></local-command-stdout>"

    take(
        an_intake(store),
        a_message(clear, native_id="u1"),
        a_message(nothing, Role.SYSTEM, native_id="u2"),
        a_message("<bash-stdout>\x1b[31mred\x1b[m</bash-stdout>", native_id="u3"),
        a_message(f"{opened}\nfix it", native_id="u4"),
        a_message(f"{opened} is not mine", Role.ASSISTANT, native_id="a1"),
    )

    assert said(store) == [
        ("u1", Role.SYSTEM, "/clear"),
        ("u3", Role.SYSTEM, "red"),
        ("u4/beside", Role.SYSTEM, "a.py is open"),
        ("u4", Role.USER, "fix it"),
        ("a1", Role.ASSISTANT, f"{opened} is not mine"),
    ]
    (session,) = store.list_sessions(SessionFilter())
    assert session.title == "fix it"


def test_a_private_passage_that_begins_in_an_editor_hides_the_words_after_it(
    store: SqliteHistory,
) -> None:
    selection = "<ide_selection>a <private> b</ide_selection>\nthe password"

    take(an_intake(store), a_message(selection, native_id="u1"))

    assert said(store) == [("u1", Role.USER, "<ide_selection>a [private]")]


def test_the_summary_of_an_earlier_part_is_not_what_the_person_said(
    store: SqliteHistory,
) -> None:
    text = (
        "This session is being continued from a previous conversation that ran out "
        "of context. We chose tabs."
    )

    take(an_intake(store), a_message(text, native_id="u1"))

    assert said(store) == [("u1", Role.SUMMARY, text)]


@pytest.mark.parametrize("role", Role)
def test_only_what_people_and_models_say_keeps_its_colours(
    store: SqliteHistory, role: Role
) -> None:
    take(an_intake(store), a_message("\x1b[31mred\x1b[m", role, native_id="u1"))

    is_said = role in (Role.USER, Role.ASSISTANT)
    assert texts(store) == ["\x1b[31mred\x1b[m" if is_said else "red"]


def test_a_title_has_neither_markup_nor_colours(store: SqliteHistory) -> None:
    take(
        an_intake(store),
        SessionFacts("s1", title="<system-reminder>x</system-reminder>\x1b[1mTabs"),
        a_message("Fix it"),
        SessionFacts("s1", title="<command-name>/clear</command-name>"),
    )

    (session,) = store.list_sessions(SessionFilter())
    assert session.title == "Tabs"


def test_a_session_in_which_nobody_asks_is_named_by_its_first_answer(
    store: SqliteHistory,
) -> None:
    take(
        an_intake(store),
        a_message("<command-name>/init</command-name>", native_id="u1"),
        a_message("I will write CLAUDE.md.", Role.ASSISTANT),
    )

    (session,) = store.list_sessions(SessionFilter())
    assert session.title == "I will write CLAUDE.md."
