"""``sessions`` and ``show``: which conversations, in which form, in which pager."""

import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from backstory import Memory
from tests.builders import SESSION, a_line, a_tool_call, append, session_file
from tests.outputs import OUTPUTS, prepare_outputs
from tests.samples import all_cases
from tests.shell import Shell
from tests.web.hostile import record_hostile

EDITS = "6f1d2c30"


def prepare_shell(folder: Path) -> Shell:
    """The shell of somebody whose agents have left the sample conversations."""
    used = prepare_outputs(folder)
    # A Sunday.
    return Shell(used.home, used.kept, now=datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """For tests that read."""
    return prepare_shell(tmp_path_factory.mktemp("read"))


@pytest.fixture
def own_shell(tmp_path: Path) -> Shell:
    """For tests that write."""
    return prepare_shell(tmp_path)


def list_ids(shell: Shell, *words: str) -> list[str]:
    listed = json.loads(shell.out("sessions", "--json", *words))
    return [each["id"][:8] for each in listed]


# -- which sessions ---


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--until 2026-02-26", ["019c9a10", "5a6b7c8d"]),
        ("--since 2026-02-26 --until 2026-02-27", ["6f1d2c30", "019c9a10"]),
        ("--days 1", []),
        ("--days 2", ["b2c4d6e8"]),
        ("--days 3 --until yesterday", ["b2c4d6e8", "6f1d2c30"]),
        ("--days 90 --host codex", ["019c9a10"]),
        ("--project garden --days 4", ["6f1d2c30", "019c9a10"]),
    ],
)
def test_sessions_of_some_days(shell: Shell, words: str, expected: list[str]) -> None:
    assert list_ids(shell, *words.split()) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--since", "last friday"], ["b2c4d6e8", "6f1d2c30"]),
        (["--since", "3 days ago"], ["b2c4d6e8", "6f1d2c30", "019c9a10"]),
        (["--until", "last thursday"], ["019c9a10", "5a6b7c8d"]),
    ],
)
def test_days_are_named_as_in_queries(
    shell: Shell, words: list[str], expected: list[str]
) -> None:
    assert list_ids(shell, *words) == expected


def test_a_session_is_of_every_day_between_its_first_and_last_message(
    own_shell: Shell,
) -> None:
    append(
        session_file(own_shell.home),
        a_line("Begin", uuid="u1", at="2026-01-01T10:00:00.000Z"),
        a_line("End", uuid="u2", at="2026-01-09T10:00:00.000Z"),
    )
    own_shell.out("index")

    assert list_ids(own_shell, "--since", "2026-01-04", "--until", "2026-01-05") == [
        SESSION[:8]
    ]


def test_subagents_are_counted_or_listed_after_their_parent(shell: Shell) -> None:
    hidden = json.loads(shell.out("sessions", "--json", "--project", "garden"))
    listed = json.loads(
        shell.out("sessions", "--json", "--project", "garden", "--subagents")
    )

    counted = [(each["id"][:8], each["subagents"]) for each in hidden]
    assert counted == [("6f1d2c30", 1), ("019c9a10", 0), ("5a6b7c8d", 0)]
    assert [each["id"][:8] for each in listed] == [
        "6f1d2c30",
        "agent-a4",
        "019c9a10",
        "5a6b7c8d",
    ]


def test_a_subagent_is_listed_with_its_parent_wherever_it_ran(own_shell: Shell) -> None:
    for number, folder in enumerate(("/srv/app", "/srv/elsewhere")):
        append(
            session_file(own_shell.home, f"agent-{number}"),
            a_line(
                "Look",
                uuid=f"u{number}",
                session=EDITS + "-9a41-4c55-8d02-3b7e9c1a5f10",
                cwd=folder,
                isSidechain=True,
                agentId=str(number),
            ),
            a_line("Looked", uuid=f"v{number}", role="assistant", cwd=folder),
        )
    own_shell.out("index")

    of_parent = json.loads(own_shell.out("sessions", "--json", "--project", "garden"))
    assert of_parent[0]["subagents"] == 3
    # Its parent ran elsewhere, so it stands for itself.
    assert list_ids(own_shell, "--project", "elsewhere") == ["agent-1"]


@pytest.mark.parametrize(
    ("format_name", "case_name", "fork"),
    [
        ("codex", "subagent-fork-compressed", "01a1e060-0000-7000-8000-00000000000c"),
        ("llm", "threads", "02fork"),
        ("qwen-code", "branched-off", "5c0d0001-0000-4000-8000-000000000002"),
    ],
)
def test_a_conversation_that_a_person_forked_is_no_subagent(
    tmp_path: Path, format_name: str, case_name: str, fork: str
) -> None:
    (case,) = [
        each
        for each in all_cases()
        if (each.format, each.name) == (format_name, case_name)
    ]
    shell = Shell(case.lay_out(tmp_path), tmp_path / "kept")
    shell.run("index")

    listed = json.loads(shell.out("sessions", "--json"))

    assert fork in [each["id"] for each in listed]


