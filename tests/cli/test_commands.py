"""The command line through the front door: whole output, and real processes."""

import json
import platform
import shlex
import shutil
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from backstory import cli
from backstory.cli.app import COMMANDS, commands
from backstory.system.locks import locked
from tests.builders import (
    SESSION,
    a_line,
    a_tool_call,
    a_tool_result,
    append,
    session_file,
)
from tests.processes import PATIENCE_S
from tests.samples import all_cases
from tests.shell import BACKSTORY, Shell


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> Shell:
    return Shell(home, tmp_path / "kept")


@pytest.fixture
def used_shell(shell: Shell) -> Shell:
    """The shell of somebody who has used an agent, and has indexed."""
    append(
        session_file(shell.home),
        a_line("Which database?", uuid="u1", at="2026-02-20T14:32:10.000Z"),
        a_tool_call("Bash", {"command": "ls"}, uuid="u2", call="c1"),
        a_tool_result("loans.csv", uuid="u3", call="c1"),
        a_line("SQLite.", uuid="u4", role="assistant", at="2026-02-20T14:34:00.000Z"),
    )
    append(
        session_file(shell.home, "other"),
        a_line(
            "Other things",
            uuid="u5",
            session="other",
            cwd="/srv/site/app",
            at="2026-02-22T08:00:00.000+02:00",
        ),
    )
    shell.out("index")
    return shell


# -- index ---


def test_index_says_what_it_read(shell: Shell) -> None:
    append(session_file(shell.home), a_line(uuid="u1"), a_line(uuid="u2"))

    first, second = shell.out("index"), shell.out("index")

    assert first.startswith("Read 1 source: 1 new session, 2 new messages (")
    assert second.splitlines()[0] == "Nothing new in 1 source."


def test_index_with_bad_lines_names_them_and_ends_with_3(shell: Shell) -> None:
    append(session_file(shell.home), a_line(uuid="u1"), b"rubbish\n")

    done = shell.process("index")

    assert done.returncode == 3
    assert done.stdout.splitlines()[1:] == [
        "Vectors: none of 1 text yet; 'backstory index --wait' makes them.",
        "1 problem:",
        f"  ~/.claude/projects/-home-dev-demo/{SESSION}.jsonl:2: "
        "not valid JSON (Expecting value)",
    ]


def test_a_problem_on_many_lines_of_a_file_is_named_once(shell: Shell) -> None:
    of_another_program = b'{"who": "me", "says": "hello"}\n' * 30
    append(session_file(shell.home), of_another_program)
    append(session_file(shell.home, "other"), a_line(uuid="u1"), b"rubbish\n")

    read, kept = shell.run("index"), shell.run("status")

    assert read.stdout.splitlines()[2:] == [
        "31 problems:",
        f"  ~/.claude/projects/-home-dev-demo/{SESSION}.jsonl:1: "
        "a record without a type (30 times)",
        "  ~/.claude/projects/-home-dev-demo/other.jsonl:2: "
        "not valid JSON (Expecting value)",
    ]
    assert kept.stdout.splitlines()[-2:] == read.stdout.splitlines()[-2:]


def test_of_a_file_that_is_not_there_only_the_problem_is_told(shell: Shell) -> None:
    done = shell.run("index", "--path", "none.jsonl")

    assert done.stdout.splitlines() == [
        "1 problem:",
        "  none.jsonl: it cannot be read (No such file or directory)",
    ]


# Of each of these programs, more files are read than have conversations.
@pytest.mark.parametrize(
    "format_name",
    ["claude-code", "codex-threads", "copilot-cli", "cursor", "qwen-code"],
)
def test_index_counts_the_sources_that_are_listed(
    tmp_path: Path, format_name: str
) -> None:
    home = tmp_path / "home"
    for case in all_cases():
        if case.format == format_name:
            shutil.copytree(
                case.lay_out(tmp_path / case.name), home, dirs_exist_ok=True
            )
    shell = Shell(home, tmp_path / "kept")

    first, second = (json.loads(shell.run("index", "--json").stdout) for _ in range(2))

    listed = json.loads(shell.out("sources", "--json"))
    found = sum(each["found"] for each in listed)
    assert (first["read"], first["unchanged"]) == (found, 0)
    assert (second["read"], second["unchanged"]) == (0, found)


