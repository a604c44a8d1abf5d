"""Which session a server is called from: as hooks say, or by its transcript."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backstory.errors import BadQuery
from backstory.hooks.live_sessions import LiveSession
from backstory.mcp.calls import Calls
from backstory.mcp.current_session import CurrentSession
from backstory.mcp.tools import ServedTools
from backstory.memory import Memory
from backstory.settings import read_settings
from backstory.system.machine import Machine
from tests.builders import SESSION, a_line, append, session_file
from tests.live_transcripts import Log, each_program

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
IN_A_YEAR = datetime.now(UTC) + timedelta(days=365)
PROJECT = Path("/home/dev/demo")
OTHER = SESSION[:-1] + "2"


@pytest.fixture
def memory(tmp_path: Path, home: Path) -> Iterator[Memory]:
    """A memory that is used in the folder of a project."""
    settings = read_settings(environ={}, flags=("embedder.name=none",))
    machine = Machine("linux", home, {}, PROJECT)
    with Memory(tmp_path / "kept", settings, machine) as opened:
        yield opened


def written_last(memory: Memory, **where: object) -> str | None:
    found = CurrentSession(memory, started_at=LONG_AGO, **where).find()  # type: ignore[arg-type]
    return None if found is None else found.session_id


@each_program
def test_it_is_the_session_that_was_written_last_in_the_folder(
    memory: Memory, home: Path, log: Log
) -> None:
    append(
        log.file(home, SESSION), log.start(SESSION), log.prompt("The code is 4711", "1")
    )

    current = CurrentSession(memory, started_at=LONG_AGO)

    found = current.find()
    assert found is not None
    assert found.session_id == SESSION
    assert [hit.item.text for hit in current.get_run(None).search("4711").hits] == [
        "The code is 4711"
    ]


def test_other_folders_subagents_and_earlier_sessions_do_not_count(
    memory: Memory, home: Path
) -> None:
    main = session_file(home)
    append(main, a_line("in the project", uuid="1"))
    elsewhere = a_line("elsewhere", uuid="2", session=OTHER, cwd="/home/dev/other")
    append(session_file(home, OTHER), elsewhere)
    subagents = main.with_suffix("") / "subagents"
    subagents.mkdir(parents=True)
    append(
        subagents / "agent-7.jsonl",
        a_line("a subagent", uuid="3", isSidechain=True, agentId="7"),
    )

    assert written_last(memory) == SESSION
    assert written_last(memory, host="claude-code") == SESSION
    assert written_last(memory, host="codex") is None
    assert CurrentSession(memory, started_at=IN_A_YEAR).find() is None


def test_what_a_hook_noted_comes_first(memory: Memory, home: Path) -> None:
    append(session_file(home), a_line("written last", uuid="1"))
    path = session_file(home, OTHER)
    append(path, a_line("noted by a hook", uuid="2", session=OTHER))
    noted = LiveSession("claude-code", OTHER, str(path), str(PROJECT))
    current = CurrentSession(memory, started_at=LONG_AGO, find_noted=lambda: noted)

    assert current.find() == noted
    assert len(current.get_run(None)) == 1
    assert current.get_run(None) is current.get_run(None)


def test_a_session_that_is_named_is_searched_instead(
    memory: Memory, home: Path
) -> None:
    append(session_file(home), a_line("the ferry leaves at 9:40", uuid="1"))
    current = CurrentSession(memory)

    with pytest.raises(BadQuery, match="does not know which session you are in"):
        current.get_run(None)
    assert len(current.get_run(SESSION)) == 1


def test_an_agent_whose_session_is_not_written_is_told_what_to_use(
    memory: Memory,
) -> None:
    noted = LiveSession("opencode", "ses_1", "", "")
    current = CurrentSession(memory, find_noted=lambda: noted)
    tools = ServedTools(memory, current, Calls(), with_data=False)

    result = tools.run("search_conversation_history", {"query": "ferry"})

    assert (result.error, result.text) == (
        "not_found",
        "No agent program on this machine has a transcript of session 'ses_1'. "
        "Use search_history and read_session for what is stored of it.",
    )


def test_a_search_leaves_out_what_the_session_just_said(
    memory: Memory, home: Path
) -> None:
    append(session_file(home), a_line("the ferry to Rousay", uuid="1"))
    memory.index()
    arguments = {"query": "Rousay"}
    knowing = CurrentSession(memory, started_at=LONG_AGO)

    with_session = ServedTools(memory, knowing, Calls(), with_data=True)
    without = ServedTools(memory, CurrentSession(memory), Calls(), with_data=True)

    assert with_session.run("search_history", arguments).is_empty
    assert not without.run("search_history", arguments).is_empty


def test_an_agent_of_one_project_cannot_name_a_session_of_another(
    tmp_path: Path, home: Path
) -> None:
    append(session_file(home), a_line("the ferry to Rousay", uuid="1"))
    flags = ("embedder.name=none", "search.isolate_projects=true")
    settings = read_settings(environ={}, flags=flags)
    machine = Machine("linux", home, {}, PROJECT)
    arguments = {"query": "Rousay", "session": SESSION}
    with Memory(tmp_path / "kept", settings, machine) as memory:
        current = CurrentSession(memory, started_at=LONG_AGO)
        tools = ServedTools(memory, current, Calls(), with_data=False)

        result = tools.run("search_conversation_history", arguments)

    assert (result.error, result.text) == (
        "validation_error",
        "Unknown parameter 'session'. Must be one of: query, max_results",
    )
