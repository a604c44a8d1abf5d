"""The run that an agent program has under way, through the front door, as it grows."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from backstory.errors import BadQuery, SourceUnreadable, UnknownName
from backstory.memory import Memory
from backstory.runs.live import LiveRun
from backstory.tools import ToolResult
from tests.builders import (
    SESSION,
    a_line,
    a_tool_call,
    a_tool_result,
    append,
    session_file,
)
from tests.ordinary_user import as_ordinary_user
from tests.processes import end_of, in_child
from tests.samples import Case, a_memory, all_cases

AT = "2026-11-15T17:52:05.137Z"
PROJECT = "/home/dev/demo"


@pytest.fixture(autouse=True)
def _tools_may_log_their_errors(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


# -- the transcripts of four programs ---


def _line(**fields: object) -> bytes:
    return orjson.dumps(fields) + b"\n"


class Claude:
    """What Claude Code writes (2.1.325)."""

    def file(self, home: Path, session: str) -> Path:
        return session_file(home, session)

    def start(self, session: str) -> bytes:
        self.session = session
        return _line(type="mode", mode="normal", sessionId=session)

    def prompt(self, text: str, uuid: str) -> bytes:
        injected = {"type": "hook_additional_context", "content": ["MEMCTX-submit"]}
        return a_line(text, uuid=uuid, session=self.session) + _line(
            type="attachment",
            attachment=injected,
            uuid=f"{uuid}-hook",
            sessionId=self.session,
        )

    def answer(self, text: str, uuid: str) -> bytes:
        return a_line(text, uuid=uuid, role="assistant", session=self.session)

    def call(self, name: str, call: str, **arguments: object) -> bytes:
        block = {"type": "tool_use", "id": call, "name": name, "input": arguments}
        return self._blocks("assistant", block, f"{call}-call")

    def result(self, name: str, call: str, text: str) -> bytes:
        text += "\n\n<system-reminder>\nMEMCTX-reminder\n</system-reminder>\n"
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        return self._blocks("user", block, f"{call}-result")

    def compaction(self, summary: str) -> bytes:
        return a_line(
            summary, uuid="summary", session=self.session, isCompactSummary=True
        )

    def _blocks(self, role: str, block: object, uuid: str) -> bytes:
        return _line(
            type=role,
            message={"role": role, "content": [block]},
            uuid=uuid,
            timestamp=AT,
            cwd=PROJECT,
            sessionId=self.session,
        )


class Codex:
    """What Codex writes (0.166.0)."""

    def file(self, home: Path, session: str) -> Path:
        folder = home / ".codex" / "sessions" / "2026" / "11" / "15"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"rollout-2026-11-15T17-52-05-{session}.jsonl"

    def start(self, session: str) -> bytes:
        return self._record("session_meta", id=session, cwd=PROJECT)

    def prompt(self, text: str, uuid: str) -> bytes:
        parts = [
            {"type": "input_text", "text": text},
            {"type": "input_text", "text": "MEMCTX-submit"},
        ]
        kinds = ["user.text", "hooks.additional_context"]
        return self._record(
            "response_item",
            type="message",
            id=uuid,
            role="user",
            content=parts,
            internal_chat_message_metadata_passthrough={"content_item_kinds": kinds},
        )

    def answer(self, text: str, uuid: str) -> bytes:
        part = {"type": "output_text", "text": text}
        return self._record(
            "response_item", type="message", id=uuid, role="assistant", content=[part]
        ) + self._record("event_msg", type="agent_message", message=text)

    def call(self, name: str, call: str, **arguments: object) -> bytes:
        return self._record(
            "response_item",
            type="function_call",
            id=f"fc_{call}",
            name=name,
            arguments=orjson.dumps(arguments).decode(),
            call_id=call,
        )

    def result(self, name: str, call: str, text: str) -> bytes:
        return self._record(
            "response_item", type="function_call_output", call_id=call, output=text
        )

    def compaction(self, summary: str) -> bytes:
        return self._record("compacted", message=summary)

    def _record(self, kind: str, /, **payload: object) -> bytes:
        return _line(timestamp=AT, ordinal=0, **{"type": kind, "payload": payload})


class Gemini:
    """What Gemini CLI writes (0.61.0): a message again whenever it has changed."""

    def __init__(self) -> None:
        self.calls: dict[str, dict[str, object]] = {}

    def file(self, home: Path, session: str) -> Path:
        folder = home / ".gemini" / "tmp" / "demo" / "chats"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"session-2026-11-15T17-53-{session[:8]}.jsonl"

    def start(self, session: str) -> bytes:
        return _line(sessionId=session, projectHash="c6", directories=[PROJECT])

    def prompt(self, text: str, uuid: str) -> bytes:
        context = "<hook_context>MEMCTX-submit</hook_context>"
        content = [{"text": text}, {"text": context}]
        return _line(id=uuid, timestamp=AT, type="user", content=content)

    def answer(self, text: str, uuid: str) -> bytes:
        return _line(id=uuid, timestamp=AT, type="gemini", content=text)

    def call(self, name: str, call: str, **arguments: object) -> bytes:
        self.calls[call] = {"id": call, "name": name, "args": arguments}
        return self._calling(self.calls[call])

    def result(self, name: str, call: str, text: str) -> bytes:
        text += "\n\n<hook_context>MEMCTX-after</hook_context>"
        part = {"functionResponse": {"id": call, "response": {"output": text}}}
        return self._calling({**self.calls[call], "result": [part]})

    def compaction(self, summary: str) -> bytes:
        snapshot = f"<state_snapshot>{summary}</state_snapshot>"
        return _line(id="summary", timestamp=AT, type="user", content=snapshot)

    def _calling(self, call: dict[str, object]) -> bytes:
        return _line(
            id=f"calls-{call['id']}",
            timestamp=AT,
            type="gemini",
            content="",
            toolCalls=[call],
        )


class Copilot:
    """What Copilot CLI writes (1.0.102)."""

    def file(self, home: Path, session: str) -> Path:
        folder = home / ".copilot" / "session-state" / session
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "events.jsonl"

    def start(self, session: str) -> bytes:
        return self._event(
            "session.start",
            "start",
            sessionId=session,
            copilotVersion="1.0.102",
            context={"cwd": PROJECT},
        )

    def prompt(self, text: str, uuid: str) -> bytes:
        sent = f"{text}\n\n<system_reminder>\nMEMCTX-submit\n</system_reminder>"
        return self._event(
            "user.message", uuid, content=text, transformedContent=sent
        ) + self._event("hook.end", "h", output={"additionalContext": "MEMCTX-submit"})

    def answer(self, text: str, uuid: str) -> bytes:
        return self._event("assistant.message", uuid, content=text, toolRequests=[])

    def call(self, name: str, call: str, **arguments: object) -> bytes:
        request = {"toolCallId": call, "name": name, "arguments": arguments}
        return self._event(
            "assistant.message", f"{call}-call", content="", toolRequests=[request]
        )

    def result(self, name: str, call: str, text: str) -> bytes:
        return self._event(
            "tool.execution_complete",
            f"{call}-result",
            toolCallId=call,
            success=True,
            result={"content": text},
        )

    def compaction(self, summary: str) -> bytes:
        return self._event(
            "session.compaction_complete", "summary", summaryContent=summary
        )

    def _event(self, kind: str, event: str, /, **data: object) -> bytes:
        return _line(type=kind, data=data, id=event, timestamp=AT)


Log = Claude | Codex | Gemini | Copilot
each_program = pytest.mark.parametrize(
    "log", [Claude(), Codex(), Gemini(), Copilot()], ids=lambda log: type(log).__name__
)


# -- asking ---


def ask(run: LiveRun, name: str, **arguments: object) -> ToolResult:
    return next(tool for tool in run.tools() if tool.name == name).call(arguments)


def search(run: LiveRun, query: str) -> ToolResult:
    return ask(run, "search_conversation_history", query=query)


def found(run: LiveRun, query: str) -> list[object]:
    """The ids of what a search finds; what went wrong if it did."""
    answer = search(run, query)
    if not isinstance(answer.data, list):
        return [answer.text]
    return [hit["id"] for hit in answer.data]


def items(run: LiveRun) -> list[tuple[int, str, str | None, str, str]]:
    return [
        (item.iteration, item.source.value, item.tool_name, item.item_id, item.text)
        for item in run.items()
    ]


def texts(run: LiveRun) -> list[str]:
    return [item.text for item in run.items()]


def whole(run: LiveRun, item_id: str) -> str:
    """An item as a model reads it, page after page."""
    pages: list[str] = []
    while True:
        offset = sum(map(len, pages))
        answer = ask(run, "get_conversation_item", id=item_id, offset=offset)
        assert isinstance(answer.data, dict), answer.text
        pages.append(answer.data["text"])
        if sum(map(len, pages)) == answer.data["length"]:
            return "".join(pages)


@dataclass(frozen=True)
class Shell:
    """A shell in which somebody, or an agent, calls Backstory."""

    home: Path

    def call(
        self, query: str, *options: str, **environ: str
    ) -> tuple[int, list[str], list[str]]:
        """The exit code, what was found, and what was said on standard error."""
        arguments = orjson.dumps({"query": query}).decode()
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "backstory",
                "call",
                "search_conversation_history",
                arguments,
                "--json",
                *options,
            ],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "BACKSTORY_HOME": str(self.home / "kept"),
                "PYTHONUTF8": "1",
                **environ,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        answer = json.loads(done.stdout or "{}")
        ids = [hit["id"] for hit in answer.get("data") or []]
        said = [answer["text"]] if answer.get("error") else done.stderr.splitlines()
        return done.returncode, ids, said


@pytest.fixture
def shell(home: Path) -> Shell:
    return Shell(home)


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


# The output of a person's own commands belongs to a run, and nothing of it is stored;
# calls of recall tools belong to history, and not to a run.
ONLY_LIVE = {
    "<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>",
    "<user_shell_command>\n<command>\ndate\n</command>\n<result>\nThu Oct 2\n"
    "</result>\n</user_shell_command>",
    "We decided on ISO dates: <private>the client is named here</private>, see "
    "logs.py.",
}
ONLY_STORED = {
    '{"query":"dates"}',
    "We decided on ISO dates: [private], see logs.py.",
}
LIVE_CASES = [
    case
    for case in all_cases()
    if case.format in ("claude-code", "codex", "gemini-cli", "copilot-cli")
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


OTHER = SESSION[:-1] + "2"


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
        _line(**of_agent, agentId="counter"),
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
    with pytest.raises(BadQuery, match="no session is named"):
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


# -- while it grows ---


def test_half_a_line_is_read_when_it_is_whole(memory: Memory, home: Path) -> None:
    file = session_file(home)
    line = a_line("A zebra was here", uuid="u2")
    append(file, a_line("Hello", uuid="u1"), line[:40])
    run = memory.live_run(transcript=file)

    before = texts(run)
    append(file, line[40:])

    assert before == ["Hello"]
    assert texts(run) == ["Hello", "A zebra was here"]


def _truncate(file: Path) -> None:
    file.write_bytes(a_line("New", uuid="n1"))


def _rewrite_longer(file: Path) -> None:
    file.write_bytes(b"".join(a_line("New", uuid=f"n{n}") for n in range(9)))


def _replace(file: Path) -> None:
    other = file.with_suffix(".tmp")
    _rewrite_longer(other)
    other.replace(file)


def _delete_and_make_anew(file: Path) -> None:
    file.unlink()
    _truncate(file)


@pytest.mark.parametrize(
    "change", [_truncate, _rewrite_longer, _replace, _delete_and_make_anew]
)
def test_a_transcript_that_was_rewritten_is_read_anew(
    memory: Memory, home: Path, change: Callable[[Path], None]
) -> None:
    file = session_file(home)
    append(file, *(a_line(f"Old {n}", uuid=f"u{n}") for n in range(3)))
    run = memory.live_run(transcript=file)
    before = texts(run)

    change(file)

    assert before == ["Old 0", "Old 1", "Old 2"]
    assert set(texts(run)) == {"New"}


def test_what_was_read_is_not_read_again(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, *(a_line("A zebra was here", uuid=f"u{n}") for n in range(100)))
    run = memory.live_run(transcript=file)
    before = texts(run)

    # Whoever read it again would find an okapi.
    content = file.read_bytes()
    middle = content[8192:-8192].replace(b"zebra", b"okapi")
    with file.open("r+b") as opened:
        opened.seek(8192)
        opened.write(middle)
    append(file, a_line("The end", uuid="end"))

    assert before == ["A zebra was here"] * 100
    assert texts(run) == [*before, "The end"]


def test_lines_may_end_as_they_do_on_windows(memory: Memory, home: Path) -> None:
    file = session_file(home)
    lines = [a_line(f"Line {n}", uuid=f"u{n}") for n in range(3)]
    mark = b"\xef\xbb\xbf"
    file.write_bytes(mark + b"".join(lines[:2]).replace(b"\n", b"\r\n"))
    run = memory.live_run(transcript=file)
    before = texts(run)

    append(file, lines[2].replace(b"\n", b"\r\n"))

    assert before == ["Line 0", "Line 1"]
    assert texts(run) == ["Line 0", "Line 1", "Line 2"]


def test_lines_that_cannot_be_read_are_passed_over(memory: Memory, home: Path) -> None:
    file = session_file(home)
    rubbish = [b"\xff\xfe\0rubbish\n", b"[1, 2]\n", b'{"type": "user"}\n', b"\n\n"]
    append(file, a_line("Hello", uuid="u1"), *rubbish, a_line("And on", uuid="u2"))

    assert texts(memory.live_run(SESSION)) == ["Hello", "And on"]


def test_several_threads_may_use_one_run(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, a_line("Hello", uuid="u0"))
    run = memory.live_run(transcript=file)
    seen: list[list[str]] = []

    def look() -> None:
        for _ in range(20):
            seen.append(texts(run))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(1, 100):
        append(file, a_line(f"Line {number}", uuid=f"u{number}"))
    for thread in threads:
        thread.join()

    everything = ["Hello", *(f"Line {number}" for number in range(1, 100))]
    assert [said for said in seen if said != everything[: len(said)]] == []
    assert texts(run) == everything


def test_a_process_may_write_while_another_reads(memory: Memory, home: Path) -> None:
    file = session_file(home)
    everything = [f"Line {number} {'x' * 500}" for number in range(400)]

    def write() -> None:
        with file.open("ab", buffering=0) as opened:
            for number, text in enumerate(everything):
                line = a_line(text, uuid=f"u{number}")
                # Programs do not write whole lines at once.
                opened.write(line[:100])
                opened.write(line[100:])

    run = memory.live_run(transcript=file)
    writer = in_child(write)
    seen = [texts(run)]
    give_up_at = time.monotonic() + 30
    while len(seen[-1]) < len(everything) and time.monotonic() < give_up_at:
        seen.append(texts(run))

    assert end_of(writer) == "well"
    assert [said for said in seen if said != everything[: len(said)]] == []
    assert seen[-1] == everything


def test_a_writer_that_is_killed_leaves_what_it_had_written(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)

    def write_half_a_line() -> None:
        append(file, a_line("Hello", uuid="u1"), a_line("A zebra", uuid="u2")[:-30])
        time.sleep(60)

    writer = in_child(write_half_a_line)
    run = memory.live_run(transcript=file)
    give_up_at = time.monotonic() + 30
    while not texts(run) and time.monotonic() < give_up_at:
        time.sleep(0.005)
    os.kill(writer, signal.SIGKILL)

    assert end_of(writer) == "SIGKILL"
    assert texts(run) == ["Hello"]
    # The program goes on behind what is left of the line.
    append(file, b"\n", a_line("And on", uuid="u3"))
    assert texts(run) == ["Hello", "And on"]


# -- paths ---


def _not_there(home: Path) -> Path:
    return session_file(home)


def _folder_not_there(home: Path) -> Path:
    return home / ".claude" / "projects" / "-home-dev-new" / f"{SESSION}.jsonl"


def _empty(home: Path) -> Path:
    file = session_file(home)
    file.touch()
    return file


def _without_a_message(home: Path) -> Path:
    file = session_file(home)
    append(file, _line(type="file-history-snapshot", messageId="m", snapshot={}))
    return file


def _begun(home: Path) -> Path:
    file = session_file(home)
    append(file, b'{"type": "user", "sessionId": ')
    return file


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_not_there, "has not been written yet"),
        (_folder_not_there, "has not been written yet"),
        (_empty, "has not been written yet"),
        (_without_a_message, "has nothing of this session yet"),
        (_begun, "has nothing of this session yet"),
    ],
)
def test_a_transcript_may_be_named_before_it_is_written(
    memory: Memory, home: Path, make: Callable[[Path], Path], why: str
) -> None:
    file = make(home)
    run = memory.live_run(SESSION, transcript=file)

    before = search(run, "zebra")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(a_line("A zebra was here", uuid="u1"))

    assert (before.text, before.data) == (
        "Nothing to search: nothing has been recorded in this run yet. That says "
        f"nothing about whether it was said.\n{file} {why}.",
        [],
    )
    assert found(run, "zebra") == ["item-1"]


def _nowhere(home: Path) -> Path:
    return home / "nowhere" / "x.jsonl"


def _folder(home: Path) -> Path:
    return home


def _pipe(home: Path) -> Path:
    os.mkfifo(home / "pipe.jsonl")
    return home / "pipe.jsonl"


def _device(home: Path) -> Path:
    return Path("/dev/zero")


def _rubbish(home: Path) -> Path:
    (home / "x.jsonl").write_bytes(bytes(range(256)) * 100)
    return home / "x.jsonl"


def _other_json(home: Path) -> Path:
    (home / "x.jsonl").write_bytes(b'{"a": 1}\n{"b": 2}\n')
    return home / "x.jsonl"


def _database(home: Path) -> Path:
    case = next(each for each in all_cases() if each.format == "opencode")
    return next(case.lay_out(home.parent / "db").rglob("opencode*.db"))


def _circle(home: Path) -> Path:
    (home / "x.jsonl").symlink_to(home / "x.jsonl")
    return home / "x.jsonl"


def _with_nul(home: Path) -> Path:
    return home / "x\0.jsonl"


def _too_long(home: Path) -> Path:
    return home / ("x" * 5000)


UNREADABLE = [
    (_nowhere, "it cannot be read (No such file or directory)"),
    (_folder, "it cannot be read (it is a folder)"),
    (_pipe, "it cannot be read (it is no file)"),
    (_device, "it cannot be read (it is no file)"),
    (_rubbish, "not a transcript that can be followed while it grows"),
    (_other_json, "not a transcript that can be followed while it grows"),
    (_database, "not a transcript that can be followed while it grows"),
    (_circle, "it cannot be read (Too many levels of symbolic links)"),
    (_with_nul, "it cannot be read (embedded null byte)"),
    (_too_long, "it cannot be read (File name too long)"),
]


@pytest.mark.parametrize(("make", "why"), UNREADABLE)
def test_what_is_no_transcript_is_said_and_nothing_is_raised(
    memory: Memory, home: Path, make: Callable[[Path], Path], why: str
) -> None:
    run = memory.live_run(transcript=make(home))

    answer = search(run, "zebra")

    assert (answer.error, answer.data) == ("search_error", None)
    assert answer.text.startswith("Search failed: /")
    assert answer.text.endswith((f": {why}", "…"))


def test_a_transcript_that_may_not_be_read_is_said(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, a_line("A zebra was here", uuid="u1"))
    run = memory.live_run(transcript=file)
    before = found(run, "zebra")
    append(file, a_line("More", uuid="u2"))
    file.chmod(0)

    with as_ordinary_user():
        meanwhile = [
            found(run, "zebra"),
            found(memory.live_run(transcript=file), "zebra"),
        ]
        with pytest.raises(SourceUnreadable, match="Permission denied"):
            memory.live_run(SESSION)
    file.chmod(0o600)

    denied = f"Search failed: {file}: it cannot be read (Permission denied)"
    assert before == ["item-1"]
    assert meanwhile == [[denied], [denied]]
    assert texts(run) == ["A zebra was here", "More"]


def test_a_folder_that_may_not_be_entered_is_said(memory: Memory, home: Path) -> None:
    file = session_file(home)
    append(file, a_line("A zebra was here", uuid="u1"))
    file.parent.chmod(0)

    with as_ordinary_user():
        answer = found(memory.live_run(transcript=file), "zebra")
    file.parent.chmod(0o700)

    assert answer == [f"Search failed: {file}: it cannot be read (Permission denied)"]


def test_no_transcript_is_opened_that_has_another_name(
    memory: Memory, home: Path
) -> None:
    append(session_file(home), a_line("A zebra was here", uuid="u1"))
    append(session_file(home, OTHER), a_line("Hello", uuid="u1", session=OTHER))
    session_file(home, OTHER).chmod(0)

    with as_ordinary_user():
        said = texts(memory.live_run(SESSION))

    assert said == ["A zebra was here"]


def test_a_transcript_that_is_gone_is_said_until_it_is_back(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, a_line("A zebra was here", uuid="u1"))
    run = memory.live_run(SESSION)
    content = file.read_bytes()
    before = found(run, "zebra")

    file.unlink()
    meanwhile = found(run, "zebra")
    file.write_bytes(content)

    assert before == ["item-1"]
    assert meanwhile == [
        f"Search failed: {file}: it cannot be read (No such file or directory)"
    ]
    assert found(run, "zebra") == ["item-1"]


def test_a_pipe_in_the_place_of_a_transcript_is_not_waited_for(
    memory: Memory, home: Path
) -> None:
    file = session_file(home)
    append(file, a_line("A zebra was here", uuid="u1"))
    run = memory.live_run(SESSION)

    file.unlink()
    os.mkfifo(file)

    assert found(run, "zebra") == [
        f"Search failed: {file}: it cannot be read (it is no file)"
    ]


def test_a_transcript_of_another_name_is_read_all_the_same(
    memory: Memory, tmp_path: Path
) -> None:
    file = tmp_path / "copy.jsonl"
    append(file, a_line("A zebra was here", uuid="u1"))
    run = memory.live_run(transcript=file)

    assert (texts(run), run.session_id) == (["A zebra was here"], SESSION)


# -- results in files of their own ---


CLAUDE_NOTICES = {
    "of today": "<persisted-output>\nOutput too large (34.3KB). Full output saved to: "
    "{path}\n\nPreview (first 2KB):\nline 0\n...\n</persisted-output>",
    "of 2.0": "<persisted-output>Tool result saved to: {path}\n\nUse Read to view"
    "</persisted-output>",
    "of an MCP server": "Error: result (374,984 characters) exceeds maximum allowed "
    "tokens. Output has been saved to {path}.\nFormat: Plain text",
}
LONG = "\n".join(f"line {number}" for number in range(5_000))


def _tool_results(home: Path) -> Path:
    folder = session_file(home).with_suffix("") / "tool-results"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("notice", CLAUDE_NOTICES.values(), ids=CLAUDE_NOTICES)
@pytest.mark.parametrize("place", ["{folder}", "/home/of another", "C:\\Users\\a b"])
def test_a_result_that_claude_saved_apart_is_whole(
    memory: Memory, home: Path, notice: str, place: str
) -> None:
    folder = _tool_results(home)
    (folder / "toolu_1.txt").write_text(LONG)
    sign = "\\" if "\\" in place else "/"
    named = sign.join(
        [place.format(folder=folder.parent), "tool-results", "toolu_1.txt"]
    )
    append(
        session_file(home),
        a_tool_call("Bash", {"command": "cat"}, uuid="u1", call="toolu_1"),
        a_tool_result(notice.format(path=named), uuid="u2", call="toolu_1"),
    )
    run = memory.live_run(SESSION)

    assert whole(run, "toolu_1") == LONG
    assert found(run, "line 4999")[:1] == ["toolu_1"]


def test_a_result_that_claude_saved_as_blocks_is_their_text(
    memory: Memory, home: Path
) -> None:
    path = _tool_results(home) / "mcp-x.txt"
    blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    path.write_bytes(orjson.dumps(blocks))
    notice = CLAUDE_NOTICES["of an MCP server"].format(path=path)
    append(session_file(home), a_tool_result(notice, uuid="u1", call="toolu_1"))

    assert texts(memory.live_run(SESSION)) == ["one\ntwo"]


def test_a_subagent_s_result_is_saved_with_those_of_its_session(
    memory: Memory, home: Path
) -> None:
    path = _tool_results(home) / "toolu_1.txt"
    path.write_text(LONG)
    folder = path.parent.parent / "subagents"
    folder.mkdir()
    notice = CLAUDE_NOTICES["of today"].format(path=path)
    append(
        folder / "agent-a1.jsonl",
        a_tool_result(
            notice, uuid="u1", call="toolu_1", isSidechain=True, agentId="a1"
        ),
    )

    assert texts(memory.live_run("agent-a1")) == [LONG]


def test_a_result_that_gemini_saved_apart_is_whole(memory: Memory, home: Path) -> None:
    log = Gemini()
    file = log.file(home, SESSION)
    saved = file.parent.parent / "tool-outputs" / f"session-{SESSION}" / "shell_1.txt"
    saved.parent.mkdir(parents=True)
    saved.write_text(LONG)
    notice = (
        "Output too large. Showing first 8,000 and last 32,000 characters. For full "
        f"output see: {saved}\nline 0\n\n... [1,000 characters omitted] ...\n\nline 9"
    )
    append(
        file,
        log.start(SESSION),
        log.call("run_shell_command", "c1", command="cat"),
        log.result("run_shell_command", "c1", notice),
    )

    assert texts(memory.live_run(SESSION)) == ['{"command":"cat"}', LONG]


def _of_another_session(folder: Path) -> str:
    other = folder.parent.with_name(OTHER) / "tool-results"
    other.mkdir(parents=True)
    (other / "toolu_1.txt").write_text("A zebra was here")
    return str(other / "toolu_1.txt")


def _above(folder: Path) -> str:
    (folder.parent / "toolu_1.txt").write_text("A zebra was here")
    return f"{folder}/../toolu_1.txt"


def _link_to_a_file(folder: Path) -> str:
    (folder.parent / "secret").write_text("A zebra was here")
    (folder / "toolu_1.txt").symlink_to(folder.parent / "secret")
    return f"{folder}/toolu_1.txt"


def _link_to_a_folder(folder: Path) -> str:
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "toolu_1.txt").write_text("A zebra was here")
    folder.rmdir()
    folder.symlink_to(elsewhere)
    return f"{folder}/toolu_1.txt"


def _pipe_in_it(folder: Path) -> str:
    os.mkfifo(folder / "toolu_1.txt")
    return f"{folder}/toolu_1.txt"


def _gone(folder: Path) -> str:
    return f"{folder}/toolu_1.txt"


def _elsewhere(folder: Path) -> str:
    (folder / "passwd").write_text("A zebra was here")
    return "/etc/passwd"


@pytest.mark.parametrize(
    "make",
    [
        _of_another_session,
        _above,
        _link_to_a_file,
        _link_to_a_folder,
        _pipe_in_it,
        _gone,
        _elsewhere,
    ],
)
def test_no_file_is_read_but_those_of_the_session_s_own_results(
    memory: Memory, home: Path, make: Callable[[Path], str]
) -> None:
    named = make(_tool_results(home))
    notice = CLAUDE_NOTICES["of today"].format(path=named)
    append(session_file(home), a_tool_result(notice, uuid="u1", call="toolu_1"))

    assert texts(memory.live_run(SESSION)) == [notice]


def test_what_only_speaks_of_a_saved_result_is_left_as_it_is(
    memory: Memory, home: Path
) -> None:
    path = _tool_results(home) / "toolu_1.txt"
    path.write_text("A zebra was here")
    notice = CLAUDE_NOTICES["of today"].format(path=path)
    append(
        session_file(home),
        a_line(notice, uuid="u1"),
        a_tool_result(f"It says: {notice}", uuid="u2", call="toolu_1"),
    )

    assert texts(memory.live_run(SESSION)) == [notice, f"It says: {notice}"]


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
        [f"Search failed: {path}: your settings exclude it"] for path in (file, link)
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

    assert answer == [f"Search failed: {file}: your settings exclude it"]
    with pytest.raises(UnknownName):
        closed.live_run(SESSION)


def test_a_session_that_moves_into_an_excluded_folder_is_forgotten(
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


# -- the command line ---


@each_program
def test_a_command_finds_a_session_by_its_id(
    shell: Shell, home: Path, log: Log
) -> None:
    append(
        log.file(home, SESSION),
        log.start(SESSION),
        log.call("Bash", "toolu_1", command="ls"),
        log.result("Bash", "toolu_1", "A zebra was here"),
    )

    assert shell.call("zebra", "--session", SESSION) == (0, ["toolu_1"], [])


def test_a_command_finds_a_session_by_its_transcript(shell: Shell, home: Path) -> None:
    append(session_file(home), a_line("A zebra was here", uuid="u1"))
    path = str(session_file(home))

    assert shell.call("zebra", "--transcript", path) == (0, ["item-1"], [])
    assert shell.call("okapi", "--transcript", path) == (1, [], [])


def test_a_command_that_claude_runs_knows_its_session(shell: Shell, home: Path) -> None:
    append(session_file(home), a_line("A zebra was here", uuid="u1"))

    done = shell.call("zebra", CLAUDE_CODE_SESSION_ID=SESSION)

    assert done == (0, ["item-1"], [])


def test_a_default_session_that_is_unknown_is_named_with_its_origin(
    shell: Shell,
) -> None:
    code, ids, said = shell.call("zebra", CLAUDE_CODE_SESSION_ID="nobody")

    assert (code, ids) == (12, [])
    assert said[0] == (
        "backstory: no agent program has a transcript of a session 'nobody' here "
        "(the id is from CLAUDE_CODE_SESSION_ID)"
    )


def test_a_transcript_that_is_named_counts_more_than_a_default_session(
    shell: Shell, home: Path
) -> None:
    file = session_file(home, "agent-a1")
    append(
        file, a_line("A zebra of its own", uuid="u1", agentId="a1", isSidechain=True)
    )

    done = shell.call(
        "zebra", "--transcript", str(file), CLAUDE_CODE_SESSION_ID=SESSION
    )

    assert done == (0, ["item-1"], [])


def test_a_command_without_a_session_says_what_to_give(shell: Shell) -> None:
    assert shell.call("zebra") == (
        14,
        [],
        [
            "backstory: no session is named",
            "  hint: give its id (--session), or the path of the transcript that its "
            "program writes (--transcript)",
        ],
    )


def test_a_command_with_an_unknown_session_says_what_to_give(shell: Shell) -> None:
    code, ids, said = shell.call("zebra", "--session", "nobody\n'knows")

    assert (code, ids) == (12, [])
    assert said == [
        "backstory: no agent program has a transcript of a session 'nobody 'knows' "
        "here",
        "  hint: give the whole id, as the program gives it to its hooks, or the path "
        "of the transcript (--transcript)",
    ]


def test_a_command_with_no_transcript_says_so(shell: Shell, home: Path) -> None:
    code, ids, said = shell.call("zebra", "--transcript", str(home))

    assert (code, ids) == (30, [])
    assert f"{home}: it cannot be read (it is a folder)" in said[0]
