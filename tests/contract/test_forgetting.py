"""What was forgotten is gone from every history store, and is never stored again."""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from backstory.store.base.history import (
    Batch,
    ForgottenPart,
    HistoryStore,
    KeptMessage,
    SessionFilter,
    SourceKey,
    SourceState,
    Written,
)
from backstory.values.forgetting import Erasure, Forgetting
from backstory.values.history import MessageTitle, NewMessage, Role, SessionFacts
from backstory.values.moments import Moment
from tests.contract.stores import Stores

NOW = datetime(2026, 2, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def store(stores: Stores) -> Iterator[HistoryStore]:
    opened = stores.make_history()
    opened.write(
        Batch(
            "host",
            read_from="a.jsonl",
            facts=[SessionFacts("s1", title="Plan")],
            messages=[
                a_message("the plan", "m1"),
                a_message("the walrus", "m2", minute=1),
                a_message("the end", "m3", minute=2),
                a_message("elsewhere", "m1", session="s2"),
            ],
            progress=SourceState(SourceKey("a.jsonl"), "host", "x", "signed"),
        ),
        now=NOW,
    )
    yield opened
    opened.close()


def a_message(
    text: str, native_id: str, *, session: str = "s1", minute: int = 0
) -> KeptMessage:
    sent = Moment(NOW + timedelta(minutes=minute), 60)
    return KeptMessage(NewMessage(session, native_id, Role.USER, text, sent=sent))


def texts(store: HistoryStore) -> dict[str, list[str]]:
    return {
        session.native_id: [
            message.text for message in store.iter_messages(session.session_id)
        ]
        for session in store.list_sessions(SessionFilter())
    }


def read_again(store: HistoryStore, *more: KeptMessage) -> Written:
    return store.write(
        Batch(
            "host",
            facts=[SessionFacts("s1", title="Plan", project="/p")],
            messages=[
                a_message("the plan", "m1"),
                a_message("the walrus", "m2", minute=1),
                a_message("the end", "m3", minute=2),
                *more,
            ],
            titles=[MessageTitle("m2", "About walruses")],
        ),
        now=NOW,
    )


LATER = a_message("a new question", "m4", minute=99)


def test_a_forgotten_session_is_gone_and_stays_gone(store: HistoryStore) -> None:
    forgetting = store.forget([ForgottenPart(1, is_lasting=True)], now=NOW)

    written = read_again(store, LATER)

    assert forgetting == Forgetting(1, NOW, 1, 3, ("host",))
    assert written == Written()
    assert texts(store) == {"s2": ["elsewhere"]}
    assert not store.has_session("host", "s1")
    assert store.list_forgettings() == [forgetting]
    assert store.verify() == []


def test_what_would_be_left_out_is_told_without_writing(store: HistoryStore) -> None:
    (first,) = store.find_sessions("s1")
    (message,) = [m for m in store.iter_messages(first.session_id) if m.position == 1]
    store.forget([ForgottenPart(first.session_id, (message.message_id,))], now=NOW)
    before = texts(store)

    left = store.without_forgotten(
        Batch(
            "host",
            messages=[a_message("the walrus", "m2"), a_message("new", "m9")],
        )
    )

    assert [each.message.native_id for each in left.messages] == ["m9"]
    assert texts(store) == before


def test_a_session_forgotten_until_now_takes_what_is_said_later(
    store: HistoryStore,
) -> None:
    at = NOW + timedelta(minutes=10)
    store.forget([ForgottenPart(1)], now=at)

    read_again(store, LATER)

    assert texts(store) == {"s1": ["a new question"], "s2": ["elsewhere"]}
    (session,) = store.find_sessions("s1")
    assert (session.title, session.project) == ("a new question", "/p")


def test_single_messages_are_forgotten_and_the_rest_stays(store: HistoryStore) -> None:
    forgetting = store.forget([ForgottenPart(1, (2,))], now=NOW)

    read_again(store)

    assert (forgetting.sessions, forgetting.messages) == (0, 1)
    assert texts(store) == {"s1": ["the plan", "the end"], "s2": ["elsewhere"]}
    (session,) = store.find_sessions("s1")
    messages = store.iter_messages(session.session_id)
    assert [message.position for message in messages] == [0, 1]
    assert (session.message_count, session.title) == (2, "Plan")
    assert store.verify() == []


def test_forgetting_every_message_forgets_the_session(store: HistoryStore) -> None:
    assert store.forget([ForgottenPart(1, (1, 2, 3))], now=NOW).sessions == 1
    assert texts(store) == {"s2": ["elsewhere"]}


def test_a_title_that_quotes_a_forgotten_message_goes_with_it(
    store: HistoryStore,
) -> None:
    store.write(Batch("host", facts=[SessionFacts("s1", title="The walrus…")]), now=NOW)

    store.forget([ForgottenPart(1, (2,))], now=NOW)

    (session,) = store.find_sessions("s1")
    assert session.title == "the plan"


def test_a_title_known_by_a_forgotten_message_does_not_return(
    store: HistoryStore,
) -> None:
    read_again(store)
    store.forget([ForgottenPart(1, is_lasting=True)], now=NOW)

    store.write(Batch("host", titles=[MessageTitle("m2", "About walruses")]), now=NOW)
    store.write(
        Batch("host", messages=[a_message("other", "m2", session="s3")]), now=NOW
    )

    (session,) = store.find_sessions("s3")
    assert session.title == "other"


def test_a_message_whose_id_was_given_twice_does_not_return(
    store: HistoryStore,
) -> None:
    twice = a_message("the second walrus", "m2", minute=1)
    read_again(store, twice)
    (session,) = store.find_sessions("s1")
    (second,) = [
        message.message_id
        for message in store.iter_messages(session.session_id)
        if message.text == "the second walrus"
    ]

    store.forget([ForgottenPart(1, (second,))], now=NOW)
    read_again(store, twice)

    assert texts(store)["s1"] == ["the plan", "the walrus", "the end"]


def test_an_index_is_told_to_follow(store: HistoryStore) -> None:
    before = store.last_change_id()

    store.forget([ForgottenPart(1, (2,)), ForgottenPart(2)], now=NOW)

    changes = store.list_changes(before, 10)
    assert [each.session_id for each in changes if each.is_emptying] == [1, 2]


def test_what_was_forgotten_can_be_read_again_on_request(store: HistoryStore) -> None:
    forgetting = store.forget([ForgottenPart(1, is_lasting=True)], now=NOW)

    undone = store.undo_forgetting(forgetting.forgetting_id)
    read_again(store)

    assert undone == forgetting
    assert texts(store)["s1"] == ["the plan", "the walrus", "the end"]
    assert store.list_forgettings() == []
    # The source counts as changed, so that it is read again.
    assert [each.signature for each in store.list_sources().values()] == [""]


def test_a_number_that_was_never_given_undoes_nothing(store: HistoryStore) -> None:
    assert store.undo_forgetting(7) is None


def test_nothing_of_it_is_left_in_the_files(
    stores: Stores, store: HistoryStore
) -> None:
    # Other histories may be in the same files.
    needle = secrets.token_hex(8)
    read_again(
        store,
        *(a_message(f"{needle} {number}", f"x{number}") for number in range(50)),
        a_message(needle * 9_000, "long"),
    )
    (session,) = store.find_sessions("s1")
    found = store.iter_messages(session.session_id)
    numbers = tuple(each.message_id for each in found if needle in each.text)
    assert len(numbers) == 51
    store.make_durable()
    assert stores.find_in_files(store, needle.encode())
    store.forget([ForgottenPart(1, numbers)], now=NOW)

    erasure = store.erase_deleted()

    assert erasure is (Erasure.DONE if stores.can_erase else Erasure.LEFT)
    is_left = bool(stores.find_in_files(store, needle.encode()))
    assert is_left != stores.can_erase
