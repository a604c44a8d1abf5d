"""Turning what was typed into a query."""

import re
from datetime import date

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.text.query import near_spellings, parse_query, parse_words
from backstory.text.words import index_words
from backstory.values.query import DayRange, Query, Term
from tests.grid import cases

TODAY = date(2026, 3, 4)
# Letters to Python that are none to SQLite's older tables.
UNKNOWN_TO_SQLITE = "".join(
    map(chr, (*range(0x19B0, 0x19CA), 0x1CF2, 0x1CF3, 0x1CFA, *range(0x19D0, 0x19DB)))
)


def parse(text: str) -> Query:
    return parse_query(text, today=TODAY)


def spellings(text: str) -> list[tuple[str, ...]]:
    return [term.spellings for term in parse(text).terms]


def test_a_question_becomes_a_query() -> None:
    query = parse('  What did we decide about "Auth Tokens" last week? ')

    assert query == Query(
        text='What did we decide about "Auth Tokens" last week?',
        folded='what did we decide about "auth tokens" last week?',
        terms=(
            Term("decide", ("decide",)),
            Term("Auth", ("auth",)),
            Term("Tokens", ("tokens",)),
            Term("last", ("last",)),
            Term("week", ("week",)),
        ),
        subject=(Term("Auth", ("auth",)), Term("Tokens", ("tokens",))),
        phrases=("auth tokens",),
        days=(DayRange(date(2026, 2, 23), date(2026, 3, 1)),),
        wants_recent=False,
    )


def test_a_query_may_ask_for_the_newest() -> None:
    assert parse("the latest plan").wants_recent is True


# -- terms ---


@cases(
    ("text", "expected"),
    [
        pytest.param("parse_json", ("parse json", "parsejson"), id="snake case"),
        pytest.param("parseJson", ("parsejson", "parse json"), id="camel case"),
        pytest.param("auth-token", ("auth token", "authtoken"), id="a hyphen"),
        pytest.param("10:30", ("10 30",), id="a time"),
        pytest.param("2026-02-25", ("2026 02 25",), id="a date"),
        pytest.param("what's", ("what s", "whats"), id="an apostrophe"),
        pytest.param("what’s", ("what s", "whats"), id="a curly apostrophe"),
        pytest.param("Anna's", ("anna s", "annas", "anna"), id="a possessive"),
        pytest.param("l'amour", ("l amour", "lamour", "amour"), id="an elision"),
        pytest.param("app.py", ("app py",), id="a file"),
        pytest.param("iPhone15", ("iphone15", "i phone 15", "iphone 15"), id="digits"),
        pytest.param("C++", ("cplusplus",), id="C++"),
        pytest.param("c#", ("csharp",), id="C sharp"),
        pytest.param(".NET", ("dotnet",), id="dot net"),
        pytest.param("Straße", ("strasse",), id="a sharp s"),
        pytest.param("İstanbul", ("istanbul",), id="a letter that folds into two"),
        pytest.param("हिन्दी", ("हनद",), id="marks"),
        pytest.param("(migration)!", ("migration",), id="signs around"),
        pytest.param("--verbose", ("verbose",), id="an option"),
        pytest.param("数", ("数",), id="one character"),
        pytest.param("数据", ("数据",), id="a pair"),
    ],
)
def test_a_typed_word_is_one_term(text: str, expected: tuple[str, ...]) -> None:
    assert spellings(text) == [expected]


