"""search, call and tools through the front door: whole output."""

import json
import shlex
from pathlib import Path

import pytest

from backstory.cli import tools
from backstory.tools import ALL_TOOLS
from tests.builders import (
    a_line,
    a_tool_call,
    a_tool_result,
    append,
    session_file,
)
from tests.embedding_server import running_server
from tests.faulty_server import Fault
from tests.shell import Shell

_OFF = {"BACKSTORY_EMBEDDER_NAME": "none"}


class Searcher(Shell):
    """A shell in which searches go by words alone, which needs no model."""

    @property
    def environ(self) -> dict[str, str]:
        return {**super().environ, **_OFF}


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> Searcher:
    return Searcher(home, tmp_path / "kept")


@pytest.fixture
def used(shell: Searcher) -> Searcher:
    """The shell of somebody who has talked about databases, and has indexed."""
    append(
        session_file(shell.home),
        a_line("Which database?", uuid="u1", at="2026-02-20T14:32:10.000Z"),
        a_line(
            "SQLite. Its password = hunter2x",
            uuid="u2",
            role="assistant",
            at="2026-02-20T14:34:00.000Z",
        ),
        a_tool_call("Bash", {"command": "ls"}, uuid="u3", call="c1"),
        a_tool_result("loans.csv", uuid="u4", call="c1"),
    )
    append(
        session_file(shell.home, "other"),
        a_line(
            "A database of plants",
            uuid="u5",
            session="other",
            cwd="/srv/site/app",
            at="2026-02-22T08:00:00.000+02:00",
        ),
    )
    shell.out("index")
    return shell


def heads(shown: str) -> list[str]:
    """The first line of every hit that has the words itself, without its score."""
    return [
        "  ".join(line.split("  ")[2:])
        for line in shown.splitlines()
        if line[:1].isdigit() and not line.endswith("weak match")
    ]


# -- search ---

PLANTS = "message  claude-code  2026-02-22 06:00  A database of plants  app"
# Claude Code only finds the sessions of the folder that it is started in.
RESUME = "cd /home/dev/demo && claude --resume 5d0c1c53-8a57-4f43-9f0e-3c3f6d8f2b11"
WHICH = "message  claude-code  2026-02-20 14:32  Which database?  demo"


def test_search_shows_what_was_found_and_how_to_see_more(used: Searcher) -> None:
    shown = used.out("search", "loans.csv").splitlines()

    score = shown[0].split("  ")[1]
    assert 0 < float(score) <= 1
    assert shown == [
        f"1  {score}  message  claude-code  2026-02-20 14:33  Which database?  demo",
        "   Tool (Bash) │ loans.csv",
        "   backstory show 5d0c1c53 --around 4",
        f"   {RESUME}",
    ]
    assert "loans.csv" in used.out("show", "5d0c1c53", "--around", "4")


def test_words_of_a_query_need_no_quotes(used: Searcher) -> None:
    assert heads(used.out("search", "which", "database", "-n", "1")) == [WHICH]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--project", "app"], [PLANTS]),
        (["--project", "App"], [PLANTS]),
        (["--project", "site/app"], [PLANTS]),
        (["--project", "/srv/site"], [PLANTS]),
        (["--since", "2026-02-21"], [PLANTS]),
        (["--since", "2026-02-20", "--until", "2026-02-20"], [WHICH]),
        (["--until", "2026-02-21"], [WHICH]),
        (["--host", "claude-code", "--project", "demo"], [WHICH]),
        (["--scope", "sessions", "--project", "demo"], [WHICH]),
    ],
    ids=lambda value: " ".join(value),
)
def test_search_narrows(
    used: Searcher, options: list[str], expected: list[str]
) -> None:
    found = used.out("search", "database", "--source", "message", *options)

    assert heads(found) == expected


def test_search_shows_the_reply_to_what_was_asked(used: Searcher) -> None:
    shown = used.out("search", "which", "database", "-n", "1")

    assert shown.splitlines()[1:] == [
        "   User  │ Which database?",
        "   ↳ Agent: SQLite. Its password = hunter2x",
        "   backstory show 5d0c1c53 --around 1",
        f"   {RESUME}",
    ]


def test_a_session_with_several_hits_says_once_how_to_resume_it(
    used: Searcher,
) -> None:
    shown = used.run("search", "database sqlite", "--source", "message").stdout

    assert shown.count("backstory show 5d0c1c53") > 1
    assert shown.count(RESUME) == 1


@pytest.mark.parametrize("view", ["ranked", "episodes"])
def test_search_as_json_says_how_to_resume(used: Searcher, view: str) -> None:
    found = json.loads(used.out("search", "sqlite", "--view", view, "--json"))

    assert [hit["resume"] for hit in found["results"]] == [RESUME]