def test_the_limit_counts_sessions_and_not_their_subagents(shell: Shell) -> None:
    assert list_ids(shell, "--subagents", "-n", "2") == [
        "b2c4d6e8",
        "6f1d2c30",
        "agent-a4",
    ]


@pytest.mark.parametrize(
    ("lines", "is_hidden"),
    [
        ([("user", "Warmup"), ("assistant", "I am ready.")], True),
        ([("user", " warmup\n")], True),
        ([("assistant", "I am ready.")], True),
        ([("user", "Warmup the oven"), ("assistant", "To which degree?")], False),
        ([("user", "Warmup"), ("assistant", "Ready."), ("user", "Go on")], False),
        ([("user", "Find the shed"), ("assistant", "It is here.")], False),
    ],
    ids=lambda value: (
        " ".join(text for _, text in value) if isinstance(value, list) else ""
    ),
)
def test_warm_ups_are_hidden_and_nothing_else(
    own_shell: Shell, lines: list[tuple[str, str]], is_hidden: bool
) -> None:
    of_subagent = {"session": "gone", "isSidechain": True, "agentId": "warm"}
    written = [
        a_line(text, uuid=f"u{number}", role=role, **of_subagent)  # type: ignore[arg-type]
        for number, (role, text) in enumerate(lines)
    ]
    append(session_file(own_shell.home, "agent-warm"), *written)
    own_shell.out("index")

    shown = own_shell.run("sessions", "--project", "demo")

    said = "Hidden: 1 warm-up session. To list it, add --warm-ups.\n"
    assert shown.stderr == (said if is_hidden else "")
    assert ("agent-warm" in shown.stdout) is not is_hidden
    assert list_ids(own_shell, "--project", "demo", "--warm-ups") == ["agent-wa"]


def test_what_lists_hidden_warm_ups_lists_those_below_a_session_too(
    shell: Shell,
) -> None:
    said = shell.run("sessions").stderr
    options = re.findall(r"--[a-z-]+", said)

    listed = json.loads(shell.out("sessions", "--json", *options))

    assert said.startswith("Hidden: 1 warm-up session.")
    assert sum(each["warm_up"] for each in listed) == 1


@pytest.mark.parametrize("columns", ["40", "60", "200"])
def test_the_title_of_a_subagent_with_a_long_id_is_seen(
    tmp_path: Path, columns: str
) -> None:
    (case,) = [
        each
        for each in all_cases()
        if (each.format, each.name) == ("copilot-cli", "tools-subagent-hooks")
    ]
    shell = Shell(case.lay_out(tmp_path), tmp_path / "kept")
    shell.run("index")

    listed = shell.on_terminal("sessions", "--subagents", COLUMNS=columns)

    assert "subagent: taste the soup" in listed


def test_titles_stand_below_each_other_on_a_wide_terminal(own_shell: Shell) -> None:
    folder = "/home/dev/" + "a-long-name/" * 5 + "end"
    append(session_file(own_shell.home), a_line("Begin", uuid="u1", cwd=folder))
    own_shell.out("index")

    head, *rows = own_shell.on_terminal("sessions", COLUMNS="300").splitlines()

    titles = [
        "Begin",
        "Opening hours on the start page",
        "The server must listen on 8080.",
        "Sort the beds by name.",
    ]
    found = [row.index(title) for title in titles for row in rows if title in row]
    assert found == [head.index("TITLE")] * len(titles)


def test_one_changed_line_is_a_line(own_shell: Shell) -> None:
    edit = {"file_path": "a.txt", "old_string": "", "new_string": "tea"}
    file = session_file(own_shell.home)
    append(file, a_tool_call("Edit", edit, uuid="u1", call="c1"))
    own_shell.out("index")

    shown = own_shell.out("show", SESSION)

    assert shown.splitlines()[-3] == "[1] TOOL CALL  Edit  +1 line │ a.txt"


def test_nothing_that_fits_is_told_with_what_would_help(shell: Shell) -> None:
    done = shell.run("sessions", "--host", "codex", "--since", "yesterday")

    assert (done.returncode, done.stdout) == (0, "None of 6 sessions matches.\n")
    assert done.stderr == (
        "  hint: there is 1 session without --host, 1 session without --since\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--since", "garbage"],
            "Invalid value for '--since': 'garbage' is not a date; write it as "
            "2026-02-25, or in words: yesterday, last week, 3 days ago.",
        ),
        (
            ["--days", "x"],
            "Invalid value for '--days': 'x' is not a whole number from 1 to 100,000.",
        ),
        (
            ["--days", "0"],
            "Invalid value for '--days': '0' is not a whole number from 1 to 100,000.",
        ),
        (
            ["-n", "0"],
            "Invalid value for '-n' / '--limit': '0' is not a whole number from 1 to "
            "1,000,000.",
        ),
        (
            ["--since", "2026-02-02", "--until", "2026-02-01"],
            "the period is empty: the first day, 2026-02-02, is after the last, "
            "2026-02-01",
        ),
        (["--host", "clade"], "did you mean 'claude-code' or 'claude-ai'?"),
    ],
)
def test_a_wrong_option_is_explained(shell: Shell, words: list[str], said: str) -> None:
    done = shell.run("sessions", *words)

    assert done.returncode in (2, 12, 14)
    assert done.stderr.rstrip("\n").endswith(said)


