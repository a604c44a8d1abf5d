"""An agent searches its own run from the command line."""

import json
import logging
from pathlib import Path

import orjson
import pytest

from tests.builders import (
    SESSION,
    a_line,
    append,
    session_file,
)
from tests.live_transcripts import (
    Log,
    each_program,
)
from tests.shell import Shell


@pytest.fixture(autouse=True)
def _tools_may_log_their_errors(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


class AgentShell(Shell):
    """A shell in which somebody, or an agent, calls Backstory."""

    def call(
        self, query: str, *options: str, **environ: str
    ) -> tuple[int, list[str], list[str]]:
        """The exit code, what was found, and what was said on standard error."""
        arguments = orjson.dumps({"query": query}).decode()
        words = ("call", "search_conversation_history", arguments, "--json", *options)
        done = self.run(*words, **environ)
        answer = json.loads(done.stdout or "{}")
        ids = [hit["id"] for hit in answer.get("data") or []]
        said = (
            answer["text"].splitlines()
            if answer.get("error")
            else done.stderr.splitlines()
        )
        return done.returncode, ids, said


@pytest.fixture
def shell(home: Path) -> AgentShell:
    return AgentShell(home, home / "kept")


# -- the command line ---


@each_program
def test_a_command_finds_a_session_by_its_id(
    shell: AgentShell, home: Path, log: Log
) -> None:
    append(
        log.file(home, SESSION),
        log.start(SESSION),
        log.call("Bash", "toolu_1", command="ls"),
        log.result("Bash", "toolu_1", "A zebra was here"),
    )

    assert shell.call("zebra", "--session", SESSION) == (0, ["toolu_1"], [])


def test_a_command_finds_a_session_by_its_transcript(
    shell: AgentShell, home: Path
) -> None:
    append(session_file(home), a_line("A zebra was here", uuid="u1"))
    path = str(session_file(home))

    assert shell.call("zebra", "--transcript", path) == (0, ["item-1"], [])
    assert shell.call("okapi", "--transcript", path) == (1, [], [])


def test_a_command_that_claude_runs_knows_its_session(
    shell: AgentShell, home: Path
) -> None:
    append(session_file(home), a_line("A zebra was here", uuid="u1"))

    done = shell.call("zebra", CLAUDE_CODE_SESSION_ID=SESSION)

    assert done == (0, ["item-1"], [])


def test_a_default_session_that_is_unknown_is_named_with_its_origin(
    shell: AgentShell,
) -> None:
    code, ids, said = shell.call("zebra", CLAUDE_CODE_SESSION_ID="nobody")

    assert (code, ids) == (12, [])
    assert said[0] == (
        "no agent program on this machine has a transcript of session "
        "'nobody' (the id is from CLAUDE_CODE_SESSION_ID)"
    )


def test_a_transcript_that_is_named_counts_more_than_a_default_session(
    shell: AgentShell, home: Path
) -> None:
    file = session_file(home, "agent-a1")
    append(
        file, a_line("A zebra of its own", uuid="u1", agentId="a1", isSidechain=True)
    )

    done = shell.call(
        "zebra", "--transcript", str(file), CLAUDE_CODE_SESSION_ID=SESSION
    )

    assert done == (0, ["item-1"], [])


def test_a_command_without_a_session_says_what_to_give(shell: AgentShell) -> None:
    assert shell.call("zebra") == (
        14,
        [],
        [
            "no session was given",
            "Hint: give its id (--session), or the path of the transcript that its "
            "program writes (--transcript)",
        ],
    )


def test_a_command_with_an_unknown_session_says_what_to_give(shell: AgentShell) -> None:
    code, ids, said = shell.call("zebra", "--session", "nobody\n'knows")

    assert (code, ids) == (12, [])
    assert said == [
        "no agent program on this machine has a transcript of session 'nobody 'knows'",
        "Hint: give the whole id, as the program passes it to its hooks, or the path "
        "of the transcript (--transcript)",
    ]


def test_a_command_with_no_transcript_says_so(shell: AgentShell, home: Path) -> None:
    code, ids, said = shell.call("zebra", "--transcript", str(home))

    assert (code, ids) == (30, [])
    assert f"{home}: it cannot be read (it is a folder)" in said[0]