def test_search_as_json_has_the_reply(used: Searcher) -> None:
    found = json.loads(used.out("search", "which database", "-n", "1", "--json"))

    assert found["results"][0]["reply"] == {
        "message_id": 2,
        "date": "2026-02-20T14:34:00+00:00",
        "excerpt": "SQLite. Its password = hunter2x",
    }


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        (
            "nowhere",
            "backstory: no session ran in a folder called 'nowhere'\n"
            "  hint: the names are: demo, app\n",
        ),
        (
            "dem",
            "backstory: no session ran in a folder called 'dem'\n"
            "  hint: did you mean 'demo'?\n",
        ),
        (
            "/srv/sit",
            "backstory: no session ran in /srv/sit or below it\n"
            "  hint: did you mean '/srv/site/app'?\n",
        ),
    ],
)
def test_search_in_a_folder_that_is_unknown_ends_with_12(
    used: Searcher, project: str, expected: str
) -> None:
    done = used.run("search", "database", "--project", project)

    assert (done.returncode, done.stdout, done.stderr) == (12, "", expected)


@pytest.mark.parametrize("view", ["ranked", "episodes"])
def test_search_from_a_day_after_the_last_says_so(used: Searcher, view: str) -> None:
    done = used.run(
        *("search", "database", "--view", view),
        *("--since", "2026-03-05", "--until", "2026-03-01"),
    )

    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "Nothing found for 'database'.\n",
        "Notice: the first day, 2026-03-05, is after the last, 2026-03-01\n"
        "Notice: to search everything, leave out --since and --until\n",
    )


@pytest.mark.parametrize("view", ["ranked", "episodes"])
def test_search_before_anything_was_read_says_what_to_do(
    shell: Searcher, view: str
) -> None:
    done = shell.run("search", "database", "--view", view)

    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "Nothing found for 'database'.\n",
        "Notice: no conversation has been read yet; run 'backstory index'\n",
    )


@pytest.mark.parametrize("view", ["ranked", "episodes"])
def test_a_word_that_nobody_said_is_put_right(used: Searcher, view: str) -> None:
    done = used.run("search", "the databaze", "--view", view)

    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "Nothing found for 'the databaze'.\n",
        "Notice: did you mean 'the database'?\n",
    )


def test_a_notice_cannot_make_a_terminal_do_anything(used: Searcher) -> None:
    done = used.run("search", "databaze \x1b[2J\nbackstory: done")

    assert done.stderr == ("Notice: did you mean 'database ␛[2J backstory: done'?\n")


@pytest.mark.parametrize(
    "options",
    [["--days", "30"], ["--scope", "memory"], ["--source", "guidance"]],
    ids=lambda value: " ".join(value),
)
def test_search_that_finds_nothing_says_so_and_ends_with_1(
    used: Searcher, options: list[str]
) -> None:
    done = used.run("search", "database", *options)

    assert (done.returncode, done.stdout) == (1, "Nothing found for 'database'.\n")


def test_search_by_date_has_a_heading_for_every_day(used: Searcher) -> None:
    shown = used.out("search", "database", "--source", "message", "--by-date")

    days = [line for line in shown.splitlines() if line.startswith("—")]
    assert days == ["— 2026-02-22 —", "— 2026-02-20 —"]
    assert heads(shown) == [PLANTS, WHICH]


def test_search_explains_its_scores(used: Searcher) -> None:
    shown = used.out("search", "loans.csv", "--explain").splitlines()

    assert len(shown) == 5
    assert "bm25 " in shown[2]
    assert " · " in shown[2]


def test_search_as_episodes_shows_what_was_said_around(used: Searcher) -> None:
    assert used.out("search", "sqlite", "--view", "episodes") == (
        """\
1  claude-code  2026-02-20 14:34  Which database?  demo
   User  │ Which database?
 > Agent │ SQLite. Its password = hunter2x
   backstory show 5d0c1c53 --around 2
   cd /home/dev/demo && claude --resume 5d0c1c53-8a57-4f43-9f0e-3c3f6d8f2b11
"""
    )


@pytest.mark.parametrize(
    "options",
    [["--scope", "memory"], ["--scope", "daily_log"], ["--source", "message"]],
    ids=lambda value: " ".join(value),
)
def test_episodes_are_of_conversations(used: Searcher, options: list[str]) -> None:
    done = used.run("search", "x", "--view", "episodes", *options)

    assert done.returncode == 2
    assert done.stderr.endswith(
        "Error: --view episodes shows conversations only: use --scope all or "
        "sessions, and no --source.\n"
    )


def test_episodes_by_date_have_a_heading_for_every_day(used: Searcher) -> None:
    shown = used.out("search", "database", "--view", "episodes", "--by-date")

    days = [line for line in shown.splitlines() if line.startswith("—")]
    assert days == ["— 2026-02-22 —", "— 2026-02-20 —"]


