"""Codex as a language model."""

from collections.abc import Iterator
from pathlib import Path

import orjson

from backstory.providers.http import Json
from backstory.providers.llms.agents import AgentLlm, reason_line
from backstory.providers.llms.calls import Call, Reply, read_count
from backstory.providers.llms.programs import Ended

_ANSWER_FILE = "answer.txt"
_MAX_ANSWER_CHARS = 4_000_000


class CodexLlm(AgentLlm):
    """Runs ``codex exec``; seen in version 0.166.0 (November 2026).

    It has no limit for output tokens, and a system prompt of its own.
    """

    def _arguments(self, call: Call, folder: Path) -> list[str]:
        return [
            "exec",
            "--ephemeral",
            "--skip-git-repo-check",
            *("--sandbox", "read-only"),
            *("--disable", "hooks"),
            # Its input is data; no instruction in it may run a command.
            *("--disable", "shell_tool"),
            *("--config", "mcp_servers={}"),
            *(("--model", self._model) if self._model else ()),
            "--json",
            *("--output-last-message", str(folder / _ANSWER_FILE)),
            "-",
        ]

    def _input(self, call: Call) -> str:
        return f"{call.system}\n\n{call.prompt}" if call.system else call.prompt

    def _reply(self, ended: Ended, folder: Path) -> Reply:
        usage, said = None, ""
        for event in _events(ended.output):
            match event:
                case {"type": "turn.completed", "usage": usage}:
                    pass
                case {"type": "turn.failed", "error": {"message": str(said)}}:
                    pass
                case {"type": "error", "message": str(said)}:
                    pass
        answer = folder / _ANSWER_FILE
        if ended.code or not answer.is_file():
            raise self._failure(said or reason_line(ended.errors))
        with answer.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_MAX_ANSWER_CHARS)
        return Reply(
            text,
            input_tokens=read_count(usage, "input_tokens"),
            output_tokens=read_count(usage, "output_tokens"),
        )


def _events(output: str) -> Iterator[Json]:
    for line in output.splitlines():
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            continue  # a warning between the events