def test_index_reports_as_json(shell: Shell) -> None:
    file = session_file(shell.home)
    append(file, a_line(uuid="u1"), b"rubbish\n")

    done = shell.run("index", "--json")

    assert done.returncode == 3
    assert json.loads(done.stdout) == {
        "read": 1,
        "unchanged": 0,
        "excluded": 0,
        "of_unknown_format": 0,
        "skipped": 1,
        "new_sessions": 1,
        "new_messages": 1,
        "changed_messages": 0,
        "read_bytes": file.stat().st_size,
        "problems": [
            {"path": str(file), "line": 2, "reason": "not valid JSON (Expecting value)"}
        ],
    }


def test_index_is_silent_about_its_progress_in_a_pipe(shell: Shell) -> None:
    append(session_file(shell.home), a_line(uuid="u1"))

    assert shell.process("index").stderr == ""


def test_index_shows_its_progress_on_a_terminal(shell: Shell) -> None:
    append(session_file(shell.home), a_line(uuid="u1"))

    assert "100%" in shell.on_terminal("index")


def test_index_reads_one_agent_program_alone(shell: Shell) -> None:
    append(session_file(shell.home), a_line(uuid="u1"))

    assert shell.out("index", "--host", "codex").startswith("Found nothing to read")
    assert shell.out("index", "--host", "claude-code").startswith("Read 1 source:")


@pytest.mark.parametrize(
    "option", [["--source", "claude-code"], ["--source=claude-code"]]
)
def test_index_takes_the_former_name_of_its_option_too(
    shell: Shell, option: list[str]
) -> None:
    append(session_file(shell.home), a_line(uuid="u1"))

    assert shell.out("index", "--source", "codex").startswith("Found nothing to read")
    assert shell.out("index", *option).startswith("Read 1 source:")
    assert "--source" not in shell.out("index", "--help")


def test_index_honours_the_hosts_own_variables(shell: Shell, tmp_path: Path) -> None:
    append(session_file(tmp_path / "elsewhere"), a_line(uuid="u1"))

    done = shell.process(
        "index", CLAUDE_CONFIG_DIR=str(tmp_path / "elsewhere" / ".claude")
    )

    assert done.stdout.startswith("Read 1 source: 1 new session, 1 new message ")


def test_index_with_an_unknown_agent_program_offers_the_nearest(shell: Shell) -> None:
    done = shell.run("index", "--host", "claudecode")

    assert done.returncode == 12
    assert done.stderr == (
        "backstory: no agent program is called 'claudecode'\n"
        "  hint: did you mean 'claude-code'?\n"
    )


