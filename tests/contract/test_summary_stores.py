"""What every summary store must do: nothing summarized twice, nothing left out."""

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from backstory.store.base.history import Batch, HistoryStore, KeptMessage
from backstory.store.base.summaries import (
    Due,
    SetAside,
    Summary,
    SummaryStore,
)
from backstory.values.history import NewMessage, Role, Session
from backstory.values.moments import Moment
from backstory.values.reports import ModelCall
from tests.contract.stores import Stores

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
DAY = date(2026, 3, 1)


@pytest.fixture
def history(stores: Stores) -> Iterator[HistoryStore]:
    made = stores.make_history()
    yield made
    made.close()


@pytest.fixture
def store(stores: Stores, history: HistoryStore) -> Iterator[SummaryStore]:
    made = stores.open_summaries(history)
    yield made
    made.close()


def say(history: HistoryStore, role: str, text: str, session: str = "s") -> int:
    """Store one more message; returns its number."""
    message = NewMessage(session, text, Role(role), text, sent=Moment(NOW))
    written = history.write(Batch("host", messages=[KeptMessage(message)]), now=NOW)
    assert written.last_message_id is not None
    return written.last_message_id


def the_session(history: HistoryStore) -> Session:
    (session,) = history.find_sessions("s")
    return session


def a_summary(session_id: int, first: int, last: int, marker: str = "m") -> Summary:
    return Summary(session_id, DAY, first, last, marker, '{"topics": ["ü"]}')


# -- what is due ---


def test_a_session_that_is_asked_for_twice_is_due_once(
    history: HistoryStore, store: SummaryStore
) -> None:
    say(history, "user", "one")
    session_id = the_session(history).session_id
    assert store.mark_due(session_id, "session end", now=NOW)
    last = say(history, "assistant", "two")

    assert store.mark_due(session_id, "background", now=LATER)

    assert store.list_due(now=LATER) == [Due(session_id, last, "background")]
    assert store.count_due() == 1


def test_nothing_is_due_where_nobody_spoke(
    history: HistoryStore, store: SummaryStore
) -> None:
    say(history, "tool_result", "output")
    session_id = the_session(history).session_id

    assert not store.mark_due(session_id, "session end", now=NOW)
    assert not store.mark_due(999, "session end", now=NOW)
    assert store.list_due(now=NOW) == []


def test_what_is_logged_is_not_due_again(
    history: HistoryStore, store: SummaryStore
) -> None:
    last = say(history, "user", "one")
    session_id = the_session(history).session_id
    summary = a_summary(session_id, last, last)
    store.add_summary(summary)
    store.finish([summary])
    say(history, "tool_result", "output")

    assert not store.mark_due(session_id, "session end", now=NOW)

    say(history, "user", "two")
    assert store.mark_due(session_id, "session end", now=NOW)


def test_a_session_is_tried_again_later(
    history: HistoryStore, store: SummaryStore
) -> None:
    last = say(history, "user", "one")
    session_id = the_session(history).session_id
    store.mark_due(session_id, "session end", now=NOW)
    (due,) = store.list_due(now=NOW)

    store.postpone(due, until=LATER)

    assert store.list_due(now=NOW) == []
    waiting = [Due(session_id, last, "session end", 1)]
    assert store.list_due(now=LATER) == store.list_due(now=None) == waiting
    # The clock was set back: nothing is ever postponed for that long.
    assert store.list_due(now=NOW - timedelta(days=30)) == waiting

    # Whoever asks again need not wait.
    store.mark_due(session_id, "session end", now=NOW)
    assert store.list_due(now=NOW) == waiting


def test_what_was_asked_for_meanwhile_stays_due(
    history: HistoryStore, store: SummaryStore
) -> None:
    say(history, "user", "one")
    session_id = the_session(history).session_id
    store.mark_due(session_id, "session end", now=NOW)
    (due,) = store.list_due(now=NOW)
    last = say(history, "user", "two")
    store.mark_due(session_id, "session end", now=NOW)

    store.delete_due(due)
    (still,) = store.list_due(now=NOW)
    assert still == Due(session_id, last, "session end")

    store.delete_due(still)
    assert store.list_due(now=NOW) == []


# -- summaries ---


def test_what_waits_for_the_notes_is_not_summarized_again(
    history: HistoryStore, store: SummaryStore
) -> None:
    first = say(history, "user", "one")
    second = say(history, "assistant", "two")
    say(history, "user", "three")
    session_id = the_session(history).session_id
    assert store.next_position(session_id) == 0
    summary = a_summary(session_id, first, second)

    store.add_summary(summary)

    assert store.next_position(session_id) == 2
    assert store.list_summaries(session_id) == [summary]
    assert store.list_waiting_sessions() == [session_id]
    assert the_session(history).last_logged_message_id is None