@cases(
    ("text", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("?! ... ---", [], id="only signs"),
        pytest.param("😀", [], id="an emoji"),
        pytest.param("\0\ud800", [], id="NUL and half a character"),
        pytest.param("foo AND bar", [("foo",), ("bar",)], id="an operator"),
        pytest.param("NOT x*", [("x",)], id="another operator"),
        pytest.param("cat Cat CAT", [("cat",)], id="each once"),
        pytest.param("what was it", [("what",), ("was",), ("it",)], id="nothing else"),
        pytest.param("key=value", [("key",), ("value",)], id="an equals sign"),
        pytest.param("C++17", [("cplusplus",), ("17",)], id="a name and a number"),
        pytest.param("数据库", [("数据",), ("据库",)], id="a run"),
        pytest.param("用Go写", [("用",), ("go",), ("写",)], id="two scripts"),
        pytest.param(
            "src/app.py:42",
            [("src app py 42",), ("src",), ("app py",)],
            id="a path and its pieces",
        ),
        pytest.param(
            "C:\\logs\\a.txt",
            [("c logs a txt",), ("logs",), ("a txt",)],
            id="a Windows path",
        ),
        pytest.param(
            "https://example.org/x1",
            [("https example org x1",), ("example org",), ("x1", "x 1")],
            id="an address",
        ),
        pytest.param(
            "test_the_query",
            [("test the query", "testthequery"), ("test",), ("query",)],
            id="a long name and its pieces",
        ),
    ],
)
def test_a_query_becomes_terms(text: str, expected: list[tuple[str, ...]]) -> None:
    assert spellings(text) == expected


def test_a_long_run_gives_pairs_without_particles() -> None:
    text = "你还记得我上次说的那家餐厅叫什么名字吗"

    pairs = [term.text for term in parse(text).terms]

    assert "餐厅" in pairs
    assert "名字" in pairs
    assert [pair for pair in pairs if set(pair) & set("你我的那吗")] == []


def test_a_very_long_run_is_sampled_to_its_end() -> None:
    text = "".join(map(chr, range(0x4E20, 0x4E20 + 100)))

    pairs = [term.text for term in parse(text).terms]

    assert len(pairs) == 24
    assert text.index(pairs[-1]) > 90


def test_there_are_never_too_many_terms() -> None:
    words = [f"word{number}" for number in range(100)]

    texts = [term.text for term in parse(" ".join(words)).terms]

    assert texts == words[:32]


@cases(
    ("text", "expected"),
    [
        pytest.param('say "Hello World" now', ("hello world",), id="straight"),
        pytest.param("“one two” and „drei vier“", ("one two", "drei vier"), id="curly"),
        pytest.param("« un deux » 「三」", ("un deux", "三"), id="French, Chinese"),
        pytest.param('"a" "A" ""', ("a",), id="each once, none empty"),
        pytest.param(
            "'not found in file' or `git push -f`",
            ("not found in file", "git push -f"),
            id="as in messages and commands",
        ),
        pytest.param("the 'name' of `it`", (), id="single words"),
        pytest.param("\"'tis 'it'\" now", ("'tis 'it'",), id="quotes in quotes"),
        pytest.param("users' tests don't say whose' they are", (), id="apostrophes"),
        pytest.param('5" and 7"', (), id="inches"),
        pytest.param('an "open one', (), id="never closed"),
    ],
)
def test_what_stands_in_quotes_is_a_phrase(text: str, expected: object) -> None:
    assert parse(text).phrases == expected


# -- laws ---

HOSTILE = st.text(
    st.characters() | st.sampled_from("\"'“”«»()*^:+-/\\_.#@%~${}ab1 \0\ud800数ทİß"),
    max_size=80,
)


@given(HOSTILE)
def test_any_string_is_a_query_of_clean_words(text: str) -> None:
    query = parse(text)

    written = [spelling for term in query.terms for spelling in term.spellings]
    words = [word for spelling in written for word in spelling.split(" ")]
    assert [word for word in words if not word.isalnum()] == []
    assert all(term.spellings for term in query.terms)
    assert len({term.spellings for term in query.terms}) == len(query.terms) <= 32


@pytest.mark.parametrize(
    "text",
    [
        "'; DROP TABLE messages; --",
        'NEAR("a b", 3) AND col:x* ^y {a b}:c',
        "a-" * 50_000,
        '"a' * 50_000,
        "“" * 100_000,
        "数据" * 50_000,
        "x" * 100_000,
        "word " * 20_000,
    ],
    ids=lambda text: text[:20],
)
def test_hostile_queries_are_queries(text: str) -> None:
    query = parse(text)

    assert query.text == text.strip()
    assert len(query.terms) <= 32