def _hear_interrupts() -> None:
    """In a process to be started: tests that run in the background are deaf to them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_watch_reads_what_is_written_and_stops_when_interrupted(shell: Shell) -> None:
    append(session_file(shell.home), a_line("one", uuid="u1"))
    watching = subprocess.Popen(
        [*BACKSTORY, "index", "--watch", "--json"],
        env={**shell.environ, "BACKSTORY_INDEX_WATCH_SECONDS": "0.05"},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_interrupts,
    )
    assert watching.stdout is not None

    first = json.loads(watching.stdout.readline())
    append(session_file(shell.home), a_line("two", uuid="u2"))
    second = json.loads(watching.stdout.readline())
    watching.send_signal(signal.SIGINT)
    code = watching.wait(PATIENCE_S)

    assert (first["new_messages"], second["new_messages"], code) == (1, 1, 130)
    watching.stdout.close()


def test_watch_says_in_words_what_it_read(shell: Shell) -> None:
    append(session_file(shell.home), a_line("one", uuid="u1"))
    watching = subprocess.Popen(
        [*BACKSTORY, "index", "--watch"],
        env=shell.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=_hear_interrupts,
    )
    assert watching.stdout is not None

    line = watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    code = watching.wait(PATIENCE_S)

    assert (line[8:], code) == ("  1 new message in 1 source\n", 130)
    watching.stdout.close()


def test_a_second_index_waits_for_the_first(shell: Shell) -> None:
    shell.out("index")
    with locked(shell.kept / "index.lock"):
        second = subprocess.Popen(
            [*BACKSTORY, "index"],
            env=shell.environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert second.stderr is not None

        said = second.stderr.readline()
        has_ended = second.poll() is not None

    assert said == "Another 'backstory index' is running; waiting for it.\n"
    assert not has_ended
    assert second.wait(PATIENCE_S) == 0
    second.stderr.close()


# -- sources ---


def test_sources_shows_what_is_there_and_how_much_was_read(used_shell: Shell) -> None:
    append(session_file(used_shell.home, "new"), a_line(uuid="u9", session="new"))

    lines = used_shell.out("sources").splitlines()

    assert [line.split() for line in lines] == [
        ["HOST", "FOUND", "SIZE", "INDEXED", "SESSIONS", "MESSAGES", "WHERE"],
        ["claude-code", "3", "1.3", "KB", "2", "of", "3", "2", "5", "~/.claude"],
    ]


def test_sources_as_json(used_shell: Shell) -> None:
    (found,) = json.loads(used_shell.out("sources", "--json"))

    assert found | {"found_bytes": 0} == {
        "host": "claude-code",
        "name": "Claude Code",
        "places": [str(used_shell.home / ".claude")],
        "found": 2,
        "found_bytes": 0,
        "indexed": 2,
        "sessions": 2,
        "messages": 5,
        "excluded": False,
    }


def test_sources_on_a_machine_without_agents_says_so(shell: Shell) -> None:
    assert shell.out("sources") == (
        "No agent program has left conversations on this machine.\n"
    )


# -- sessions ---


def test_sessions_lists_the_most_recent_first(used_shell: Shell) -> None:
    assert used_shell.out("sessions") == (
        "LAST ACTIVE       HOST         ID        MESSAGES  PROJECT         "
        "TITLE\n"
        "2026-02-22 06:00  claude-code  other            1  /srv/site/app   "
        "Other things\n"
        "2026-02-20 14:34  claude-code  5d0c1c53         4  /home/dev/demo  "
        "Which database?\n"
    )


def test_sessions_shows_how_to_resume_each(used_shell: Shell) -> None:
    shown = used_shell.out("sessions", "--resume").splitlines()

    assert [line.strip() for line in shown if line.startswith("  ")] == [
        "cd /srv/site/app && claude --resume other",
        f"cd /home/dev/demo && claude --resume {SESSION}",
    ]
    assert shown[1].endswith("Other things")


def test_sessions_as_json_is_a_list_of_objects(used_shell: Shell) -> None:
    listed = json.loads(used_shell.out("sessions", "--json", "--host", "claude-code"))

    assert listed[0] == {
        "host": "claude-code",
        "id": "other",
        "title": "Other things",
        "project": "/srv/site/app",
        "git_branch": "main",
        "parent": None,
        "started_at": "2026-02-22T08:00:00+02:00",
        "last_active_at": "2026-02-22T08:00:00+02:00",
        "messages": 1,
        "preview": "Other things",
        "read_from": str(session_file(used_shell.home, "other")),
        "last_logged_message_id": None,
        "resume": "cd /srv/site/app && claude --resume other",
        "subagents": 0,
        "warm_up": False,
    }


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--project", "/srv/site"), ["other"]),
        (("--project", "app"), ["other"]),
        (("--project", "APP"), ["other"]),
        (("--project", "site/app"), ["other"]),
        (("--project", "demo", "--since", "2026-02-22"), []),
        (("--since", "2026-02-22"), ["other"]),
        (("--since", "2026-02-20"), ["other", SESSION]),
        (("--since", "0 days ago"), []),
        (("--limit", "1"), ["other"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_sessions_are_filtered(
    used_shell: Shell, words: tuple[str, ...], expected: list[str]
) -> None:
    listed = json.loads(used_shell.out("sessions", "--json", *words))

    assert [session["id"] for session in listed] == expected


def test_sessions_of_an_empty_store_say_what_to_do(shell: Shell) -> None:
    assert shell.out("sessions") == (
        "No sessions. Run 'backstory index' to read what your agents wrote.\n"
    )
    assert shell.out("sessions", "--json") == "[]\n"


def test_a_day_that_is_none_is_refused_with_an_example(shell: Shell) -> None:
    done = shell.run("sessions", "--since", "2026-02-30")

    assert done.returncode == 2
    assert done.stderr.endswith(
        "Error: Invalid value for '--since': '2026-02-30' is not a date; "
        "write it as 2026-02-25, or in words: yesterday, last week, 3 days ago.\n"
    )


# -- show ---


def test_show_prints_a_transcript_to_read(used_shell: Shell) -> None:
    assert used_shell.out("show", "5d0c") == (
        "title: Which database?\n"
        f"claude-code · {SESSION} · /home/dev/demo (main) · 4 messages · "
        "2026-02-20 14:32 – 14:34\n"
        f"resume with: cd /home/dev/demo && claude --resume {SESSION}\n"
        "\n"
        "— 2026-02-20 —\n"
        "\n"
        "[1] USER  14:32\n"
        "  │ Which database?\n"
        "\n"
        "[2] TOOL CALL  Bash │ ls\n"
        "[3] TOOL RESULT  Bash  1 line │ loans.csv\n"
        "\n"
        "[4] ASSISTANT  14:34\n"
        "  │ SQLite.\n"
        "\n"
        "Tools take one line each; --tools shows them in full.\n"
    )


@pytest.mark.parametrize("message", ["2", "u2"])
def test_show_around_a_message_shows_its_neighbours(
    used_shell: Shell, message: str
) -> None:
    shown = used_shell.out("show", SESSION, "--around", message, "-C", "1", "--json")

    assert [each["id"] for each in json.loads(shown)["messages"]] == ["u1", "u2", "u3"]


def test_show_prints_every_line_of_a_very_long_text(shell: Shell) -> None:
    lines = [f"line {number}" if number % 3 else "" for number in range(20_000)]
    append(session_file(shell.home), a_line("\n".join(lines), uuid="u1"))
    shell.out("index")

    shown = shell.out("show", SESSION).split("\n")

    # After the last line there is a line end, too.
    quoted = [f"  │ {line}".rstrip() for line in lines]
    assert shown[-len(lines) - 1 :] == [*quoted, ""]


def test_show_makes_hostile_text_safe_to_print(shell: Shell) -> None:
    append(
        session_file(shell.home),
        a_line("red \x1b[31m, beep \x07, backwards \u202e", uuid="u1"),
    )
    shell.out("index")

    assert shell.out("show", SESSION).splitlines()[-1] == (
        "  │ red ␛[31m, beep ␇, backwards \ufffd"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("show", "nothing"),
            "backstory: no session has the id 'nothing'\n"
            "  hint: run 'backstory sessions' to see the ids\n",
        ),
        (
            ("show", "other", "--around", "99"),
            "backstory: no message of session other is called '99'\n"
            "  hint: run 'backstory show other' to see their numbers\n",
        ),
        (
            ("sessions", "--host", "codx"),
            "backstory: no agent program is called 'codx'\n"
            "  hint: did you mean 'codex'?\n",
        ),
        (
            ("sessions", "--project", "nowhere"),
            "backstory: no session ran in a folder called 'nowhere'\n"
            "  hint: the names are: demo, app\n",
        ),
        (
            ("sessions", "--project", "/srv/sit"),
            "backstory: no session ran in /srv/sit or below it\n"
            "  hint: did you mean '/srv/site/app'?\n",
        ),
    ],
    ids=["session", "message", "host", "name of a folder", "part of a path"],
)
def test_a_name_that_is_unknown_ends_with_12(
    used_shell: Shell, words: tuple[str, ...], message: str
) -> None:
    done = used_shell.run(*words)

    assert (done.returncode, done.stderr) == (12, message)


# -- status and settings ---


def test_status_sums_up(used_shell: Shell) -> None:
    append(session_file(used_shell.home, "bad"), b"rubbish\n")
    used_shell.run("index")

    found = json.loads(used_shell.out("status", "--json"))

    found["index"]["size_bytes"] = 0
    assert found | {"size_bytes": 0, "last_read_at": ""} == {
        "home": str(used_shell.kept),
        "store": None,
        "sessions": 2,
        "messages": 5,
        "size_bytes": 0,
        "sessions_by_host": {"claude-code": 2},
        "last_read_at": "",
        "problems": [
            {
                "path": str(session_file(used_shell.home, "bad")),
                "line": 1,
                "reason": "not valid JSON (Expecting value)",
            }
        ],
        "index": {
            "findable": 7,
            "to_embed": 3,
            "embedded": 0,
            "embedder": "auto",
            "size_bytes": 0,
            "is_behind": False,
            "problem": None,
        },
        "logs": {
            "is_enabled": True,
            "model": None,
            "due": 0,
            "set_aside": 0,
            "calls_today": 0,
            "tokens_today": 0,
            "daily_tokens": 200_000,
            "problem": None,
        },
        "excluded": [],
        "last_forgetting": None,
    }


def test_status_in_words(shell: Shell) -> None:
    lines = shell.out("status").splitlines()

    assert [line for line in lines if not line.startswith(("History", "Index"))] == [
        f"Home:      {shell.kept}",
        "Sessions:  0",
        "Messages:  0",
        "Logs:      no language model",
        "Last read: never",
        "Problems:  none",
    ]


def test_a_broken_settings_file_is_to_be_corrected_first(shell: Shell) -> None:
    config = shell.home / ".config" / "backstory" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[exclude")

    done = shell.run("status")

    assert done.returncode == 11
    assert done.stderr.splitlines()[-1] == (
        "  hint: correct it there; 'backstory settings' then shows every setting and "
        "where its value comes from"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
def test_a_limit_on_the_size_of_files_is_among_the_hints(shell: Shell) -> None:
    command = 'ulimit -f 150; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", command, "sh", *BACKSTORY, "index"],
        env=shell.environ,
        cwd=shell.home,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 20
    assert done.stderr.endswith("and how large files may get (ulimit -f)\n")


def test_settings_show_where_each_value_comes_from(shell: Shell) -> None:
    config = shell.home / ".config" / "backstory" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[exclude]\nhosts = ["codex"]\n')

    done = shell.run(
        "--set",
        "index.watch_seconds=5",
        "settings",
        "--json",
        BACKSTORY_EXCLUDE_FOLDERS="/a, /b",
    )

    listed = {
        each["name"]: (each["value"], each["from"])
        for each in json.loads(done.stdout)
        if each["name"].startswith(("exclude.", "index."))
    }
    assert listed == {
        "exclude.folders": (["/a", "/b"], "BACKSTORY_EXCLUDE_FOLDERS"),
        "exclude.hosts": (["codex"], str(config)),
        "index.folders": ([], "default"),
        "index.guidance": (True, "default"),
        "index.max_tool_output_bytes": (65536, "default"),
        "index.watch_seconds": (5.0, "--set"),
    }


def test_settings_say_which_file_is_yours(shell: Shell) -> None:
    last = shell.out("settings").splitlines()[-1]

    assert last == "Your own values go into ~/.config/backstory/config.toml."


def test_one_setting_can_be_read(shell: Shell) -> None:
    shell.out("settings", "set", "exclude.hosts", "codex,goose")

    assert shell.out("settings", "get", "exclude.hosts") == "codex, goose\n"
    assert shell.out("--set", "keep.days=3", "settings", "get", "keep.days") == "3\n"
    done = shell.run("settings", "get", "keep.day")
    assert (done.returncode, done.stdout, done.stderr.splitlines()) == (
        11,
        "",
        [
            "backstory: settings: unknown setting 'keep.day'",
            "  hint: did you mean 'keep.days'?",
        ],
    )


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["search", "x", "--set", "a=b"], "--set NAME=VALUE search"),
        (["memory", "show", "--home", "/srv"], "--home PATH memory show"),
    ],
)
def test_an_option_of_all_commands_behind_one_says_where_it_goes(
    shell: Shell, typed: list[str], expected: str
) -> None:
    done = shell.run(*typed)

    option = expected.partition(" ")[0]
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        f"Error: '{option}' goes before the command: backstory {expected} ...",
    )


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        (["search", "--no-verify"], " Did you mean '--no-pager'?"),
        (["search", "what", "is", "--trust flag"], ""),
        (["context", "-rf"], ""),
    ],
)
def test_text_that_looks_like_an_option_is_told_where_it_goes(
    shell: Shell, typed: list[str], known: str
) -> None:
    done = shell.run(*typed)

    option = "-r" if typed[-1] == "-rf" else typed[-1]
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        f"Error: No such option '{option}'.{known} Text that begins with '-' goes "
        f"after '--': backstory {typed[0]} -- ...",
    )


def test_other_commands_name_only_the_unknown_option(shell: Shell) -> None:
    done = shell.run("eval", "--frobnicate")

    assert done.stderr.endswith("Error: No such option '--frobnicate'.\n")


def test_a_mistyped_command_offers_the_nearest(shell: Shell) -> None:
    done = shell.run("curat", "tea")

    assert done.returncode == 2
    assert done.stderr.endswith(
        "Error: No such command 'curat'. Did you mean 'curate'?\n"
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("ls", "sessions"),
        ("remember", "memory add"),
        ("version", "--version"),
        ("memory remove", "memory forget"),
        ("settings path", "settings"),
        ("settings llm.name", "settings get llm.name"),
        ("settings llm.name claude", "settings set llm.name claude"),
    ],
)
def test_names_that_other_programs_use(shell: Shell, typed: str, meant: str) -> None:
    words = typed.split()
    done = shell.run(*words)

    wrong = next(word for word in words if word not in COMMANDS)
    assert done.returncode == 2
    assert done.stderr.endswith(
        f"Error: No such command '{wrong}'. Did you mean '{meant}'?\n"
    )


@pytest.mark.parametrize("words", [[], ["search"], ["memory", "add"]])
def test_help_can_be_asked_for_in_front(shell: Shell, words: list[str]) -> None:
    assert shell.out("help", *words) == shell.out(*words, "--help")


@pytest.mark.parametrize("width", ["60", "80"])
def test_no_line_of_the_help_is_cut(shell: Shell, width: str) -> None:
    for group in ((), ("memory",), ("settings",)):
        done = shell.run(*group, "--help", COLUMNS=width)
        listed = done.stdout.split("\n\nOptions:\n")[1]

        assert "..." not in listed
        assert max(map(len, listed.splitlines())) <= int(width)


def test_a_value_that_is_typed_now_is_not_to_be_corrected_elsewhere(
    shell: Shell,
) -> None:
    hint = "  hint: 'backstory settings' shows every setting and what it does\n"
    reason = "'keep.days' must be a whole number, got 'x'"

    assert {
        words: shell.run(*words.split()).stderr
        for words in (
            "--set keep.days=x status",
            "--set keep.days status",
            "settings set keep.days x",
        )
    } == {
        "--set keep.days=x status": f"backstory: --set keep.days: {reason}\n{hint}",
        "--set keep.days status": (
            f"backstory: --set keep.days: expected NAME=VALUE\n{hint}"
        ),
        "settings set keep.days x": f"backstory: settings: {reason}\n{hint}",
    }


def test_a_key_in_the_settings_is_not_shown(shell: Shell) -> None:
    for words in (("settings",), ("settings", "--json")):
        done = shell.run(*words, BACKSTORY_LLM_KEY="sk-very-secret")

        assert "sk-very-secret" not in done.stdout
        assert "(a key, which is not shown)" in done.stdout
    assert "env:MINE" in shell.run("settings", BACKSTORY_LLM_KEY="env:MINE").stdout


def test_a_file_as_home_is_called_one(shell: Shell) -> None:
    file = shell.home / "notes.txt"
    file.touch()

    for words in ((), ("status",)):
        done = shell.run("--home", str(file), *words)

        assert (done.returncode, done.stdout) == (11, "")
        assert done.stderr == (
            f"backstory: the home folder: {file} is a file, not a folder\n"
            "  hint: name the folder that everything is kept in, or one to make\n"
        )


def test_index_with_a_file_says_which_option_to_use(shell: Shell) -> None:
    done = shell.run("index", "my chat.jsonl")

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "Error: To read only some file or folder: "
        "backstory index --path 'my chat.jsonl'"
    )


def test_index_with_an_agent_program_says_which_option_to_use(shell: Shell) -> None:
    done = shell.run("index", "codex")

    assert done.stderr.splitlines()[-1] == (
        "Error: To read only some agent program: backstory index --host codex"
    )


@pytest.mark.parametrize("name", ["out", "out.zip"])
def test_index_of_an_export_says_how_to_import_it(
    used_shell: Shell, tmp_path: Path, name: str
) -> None:
    used_shell.out("export", str(tmp_path / name))

    done = used_shell.run("index", "--path", str(tmp_path / name))

    assert (done.returncode, done.stdout) == (30, "")
    assert done.stderr == (
        f"backstory: {tmp_path / name}: an export of Backstory, which is read as a "
        f"whole\n  hint: run: backstory import {tmp_path / name}\n"
    )


def test_days_may_be_named_in_the_words_of_a_query(used_shell: Shell) -> None:
    for command in ("sessions", "stats"):
        assert used_shell.run(command, "--since", "last monday").returncode == 0


def test_an_unknown_setting_offers_the_nearest(shell: Shell) -> None:
    done = shell.run("--set", "exclude.folder=/a", "status")

    assert done.returncode == 11
    assert done.stderr == (
        "backstory: --set: unknown setting 'exclude.folder'\n"
        "  hint: did you mean 'exclude.folders'?\n"
    )


def test_a_file_in_the_folder_changes_no_setting(shell: Shell) -> None:
    (shell.home / ".backstory.toml").write_text('exclude.hosts = ["codex"]\n')

    assert '"codex"' not in shell.out("settings", "--json")


def test_a_store_that_is_no_database_ends_with_23(shell: Shell) -> None:
    shell.kept.mkdir()
    (shell.kept / "history.db").write_bytes(b"not a database" * 100)

    done = shell.process("status")

    assert done.returncode == 23
    assert done.stderr.splitlines()[-1] == (
        "  hint: run 'backstory check' to see what is damaged, and "
        "'backstory check --repair' to save everything that can be read"
    )


# -- mistakes ---


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--home", "", "status"), 2, "The path is empty."),
        (("index", "--path", ""), 2, "The path is empty."),
        (("sessions", "-n", "9" * 30), 2, "is not a whole number from 1 to 1,000,000."),
        (("sessions", "--project", "caf\udce9"), 12, "run 'backstory index'"),
    ],
    ids=["home", "path", "number", "name"],
)
def test_a_mistake_ends_in_words_not_in_a_traceback(
    shell: Shell, words: tuple[str, ...], code: int, message: str
) -> None:
    done = shell.process(*words)

    assert done.returncode == code
    assert done.stderr.rstrip().endswith(message)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["show other", "--help", "--version"])
def test_a_reader_that_has_seen_enough_is_no_failure(
    used_shell: Shell, words: str
) -> None:
    done = subprocess.run(
        [
            "bash",
            "-o",
            "pipefail",
            "-c",
            f"{sys.executable} -m backstory {words} | true",
        ],
        env=used_shell.environ,
        cwd=used_shell.home,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("words", [["--version"], ["--help"], ["settings"], ["status"]])
def test_an_output_that_is_full_is_told(shell: Shell, words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*BACKSTORY, *words],
            env=shell.environ,
            cwd=shell.home,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    assert (done.returncode, done.stderr) == (
        10,
        "backstory: No space left on device\n",
    )


def test_a_filter_that_nothing_fits_says_so(used_shell: Shell) -> None:
    done = used_shell.run("sessions", "--since", "today", "--host", "claude-code")

    assert done.stdout == "None of 2 sessions matches.\n"
    assert done.stderr == "  hint: there are 2 sessions without --since\n"


def test_an_error_cannot_make_a_terminal_do_anything(used_shell: Shell) -> None:
    done = used_shell.run("show", "\x1b[2J\nbackstory: done")

    assert done.stderr.splitlines()[0] == (
        "backstory: no session has the id '␛[2J backstory: done'"
    )


# -- starting and stopping ---

# Interrupts itself, as Ctrl-C does, when a module is about to be loaded.
_INTERRUPTED = """
import os, runpy, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        global moment
        if name == moment:
            # Pressed once, however many threads import it.
            moment = None
            os.kill(os.getpid(), signal.SIGINT)