def test_what_stands_in_the_notes_is_logged(
    history: HistoryStore, store: SummaryStore
) -> None:
    first = say(history, "user", "one")
    second = say(history, "assistant", "two")
    session_id = the_session(history).session_id
    summaries = [
        a_summary(session_id, first, first, "a"),
        a_summary(session_id, second, second, "b"),
    ]
    for summary in summaries:
        store.add_summary(summary)

    store.finish(summaries)

    assert store.list_summaries(session_id) == []
    assert store.list_waiting_sessions() == []
    assert store.next_position(session_id) == 2
    assert the_session(history).last_logged_message_id == second


# -- what it cost ---


def reserve(store: SummaryStore, tokens: int, now: datetime = NOW) -> int | None:
    return store.reserve_call(
        purpose="daily log",
        model="openai small",
        input_tokens=tokens,
        output_tokens=100,
        daily_tokens=1_000,
        now=now,
    )


def test_every_call_is_written_down(store: SummaryStore) -> None:
    call = reserve(store, 500)
    assert call is not None
    running = ModelCall(NOW, "daily log", "openai small", 500, 100, None, "running")
    assert store.list_calls(DAY) == [running]

    store.settle_call(
        call, input_tokens=420, output_tokens=33, took_ms=1200, outcome="ok"
    )

    ended = ModelCall(NOW, "daily log", "openai small", 420, 33, 1200, "ok")
    assert store.list_calls(DAY) == [ended]
    assert ended.tokens == 453
    assert store.list_calls(DAY + timedelta(days=1)) == []


def test_a_call_that_the_day_cannot_pay_for_is_not_made(store: SummaryStore) -> None:
    assert reserve(store, 800) is not None
    assert reserve(store, 100) is None

    # What was not used may be used after all; and tomorrow is another day.
    store.settle_call(1, input_tokens=50, output_tokens=5, took_ms=1, outcome="ok")
    assert reserve(store, 100) is not None
    assert reserve(store, 800, NOW + timedelta(days=1)) is not None


def test_two_at_once_cannot_spend_more_than_there_is(store: SummaryStore) -> None:
    made: list[int | None] = []
    threads = [
        threading.Thread(target=lambda: made.append(reserve(store, 200)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len([each for each in made if each is not None]) == 3


def test_state_is_kept(store: SummaryStore) -> None:
    assert store.get_state("curated_on") is None
    store.set_state("curated_on", "2026-03-01")
    store.set_state("curated_on", "2026-03-02")

    assert store.get_state("curated_on") == "2026-03-02"


# -- what is quiet, and what is set aside ---


def test_a_session_is_quiet_until_it_is_due_or_logged(
    history: HistoryStore, store: SummaryStore
) -> None:
    number = say(history, "user", "one")
    say(history, "tool_result", "output", session="silent")
    session_id = the_session(history).session_id

    def list_quiet(before: datetime) -> list[int]:
        return store.list_quiet(before=before, read_since=None)

    assert list_quiet(NOW - timedelta(seconds=1)) == []
    assert list_quiet(NOW) == [session_id]

    store.mark_due(session_id, "quiet", now=NOW)
    assert list_quiet(NOW) == []

    store.delete_due(Due(session_id, number, "quiet"))
    assert list_quiet(NOW) == [session_id]

    store.add_summary(a_summary(session_id, number, number))
    assert list_quiet(NOW) == []


def test_what_is_set_aside_is_passed_by_and_can_be_taken_back(
    history: HistoryStore, store: SummaryStore
) -> None:
    first, last = say(history, "user", "one"), say(history, "assistant", "two")
    session_id = the_session(history).session_id
    messages = SetAside(session_id, first, last, "rubbish")

    store.set_aside(messages)
    assert store.list_set_aside() == [messages]
    assert store.next_position(session_id) == 2
    assert not store.mark_due(session_id, "session end", now=NOW)

    store.take_back(messages)
    assert store.list_set_aside() == []
    assert store.next_position(session_id) == 0


def test_a_summary_of_what_was_set_aside_does_not_move_the_log_back(
    history: HistoryStore, store: SummaryStore
) -> None:
    first, last = say(history, "user", "one"), say(history, "user", "two")
    session_id = the_session(history).session_id
    messages = SetAside(session_id, first, first, "rubbish")
    later, earlier = (
        a_summary(session_id, last, last, "later"),
        a_summary(session_id, first, first, "earlier"),
    )
    store.set_aside(messages)
    store.add_summary(later)
    store.finish([later])

    store.add_summary(earlier, of=messages)
    assert store.list_set_aside() == []
    store.finish([earlier])

    assert the_session(history).last_logged_message_id == last
    assert store.next_position(session_id) == 2
