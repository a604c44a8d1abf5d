"""What a shell offers when Tab is pressed, in the shells themselves."""

import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import backstory
from tests.processes import PATIENCE_S
from tests.shell import Shell

SAMPLES = Path(backstory.__file__).parent / "cli" / "samples"
SESSION_ID = "3c71e0d8-02b6-4c3e-8f19-7be5a4d0c922"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """The shell of a person whose sample conversations have been read."""
    folder = tmp_path_factory.mktemp("completion")
    shutil.copytree(SAMPLES, folder / "home")
    shell = Shell(folder / "home", folder / "kept")
    assert shell.run("index").returncode == 0
    # The program as it is installed: the shells start it by its name.
    (folder / "bin").mkdir()
    program = folder / "bin" / "backstory"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m backstory "$@"\n')
    program.chmod(0o755)
    return shell


def offers(shell: Shell, typed: str) -> list[str]:
    """What may come in place of the last word that was typed."""
    done = shell.run(
        _BACKSTORY_COMPLETE="bash_complete",
        COMP_WORDS=f"backstory {typed}",
        COMP_CWORD=str(len(typed.split(" "))),
    )
    assert done.stderr == ""
    found = [line.partition(",") for line in done.stdout.splitlines() if line]
    return [value if kind == "plain" else kind for kind, _, value in found]


def test_commands_options_and_names_are_completed(shell: Shell) -> None:
    expected = {
        "ses": ["sessions"],
        "st": ["stats", "status"],
        "sessions --ho": ["--host"],
        "show 3c": [SESSION_ID],
        "export out 3c": [SESSION_ID],
        "forget 3c": [SESSION_ID],
        "sessions --host cla": ["claude-ai", "claude-code"],
        "install codex c": ["claude-code", "codex", "copilot", "cursor"],
        "uninstall gem": ["gemini"],
        "context --session 3c": [SESSION_ID],
        "search tea --project book": ["bookshelf"],
        "search tea --project ./b": ["dir"],
        "index --path ": ["file"],
        "settings set embedder.n": ["embedder.name"],
        "settings set ranking.profile ": ["tuned", "spec"],
        "settings set logs.enabled ": ["true", "false"],
        "settings unset llm.na": ["llm.name"],
        "--set ranking.prof": ["ranking.profile="],
        "--set ranking.profile=s": ["ranking.profile=spec"],
        "call search_h": ["search_history"],
        "stats --by m": ["messages"],
        "completion f": ["fish"],
    }

    assert {typed: offers(shell, typed) for typed in expected} == expected


def test_without_a_home_only_what_is_known_is_offered_and_none_is_made(
    shell: Shell, tmp_path: Path
) -> None:
    other = Shell(shell.home, tmp_path / "none")

    assert {
        typed: offers(other, typed)
        for typed in ("show ", "search x --project ", "sessions --host claude-c")
    } == {
        "show ": [],
        "search x --project ": [],
        "sessions --host claude-c": ["claude-code"],
    }
    assert not other.kept.exists()


def test_nothing_that_is_wrong_disturbs_typing(shell: Shell, tmp_path: Path) -> None:
    broken = Shell(shell.home, tmp_path / "broken")
    broken.kept.mkdir()
    (broken.kept / "history.db").write_bytes(b"not a database" * 1000)

    assert offers(broken, "show ") == []
    done = shell.run(_BACKSTORY_COMPLETE="cobol_complete")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


# -- real shells ---


def completes(
    shell: Shell, program: list[str], setup: str, line: str, completed: str
) -> bool:
    """Whether a real, interactive shell completes a line when Tab is pressed."""
    leader, follower = pty.openpty()
    path = f"{shell.home.parent / 'bin'}:{os.environ['PATH']}"
    with subprocess.Popen(
        program,
        env={**shell.environ, "PATH": path, "TERM": "dumb", "PS1": "> "},
        cwd=shell.home,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    ) as process:
        os.close(follower)
        # Written in two parts, so that what is typed is not what is waited for.
        os.write(leader, f"{setup}; echo set''up\n".encode())
        is_done = _is_shown(leader, "setup\r\n")
        os.write(leader, f"{line}\t".encode())
        is_done = is_done and _is_shown(leader, completed)
        process.kill()
    os.close(leader)
    return is_done


def _is_shown(leader: int, text: str) -> bool:
    shown = ""
    while text not in shown:
        ready, _, _ = select.select([leader], [], [], PATIENCE_S)
        if not ready:
            return False
        shown += os.read(leader, 65_536).decode()
    return True


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_completes_a_session(shell: Shell) -> None:
    program = ["bash", "--norc", "--noprofile", "-i"]
    setup = 'eval "$(backstory completion bash)"'

    assert completes(shell, program, setup, "backstory show 3c", SESSION_ID)


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_completes_a_value(shell: Shell) -> None:
    setup = 'autoload -U compinit && compinit -u -D; eval "$(backstory completion zsh)"'
    line = "backstory --set embedder.name=mini"

    assert completes(shell, ["zsh", "-f", "-i"], setup, line, "embedder.name=minilm")


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_completes_a_session_and_says_what_it_is_about(shell: Shell) -> None:
    path = f"{shell.home.parent / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        [
            "fish",
            "--no-config",
            "-c",
            "backstory completion fish | source; complete -C 'backstory show 3c'",
        ],
        env={**shell.environ, "PATH": path},
        cwd=shell.home,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.split("\t")[0] == SESSION_ID
    assert done.stdout.split("\t")[1].startswith("claude-code: ")