moment = sys.argv.pop(1)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
runpy.run_module("backstory", run_name="__main__")
"""


@pytest.mark.parametrize(
    "moment",
    [
        "backstory.cli.app",
        "click",
        "backstory.settings",
        "backstory.cli.search",
        "backstory.memory",
        "apsw",
        "numpy",
        "onnxruntime",
    ],
)
def test_an_interrupt_at_any_moment_ends_quietly_with_130(
    used_shell: Shell, moment: str
) -> None:
    used_shell.out("index", "--wait")

    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, moment, "search", "database"],
        env=used_shell.environ,
        cwd=used_shell.home,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


# Tells in the end what was loaded.
_TELLING = """
import os, runpy, sys
def end(code, end=os._exit):
    print(*sys.modules, file=sys.stderr, flush=True)
    end(code)
os._exit = end
runpy.run_module("backstory", run_name="__main__")
end(0)
"""
# What is slow to import, and not needed to find anything.
_ONLY_FOR_SOME = {
    "asyncio",
    "backstory.evals",
    "backstory.index.chunks",
    "backstory.index.vectors",
    "backstory.ingest.intake",
    "backstory.notes.notebook",
    "backstory.search.fallback",
    "backstory.search.prompt_context",
    "backstory.store.base.history_rows",
    "backstory.store.base.summaries",
    "backstory.store.sqlite.forgotten",
    "backstory.text.dates",
    "backstory.tools",
    "concurrent.futures",
    "dataclasses",
    "difflib",
    "hashlib",
    "importlib.resources",
    "inspect",
    "json",
    "logging",
    "markdown_it",
    "numpy",
    "orjson",
    "rich.console",
    "subprocess",
    "textwrap",
    "tomllib",
    "typing_extensions",
    "urllib.parse",
}


@pytest.mark.parametrize(
    ("words", "loaded"),
    [
        (["--version"], {"backstory.cli.app", "click"}),
        (["--help"], {"rich.console", "ssl", "urllib.request"}),
        (
            ["status"],
            {
                "asyncio",
                "backstory.text.dates",
                "concurrent.futures",
                "dataclasses",
                "hashlib",
                "inspect",
                "json",
                "logging",
                "markdown_it",
                "numpy",
                "orjson",
                "rich.console",
                "subprocess",
                "textwrap",
                "typing_extensions",
                "urllib.parse",
            },
        ),
        (["search", "which database?"], _ONLY_FOR_SOME),
        # It is refused, as there is no token.
        (["serve"], {"mcp", "starlette", "uvicorn"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_loads_nothing_that_it_does_not_need(
    used_shell: Shell, words: list[str], loaded: set[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TELLING, *words],
        env={**used_shell.environ, "BACKSTORY_EMBEDDER_NAME": "none"},
        capture_output=True,
        text=True,
        check=False,
    )

    names = set(done.stderr.split())
    assert "backstory.cli" in names
    assert names & loaded == set()


# What is left out while click and others are loaded, and comes when it is used.
_AFTER_LOADING = """
import sys
sys.platform = sys.argv[1]
from backstory.cli.quick_imports import load_quickly
load_quickly()
print(sorted({"gettext", "inspect", "typing_extensions"} & set(sys.modules)))
import click, inspect, pathlib, platform, textwrap, typing_extensions, uuid
import urllib.parse
option = click.Option(["--it"], help="One.\\n\\n  Two.")
print(repr(option.help), click.core.inspect.isfunction(print))
print(pathlib.Path("/a b").as_uri(), uuid.uuid1().version, platform.system())
print(inspect.signature(urllib.parse.unquote), typing_extensions.__name__)
"""


# On other systems, one of them is used at once.
@pytest.mark.parametrize("system", ["linux", "freebsd14"])
def test_what_is_left_out_at_first_is_there_when_it_is_used(system: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _AFTER_LOADING, system], capture_output=True, text=True
    )

    assert done.stdout.splitlines() == [
        "[]",
        "'One.\\n\\nTwo.' False",
        f"file:///a%20b 1 {platform.system()}",
        "(string, encoding='utf-8', errors='replace') typing_extensions",
    ], done.stderr


def test_every_command_is_found_in_its_module() -> None:
    context = click.Context(commands)
    folder = Path(str(cli.__file__)).parent
    for module in folder.glob("[a-z]*.py"):
        import_module(f"backstory.cli.{module.stem}")

    found = {name for name in COMMANDS if commands.get_command(context, name)}

    assert found == set(COMMANDS) == set(commands.commands)


@pytest.mark.parametrize(
    ("words", "code"), [("sessions", 0), ("forget 5d0c", 2), ("mcp", 0)]
)
def test_a_command_runs_with_its_streams_closed(
    used_shell: Shell, words: str, code: int
) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(BACKSTORY)} {words} <&- >&- 2>&-"],
        env=used_shell.environ,
        cwd=used_shell.home,
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.returncode == code