def test_episodes_have_no_score_to_explain(used: Searcher) -> None:
    done = used.run("search", "database", "--view", "episodes", "--explain")

    assert done.returncode == 2
    assert done.stderr.endswith(
        "Error: --explain cannot be used with --view episodes, which has no scores.\n"
    )


def test_a_source_that_a_scope_does_not_have_is_refused(used: Searcher) -> None:
    done = used.run("search", "x", "--scope", "memory", "--source", "message")

    assert (done.returncode, done.stderr) == (
        14,
        "backstory: scope 'memory' does not include message\n"
        "  hint: it includes daily_log, memory\n",
    )


def test_what_is_printed_shows_a_session_whose_id_looks_like_an_option(
    shell: Searcher,
) -> None:
    append(session_file(shell.home, "-x"), a_line("zyzzyva", uuid="u1", session="-x"))
    shell.out("index")

    *_, command = shell.out("search", "zyzzyva").splitlines()
    shown = shell.out(*shlex.split(command)[1:])

    assert command == "   backstory show --around 1 -- -x"
    assert shown.endswith("  │ zyzzyva\n")


def test_search_for_a_day_finds_what_was_said_on_it(used: Searcher) -> None:
    shown = used.out("search", "what was said on 22 February 2026?", "--explain")

    # An overview of the day comes before it.
    assert PLANTS in heads(shown)


def test_search_as_json_is_one_object_with_nothing_masked(used: Searcher) -> None:
    found = json.loads(used.out("search", "sqlite", "--json"))

    assert (found["query"], found["scope"]) == ("sqlite", "all")
    assert found["results"][0]["excerpt"] == "SQLite. Its password = hunter2x"
    assert found["results"][0]["session"]["title"] == "Which database?"


@pytest.mark.parametrize("view", ["ranked", "episodes"])
def test_search_as_json_that_finds_nothing_ends_with_1(
    used: Searcher, view: str
) -> None:
    done = used.run("search", "zyzzyva", "--json", "--view", view)

    assert done.returncode == 1
    assert json.loads(done.stdout)["results"] == []


@pytest.mark.parametrize("words", [[""], [" "], []], ids=["empty", "blank", "none"])
def test_search_for_nothing_is_wrong_usage(shell: Searcher, words: list[str]) -> None:
    done = shell.run("search", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert "Error: " in done.stderr


def test_a_search_that_left_something_out_says_so(used: Searcher) -> None:
    done = used.run("search", "loans.csv", "--host", "codex", "--until", "2020-01-01")

    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "Nothing found for 'loans.csv'.\n",
        "Notice: to search everything, leave out --host and --until\n",
    )


def test_search_on_a_terminal_marks_what_was_found(used: Searcher) -> None:
    shown = used.on_terminal("search", "loans.csv")

    assert "Tool (Bash) │ \x1b[1mloans.csv\x1b[0m" in shown
    assert shown.startswith("\x1b[36m1  ")


def test_an_output_in_ascii_gets_other_signs(used: Searcher) -> None:
    plain = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = used.process("search", "Which database?", "-n", "1", **plain)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:3] == [
        "   User  | Which database?",
        "   > Agent: SQLite. Its password = hunter2x",
    ]


# -- call ---

ASKED = '{"query": "sqlite", "view": "episodes"}'
ANSWER = """\
## Match 1 — Session: 5d0c1c53-8a57-4f43-9f0e-3c3f6d8f2b11 | 2026-02-20 14:34 \
| message: 2 | host: claude-code | project: /home/dev/demo

USER: Which database?
**ASSISTANT: SQLite. Its password = [masked]**

---
"""


def test_call_prints_what_an_agent_would_get(used: Searcher) -> None:
    assert used.out("call", "search_history", ASKED) == ANSWER


def test_call_reads_its_arguments(used: Searcher) -> None:
    done = used.run("call", "search_history", "-", typed=ASKED)

    assert (done.returncode, done.stdout, done.stderr) == (0, ANSWER, "")


def test_call_as_json_has_the_text_and_the_data(used: Searcher) -> None:
    found = json.loads(used.out("call", "search_history", ASKED, "--json"))

    assert found["text"] == ANSWER.removesuffix("\n")
    assert found["error"] is None
    matched = found["data"]["results"][0]["matched"]
    assert matched["text"] == "SQLite. Its password = [masked]"


def test_call_that_finds_nothing_ends_with_1(used: Searcher) -> None:
    done = used.run("call", "memory_search", '{"query": "zyzzyva"}')

    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "No relevant memories found for: zyzzyva\n",
        "",
    )


def test_call_with_bad_arguments_ends_with_14(shell: Searcher) -> None:
    done = shell.run("call", "search_history")

    assert (done.returncode, done.stdout, done.stderr) == (
        14,
        "",
        "Parameter 'query' is required and cannot be empty\n",
    )


