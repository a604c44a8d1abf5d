"""Two facts are the same only when nothing is lost by keeping one of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.notes.duplicates import (
    adds_nothing,
    find_duplicate_index,
    is_same_fact,
    normalize_fact,
)
from tests.grid import cases


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("Likes tea", "likes  tea."),
        ("**Likes** `tea`", "likes\ntea!"),
        ("User's name is Kim", "The user’s name is Kim."),
        ("User prefers dark mode in all editors", "The user prefers dark mode in all"
         " of the editors"),
        ("The user prefers tabs over spaces", "I prefer tabs over spaces"),
        ("User likes concise answers", "user like concise answers"),
        ("喜欢喝茶", "喜欢喝茶。"),
        ("Straße 5", "STRASSE 5"),
        ("Deploys with a small script that Kim wrote on a rainy day in spring",
         "Deploys with a script that Kim wrote on a rainy day in spring"),
    ],
)  # fmt: skip
def test_the_same_in_nearly_the_same_words_is_known(known: str, new: str) -> None:
    assert adds_nothing(normalize_fact(new), normalize_fact(known))


@cases(
    ("known", "new"),
    [
        ("likes tea", "likes coffee"),
        ("User likes tea", "User doesn't like tea"),
        ("User does like tea", "User does not like tea"),
        ("Works at home every day of the week", "Never works at home every day of the"
         " week"),
        ("has 2 cats", "has 3 cats"),
        ("Python 3.11 on the server", "Python 3.1 on the server"),
        ("It is -5 degrees", "It is 5 degrees"),
        ("deploys at 10:30", "deploys at 10:45"),
        ("likes C", "likes C++"),
        ("likes C#", "likes C++"),
        ("rent is $500", "rent is €500"),
        ("✅ backups", "❌ backups"),
        ("Alice manages Bob", "Bob manages Alice"),
        ("flies from Berlin to Paris", "flies from Paris to Berlin"),
        ("Alice works at Acme Corporation in Berlin", "works at Acme Corporation in"
         " Berlin"),
        ("Prefers tea in the morning before going to work at the office",
         "Prefers coffee in the morning before going to work at the office"),
        ("User likes tea in the morning", "User likes green tea in the morning"),
        ("Turn the heating on at night in the house", "Turn the heating off at night"
         " in the house"),
        ("Uses Linux on all machines at work and at home, except laptops",
         "Uses Linux on all machines at work and at home"),
        ("喜欢喝茶", "喜欢喝酒"),
        ("पानी पीता है", "पानी पीती है"),
        ("", "—"),
    ],
)  # fmt: skip
def test_another_fact_is_new(known: str, new: str) -> None:
    assert not adds_nothing(normalize_fact(new), normalize_fact(known))


def test_the_fact_that_says_the_same_goes_before_one_that_says_more() -> None:
    known = ["the user prefers dark mode in all editors", "prefers dark mode in all "
             "editors"]  # fmt: skip

    found = find_duplicate_index(
        normalize_fact("Prefers dark mode in all editors."), map(normalize_fact, known)
    )

    assert found == 1


@given(st.text())
def test_every_text_says_what_it_says(text: str) -> None:
    assert is_same_fact(
        normalize_fact(text), normalize_fact(f" {text.upper().lower()} ")
    ) or (text.upper().lower() != text)
    assert adds_nothing(normalize_fact(text), normalize_fact(text))