# -- show ---


def test_a_number_means_the_same_everywhere(shell: Shell) -> None:
    found = json.loads(shell.out("search", "backwards", "-n", "1", "--json"))
    show = found["results"][0]["show"].split()[1:]

    shown = json.loads(shell.out(*show, "-C", "0", "--json"))

    assert show == ["show", EDITS + "-9a41-4c55-8d02-3b7e9c1a5f10", "--around", "14"]
    [message] = shown["messages"]
    assert (message["number"], "backwards" in message["text"]) == (14, True)
    text = shell.out(*show, "-C", "0").splitlines()
    assert "[14] USER  09:14" in text
    forgotten = shell.out("forget", EDITS, "--message", "14", "--dry-run")
    assert "1 of 15 messages" in forgotten


@pytest.mark.parametrize("number", ["0", "16", "9" * 30])
def test_a_number_that_there_is_not_is_refused(shell: Shell, number: str) -> None:
    done = shell.run("show", EDITS, "--around", number)

    assert done.returncode == 12
    assert done.stderr.startswith("backstory: no message of session 6f1d2c30-")


def test_a_message_to_forget_needs_its_session(shell: Shell) -> None:
    done = shell.run("forget", "--message", "1", "--dry-run")

    assert done.returncode == 2
    assert "--message needs the one SESSION" in done.stderr


def test_the_page_has_no_script_and_loads_nothing(own_shell: Shell) -> None:
    with Memory.open(own_shell.kept, settings="embedder.name=none") as memory:
        record_hostile(memory)

    page = own_shell.out("show", "hostile", "--format", "html", "--tools")

    seen = SeenTags()
    seen.feed(page)
    assert seen.tags.isdisjoint({"script", "img", "link", "a", "iframe", "object"})
    assert {name for name in seen.attributes if name.startswith("on")} == set()
    assert seen.attributes.isdisjoint({"src", "href", "srcset", "style"})
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page)


class SeenTags(HTMLParser):
    """Every tag and attribute of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


# -- the pager ---


def show_on_terminal(shell: Shell, *words: str, **environ: str) -> str:
    shown = shell.on_terminal("show", EDITS, *words, typed="", exit_code=0, **environ)
    return shown.replace("\r\n", "\n")


def test_a_terminal_gets_a_pager_and_colours(shell: Shell) -> None:
    shown = show_on_terminal(shell, PAGER="sed 's/^/page: /'")

    lines = shown.splitlines()
    assert all(line.startswith("page: ") for line in lines)
    assert "page: \x1b[36m[1] USER  09:01\x1b[0m" in lines


def test_our_own_variable_for_the_pager_comes_first(shell: Shell) -> None:
    shown = show_on_terminal(
        shell, PAGER="sed 's/^/page: /'", BACKSTORY_PAGER="sed 's/^/ours: /'"
    )

    assert shown.startswith("ours: ")


@pytest.mark.parametrize(
    "pager",
    ["", "cat", "no-such-pager-anywhere", "false", "exit 3"],
)
def test_without_a_pager_that_works_all_is_printed(shell: Shell, pager: str) -> None:
    shown = show_on_terminal(shell, PAGER=pager, NO_COLOR="1")

    # The shell may have said first that there is no such pager.
    assert shown.endswith((OUTPUTS / "show-80.txt").read_text(encoding="utf-8"))


def test_a_pager_that_is_left_early_is_no_error(shell: Shell) -> None:
    assert show_on_terminal(shell, PAGER="head -n 1", NO_COLOR="1") == (
        "title: Opening hours on the start page\n"
    )


@pytest.mark.parametrize("options", [["--no-pager"], ["--format", "html"], ["--json"]])
def test_no_pager_where_none_is_wanted(shell: Shell, options: list[str]) -> None:
    assert "page: " not in show_on_terminal(shell, *options, PAGER="sed 's/^/page: /'")


@pytest.mark.parametrize(
    "words", [["sessions"], ["search", "opening", "hours"], ["stats"], ["settings"]]
)
def test_long_lists_go_through_the_pager_too(shell: Shell, words: list[str]) -> None:
    pager = "sed 's/^/page: /'"

    shown = shell.on_terminal(*words, PAGER=pager, NO_COLOR="1")
    printed = shell.on_terminal(*words, "--no-pager", PAGER=pager, NO_COLOR="1")

    assert shown.startswith("page: ")
    assert "page: " not in printed
    assert shown.replace("page: ", "") == printed


def test_no_pager_in_a_pipe(shell: Shell) -> None:
    done = shell.process("show", EDITS, PAGER="sed 's/^/page: /'")

    assert (done.returncode, "page: " in done.stdout) == (0, False)