def test_call_as_json_with_bad_arguments_has_the_error(shell: Searcher) -> None:
    done = shell.run("call", "memory_search", '{"query": "x", "limit": []}', "--json")

    assert (done.returncode, done.stderr) == (14, "")
    assert json.loads(done.stdout) == {
        "text": "Parameter 'limit' must be a number: []",
        "data": None,
        "error": "validation_error",
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("{query: x}", "The arguments are not valid JSON: "),
        ("", "The arguments are not valid JSON: "),
        ('"x"', "The arguments must be a JSON object, such as {}."),
    ],
)
def test_call_refuses_what_is_no_json_object(
    shell: Searcher, arguments: str, expected: str
) -> None:
    done = shell.run("call", "search_history", arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"Error: {expected}" in done.stderr


def test_call_reads_no_input_without_end(
    shell: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "_MAX_INPUT_BYTES", 20)

    done = shell.run("call", "search_history", "-", typed='{"query": "walrus"}  ')
    fits = shell.run("call", "search_history", "-", typed='{"query": "walrus"} ')

    assert (done.returncode, done.stdout) == (2, "")
    assert "Error: The arguments have more than 20 bytes." in done.stderr
    assert fits.returncode == 1


@pytest.mark.parametrize(
    ("options", "name", "expected"),
    [
        (
            [],
            "search_histroy",
            "backstory: no tool is called 'search_histroy'\n"
            "  hint: did you mean 'search_history'?\n",
        ),
        (
            ["--set", "tools.memory_search.enabled=false"],
            "memory_search",
            "backstory: the tool 'memory_search' is turned off\n"
            "  hint: the setting tools.memory_search.enabled turns it on\n",
        ),
    ],
    ids=["misspelled", "turned off"],
)
def test_call_knows_only_the_tools_there_are(
    shell: Searcher, options: list[str], name: str, expected: str
) -> None:
    done = shell.run(*options, "call", name)

    assert (done.returncode, done.stdout, done.stderr) == (12, "", expected)


# -- tools ---


def test_tools_lists_what_an_agent_may_be_given(shell: Searcher) -> None:
    head, *lines = shell.out("tools").splitlines()

    assert head == "NAME                         WHAT IT DOES"
    assert lines[2] == (
        "memory_search                Search past conversations and workspace files "
        "for relevant context"
    )
    assert [line.split()[0] for line in lines] == [row.name for row in ALL_TOOLS]


def test_tools_gives_their_schemas(shell: Searcher) -> None:
    found = json.loads(shell.out("tools", "--format", "mcp"))

    fields = ["annotations", "description", "inputSchema", "name", "outputSchema"]
    assert [(tool["name"], sorted(tool)) for tool in found] == [
        (row.name, [*fields, "title"]) for row in ALL_TOOLS
    ]


def test_a_search_ends_with_its_answer_though_its_embedder_does_not(
    used: Searcher,
) -> None:
    with running_server() as server:
        chosen = {
            "BACKSTORY_EMBEDDER_NAME": "openai",
            "BACKSTORY_EMBEDDER_URL": f"{server.url}/v1",
            "BACKSTORY_EMBEDDER_TIMEOUT_SECONDS": "1000",
            "BACKSTORY_EMBEDDER_QUERY_TIMEOUT_SECONDS": "1000",
            # What the search by words may take, also on a busy machine.
            "BACKSTORY_SEARCH_TIMEOUT_SECONDS": "8",
        }
        used.run("index", "--wait", **chosen)
        server.faults = [Fault(is_held=True, for_ever=True)]

        done = used.process("search", "plants", **chosen)

    assert (done.returncode, "A database of plants" in done.stdout) == (0, True)
    assert "by meaning did not finish in time" in done.stderr


def test_a_question_about_days_is_answered_with_an_overview(used: Searcher) -> None:
    done = used.run("search", "what did I work on in February 2026?")

    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout
        == """\
2026-02-22 Sunday  1 session
  in app
    06:00        other  claude-code  1 message  A database of plants

2026-02-20 Friday  1 session
  in demo
    14:32\N{EN DASH}14:34  5d0c1c53  claude-code  4 messages  Which database?

backstory show ID shows a session
"""
    )

    hits = used.run("search", "in February 2026", "--by-date").stdout
    assert "SQLite. Its password" in hits
    found = json.loads(used.run("search", "in February 2026", "--json").stdout)
    assert [day["day"] for day in found["activity"]["days"]] == [
        "2026-02-22",
        "2026-02-20",
    ]


def test_a_person_is_told_what_agents_are_not_shown(used: Searcher) -> None:
    shown = used.run("--set", "search.isolate_projects=true", "search", "database")
    assert shown.returncode == 0
    assert shown.stderr == (
        "Notice: you see all projects; an agent is shown only its own "
        "(search.isolate_projects)\n"
    )
