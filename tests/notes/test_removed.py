"""A fact that a person removed is not noted again, unless they want it."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from backstory.memory import Memory
from backstory.notes.archive import merge_archive, read_archive, write_archive
from backstory.notes.notebook import Notebook
from backstory.notes.places import REMOVED_NAME
from backstory.notes.removed import parse_removed
from backstory.values.reports import Curation
from tests.llm_server import LlmServer, Script, running_server
from tests.samples import a_memory

SUSHI = "Likes sushi"
Curate = Callable[[], Curation]
DAY = date(2026, 2, 20)


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(tmp_path)


def texts(notebook: Notebook) -> list[str]:
    lines = notebook.read_memory().splitlines()
    return [line[2:] for line in lines if line.startswith("- ")]


def by_command(notebook: Notebook) -> None:
    notebook.forget_fact("sushi")


def by_agent_on_request(notebook: Notebook) -> None:
    notebook.update_fact(SUSHI, "")


def in_an_editor(notebook: Notebook) -> None:
    text = notebook.read_memory()
    notebook.memory_path.write_text(text.replace(f"- {SUSHI}\n", ""))


def by_memory_edit(notebook: Notebook) -> None:
    text = notebook.read_memory()
    without = text.replace(f"- {SUSHI}\n", "")
    notebook.replace_memory(without, text, keep_backup=True, by_person=True)


WAYS = (by_command, by_agent_on_request, in_an_editor, by_memory_edit)


@pytest.mark.parametrize("remove", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize(
    "again", [SUSHI, "The user likes sushi.", "likes **Sushi**"], ids=str
)
def test_what_was_removed_is_not_added_by_a_model(
    notebook: Notebook, remove: Callable[[Notebook], None], again: str
) -> None:
    notebook.add_fact(SUSHI)
    notebook.add_fact("Lives in Lisbon")

    remove(notebook)
    notebook.add_fact("Plays the cello")

    assert notebook.add_fact(again, unless_removed=True) is None
    assert texts(notebook) == ["Lives in Lisbon", "Plays the cello"]


@pytest.mark.parametrize(
    "other", ["Dislikes sushi", "Likes no sushi", "Likes sushi 2", "Sushi likes"]
)
def test_another_fact_is_added(notebook: Notebook, other: str) -> None:
    notebook.add_fact(SUSHI)
    notebook.forget_fact(SUSHI)

    assert notebook.add_fact(other, unless_removed=True) == other


def test_a_person_can_add_it_again_by_any_means(notebook: Notebook) -> None:
    notebook.add_fact(SUSHI)
    notebook.forget_fact(SUSHI)
    notebook.memory_path.write_text(f"## Notes\n- {SUSHI}\n")
    notebook.add_fact("Lives in Lisbon")
    assert not notebook.was_removed(SUSHI)

    notebook.forget_fact(SUSHI)
    assert notebook.add_fact(SUSHI) == SUSHI
    assert not notebook.was_removed(SUSHI)


def test_what_a_model_rewords_may_return(notebook: Notebook) -> None:
    notebook.add_fact("Lives in Berlin")
    text = notebook.read_memory()
    notebook.replace_memory(text.replace("Berlin", "Lisbon"), text)

    assert notebook.add_fact("Lives in Berlin", unless_removed=True) is not None


def test_the_record_holds_no_words_and_nobody_else_may_read_it(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.add_fact(SUSHI)
    notebook.add_fact("Lives in Lisbon")
    notebook.forget_fact(SUSHI)

    file = tmp_path / REMOVED_NAME
    raw = file.read_bytes().lower()
    assert b"sushi" not in raw
    assert b"lisbon" not in raw
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_same_fact_has_another_hash_in_another_home(tmp_path: Path) -> None:
    keys: list[str] = []
    for name in "ab":
        notebook = Notebook(tmp_path / name)
        notebook.add_fact(SUSHI)
        notebook.forget_fact(SUSHI)
        keys += parse_removed((tmp_path / name / REMOVED_NAME).read_bytes()).facts
    assert len(set(keys)) == 2


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b'{"salt": 5}', b'{"salt": "zz", "known": 1}', b"\xff", b"null"],
)
def test_a_record_that_cannot_be_read_stops_nothing(
    notebook: Notebook, tmp_path: Path, raw: bytes
) -> None:
    tmp_path.joinpath(REMOVED_NAME).write_bytes(raw)

    assert notebook.add_fact(SUSHI, unless_removed=True) == SUSHI
    notebook.forget_fact(SUSHI)
    assert notebook.was_removed(SUSHI)


def test_a_secret_is_compared_as_a_model_sees_it(notebook: Notebook) -> None:
    fact = "The key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    notebook.add_fact(fact, mask=False)
    notebook.forget_fact("The key is")

    assert notebook.add_fact(fact, unless_removed=True) is None


def test_an_imported_archive_does_not_bring_it_back(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.add_fact(SUSHI)
    notebook.add_fact("Lives in Lisbon")
    notebook.append_log(DAY, "## Dinner\n- sushi", "one.1")
    notebook.append_log(DAY, "## Moving\n- to Lisbon", "two.1")
    notebook.append_log(date(2026, 2, 21), "## Lunch\n- sushi", "one.2")
    write_archive(notebook, tmp_path / "notes.zip")
    notebook.forget_fact(SUSHI)
    for day in notebook.list_logs():
        notebook.remove_log_blocks(day, lambda marker: marker.startswith("one."))

    merge_archive(notebook, read_archive(tmp_path / "notes.zip"))

    kept = [file.raw for file in notebook.iter_files()]
    assert b"sushi" not in b"".join(kept).lower()
    assert texts(notebook) == ["Lives in Lisbon"]
    assert notebook.list_logs() == [DAY]


# -- what models propose ---


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def memory(tmp_path: Path, server: LlmServer) -> Iterator[Memory]:
    settings = (
        "embedder.name=none",
        "llm.name=openai",
        f"llm.url={server.url}/v1",
        "logs.curate_daily=false",
    )
    with a_memory(tmp_path, settings=settings) as opened:
        yield opened


def write_a_log(memory: Memory, server: LlmServer, session: str, fact: str) -> None:
    remembered = [{"topic": "Preferences", "fact": fact}]
    answer = {"topics": ["Dinner"], "remember": remembered}
    server.follow(Script(json.dumps(answer)))
    memory.record(session, "user", "As you know, I like sushi.")
    memory.end_session(session)
    memory.write_logs()


@pytest.mark.parametrize("remove", WAYS, ids=lambda way: way.__name__)
def test_no_log_adds_it_again(
    memory: Memory, server: LlmServer, remove: Callable[[Notebook], None]
) -> None:
    write_a_log(memory, server, "one", SUSHI)
    assert texts(memory.notebook) == [SUSHI]

    remove(memory.notebook)
    write_a_log(memory, server, "two", "The user likes sushi")

    assert texts(memory.notebook) == []


@pytest.fixture
def proposed(memory: Memory, server: LlmServer) -> Curate:
    """A curation that proposes a fact which the user stated on two days."""
    days = [memory._parts.today() - timedelta(days=back) for back in (1, 2)]
    for day in days:
        sent_at = datetime.combine(day, time(12), UTC)
        memory.record(str(day), "user", "I like sushi", sent_at=sent_at)
        memory.notebook.append_log(day, "## Food\n- sushi", str(day))
    named = [day.isoformat() for day in days]
    answer = {
        "add": [{"topic": "Food", "fact": "User likes sushi", "days": named}],
        "replace": [{"old": "Likes fish", "new": "Likes sushi"}],
    }

    def curate() -> Curation:
        server.follow(Script(json.dumps(answer)))
        return memory.curate()

    return curate


def test_a_curation_adds_what_was_never_removed(
    memory: Memory, proposed: Curate
) -> None:
    memory.notebook.add_fact("Plays the cello")

    assert proposed().added == ("User likes sushi",)


@pytest.mark.parametrize("remove", WAYS, ids=lambda way: way.__name__)
def test_no_curation_proposes_it_again(
    memory: Memory, proposed: Curate, remove: Callable[[Notebook], None]
) -> None:
    memory.notebook.add_fact(SUSHI)
    memory.notebook.add_fact("Likes fish")
    remove(memory.notebook)

    curation = proposed()

    assert (curation.added, curation.replaced) == ((), ())
    assert texts(memory.notebook) == ["Likes fish"]


def test_undoing_the_forgetting_lets_it_return(
    memory: Memory, server: LlmServer
) -> None:
    memory.notebook.add_fact(SUSHI)
    receipt = memory.forget(fact=SUSHI)
    assert receipt.forgetting is not None
    write_a_log(memory, server, "one", SUSHI)
    assert texts(memory.notebook) == []

    memory.undo_forget(receipt.forgetting.forgetting_id)
    write_a_log(memory, server, "two", SUSHI)

    assert texts(memory.notebook) == [SUSHI]
