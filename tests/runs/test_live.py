"""The run that an agent program has under way: what it holds, and of which session."""

import json
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from backstory.errors import BadQuery, SourceUnreadable, UnknownName
from backstory.memory import Memory
from tests.builders import (
    SESSION,
    a_line,
    a_tool_result,
    append,
    session_file,
)
from tests.live_transcripts import (
    OTHER,
    Codex,
    Copilot,
    Gemini,
    Log,
    each_program,
    failed,
    found,
    items,
    json_line,
    search,
    texts,
    whole,
)
from tests.samples import Case, a_memory, all_cases


@pytest.fixture(autouse=True)
def _tools_may_log_their_errors(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


# -- what a run holds ---


@each_program
def test_a_session_is_followed_as_it_grows(
    memory: Memory, home: Path, log: Log
) -> None:
    file = log.file(home, SESSION)
    append(file, log.start(SESSION), log.prompt("Which port is it?", "u1"))
    run = memory.live_run(transcript=file)

    at_first = items(run)
    append(
        file,
        log.call("Bash", "toolu_1", command="cat server.toml"),
        log.result("Bash", "toolu_1", "port = 8443"),
        log.answer("It is 8443.", "a1"),
        log.compaction("They spoke of zebras."),
        log.prompt("Search for the rest", "u2"),
        log.call("mcp__backstory__search_history", "toolu_2", query="okapi"),
        log.result("mcp__backstory__search_history", "toolu_2", "an okapi was seen"),
        log.answer("Nothing more.", "a2"),
    )

    assert at_first == [(1, "user", None, "item-1", "Which port is it?")]
    assert items(run) == [
        (1, "user", None, "item-1", "Which port is it?"),
        (1, "assistant", "Bash", "item-2", '{"command":"cat server.toml"}'),
        (1, "tool_result", "Bash", "toolu_1", "port = 8443"),
        (2, "assistant", None, "item-4", "It is 8443."),
        (3, "user", None, "item-5", "Search for the rest"),
        (4, "assistant", None, "item-6", "Nothing more."),
    ]
    assert [found(run, word) for word in ("zebras", "okapi", "MEMCTX")] == [[], [], []]


@each_program
def test_what_was_said_before_a_compaction_is_found_with_its_place(
    memory: Memory, home: Path, log: Log
) -> None:
    append(
        log.file(home, SESSION),
        log.start(SESSION),
        log.prompt("Look at the certificate", "u1"),
        log.call("Bash", "toolu_1", command="openssl x509"),
        log.result("Bash", "toolu_1", "The certificate expires in October."),
        log.compaction("A certificate was looked at."),
        log.prompt("And now something else", "u2"),
    )

    answer = search(memory.live_run(SESSION), "expires in October")

    assert isinstance(answer.data, list)
    assert [{**hit, "score": None} for hit in answer.data] == [
        {
            "source": "tool_result",
            "tool_name": "Bash",
            "iteration": 1,
            "id": "toolu_1",
            "snippet": "The certificate expires in October.",
            "score": None,
            "start": 0,
            "length": 35,
        }
    ]


@each_program
def test_a_long_result_is_found_and_fetched_whole(
    memory: Memory, home: Path, log: Log
) -> None:
    lines = [f"line {number} of a long result" for number in range(5_000)]
    long = "\n".join([*lines[:-1], "the needle stands here", lines[-1]])
    append(
        log.file(home, SESSION),
        log.start(SESSION),
        log.call("Bash", "toolu_1", command="cat"),
        log.result("Bash", "toolu_1", long),
    )
    run = memory.live_run(SESSION)

    fetched = whole(run, "toolu_1")

    assert len(long) > 128 * 1024
    assert fetched == long
    assert found(run, "needle") == ["toolu_1"]


@each_program
def test_an_agent_that_asks_through_a_shell_does_not_find_its_own_question(
    memory: Memory, home: Path, log: Log
) -> None:
    command = 'backstory call search_conversation_history \'{"query":"okapi"}\''
    append(
        log.file(home, SESSION),
        log.start(SESSION),
        log.prompt("An okapi was seen in the zoo, and then we spoke of bread", "u1"),
        log.answer("Good.", "a1"),
        log.prompt("Where was it?", "u2"),
        log.call("Bash", "toolu_1", command=command),
        log.result("Bash", "toolu_1", "[1] an okapi was seen"),
    )
    run = memory.live_run(SESSION)

    assert found(run, "okapi") == ["item-1"]
    assert texts(run) == [
        "An okapi was seen in the zoo, and then we spoke of bread",
        "Good.",
        "Where was it?",
    ]


# A run holds a person's own commands and their output as they were written; in history
# they are the system's. Calls of memory tools belong to history, and not to a run.
ONLY_LIVE = {
    "<bash-input>backstory show 9b2f6c1e</bash-input>",
    "<bash-input>ls</bash-input>",
    "<command-name>/compact</command-name>\n            <command-message>compact"
    "</command-message>\n            <command-args>keep restaurant names"
    "</command-args>",
    "<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>",
    "<user_shell_command>\n<command>\ndate\n</command>\n<result>\nThu Oct 2\n"
    "</result>\n</user_shell_command>",
    "We decided on ISO dates: <private>the client is named here</private>, see "
    "logs.py.",
}
ONLY_STORED = {
    '{"query":"dates"}',
    '{"query": "staging ledger port"}',
    "We decided on ISO dates: [private], see logs.py.",
}
LIVE_CASES = [
    case
    for case in all_cases()
    if case.format in ("claude-code", "codex", "gemini-cli", "copilot-cli")
    # Nearly all of it is kept in another way than it was written.
    and case.name != "commands-editor-interruption"
]


@pytest.mark.parametrize("case", LIVE_CASES, ids=lambda case: case.name)
def test_a_run_holds_what_the_history_would_of_that_session_alone(
    tmp_path: Path, case: Case
) -> None:
    home = case.lay_out(tmp_path)
    stored = {
        session["id"]: [
            message["text"]
            for message in session["messages"]
            if message["role"] in ("user", "assistant", "tool_call", "tool_result")
            and message["text"] not in ONLY_STORED
        ]
        for session in json.loads(case.expected_file.read_text())["sessions"]
        # Nobody writes in a compressed file any more.
        if not session["read_from"].endswith(".zst")
    }

    with a_memory(tmp_path, home=home) as memory:
        live = {
            session: [
                text
                for text in texts(memory.live_run(session))
                if text not in ONLY_LIVE
            ]
            for session in stored
        }

    assert live == stored


def test_what_the_program_s_own_commands_print_is_not_history(
    memory: Memory, home: Path
) -> None:
    append(
        session_file(home),
        a_line("<bash-input>date</bash-input>", uuid="u1"),
        a_line("<bash-stdout>Thu Oct 2</bash-stdout>", uuid="u2"),
        a_line("<local-command-stdout>Tools: zebra</local-command-stdout>", uuid="u3"),
    )

    assert texts(memory.live_run(SESSION)) == [
        "<bash-input>date</bash-input>",
        "<bash-stdout>Thu Oct 2</bash-stdout>",
    ]


def test_a_reminder_that_a_file_speaks_of_is_part_of_its_text(
    memory: Memory, home: Path
) -> None:
    read = "1\tthe mark <system-reminder>\n2\tends in </system-reminder>"
    injected = "<system-reminder>zebra</system-reminder>"
    append(
        session_file(home),
        a_tool_result(f"{read}\n\n{injected}\n{injected}\n", uuid="u1", call="c1"),
        a_tool_result(read, uuid="u2", call="c2"),
        a_tool_result(injected, uuid="u3", call="c3"),
    )

    assert texts(memory.live_run(SESSION)) == [read, read, ""]


def test_a_later_version_of_a_message_takes_the_place_of_the_earlier(
    memory: Memory, home: Path
) -> None:
    log = Gemini()
    file = log.file(home, SESSION)
    append(
        file,
        log.start(SESSION),
        log.prompt("What is on the menu?", "u1"),
        log.answer("Zebra soup", "a1"),
        log.prompt("And to drink?", "u2"),
        log.answer("Tea", "a2"),
    )
    run = memory.live_run(transcript=file)
    before = found(run, "zebra")

    append(file, log.answer("Okapi soup and bread", "a1"))

    assert before == ["item-2"]
    assert found(run, "zebra") == []
    assert [(iteration, text) for iteration, *_, text in items(run)] == [
        (1, "What is on the menu?"),
        (1, "Okapi soup and bread"),
        (2, "And to drink?"),
        (2, "Tea"),
    ]


# -- only that session ---


@each_program
def test_nothing_of_another_session_is_found(
    memory: Memory, home: Path, log: Log
) -> None:
    for minute, session in enumerate((SESSION, OTHER, f"{SESSION}0"), start=10):
        # In Gemini CLI only the time tells apart the names of ids that begin alike.
        file = log.file(home, session)
        file = file.with_name(file.name.replace("T17-53", f"T17-{minute}"))
        append(file, log.start(session), log.prompt(f"I am {session}", "u1"))

    runs = [memory.live_run(session) for session in (SESSION, OTHER, f"{SESSION}0")]

    assert [texts(run) for run in runs] == [
        [f"I am {SESSION}"],
        [f"I am {OTHER}"],
        [f"I am {SESSION}0"],
    ]


@each_program
@pytest.mark.parametrize("session", [SESSION[:8], SESSION[:-1], f"{SESSION}0"])
def test_a_part_of_an_id_is_no_session(
    memory: Memory, home: Path, log: Log, session: str
) -> None:
    append(log.file(home, SESSION), log.start(SESSION), log.prompt("Hello", "u1"))

    with pytest.raises(UnknownName):
        memory.live_run(session)


@each_program
def test_a_transcript_with_the_id_of_another_session_gives_nothing(
    memory: Memory, home: Path, log: Log
) -> None:
    file = log.file(home, SESSION)
    append(file, log.start(SESSION), log.prompt("A zebra was here", "u1"))

    answer = search(memory.live_run(OTHER, transcript=file), "zebra")

    assert answer.text == (
        "Nothing to search: nothing has been recorded in this run yet. That says "
        f"nothing about whether it was said.\n{file} has nothing of this session yet."
    )


def test_a_subagent_in_a_file_of_its_own_has_a_run_of_its_own(
    memory: Memory, home: Path
) -> None:
    agent = "agent-a890b47880a4e4f62"
    own_id = agent.removeprefix("agent-")
    folder = session_file(home).with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    file = folder / f"{agent}.jsonl"
    append(session_file(home), a_line("Send somebody", uuid="u1"))
    append(
        file, a_line("Count the zebras", uuid="u2", isSidechain=True, agentId=own_id)
    )

    by_id, by_path = memory.live_run(agent), memory.live_run(transcript=file)

    assert texts(memory.live_run(SESSION)) == ["Send somebody"]
    assert texts(by_id) == texts(by_path) == ["Count the zebras"]
    assert by_path.session_id == agent
    assert texts(memory.live_run(SESSION, transcript=file)) == []


def test_a_subagent_among_the_lines_of_its_session_has_a_run_of_its_own(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(
        file,
        a_line("Count the zebras", uuid="u1", isSidechain=True),
        a_line("Send somebody", uuid="u2"),
    )

    assert texts(memory.live_run(SESSION)) == ["Send somebody"]
    assert texts(memory.live_run(transcript=file)) == ["Send somebody"]
    assert texts(memory.live_run(f"{SESSION}/sidechain")) == ["Count the zebras"]


def test_a_subagent_in_copilot_s_log_has_a_run_of_its_own(
    memory: Memory, home: Path
) -> None:
    log = Copilot()
    file = log.file(home, SESSION)
    of_agent = orjson.loads(log.prompt("Count the zebras", "u2").splitlines()[0])
    append(
        file,
        log.start(SESSION),
        log.prompt("Send somebody", "u1"),
        json_line(**of_agent, agentId="counter"),
    )

    assert texts(memory.live_run(SESSION)) == ["Send somebody"]
    assert texts(memory.live_run(transcript=file)) == ["Send somebody"]
    assert texts(memory.live_run(f"{SESSION}/counter")) == ["Count the zebras"]


HOSTILE = {
    "a path": "../../etc/passwd",
    "a pattern": "*",
    "a question mark": "?" * 8,
    "a slash": "/",
    "a part of every name": "jsonl",
    "the name of a folder": "-home-dev-demo",
    "a line end": "\n",
    "a NUL": "\0",
    "half a character": "\ud800",
    "blanks": "   ",
    "very long": "x" * 100_000,
}


@each_program
@pytest.mark.parametrize("session", HOSTILE.values(), ids=HOSTILE)
def test_whatever_an_id_says_it_is_an_id(
    memory: Memory, home: Path, log: Log, session: str
) -> None:
    append(log.file(home, SESSION), log.start(SESSION), log.prompt("Hello", "u1"))

    with pytest.raises(UnknownName) as caught:
        memory.live_run(session)

    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("session", [None, ""])
def test_a_run_needs_a_session(memory: Memory, session: str | None) -> None:
    with pytest.raises(BadQuery, match="no session was given"):
        memory.live_run(session)


def test_of_two_copies_the_one_that_is_written_is_followed(
    memory: Memory, home: Path
) -> None:
    old = session_file(home)
    new = old.parent.with_name("-home-dev-zoo") / old.name
    new.parent.mkdir()
    append(old, a_line("Hello", uuid="u1"))
    append(new, a_line("Hello", uuid="u1"), a_line("And on", uuid="u2"))
    os.utime(old, (1, 1))

    assert texts(memory.live_run(SESSION)) == ["Hello", "And on"]


# -- exclusions ---


@pytest.fixture
def closed(tmp_path: Path, home: Path) -> Iterator[Memory]:
    """A memory that reads neither Codex nor two folders."""
    settings = (
        "exclude.hosts=codex",
        f"exclude.folders=/srv/secret,{home}/.gemini/tmp/secret",
    )
    with a_memory(tmp_path, home=home, settings=settings) as opened:
        yield opened


def test_a_session_in_an_excluded_folder_is_not_read(
    closed: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, a_line("A zebra was here", uuid="u1", cwd="/srv/secret/plans"))

    answer = found(closed.live_run(transcript=file), "zebra")

    assert answer == [
        "Search failed: the session runs in /srv/secret/plans, which your settings "
        "exclude"
    ]
    assert found(closed.live_run(SESSION), "zebra") == answer


def test_a_transcript_in_an_excluded_folder_is_not_read(
    closed: Memory, home: Path
) -> None:
    log = Gemini()
    chats = log.file(home, SESSION).parent
    folder = shutil.move(chats.parent, chats.parent.with_name("secret"))
    file = Path(folder) / "chats" / log.file(home, SESSION).name
    link = home / "link.jsonl"
    link.symlink_to(file)
    append(file, log.start(SESSION), log.prompt("A zebra was here", "u1"))

    answers = [
        found(closed.live_run(transcript=path), "zebra") for path in (file, link)
    ]

    assert answers == [
        failed(path, "your settings exclude it") for path in (file, link)
    ]
    with pytest.raises(SourceUnreadable, match="your settings exclude it"):
        closed.live_run(SESSION)


def test_a_session_of_an_excluded_program_is_not_read(
    closed: Memory, home: Path
) -> None:
    log = Codex()
    file = log.file(home, SESSION)
    append(file, log.start(SESSION), log.prompt("A zebra was here", "u1"))

    answer = found(closed.live_run(transcript=file), "zebra")

    assert answer == failed(file, "your settings exclude it")
    with pytest.raises(UnknownName):
        closed.live_run(SESSION)


def test_a_session_that_moves_into_an_excluded_folder_is_dropped(
    closed: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, a_line("A zebra was here", uuid="u1"))
    run = closed.live_run(transcript=file)
    before = found(run, "zebra")

    append(file, a_line("More", uuid="u2", cwd="/srv/secret"))
    later = [found(run, "zebra"), found(run, "zebra")]

    excluded = "the session runs in /srv/secret, which your settings exclude"
    assert before == ["item-1"]
    assert later == [[f"Search failed: {excluded}"]] * 2
