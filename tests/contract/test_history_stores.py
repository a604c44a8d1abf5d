"""What every history store must do, whatever database is behind it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backstory.store.base.history import (
    Batch,
    HistoryStore,
    KeptMessage,
    ReadFile,
    SessionFilter,
    SourceKey,
    SourceState,
    Written,
)
from backstory.values.history import (
    Message,
    MessageTitle,
    NewMessage,
    Problem,
    Role,
    SessionFacts,
)
from backstory.values.moments import Moment, whole_day
from tests.chance import examples
from tests.contract.stores import Stores

NOW = datetime(2026, 2, 20, 12, 0, tzinfo=UTC)


def a_message(
    text: str = "hello",
    *,
    native_id: str = "m1",
    session: str = "s1",
    role: Role = Role.USER,
    minute: int = 0,
) -> KeptMessage:
    sent = Moment(NOW + timedelta(minutes=minute), 60)
    return KeptMessage(NewMessage(session, native_id, role, text, sent=sent))


def a_batch(*messages: KeptMessage, **more: object) -> Batch:
    return Batch("host", messages=list(messages), **more)  # type: ignore[arg-type]


def texts(store: HistoryStore, session: str = "s1") -> list[str]:
    (found,) = store.find_sessions(session)
    return [message.text for message in store.iter_messages(found.session_id)]


def test_messages_are_counted_by_the_quarter_of_an_hour(store: HistoryStore) -> None:
    day = NewMessage("s1", "d", Role.USER, "", sent=whole_day(NOW.date()))
    undated = NewMessage("s1", "n", Role.USER, "")
    store.write(
        a_batch(
            *(a_message(native_id=str(each), minute=each) for each in (0, 14, 15)),
            a_message(session="s2"),
            KeptMessage(day),
            KeptMessage(undated),
        ),
        now=NOW,
    )
    (session,) = store.find_sessions("s1")
    noon = Moment(NOW).to_microseconds()

    found = store.count_by_quarter_hour([session.session_id])

    assert found == {noon: 2, noon + 15 * 60 * 1_000_000: 1}
    assert store.count_by_quarter_hour([]) == {}


def test_messages_come_back_as_they_went_in(store: HistoryStore) -> None:
    written = store.write(
        a_batch(a_message("one"), a_message("two", native_id="m2")), now=NOW
    )

    (session,) = store.list_sessions(SessionFilter())
    assert written == Written(made_sessions=("s1",), new_messages=2, last_message_id=2)
    assert list(store.iter_messages(session.session_id)) == [
        Message(1, 1, "m1", 0, Role.USER, "one", sent=Moment(NOW, 60)),
        Message(2, 1, "m2", 1, Role.USER, "two", sent=Moment(NOW, 60)),
    ]


def test_writing_the_same_again_changes_nothing(store: HistoryStore) -> None:
    store.write(a_batch(a_message()), now=NOW)

    assert store.write(a_batch(a_message()), now=NOW) == Written(last_message_id=1)


def test_only_titles_that_were_given_are_told(store: HistoryStore) -> None:
    batch = a_batch(a_message(), a_message(session="s2"), a_message(session="s3"))
    batch.facts.append(SessionFacts("s1", title="Given"))
    batch.facts.append(SessionFacts("s2"))
    batch.titles.append(MessageTitle("m9", "By its message"))
    batch.messages.append(a_message(session="s3", native_id="m9"))
    store.write(batch, now=NOW)

    numbers = {s.session_id: s.native_id for s in store.list_sessions(SessionFilter())}
    titles = store.get_titles(numbers)

    assert {numbers[number]: title for number, title in titles.items()} == {
        "s1": "Given",
        "s3": "By its message",
    }


def test_how_far_a_session_was_summarized_only_moves_on(store: HistoryStore) -> None:
    messages = [a_message(native_id=f"m{number}") for number in range(3)]
    logged = []
    for message_id in ("m1", "m0", "nowhere", "m2"):
        store.write(a_batch(*messages, logged=[("s1", message_id)]), now=NOW)
        (session,) = store.list_sessions(SessionFilter())
        logged.append(session.last_logged_message_id)
    store.write(a_batch(logged=[("unknown", "m1")]), now=NOW)

    assert logged == [2, 2, 2, 3]


def test_what_was_written_quickly_can_be_made_durable(store: HistoryStore) -> None:
    store.write(a_batch(a_message("quick")), now=NOW, is_durable=False)

    store.make_durable()

    assert texts(store) == ["quick"]


def test_a_replacing_batch_changes_the_message_and_keeps_its_place(
    store: HistoryStore,
) -> None:
    store.write(a_batch(a_message("one"), a_message("two", native_id="m2")), now=NOW)

    written = store.write(a_batch(a_message("ONE"), replaces=True), now=NOW)

    assert written == Written(changed_messages=1, last_message_id=1)
    assert texts(store) == ["ONE", "two"]


def test_a_message_written_again_keeps_its_first_time(store: HistoryStore) -> None:
    store.write(a_batch(a_message("one", minute=3)), now=NOW)

    store.write(a_batch(a_message("ONE", minute=9), replaces=True), now=NOW)

    (session,) = store.find_sessions("s1")
    (message,) = store.iter_messages(session.session_id)
    assert (message.text, message.sent) == (
        "ONE",
        Moment(NOW + timedelta(minutes=3), 60),
    )


def test_an_id_given_twice_keeps_both_and_says_where(store: HistoryStore) -> None:
    twice = KeptMessage(a_message("other").message, line=7)

    written = store.write(
        a_batch(a_message("one"), twice, read_from="a.jsonl"), now=NOW
    )

    assert written.problems == (
        Problem(
            "the id 'm1' is given twice, with different contents; both are kept",
            7,
            "a.jsonl",
        ),
    )
    assert texts(store) == ["one", "other"]


def test_a_second_reading_replaces_what_it_meets_for_the_first_time(
    store: HistoryStore,
) -> None:
    store.write(a_batch(a_message("one")), now=NOW)
    reread: set[int] = set()

    store.write(a_batch(a_message("ONE"), reread=reread), now=NOW)
    again = store.write(a_batch(a_message("another"), reread=reread), now=NOW)

    assert len(again.problems) == 1
    assert texts(store) == ["ONE", "another"]


def test_what_a_session_is_called_follows_the_last_word_and_where_it_began_the_first(
    store: HistoryStore,
) -> None:
    first = SessionFacts("s1", title="A", project="/one", git_branch="main")
    later = SessionFacts(
        "s1", title="B", project="/two", git_branch="dev", parent_id="p"
    )

    store.write(Batch("host", facts=[first, later], messages=[a_message()]), now=NOW)

    (session,) = store.list_sessions(SessionFilter())
    assert (session.title, session.project, session.git_branch, session.parent_id) == (
        "B",
        "/one",
        "main",
        "p",
    )


def test_a_session_spans_its_messages(store: HistoryStore) -> None:
    store.write(
        a_batch(
            a_message(minute=5),
            a_message(native_id="m2", minute=1),
            a_message("the end", native_id="m3", role=Role.ASSISTANT, minute=9),
            a_message("noise", native_id="m4", role=Role.TOOL_RESULT, minute=3),
        ),
        now=NOW,
    )

    (session,) = store.list_sessions(SessionFilter())
    assert session.started == Moment(NOW + timedelta(minutes=1), 60)
    assert session.last_active == Moment(NOW + timedelta(minutes=9), 60)
    assert (session.message_count, session.preview) == (4, "the end")


def test_a_session_without_messages_is_not_listed(store: HistoryStore) -> None:
    store.write(Batch("host", facts=[SessionFacts("s1", title="A")]), now=NOW)

    assert store.list_sessions(SessionFilter()) == []


def test_a_companion_waits_for_the_session_it_speaks_of(store: HistoryStore) -> None:
    state = SourceState(SourceKey("meta.json"), "host", "format", "signature")
    batch = Batch(
        "host", facts=[SessionFacts("s1", title="A")], progress=state, is_companion=True
    )
    store.write(batch, now=NOW)
    before = store.list_sources()[state.key].signature
    store.write(a_batch(a_message()), now=NOW)

    store.write(batch, now=NOW)

    (session,) = store.list_sessions(SessionFilter())
    assert (before, session.title) == ("", "A")
    assert store.list_sources() == {state.key: state}


def test_a_failed_batch_leaves_the_store_as_it_was(store: HistoryStore) -> None:
    store.write(a_batch(a_message("one")), now=NOW)
    broken = KeptMessage(NewMessage("s1", "m2", Role.USER, object()))  # type: ignore[arg-type]

    with pytest.raises(TypeError):
        store.write(a_batch(a_message("two", native_id="m3"), broken), now=NOW)

    assert texts(store) == ["one"]
    assert store.verify() == []


def test_problems_after_the_place_that_is_read_again_are_deleted(
    store: HistoryStore,
) -> None:
    key = SourceKey("a.jsonl")
    state = SourceState(key, "host", "format", "signature")
    problems = [Problem("one", 1, "a.jsonl"), Problem("nine", 9, "a.jsonl")]
    store.write(Batch("host", problems=problems, progress=state, after_line=0), now=NOW)

    store.write(Batch("host", progress=state, after_line=5), now=NOW)

    assert store.list_problems() == [Problem("one", 1, "a.jsonl")]


def test_sessions_are_found_by_id_by_host_and_id_and_by_beginning(
    store: HistoryStore,
) -> None:
    store.write(a_batch(a_message(session="abcdef-1")), now=NOW)
    store.write(a_batch(a_message(session="abcdef-2")), now=NOW)
    store.write(Batch("other", messages=[a_message(session="abc")]), now=NOW)

    found = {
        name: sorted(each.native_id for each in store.find_sessions(name))
        for name in ("abc", "abcd", "abcdef-2", "host/abc", "host/abcdef-1", "x", "%")
    }

    assert found == {
        "abc": ["abc"],
        "abcd": ["abcdef-1", "abcdef-2"],
        "abcdef-2": ["abcdef-2"],
        "host/abc": ["abcdef-1", "abcdef-2"],
        "host/abcdef-1": ["abcdef-1"],
        "x": [],
        "%": [],
    }


# -- many at once ---------------------------------------------------------------------


def a_talk(roles: Sequence[Role], session: str = "s1") -> list[KeptMessage]:
    return [
        a_message(f"text {number}", native_id=f"m{number}", session=session, role=role)
        for number, role in enumerate(roles)
    ]


def test_neighbours_are_what_user_and_assistant_said_next_to_a_place(
    store: HistoryStore,
) -> None:
    roles = [Role.USER, Role.TOOL_CALL, Role.TOOL_RESULT, Role.ASSISTANT, Role.USER]
    store.write(a_batch(*a_talk(roles)), now=NOW)
    (session,) = store.find_sessions("s1")
    said = list(store.iter_messages(session.session_id))

    found = store.find_neighbours([(1, 0), (1, 2), (1, 4), (1, 9), (2, 0)])

    assert found == {
        (1, 0): (None, said[3]),
        (1, 2): (said[0], said[3]),
        (1, 4): (said[3], None),
        (1, 9): (said[4], None),
        (2, 0): (None, None),
    }
    assert store.find_neighbours([]) == {}


USER, AGENT, CALL = Role.USER, Role.ASSISTANT, Role.TOOL_CALL


@pytest.mark.parametrize(
    ("after", "reply"),
    [
        pytest.param([], None, id="nothing was said"),
        pytest.param([AGENT], 1, id="one reply"),
        pytest.param([AGENT, CALL, AGENT, CALL], 3, id="the last reply"),
        pytest.param([AGENT, USER, AGENT], 1, id="the next question ends it"),
        pytest.param([CALL, USER, AGENT], None, id="the user went on"),
        pytest.param([CALL] * 50 + [AGENT], 51, id="other roles do not count"),
        pytest.param([AGENT] * 120, 100, id="no further than 100 messages"),
        pytest.param([AGENT] * 99 + [USER, AGENT], 99, id="a question within the 100"),
    ],
)
def test_the_reply_is_the_last_message_before_the_next_question(
    store: HistoryStore, after: list[Role], reply: int | None
) -> None:
    store.write(a_batch(*a_talk([USER, *after])), now=NOW)
    store.write(a_batch(*a_talk([USER, AGENT], session="s2")), now=NOW)

    found = store.find_replies([(1, 0), (2, 0), (3, 0)])

    positions = {place: message.position for place, message in found.items()}
    assert positions == ({} if reply is None else {(1, 0): reply}) | {(2, 0): 1}


def test_no_places_have_no_replies(store: HistoryStore) -> None:
    assert store.find_replies([]) == {}


def test_parts_of_sessions_are_read_in_order(store: HistoryStore) -> None:
    store.write(a_batch(*a_talk([USER, AGENT, USER])), now=NOW)
    store.write(a_batch(*a_talk([USER, AGENT], session="s2")), now=NOW)
    parts = [(1, 0, 1), (1, 1, 9), (2, 1, 1), (2, 5, 9), (3, 0, 9)]

    found = store.get_ranges(parts)

    assert found == {
        (number, first, last): list(store.iter_messages(number, first=first, last=last))
        for number, first, last in parts
    }
    assert [len(messages) for messages in found.values()] == [2, 2, 1, 0, 0]
    assert store.get_ranges([]) == {}


def test_tools_are_named_by_the_calls_of_their_own_session(store: HistoryStore) -> None:
    def a_call(call_id: str, tool: str | None, session: str, number: int) -> Batch:
        message = NewMessage(
            session, f"m{number}", CALL, "", tool_name=tool, call_id=call_id
        )
        return a_batch(KeptMessage(message))

    store.write(a_call("c1", "grep", "s1", 1), now=NOW)
    store.write(a_call("c1", "another", "s1", 2), now=NOW)
    store.write(a_call("c2", None, "s1", 3), now=NOW)
    store.write(a_call("c1", "find", "s2", 4), now=NOW)
    store.write(a_call("c3", "ls", "s2", 5), now=NOW)

    found = store.find_tool_names([(1, "c1"), (1, "c2"), (2, "c1"), (1, "c3")])

    assert found == {(1, "c1"): "grep", (2, "c1"): "find"}
    assert store.find_tool_names([]) == {}


def test_a_session_has_the_shortest_name_that_is_its_own(store: HistoryStore) -> None:
    ids = ["abcdefgh-1234-1", "abcdefgh-1234-2", "abcdefgh-9999-1", "short", "twice"]
    ids += ["a-parent-of-agents", "a-parent-of-agents/one"]
    ids += ["a-parent-of-agents/another-of-them", "a-parent-of-agents/another-of-us"]
    store.write(a_batch(*(a_message(session=each) for each in ids)), now=NOW)
    store.write(Batch("other", messages=[a_message(session="twice")]), now=NOW)

    assert store.short_ids(range(1, 20)) == {
        1: "abcdefgh-1234-1",
        2: "abcdefgh-1234-2",
        3: "abcdefgh-9999",
        4: "short",
        5: "host/twice",
        6: "a-parent",
        7: "a-parent-of-agents/one",
        8: "a-parent-of-agents/another-of-th",
        9: "a-parent-of-agents/another-of-us",
        10: "other/twice",
    }
    assert store.short_ids([]) == {}


_native_id = st.builds(
    "".join,
    st.lists(st.sampled_from(["a", "host", "other", "/", "12345678", "é"]), min_size=1),
)


@given(
    sessions=st.lists(
        st.tuples(st.sampled_from(["host", "a"]), _native_id, st.booleans()),
        max_size=8,
        unique_by=lambda each: each[:2],
    )
)
@example(
    # Found by its whole name and, on the host "a", by the rest of it.
    sessions=[
        ("host", "a", False),
        ("host", "a/12345678b", True),
        ("a", "12345678", True),
    ]
)
def test_no_shorter_name_finds_a_session_alone(
    stores: Stores, sessions: list[tuple[str, str, bool]]
) -> None:
    store = stores.make_history()
    for host, native_id, has_messages in sessions:
        facts = [SessionFacts(native_id)]
        messages = [a_message(session=native_id)] if has_messages else []
        store.write(Batch(host, facts=facts, messages=messages), now=NOW)

    def find_alone(name: str) -> int | None:
        found = store.find_sessions(name)
        top = [
            each
            for each in found
            if not any(each.native_id.startswith(f"{o.native_id}/") for o in found)
        ]
        return top[0].session_id if len(top) == 1 else None

    def shortest(number: int, host: str, native_id: str) -> str:
        own = native_id.rfind("/") + 1
        lengths = (
            {8, 13, 18, own + 8, own + 13, own + 18} if len(native_id) > 12 else ()
        )
        names = [native_id[:length] for length in sorted(lengths)] + [native_id]
        alone = (name for name in names if find_alone(name) == number)
        return next(alone, f"{host}/{native_id}")

    assert store.short_ids(range(1, 20)) == {
        number: shortest(number, host, native_id)
        for number, (host, native_id, _) in enumerate(sessions, start=1)
    }
    store.close()


# -- laws -----------------------------------------------------------------------------


_kept = st.builds(
    lambda session, native_id, text, role: a_message(
        text, session=session, native_id=native_id, role=role
    ),
    st.sampled_from(["s1", "s2"]),
    st.sampled_from(["m1", "m2", "m3", "m4"]),
    st.sampled_from(["", "one", "two", "\0", "x" * 2_000]),
    st.sampled_from(list(Role)),
)


@settings(max_examples=examples(30))
@given(
    batches=st.lists(st.tuples(st.lists(_kept, max_size=6), st.booleans()), max_size=6)
)
def test_any_sequence_of_batches_leaves_a_sound_store(
    stores: Stores, batches: list[tuple[list[KeptMessage], bool]]
) -> None:
    store = stores.make_history()

    for messages, replaces in batches:
        store.write(a_batch(*messages, replaces=replaces), now=NOW)

    assert store.verify() == []
    for session in store.list_sessions(SessionFilter()):
        positions = [m.position for m in store.iter_messages(session.session_id)]
        assert positions == list(range(session.message_count))
    store.close()


@settings(max_examples=examples(30))
@given(messages=st.lists(_kept, max_size=12), cut=st.integers(0, 12))
def test_how_messages_are_cut_into_batches_makes_no_difference(
    stores: Stores, messages: list[KeptMessage], cut: int
) -> None:
    whole, parts = stores.make_history(), stores.make_history()

    whole.write(a_batch(*messages), now=NOW)
    parts.write(a_batch(*messages[:cut]), now=NOW)
    parts.write(a_batch(*messages[cut:]), now=NOW)

    def held(store: HistoryStore) -> dict[str, list[tuple[str, int, str]]]:
        return {
            session.native_id: [
                (message.native_id, message.position, message.text)
                for message in store.iter_messages(session.session_id)
            ]
            for session in store.list_sessions(SessionFilter())
        }

    assert held(parts) == held(whole)
    whole.close()
    parts.close()


def test_read_files_say_what_each_source_looked_like(store: HistoryStore) -> None:
    for part in ("", "entry"):
        state = SourceState(
            SourceKey("/a.zip", part), "host", "format", f"seen{part}", excluded_by="x"
        )
        store.write(a_batch(progress=state), now=NOW)

    assert sorted(store.list_read_files()) == [
        ReadFile("/a.zip", "host", "seen", "x"),
        ReadFile("/a.zip", "host", "seenentry", "x"),
    ]


def test_loose_problems_are_added_once(store: HistoryStore) -> None:
    one, two = Problem("unreadable", path="/a"), Problem("unreadable", path="/b")
    store.replace_loose_problems([one], now=NOW)

    store.add_loose_problems([one, two], now=NOW)
    assert store.list_problems() == [one, two]

    store.replace_loose_problems([two], now=NOW)
    assert store.list_problems() == [two]


# -- titles that are known by a message ---


def a_titled(store: HistoryStore, *titles: MessageTitle) -> str:
    """The title of the only session after these titles came."""
    store.write(Batch("agent", titles=list(titles)), now=NOW)
    (session,) = store.list_sessions(SessionFilter())
    return session.title


def test_a_title_finds_its_session_by_a_message_that_came_before(
    store: HistoryStore,
) -> None:
    store.write(Batch("agent", messages=[a_message("Fix it")]), now=NOW)

    assert a_titled(store, MessageTitle("m1", "Tabs")) == "Tabs"
    assert a_titled(store, MessageTitle("m1", "Spaces")) == "Spaces"
    assert a_titled(store, MessageTitle("of another", "Ports")) == "Spaces"


def test_a_title_waits_for_its_message(store: HistoryStore) -> None:
    store.write(Batch("agent", titles=[MessageTitle("m1", "Tabs")]), now=NOW)
    store.write(Batch("other", messages=[a_message("Hi")]), now=NOW)
    store.write(Batch("agent", messages=[a_message("Fix it")]), now=NOW)

    found = {each.host: each.title for each in store.list_sessions(SessionFilter())}
    assert found == {"agent": "Tabs", "other": "Hi"}


@pytest.mark.parametrize("order", [("m1", "m2"), ("m2", "m1")], ids=str)
def test_of_several_titles_that_of_the_last_message_counts(
    store: HistoryStore, order: Sequence[str]
) -> None:
    said = [a_message(each, native_id=each) for each in ("m1", "m2")]
    store.write(Batch("agent", messages=said), now=NOW)

    titles = [MessageTitle(each, f"Title of {each}") for each in order]

    assert a_titled(store, *titles) == "Title of m2"


def test_a_title_that_the_session_states_itself_counts_first(
    store: HistoryStore,
) -> None:
    facts = [SessionFacts("s1", title="Given by hand")]
    said = [a_message("Fix it")]
    store.write(Batch("agent", facts=facts, messages=said), now=NOW)

    assert a_titled(store, MessageTitle("m1", "Tabs")) == "Given by hand"


def test_a_title_that_is_known_by_a_message_is_a_change_of_the_session(
    store: HistoryStore,
) -> None:
    store.write(Batch("agent", messages=[a_message("Fix it")]), now=NOW)
    before = store.last_change_id()

    a_titled(store, MessageTitle("m1", "Tabs"))
    a_titled(store, MessageTitle("m1", "Tabs"))

    assert [each.session_id for each in store.list_changes(before, 9)] == [1]


def test_an_emptied_session_loses_the_titles_of_its_messages(
    store: HistoryStore,
) -> None:
    store.write(
        Batch(
            "agent",
            messages=[a_message("Fix it")],
            titles=[MessageTitle("m1", "Tabs")],
        ),
        now=NOW,
    )

    store.write(Batch("agent", emptied=["s1"]), now=NOW)
    store.write(Batch("agent", messages=[a_message("Fix it")]), now=NOW)

    (session,) = store.list_sessions(SessionFilter())
    assert session.title == "Fix it"
