"""What programs read when a command with --json fails."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from backstory.cli.app import COMMANDS, commands
from tests.grid import in_one_test
from tests.shell import Shell

QUERY = '{"query": "x"}'
NO_UTF8 = os.fsdecode(b"\xff")


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> Shell:
    return Shell(home, tmp_path / "kept")


@in_one_test(
    "case",
    {
        "an unknown tool": (("nope",), 12, "unknown_name"),
        "a tool that is no text": ((NO_UTF8,), 12, "unknown_name"),
        "no tool": ((), 2, "usage_error"),
        "an unknown option": (("search_history", "--nope"), 2, "usage_error"),
        "no JSON": (("search_history", "{"), 2, "usage_error"),
        "bytes that are no text": (("search_history", NO_UTF8), 2, "usage_error"),
        "no object": (("search_history", "[]"), 2, "usage_error"),
        "no such argument": (("search_history", '{"q": 1}'), 14, "validation_error"),
        "no session": (("search_conversation_history", QUERY), 14, "bad_query"),
        "a session that is no text": (
            ("search_conversation_history", QUERY, "--session", NO_UTF8),
            12,
            "unknown_name",
        ),
    },
)
def test_a_call_that_fails_prints_one_object(
    shell: Shell, case: tuple[tuple[str, ...], int, str]
) -> None:
    words, code, error = case

    done = shell.run("call", "--json", *words)

    answer = json.loads(done.stdout)
    assert (done.returncode, answer["error"], answer["data"]) == (code, error, None)
    assert answer["text"]
    assert done.stderr == ""


def test_a_call_with_a_broken_home_prints_one_object(shell: Shell) -> None:
    shell.kept.mkdir()
    (shell.kept / "history.db").write_bytes(b"not a database" * 100)
    call = ("call", "search_history", QUERY, "--json")

    damaged = shell.run(*call)
    no_folder = shell.run(*call, BACKSTORY_HOME="/dev/null/x")
    no_setting = shell.run("--set", "nope=1", *call)

    found = {
        done.returncode: json.loads(done.stdout)["error"]
        for done in (damaged, no_folder, no_setting)
    }
    assert found == {
        23: "store_damaged",
        26: "store_unwritable",
        11: "config_error",
    }


def test_arguments_from_a_pipe_that_are_no_text_are_wrong_usage(shell: Shell) -> None:
    done = shell.run("call", "search_history", "-", "--json", typed="\udcff{")

    assert (done.returncode, json.loads(done.stdout)["error"]) == (2, "usage_error")


def json_commands() -> Iterator[str]:
    for name in COMMANDS:
        command = commands.get_command(click.Context(commands), name)
        if command and any("--json" in param.opts for param in command.params):
            yield name


@in_one_test("name", {name: name for name in json_commands() if name != "call"})
def test_every_other_command_prints_no_json_when_it_fails(
    shell: Shell, name: str
) -> None:
    needed = {"search", "show", "context", "eval", "export", "import"}
    words = [name, "--json", *(["x"] if name in needed else [])]

    done = shell.run(*words, BACKSTORY_HOME="/dev/null/x", BACKSTORY_CONFIG="/nope")

    assert done.returncode in (0, 11, 26)
    assert (done.stdout == "") == (done.returncode != 0)
    assert (done.stderr == "") == (done.returncode == 0)


@in_one_test(
    "words",
    {
        " ".join(words[:-1]): words
        for words in (
            ("context", "x", "--session", NO_UTF8),
            ("eval", NO_UTF8),
            ("search", NO_UTF8),
            ("search", "x", "--project", NO_UTF8),
            ("search", "x", "--host", NO_UTF8),
            ("show", NO_UTF8),
            ("sessions", "--host", NO_UTF8),
            ("sessions", "--project", NO_UTF8),
            ("index", "--source", NO_UTF8),
            ("index", "--path", NO_UTF8),
            ("export", NO_UTF8),
            ("export", "x", NO_UTF8),
            ("import", NO_UTF8),
            ("logs", NO_UTF8),
            ("memory", "forget", NO_UTF8),
            ("--set", NO_UTF8, "status"),
            ("--home", NO_UTF8, "status"),
        )
    },
)
def test_bytes_that_are_no_text_get_a_clear_answer(
    shell: Shell, words: tuple[str, ...]
) -> None:
    done = shell.run(*words)

    assert done.returncode in (1, 2, 3, 11, 12, 14, 32)
    assert (done.stdout + done.stderr).strip()
    assert "codec" not in done.stderr
    assert "Traceback" not in done.stderr
