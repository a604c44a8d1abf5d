"""Where a fact comes from is recorded beside it, and stays true when it is changed."""

import json
from datetime import date
from pathlib import Path

import pytest

from backstory.notes.notebook import Notebook
from backstory.values.notes import FactOrigin, Teller

SAID = FactOrigin(Teller.USER, "claude-code", "s1", date(2026, 2, 28), (3, 5))
SAVED = FactOrigin(Teller.AGENT, "codex", "s2", date(2026, 3, 1))


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    made = Notebook(tmp_path / "home")
    made.add_fact("Likes sushi", origin=SAID)
    made.add_fact("Has a cat")
    return made


def record_of(notebook: Notebook) -> Path:
    return notebook.folder / "origins.json"


def test_a_fact_has_the_origin_that_it_was_added_with(notebook: Notebook) -> None:
    assert notebook.read_origins() == {"Likes sushi": (SAID,)}
    assert notebook.read_memory() == (
        "# Long-term Memory\n\n## Notes\n- Likes sushi\n- Has a cat\n"
    )


def test_the_record_holds_no_text_and_only_its_owner_may_read_it(
    notebook: Notebook,
) -> None:
    text = record_of(notebook).read_text()

    assert list(json.loads(text)["facts"].values()) == [
        [
            {
                "by": "user",
                "host": "claude-code",
                "session": "s1",
                "day": "2026-02-28",
                "messages": [3, 5],
            }
        ]
    ]
    assert "sushi" not in text
    assert record_of(notebook).stat().st_mode & 0o777 == 0o600


def test_a_fact_that_an_agent_rewords_keeps_its_origin_and_gets_another(
    notebook: Notebook,
) -> None:
    notebook.update_fact("Likes sushi", "Likes ramen", origin=SAVED)

    assert notebook.read_origins() == {"Likes ramen": (SAID, SAVED)}


def test_a_fact_that_a_person_rewords_is_theirs(notebook: Notebook) -> None:
    path = notebook.memory_path
    path.write_text(path.read_text().replace("sushi", "soup"))

    assert notebook.read_origins() == {}


def test_a_fact_with_signs_of_markdown_has_its_origin(notebook: Notebook) -> None:
    fact = "# not a heading\n- nor a list <!-- nor a comment -->"
    notebook.add_fact(fact, origin=SAVED)

    (added,) = [told for told in notebook.read_origins().values() if told == (SAVED,)]
    assert added == (SAVED,)


def test_what_is_gone_from_the_memory_goes_from_the_record(notebook: Notebook) -> None:
    notebook.forget_fact("Likes sushi")
    notebook.add_fact("Has a dog", origin=SAVED)

    assert list(json.loads(record_of(notebook).read_text())["facts"]) != []
    assert len(json.loads(record_of(notebook).read_text())["facts"]) == 1


def test_the_origins_of_a_session_can_be_dropped(notebook: Notebook) -> None:
    notebook.add_fact("Has a dog", origin=SAVED)

    notebook.drop_origins(lambda origin: origin.session == "s1")

    assert notebook.read_origins() == {"Has a dog": (SAVED,)}
    assert "s1" not in record_of(notebook).read_text()


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{",
        b'{"facts": []}',
        b'{"facts": {"x": 1, "y": [1, {}, {"by": "moon"}, {"by": "user", "day": 3}]}}',
        b"[" * 100_000,
    ],
)
def test_a_record_that_cannot_be_read_is_as_good_as_none(
    notebook: Notebook, broken: bytes
) -> None:
    record_of(notebook).write_bytes(broken)

    assert notebook.read_origins() == {}
    notebook.add_fact("Has a dog", origin=SAVED)
    assert notebook.read_origins() == {"Has a dog": (SAVED,)}
