"""Messages become units with their neighbours' words, and chunks of whole messages."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.index.chunks import (
    MAX_CHUNK_TOKENS,
    SPOKEN_ROLES,
    chunk_text,
    cut_chunks,
    cut_units,
    session_unit,
)
from backstory.values.history import Message, Role, Session, SessionKind
from backstory.values.moments import Moment
from backstory.values.units import NewChunk, UnitKind

SENT = Moment(datetime(2026, 2, 20, 12, 0, tzinfo=UTC), 0)


def a_session(**more: object) -> Session:
    facts: dict[str, object] = {
        "session_id": 1,
        "host": "python",
        "native_id": "s1",
        "title": "",
        "project": None,
        "git_branch": None,
        "parent_id": None,
        "started": SENT,
        "last_active": SENT,
        "message_count": 1,
        "preview": "",
        "read_from": None,
    }
    return Session(**(facts | more))  # type: ignore[arg-type]


def a_message(position: int, text: str, role: Role = Role.USER) -> Message:
    return Message(position + 1, 1, f"m{position}", position, role, text, sent=SENT)


def talk(*texts: str) -> list[Message]:
    return [a_message(place, text) for place, text in enumerate(texts)]


def around(messages: list[Message]) -> dict[int, str]:
    """The words around each unit, without the day."""
    units = cut_units(a_session(), messages, 0, len(messages) - 1)
    return {unit.position: "|".join(unit.around.splitlines()[:-1]) for unit in units}


def test_short_neighbours_stand_around_a_message_and_long_ones_do_not() -> None:
    messages = talk("shall we fly?", "yes", "x" * 301, "when?")

    assert around(messages) == {0: "yes", 1: "shall we fly?", 2: "yes|when?", 3: ""}


def test_neighbours_are_found_over_what_tools_said_but_not_too_far() -> None:
    tools = [a_message(place, "noise", Role.TOOL_RESULT) for place in range(1, 8)]
    near = [a_message(0, "before"), *tools, a_message(8, "after")]
    far = [a_message(0, "before"), *tools, a_message(9, "after")]

    assert (around(near)[0], around(near)[8]) == ("after", "before")
    assert (around(far)[0], around(far)[9]) == ("", "")


def test_what_a_tool_said_is_found_by_its_words_and_its_name_alone() -> None:
    message = Message(1, 1, "m", 0, Role.TOOL_RESULT, "42", tool_name="Bash", sent=SENT)

    (unit,) = cut_units(a_session(), [message], 0, 0)

    assert (unit.kind, unit.text, unit.around, unit.meaning) == (
        UnitKind.OTHER,
        "42",
        "Bash",
        None,
    )


@pytest.mark.parametrize(
    ("role", "text", "following", "has_meaning"),
    [
        (Role.ASSISTANT, "Let me check the logs first.", Role.TOOL_CALL, False),
        (Role.ASSISTANT, "x" * 149, Role.TOOL_CALL, False),
        (Role.ASSISTANT, "x" * 150, Role.TOOL_CALL, True),
        (Role.ASSISTANT, "Committed as 4f2a91c.", Role.USER, True),
        (Role.ASSISTANT, "One moment.", Role.ASSISTANT, True),
        (Role.USER, "Check the logs, please.", Role.TOOL_CALL, True),
    ],
)
def test_only_a_short_step_to_a_call_of_a_tool_has_no_meaning(
    role: Role, text: str, following: Role, has_meaning: bool
) -> None:
    messages = [a_message(0, text, role), a_message(1, "and then", following)]

    step, _ = cut_units(a_session(), messages, 0, 1)

    assert step.meaning == (text if has_meaning else None)


def test_a_run_takes_the_spoken_messages_beside_it_along() -> None:
    messages = talk(*"abcdefg")

    cut = [unit.position for unit in cut_units(a_session(), messages, 3, 3)]

    assert cut == [2, 3, 4]


def test_what_is_empty_or_asks_a_memory_tool_is_not_found() -> None:
    messages = [
        a_message(0, " \n"),
        Message(
            2,
            1,
            "m",
            1,
            Role.TOOL_CALL,
            "{}",
            tool_name="mcp__backstory__search_history",
        ),
        a_message(2, "kept"),
    ]

    assert [u.text for u in cut_units(a_session(), messages, 0, 2)] == ["kept"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (SessionKind.CONVERSATION, UnitKind.USER),
        (SessionKind.MEMORY, UnitKind.MEMORY),
        (SessionKind.DAILY_LOG, UnitKind.DAILY_LOG),
    ],
)
def test_messages_of_notes_are_notes(kind: SessionKind, expected: UnitKind) -> None:
    session = a_session(kind=kind, title="T")

    (unit,) = cut_units(session, talk("fact"), 0, 0)

    assert unit.kind is expected
    assert (session_unit(session) is None) == (kind is not SessionKind.CONVERSATION)


def test_a_chunk_is_as_many_messages_as_fit() -> None:
    messages = talk("a" * 2_000, "b" * 2_000, "c" * 2_000, "d" * 9_000, "e")

    assert list(cut_chunks(messages)) == [
        NewChunk(0, 1, 1_004),
        NewChunk(2, 2, 502),
        NewChunk(3, 3, 2_252),
        NewChunk(4, 4, 3),
    ]


_messages = st.lists(
    st.tuples(st.integers(0, 6_000), st.sampled_from(list(Role))), max_size=30
).map(
    lambda sizes: [
        a_message(place, "é" * size, role) for place, (size, role) in enumerate(sizes)
    ]
)


@given(messages=_messages)
def test_chunks_hold_every_spoken_message_once_in_order(
    messages: list[Message],
) -> None:
    chunks = list(cut_chunks(messages))

    held = [
        message
        for chunk in chunks
        for message in messages
        if chunk.first_position <= message.position <= chunk.last_position
        and message.role in SPOKEN_ROLES
    ]
    assert held == [message for message in messages if message.role in SPOKEN_ROLES]
    assert all(
        chunk.token_count <= MAX_CHUNK_TOKENS
        or chunk.first_position == chunk.last_position
        for chunk in chunks
    )


def test_a_chunk_is_shown_with_who_said_what() -> None:
    messages = [
        a_message(0, "How long?"),
        a_message(1, "{}", Role.TOOL_CALL),
        a_message(2, "An hour.", Role.ASSISTANT),
    ]

    assert chunk_text(a_session(), messages) == "User: How long?\nAgent: An hour."
