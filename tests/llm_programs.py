"""Programs that stand in for ``claude`` and ``codex``, in the shapes that those print.

They note how they were called, and answer or misbehave as the script beside them says.
Seen in claude 2.1.325 and codex 0.166.0, run against a model of ours.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.llm_server import Script

# Any: what a program noted is checked by the tests.
Json = Any

# Begun at once, however busy the machine is.
_HANGING = """\
#!/bin/sh
/bin/sleep 60 & echo $! > "${0%/*}/child"
/bin/sleep 60
"""
_PROGRAM = """\
#!{python} -IS
import json, os, sys
from pathlib import Path

here = Path(__file__).parent
play = json.loads((here / "play.json").read_text())
stdin = sys.stdin.buffer.read()
note = dict(
    argv=sys.argv[1:], stdin=stdin.decode(), environ=dict(os.environ), cwd=os.getcwd(),
    files={{each.name: each.read_text() for each in Path.cwd().iterdir()}},
    mode=os.stat(os.getcwd()).st_mode & 0o777,
)
with open(here / "calls.jsonl", "a") as calls:
    calls.write(json.dumps(note) + "\\n")
if play["floods"]:
    while True:
        os.write(1, b"x" * 1_000_000)
if play["answer"] is not None:
    file = sys.argv[sys.argv.index("--output-last-message") + 1]
    Path(file).write_text(play["answer"])
sys.stdout.write(play["stdout"])
sys.stderr.write(play["stderr"])
sys.exit(play["code"])
"""


@dataclass(slots=True)
class Play:
    """What the program prints, or does instead; ``answer`` goes into a file."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0
    answer: str | None = None
    floods: bool = False


@dataclass(slots=True)
class FakeProgram:
    """One such program in a folder that can be put on the PATH."""

    name: str
    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        program = self.folder / self.name
        program.write_text(_PROGRAM.format(python=sys.executable))
        program.chmod(0o755)
        self.follow(Script())

    @property
    def asked(self) -> list[Json]:
        """How it was called, each time."""
        calls = self.folder / "calls.jsonl"
        if not calls.exists():
            return []
        return [json.loads(line) for line in calls.read_text().splitlines()]

    def texts(self) -> list[tuple[str, str]]:
        """System and prompt of each call; of codex both are one text."""
        return [
            (each["files"].get("system.txt", ""), each["stdin"]) for each in self.asked
        ]

    def play(self, play: Play) -> None:
        (self.folder / "play.json").write_text(json.dumps(asdict(play)))

    def hang(self) -> None:
        """Never answer; the number of a process that it starts goes into ``child``."""
        (self.folder / self.name).write_text(_HANGING)

    def fail(self, said: str) -> None:
        """Give no answer, and these words instead."""
        self.play(Play(stderr=said, code=1))

    def follow(self, script: Script) -> None:
        self.play(_claude(script) if self.name == "claude" else _codex(script))


def _claude(script: Script) -> Play:
    if script.ending == "cut off":
        said = (
            "API Error: Claude's response exceeded the 500 output token maximum. To "
            "configure this behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS "
            "environment variable."
        )
        return Play(claude_prints(said, is_error=True), code=1)
    if script.ending == "filtered":
        said = "API Error: Haiku 5.5 can't help with this. Start a new session."
        return Play(claude_prints(said, is_error=True, stop_reason="refusal"), code=1)
    usage = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 2,
        "cache_read_input_tokens": 4,
        "output_tokens": 7,
    }
    return Play(claude_prints(script.text, usage=usage if script.counts_tokens else {}))


def claude_prints(
    result: str,
    *,
    is_error: bool = False,
    stop_reason: str = "end_turn",
    status: int | None = None,
    usage: dict[str, int] | None = None,
) -> str:
    """What ``claude --print --output-format json`` prints."""
    return json.dumps(
        {
            "type": "result",
            "subtype": "success",
            "is_error": is_error,
            "api_error_status": status,
            "num_turns": 1,
            "result": result,
            "stop_reason": stop_reason,
            "usage": usage,
        }
    )


def _codex(script: Script) -> Play:
    usage = {"input_tokens": 11, "cached_input_tokens": 0, "output_tokens": 7}
    completed: dict[str, object] = {"type": "turn.completed"}
    if script.counts_tokens:
        completed["usage"] = usage
    item = {"id": "item_0", "type": "agent_message", "text": script.text}
    printed = codex_prints(
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": item},
        completed,
    )
    return Play(printed, answer=script.text)


def codex_prints(*events: dict[str, object]) -> str:
    """What ``codex exec --json`` prints."""
    return "".join(json.dumps(event) + "\n" for event in events)
