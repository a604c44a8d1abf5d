"""How a person continues a session in its own program."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory.ingest.hosts import HOSTS
from backstory.memory import Memory
from tests.builders import a_line, append, session_file
from tests.samples import a_memory, all_cases, read_sample

MAIN = "5d0c1c53-8a57-4f43-9f0e-3c3f6d8f2b11"
BY_WORDS = ("embedder.name=none",)


@pytest.fixture
def open_memory(tmp_path: Path, home: Path) -> Callable[[], Memory]:
    return lambda: a_memory(tmp_path, home=home, settings=BY_WORDS)


def commands(memory: Memory) -> dict[str, str]:
    """The commands of all sessions, by the ids of these."""
    sessions = memory.sessions()
    found = memory.resume_commands(sessions)
    return {
        each.native_id: found[each.session_id]
        for each in sessions
        if each.session_id in found
    }


# One session of every program that documents how, and what the person types.
RESUMED = {
    "amp": "amp threads continue {id}",
    "claude-code": "cd /home/dev/demo && claude --resume {id}",
    "cline": "cd /home/dev/demo && cline --id {id}",
    "codex": "codex resume {id}",
    "copilot-cli": "copilot --resume={id}",
    "gemini-cli": "cd /home/dev/demo && gemini --resume {id}",
    "goose": "goose session --resume --session-id {id}",
    "opencode": "cd /home/dev/demo && opencode --session {id}",
    "qwen-code": "cd /home/dev/demo && qwen --resume {id}",
    "pi": "cd /home/dev/demo && pi --session {id}",
}


def test_every_program_that_resumes_is_tested() -> None:
    assert {host.name for host in HOSTS if host.resume} == set(RESUMED)


@pytest.mark.parametrize(("host", "expected"), RESUMED.items())
def test_a_session_is_resumed_by_its_own_program(
    tmp_path: Path, host: str, expected: str
) -> None:
    case = next(each for each in all_cases() if each.format == host)
    root = case.lay_out(tmp_path)
    with a_memory(tmp_path, home=root, settings=BY_WORDS) as memory:
        read_sample(memory, root)
        session = next(each for each in memory.sessions() if not each.parent_id)

        found = memory.resume_commands([session])

    assert found == {session.session_id: expected.format(id=session.native_id)}


def test_a_subagent_is_resumed_as_part_of_its_parent(
    home: Path, open_memory: Callable[[], Memory]
) -> None:
    folder = session_file(home).with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    append(session_file(home), a_line("hello", uuid="u1"))
    append(
        folder / "agent-a1.jsonl",
        a_line("go", uuid="u2", cwd="/tmp/worktree", isSidechain=True, agentId="a1"),
    )
    resumed = f"cd /home/dev/demo && claude --resume {MAIN}"
    with open_memory() as memory:
        memory.index()

        assert commands(memory) == {MAIN: resumed, "agent-a1": resumed}
        alone = memory.session("agent-a1")
        assert memory.resume_commands([alone]) == {alone.session_id: resumed}


def test_what_its_program_has_deleted_is_not_resumed(
    home: Path, open_memory: Callable[[], Memory]
) -> None:
    append(session_file(home), a_line("hello", uuid="u1"))
    with open_memory() as memory:
        memory.index()
        session_file(home).unlink()
        memory.record("mine", "user", "hello")

        assert commands(memory) == {}


def test_a_folder_at_home_is_written_with_a_tilde(
    home: Path, open_memory: Callable[[], Memory]
) -> None:
    folders = {"a1": home, "a2": home / "my site", "a3": Path(f"{home}2")}
    for name, folder in folders.items():
        line = a_line("hello", uuid=name, session=name, cwd=str(folder))
        append(session_file(home, name), line)
    with open_memory() as memory:
        memory.index()

        assert commands(memory) == {
            "a1": "cd ~ && claude --resume a1",
            "a2": "cd ~/'my site' && claude --resume a2",
            "a3": f"cd {home}2 && claude --resume a3",
        }


@pytest.mark.parametrize(
    "name",
    ["$(id)", "-p", "a b", "a;id", "a\nb", "a\x1b[31m", "../a", "", "é", "x" * 200],
)
def test_what_is_not_an_id_is_never_in_a_command(
    home: Path, open_memory: Callable[[], Memory], name: str
) -> None:
    append(session_file(home), a_line("hello", uuid="u1", session=name))
    with open_memory() as memory:
        memory.index()

        assert name not in commands(memory)


@pytest.mark.parametrize("folder", ["", "demo", "-demo", "/a\nb", "/a\x1b[31m", "~/x"])
def test_what_is_not_a_folder_is_never_in_a_command(
    home: Path, open_memory: Callable[[], Memory], folder: str
) -> None:
    append(session_file(home), a_line("hello", uuid="u1", cwd=folder))
    with open_memory() as memory:
        memory.index()

        assert commands(memory) == {}


HOSTILE = ["/a'; touch x; '", "/$(touch x)", "/a && touch x", "/`touch x`", '/"a', "/~"]


@pytest.mark.parametrize("folder", HOSTILE)
def test_a_shell_reads_nothing_into_a_folder(
    tmp_path: Path, home: Path, open_memory: Callable[[], Memory], folder: str
) -> None:
    append(session_file(home), a_line("hello", uuid="u1", cwd=folder))
    with open_memory() as memory:
        memory.index()
        (command,) = commands(memory).values()

    # A shell that only says what it would do.
    script = 'cd() { printf "%s|" "$@"; }; claude() { printf "%s|" "$@"; }\n' + command
    said = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert said.stdout == f"{folder}|--resume|{MAIN}|"
    assert not (tmp_path / "x").exists()
