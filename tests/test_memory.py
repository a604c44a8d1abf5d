"""Memory, the one object users hold: recording a conversation of one's own."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import backstory
from backstory import Memory, Message, Role, RunHistory, TextResult
from backstory.errors import BadQuery, ConfigError, UnknownName
from backstory.store.sqlite.history import SqliteHistory
from backstory.values.moments import Moment
from tests.samples import a_memory


def test_two_lines_record_a_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_HOME", str(tmp_path / "kept"))

    memory = backstory.Memory.open()
    memory.record("trip", "user", "We fly on Tuesday.")

    (session,) = memory.sessions()
    assert (session.host, session.native_id, session.title, session.preview) == (
        "python",
        "trip",
        "We fly on Tuesday.",
        "We fly on Tuesday.",
    )
    memory.close()


def test_a_recorded_message_comes_back_whole(memory: Memory) -> None:
    sent_at = datetime(2026, 2, 20, 14, 32, tzinfo=timezone(timedelta(hours=1)))

    number = memory.record(
        "trip",
        Role.TOOL_CALL,
        {"city": "Köln"},
        tool_name="weather",
        call_id="c1",
        sent_at=sent_at,
        message="m1",
    )

    assert number == 1
    assert list(memory.messages(memory.session("trip"))) == [
        Message(
            message_id=1,
            session_id=1,
            native_id="m1",
            position=0,
            role=Role.TOOL_CALL,
            text='{"city":"Köln"}',
            tool_name="weather",
            call_id="c1",
            sent=Moment(datetime(2026, 2, 20, 13, 32, tzinfo=UTC), 60),
        )
    ]


def test_text_is_kept_verbatim(memory: Memory) -> None:
    text = (
        "  tabs\tand\r\nline ends\x00, emoji 🙂, 日本語, and a lot of it: "
        + "x" * 300_000
    )

    memory.record("trip", "assistant", text)

    (message,) = memory.messages(memory.session("trip"))
    assert message.text == text


def test_half_a_character_is_replaced_since_nothing_can_hold_it(memory: Memory) -> None:
    memory.record("trip", "user", "half \ud83d gone")

    (message,) = memory.messages(memory.session("trip"))
    assert message.text == "half \ufffd gone"


def test_recording_a_message_again_replaces_it(memory: Memory) -> None:
    first = memory.record("trip", "assistant", "Thinking…", message="m1")
    memory.record("trip", "user", "And?", message="m2")

    again = memory.record("trip", "assistant", "On Tuesday.", message="m1")

    assert again == first
    texts = [message.text for message in memory.messages(memory.session("trip"))]
    assert texts == ["On Tuesday.", "And?"]


def test_a_naive_time_is_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()

    with a_memory(tmp_path) as memory:
        memory.record("trip", "user", "hi", sent_at=datetime(2026, 2, 20, 9, 0))
        (message,) = memory.messages(memory.session("trip"))

    assert message.sent == Moment(datetime(2026, 2, 20, 0, 0, tzinfo=UTC))


def test_facts_about_the_session_are_kept(memory: Memory) -> None:
    memory.record(
        "main", "user", "hi", host="my-agent", title="Trip", project="/srv/trip"
    )
    memory.record("sub", "user", "go", host="my-agent", parent="main")

    listed = [
        (each.host, each.native_id, each.title, each.project, each.parent_id)
        for each in memory.sessions(host="my-agent")
    ]

    assert sorted(listed) == [
        ("my-agent", "main", "Trip", "/srv/trip", None),
        ("my-agent", "sub", "go", None, "main"),
    ]


@pytest.mark.parametrize("at_once", [False, True])
def test_a_private_passage_over_recorded_messages_is_not_kept(
    memory: Memory, at_once: bool
) -> None:
    said = ["one <private>S3CRET", "S3CRET again", "S3CRET</private> two"]
    if at_once:
        memory.record_messages("trip", [{"role": "user", "content": m} for m in said])
    else:
        for each in said:
            memory.record("trip", "user", each)

    kept = [message.text for message in memory.messages("trip")]
    assert kept == ["one [private]", "[private]", "[private] two"]


def test_private_passages_are_not_recorded(memory: Memory) -> None:
    memory.record(
        "trip", "user", "pin <private>1234</private>", title="<private>x</private>"
    )

    session = memory.session("trip")
    (message,) = memory.messages(session)
    assert (message.text, session.title) == ("pin [private]", "[private]")


def test_long_tool_results_are_cut(memory: Memory) -> None:
    memory.record("trip", "tool_result", "x" * 70_000, call_id="c1")

    (message,) = memory.messages(memory.session("trip"))
    assert message.text == (
        "x" * 32_768 + "\n[cut: 4,464 of 70,000 bytes left out]\n" + "x" * 32_768
    )
    assert message.full_bytes == 70_000


def test_an_unknown_role_is_refused_with_the_roles_there_are(memory: Memory) -> None:
    with pytest.raises(UnknownName, match="there is no role 'human'") as caught:
        memory.record("trip", "human", "hi")

    assert caught.value.hint == (
        "the roles are: user, assistant, tool_call, tool_result, system, summary, error"
    )


@pytest.mark.parametrize("role", ["user", "assistant", "system", "summary", "error"])
def test_nothing_said_is_refused(memory: Memory, role: str) -> None:
    with pytest.raises(BadQuery, match=f"the text of a message by {role} is None"):
        memory.record("trip", role, None)

    assert memory.sessions() == []


@pytest.mark.parametrize("role", ["user", "assistant", "tool_result", "summary"])
def test_an_answer_of_a_memory_tool_is_not_recorded_in_any_role(
    memory: Memory, role: str
) -> None:
    memory.record("sea", "user", "The lighthouse keeper likes tea.")
    tools = {tool.name: tool for tool in memory.tools()}
    answers = [
        tools["search_history"].call({"query": "lighthouse"}).text,
        tools["read_session"].call({"session": "sea"}).text,
    ]

    recorded = [memory.record("now", role, answer) for answer in answers]
    another = memory.record("now", role, answers[0].replace("tea", "rum"))

    assert recorded == [None, None]
    assert another is not None


def test_a_tool_may_answer_with_nothing(memory: Memory) -> None:
    memory.record("trip", "tool_result", None, call_id="c1")

    (message,) = memory.messages("trip")
    assert message.text == "null"


def test_a_session_without_a_name_is_refused(memory: Memory) -> None:
    with pytest.raises(UnknownName, match="a session needs a name"):
        memory.record("", "user", "hi")


def test_two_hosts_may_use_the_same_session_id(memory: Memory) -> None:
    memory.record("trip", "user", "one", host="a")
    memory.record("trip", "user", "two", host="b")

    with pytest.raises(UnknownName, match="'trip' matches 2 sessions") as caught:
        memory.session("trip")

    assert caught.value.hint == "say which: a/trip, b/trip"
    assert memory.session("b/trip").preview == "two"


def test_a_long_session_comes_back_in_order(memory: Memory) -> None:
    for number in range(1_201):
        memory.record("trip", "user", str(number))

    texts = [message.text for message in memory.messages(memory.session("trip"))]

    assert texts == [str(number) for number in range(1_201)]


def test_a_beginning_that_a_subagent_shares_names_the_parent(memory: Memory) -> None:
    memory.record("b2bf17a9", "user", "hi")
    memory.record("b2bf17a9/c6384fe5", "user", "go", parent="b2bf17a9")

    found = [memory.session(name).native_id for name in ("b2bf", "b2bf17a9/c")]

    assert found == ["b2bf17a9", "b2bf17a9/c6384fe5"]


def test_a_configuration_file_that_is_named_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_CONFIG", str(tmp_path / "nowhere.toml"))

    with pytest.raises(ConfigError, match="BACKSTORY_CONFIG: there is no file"):
        Memory.open(tmp_path)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {"path": Path("/x"), "text": "the answer"},
            '{"path": "/x", "text": "the answer"}',
        ),
        (10**30, "1" + "0" * 30),
        ({"when": datetime(2026, 2, 20)}, '{"when":"2026-02-20T00:00:00"}'),
        ([b"bytes"], "[\"b'bytes'\"]"),
    ],
    ids=["path", "large number", "time", "bytes"],
)
def test_what_json_does_not_know_is_recorded_all_the_same(
    memory: Memory, value: object, text: str
) -> None:
    memory.record("trip", "tool_result", value, call_id="c1")

    (message,) = memory.messages(memory.session("trip"))
    assert message.text == text


def test_a_recalled_memory_is_not_recorded(memory: Memory) -> None:
    memory.tools(session="trip")
    number = memory.record("trip", "tool_result", "old", tool_name="search_history")

    assert (number, memory.sessions()) == (None, [])


def test_memories_that_a_prompt_was_given_are_not_read_back(tmp_path: Path) -> None:
    with a_memory(tmp_path, settings=("embedder.name=none",)) as memory:
        memory.notebook.add_fact("likes walnuts")
        context = memory.context("What shall we plant?").text
        forged = context.replace("walnuts", "quinces")
        transcript = tmp_path / "chat.backstory.jsonl"
        lines = [
            {"role": "user", "text": f"{context}\nPlant!"},
            {"role": "user", "text": forged},
            {"role": "tool_result", "text": forged},
        ]
        transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))

        memory.index(path=transcript)

        texts = [each.text for each in memory.messages("chat")]
    assert texts == ["Plant!", forged, forged]


def test_a_tool_that_was_not_given_out_here_is_recorded(memory: Memory) -> None:
    memory.tools(session="trip")
    number = memory.record("other", "tool_result", "old", tool_name="search_history")

    assert number is not None


def test_a_session_in_an_excluded_folder_is_not_recorded(tmp_path: Path) -> None:
    with a_memory(tmp_path, settings=("exclude.folders=/secret",)) as memory:
        first = memory.record("trip", "user", "hi", project="/secret/x")
        later = memory.record("trip", "assistant", "hello")

        assert (first, later, memory.sessions()) == (None, None, [])


def test_a_typo_in_what_is_excluded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"exclude\.hosts: no agent program"
    ) as caught:
        a_memory(tmp_path, settings=("exclude.hosts=codx",))

    assert caught.value.hint == "did you mean 'codex'?"


def test_recording_waits_for_the_disk(memory: Memory) -> None:
    memory.index()
    memory.record("trip", "user", "hi")

    history = memory._parts.history
    assert isinstance(history, SqliteHistory)
    assert history._db.execute("PRAGMA synchronous").get == 2


def test_messages_are_found_by_the_name_of_their_session(memory: Memory) -> None:
    memory.record("trip", "user", "one")
    number = memory.record("trip", "user", "two")
    memory.record("trip", "user", "three")

    found = [m.text for m in memory.messages("trip", around=number, context=0)]

    assert found == ["two"]


def test_a_number_is_never_taken_for_the_id_that_a_program_gave(memory: Memory) -> None:
    numbers = [
        memory.record("trip", "user", text, message=native_id)
        for text, native_id in (("first", "2"), ("second", "1"))
    ]

    found = [
        m.text
        for around in (*numbers, *map(str, numbers))
        for m in memory.messages("trip", around=around, context=0)
    ]

    assert numbers == [1, 2]
    assert found == ["first", "second", "second", "first"]


def test_a_day_without_a_zone_is_a_local_one(memory: Memory) -> None:
    memory.record("trip", "user", "hi", sent_at=datetime(2026, 2, 20, 9, 0))

    found = [
        len(memory.sessions(since=datetime(2026, 2, day, 0, 0))) for day in (20, 21)
    ]

    assert found == [1, 0]


# -- replies ---


def reply_to(memory: Memory, query: str) -> str | None:
    hit = memory.search(query, sources="message", limit=1).hits[0]
    return None if hit.reply is None else hit.reply.text


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Memory]:
    with a_memory(tmp_path, settings=("embedder.name=none",)) as opened:
        opened.record("s", "user", "aardvark first?")
        opened.record("s", "assistant", "Let me look.")
        opened.record("s", "tool_call", {"x": 1}, tool_name="Bash", call_id="c1")
        opened.record("s", "tool_result", "output", call_id="c1")
        opened.record("s", "assistant", "It is the second.")
        opened.record("s", "user", "badger")
        opened.record("s", "user", "chinchilla")
        opened.record("t", "user", "dromedary")
        yield opened


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("aardvark", "It is the second."),
        ("badger", None),
        ("chinchilla", None),
        ("dromedary", None),
        ("second", None),
    ],
    ids=["the last word", "asked twice", "the end", "alone", "the agent's own"],
)
def test_a_found_question_comes_with_the_agents_last_word_on_it(
    talk: Memory, query: str, expected: str | None
) -> None:
    assert reply_to(talk, query) == expected


def test_a_message_that_is_not_there_is_refused_with_a_command_that_works(
    memory: Memory,
) -> None:
    memory.record("-x", "user", "hi")

    with pytest.raises(UnknownName) as raised:
        memory.messages("-x", around=99)

    assert raised.value.hint == "run 'backstory show -- -x' to see their numbers"


# -- words that nobody said ---


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("aardvrak", ("did you mean 'aardvark'?",)),
        ("a badgre or chinchila", ("did you mean 'a badger or chinchilla'?",)),
        ("aardvarks", ()),
        ("zyzzyva", ()),
        ("fecond", ("did you mean 'second'?",)),
        ("lookung", ()),
    ],
    ids=["a letter", "two words", "an ending", "nothing near", "first", "a stem alone"],
)
def test_a_query_that_finds_nothing_may_be_put_right(
    talk: Memory, query: str, expected: tuple[str, ...]
) -> None:
    assert talk.search(query, sources="message").notices == expected


@pytest.mark.parametrize(
    ("query", "is_told"),
    [
        ("c336b942-7b39-4873", True),
        ("C336B942", False),
        ("c336b942", True),
        ("python/c336b942", True),
        ("c336b9 42", False),
        ("c336b", False),
        ("84b5be2", False),
        ("gardening", False),
    ],
)
def test_the_id_of_a_session_is_told_apart_from_what_was_said(
    memory: Memory, query: str, is_told: bool
) -> None:
    memory.record("c336b942-7b39-4873", "user", "Plant the beans.")
    memory.record("gardening", "user", "Water the peas.")
    told = "a session has this id: backstory show c336b942-7b39-4873"

    notices = memory.search(query, sources="message").notices

    assert [each for each in notices if "id:" in each.split()] == [told] * is_told


# -- the messages of an agent loop ---


def kept_messages(memory: Memory, session: str) -> list[tuple[str, str, str | None]]:
    return [
        (each.role.value, each.text, each.tool_name)
        for each in memory.messages(memory.session(session))
    ]


def test_results_that_a_loop_marks_are_not_recorded_as_the_users_words(
    memory: Memory,
) -> None:
    def find_results(message: Any) -> list[TextResult]:
        head, _, text = message["content"].partition("RESULT: ")
        return [] if head else [TextResult(text, tool_name="ls")]

    memory.record_messages(
        "trip",
        [
            {"role": "user", "content": "What is there?"},
            {"role": "user", "content": "RESULT: walnut.txt"},
        ],
        find_results=find_results,
    )

    assert kept_messages(memory, "trip") == [
        ("user", "What is there?", None),
        ("tool_result", "walnut.txt", "ls"),
    ]


def test_messages_of_one_session_and_items_of_a_run_can_be_recorded(
    memory: Memory,
) -> None:
    memory.record("trip", "user", "Will it rain?")
    memory.record("trip", "tool_call", {"city": "Ulm"}, tool_name="weather")
    memory.record("trip", "assistant", "Take an umbrella.")

    said = list(memory.messages("trip"))
    memory.record_messages("copied", said)
    with RunHistory() as run:
        run.observe(said)
        memory.record_messages("from-run", run.items())

    assert (
        kept_messages(memory, "trip")
        == kept_messages(memory, "copied")
        == kept_messages(memory, "from-run")
        == [
            ("user", "Will it rain?", None),
            ("tool_call", '{"city":"Ulm"}', "weather"),
            ("assistant", "Take an umbrella.", None),
        ]
    )


def test_messages_are_recorded_as_an_api_has_them(memory: Memory) -> None:
    count = memory.record_messages(
        "trip",
        [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Will it rain?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c1", "name": "weather", "input": {}},
                ],
            },
            {"type": "function_call_output", "call_id": "c1", "output": "rain"},
            {"type": "ai", "content": "Take an umbrella."},
        ],
        title="A trip",
    )

    assert count == 5
    assert memory.session("trip").title == "A trip"
    assert kept_messages(memory, "trip") == [
        ("user", "Will it rain?", None),
        ("assistant", "I look.", None),
        ("tool_call", "{}", "weather"),
        ("tool_result", "rain", "weather"),
        ("assistant", "Take an umbrella.", None),
    ]


def test_recalled_memories_are_not_recorded_with_messages(tmp_path: Path) -> None:
    with a_memory(tmp_path, settings=("embedder.name=none",)) as memory:
        memory.record("garden", "user", "The walnut is by the gate.")
        memory.notebook.add_fact("likes walnuts")
        search, *_ = memory.tools(session="trip")
        answer = search.call({"query": "walnut"}).text
        context = memory.context("Where is it?").text
        call = {"id": "c1", "function": {"name": search.name, "arguments": "{}"}}

        count = memory.record_messages(
            "trip",
            [
                {"role": "user", "content": context},
                {"role": "user", "content": f"{context}\nWhere is it?"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": answer},
                {"role": "user", "content": f"You found:\n{answer}"},
            ],
        )

        assert "by the gate" in answer
        assert count == 3
        assert kept_messages(memory, "trip") == [
            ("user", "Where is it?", None),
            ("tool_call", "{}", "backstory/search_history"),
            ("user", "You found:\n", None),
        ]


def test_a_message_in_an_unknown_format_costs_no_other(memory: Memory) -> None:
    messages = [{"role": "user", "content": "one"}, {"no": 1}, {"role": "wizard"}]

    with pytest.raises(BadQuery, match=r"unknown format \(its keys: no\)"):
        memory.record_messages("trip", [*messages, {"role": "user", "content": "two"}])

    assert [text for _, text, _ in kept_messages(memory, "trip")] == ["one", "two"]


@pytest.mark.parametrize("messages", ["hi", None, {"role": "user"}, iter(())])
def test_what_is_no_list_of_messages_is_refused(
    memory: Memory, messages: object
) -> None:
    with pytest.raises(BadQuery, match="not a list"):
        memory.record_messages("trip", messages)  # type: ignore[arg-type]


def test_messages_in_an_excluded_folder_are_not_recorded(tmp_path: Path) -> None:
    with a_memory(tmp_path, settings=("exclude.folders=/secret",)) as memory:
        hi = [{"role": "user", "content": "hi"}]
        count = memory.record_messages("trip", hi, project="/secret/x")

        assert (count, memory.sessions()) == (0, [])


def test_a_message_is_named_by_its_place_in_its_session(memory: Memory) -> None:
    for number in range(1, 8):
        memory.record("one", "user", f"Number {number}")
        memory.record("two", "user", "Something else")

    around = memory.messages("one", place=3, context=1)

    assert [message.text for message in around] == ["Number 2", "Number 3", "Number 4"]
    for place in (0, 8, -1):
        with pytest.raises(UnknownName, match=f"has no message {place}"):
            memory.messages("one", place=place)
    with pytest.raises(BadQuery, match="around and place both say which message"):
        memory.messages("one", place=1, around=1)