@given(st.lists(HOSTILE.map(lambda text: re.sub(r"\s", "", text)), max_size=4))
def test_each_word_of_a_text_finds_the_text(typed: list[str]) -> None:
    db = apsw.Connection(":memory:")
    db.execute(
        """
        CREATE VIRTUAL TABLE texts USING fts5
        (words, content='', tokenize="porter unicode61 remove_diacritics 2")
        """
    )
    text = " ".join(typed).translate(dict.fromkeys(map(ord, UNKNOWN_TO_SQLITE)))
    db.execute("INSERT INTO texts (rowid, words) VALUES (1, ?)", (index_words(text),))

    terms = [term for word in text.split() for term in parse(word).terms]

    missed = [
        term
        for term in terms
        if not db.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ?",
            (" OR ".join(f'"{spelling}"' for spelling in term.spellings),),
        ).fetchall()
    ]
    assert missed == []


def subject(text: str) -> list[str]:
    return [term.text for term in parse(text).subject]


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "in October",
        "October?",
        "letzte Woche",
        "what did we do yesterday",
        "Summarize what we talked about yesterday",
        "Where did I go last Tuesday?",
        "Was haben wir letzte Woche besprochen?",
    ],
)
def test_a_query_for_a_day_alone_has_no_subject(text: str) -> None:
    query = parse(text)

    assert (query.subject, len(query.days)) == ((), 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the latest decision about uv", ["decision", "uv"]),
        ("most recent build", ["build"]),
        ("our last migration", ["migration"]),
        ("her last name", ["last", "name"]),
        ("neueste Version", ["Version"]),
        ("latest", ["latest"]),
        ("what did we discuss", ["discuss"]),
        ("what did we discuss about uv yesterday", ["uv"]),
    ],
)
def test_words_that_only_steer_are_no_subject(text: str, expected: list[str]) -> None:
    assert subject(text) == expected


WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=6, max_size=23)


@given(WORDS, st.integers(0, 22), st.sampled_from("aez"))
def test_a_word_is_near_to_each_slip_of_the_finger(
    word: str, place: int, letter: str
) -> None:
    at = min(place, len(word) - 2)
    slips = {
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at:],
        word[:at] + letter + word[at + 1 :],
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    } - {word}

    assert [slip for slip in slips if word not in near_spellings(slip)] == []


@pytest.mark.parametrize("word", ["", "text", "überall", "C++", "a1b2c3", "x" * 25])
def test_nothing_is_near_to_what_is_short_long_or_no_plain_word(word: str) -> None:
    assert near_spellings(word) == []


@cases(
    ("text", "phrases"),
    [
        ("where is MAX_RETRIES_COUNT?", ("max_retries_count",)),
        ("what was in src/app.py", ("src/app.py",)),
        ("the --no-verify flag", ("--no-verify",)),
        ("commit 3f2a9bc", ("3f2a9bc",)),
        ("what about ECONNREFUSED", ("econnrefused",)),
        ("how do I use parseJson", ("parsejson",)),
        ("when did we use https://x.org/a?b=1", ("https://x.org/a?b=1",)),
        ("`v1.2.3`, or ~/.bashrc?", ("v1.2.3", "~/.bashrc")),
        # More than that is asked for, or it is no code.
        ("why does parse_config fail", ()),
        ("e-mail and/or 10:30", ()),
        ("2026-02-25", ()),
        ("run the tests", ()),
        ('"quoted" src/app.py', ("quoted",)),
    ],
)
def test_code_that_is_all_a_query_asks_for_is_searched_as_it_is_typed(
    text: str, phrases: tuple[str, ...]
) -> None:
    assert parse_words(text).phrases == phrases


@pytest.mark.parametrize(
    ("typed", "looked_for"),
    [("Notariz*", "notariz"), ("**/*.md", "**/*.md"), ("a* path", "a* path")],
)
def test_an_asterisk_after_one_word_is_not_looked_for(
    typed: str, looked_for: str
) -> None:
    assert parse_words(typed).folded == looked_for
