"""A quick check for dates must not stop any that ``find_days`` understands."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from backstory.text import dates
from backstory.text.date_hints import may_ask_for_recent, may_name_days

TODAY = date(2026, 2, 20)
WORDS = """
    the a in on of last past this next previous week weekend month year day days before
    yesterday today tonight morning night ago back earlier few couple of two 3 12 31
    2025 2026-02-01 1.2.2026 8th may march mar dec jun sept monday tue tues sun fri
    heute gestern letzte woche diesen monat letztes jahr im seit mai januar oktober
    recent recently latest newest current currently these days lately zuletzt neulich
    since seit from to until between and bis - –
    aktuell neueste names my our parser invoices decide monitor summary maybe
"""


@given(st.lists(st.sampled_from(WORDS.split()), max_size=8).map(" ".join))
def test_what_names_a_day_or_asks_for_the_newest_is_let_through(text: str) -> None:
    if dates.find_days(text, today=TODAY):
        assert may_name_days(text)
    if dates.find_recent(text):
        assert may_ask_for_recent(text)


def test_ordinary_prompts_are_not_looked_at_twice() -> None:
    prompt = "decide whether the monitor may-be marks 12 separate Sundries, v2.0"

    assert not may_name_days("decide whether the monitor marks 12 separate items")
    assert not may_ask_for_recent(prompt)
