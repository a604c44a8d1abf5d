"""Claude Code as a language model."""

from pathlib import Path

import orjson

from backstory.providers.llms.agents import AgentLlm, reason_line
from backstory.providers.llms.base import THOUGHT_TOKENS
from backstory.providers.llms.calls import Call, Ending, Reply, read_count, read_text
from backstory.providers.llms.programs import Ended

_SYSTEM_FILE = "system.txt"


class ClaudeLlm(AgentLlm):
    """Runs ``claude --print``; seen in version 2.1.325 (November 2026)."""

    session_variables = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")

    def _arguments(self, call: Call, folder: Path) -> list[str]:
        # In a file, because every user of the machine can read command lines.
        file = folder / _SYSTEM_FILE
        file.write_text(call.system or "Answer the user.", encoding="utf-8")
        return [
            "--print",
            *("--model", self._model),
            *("--system-prompt-file", str(file)),
            *("--output-format", "json"),
            "--no-session-persistence",
            *("--tools", ""),
            "--safe-mode",
            "--strict-mcp-config",
        ]

    def _variables(self, call: Call) -> dict[str, str]:
        limit = call.max_output_tokens + THOUGHT_TOKENS
        return {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(limit)}

    def _reply(self, ended: Ended, folder: Path) -> Reply:
        try:
            answer = orjson.loads(ended.output)
            text = read_text(answer["result"])
            is_error = bool(answer["is_error"])
        except (orjson.JSONDecodeError, KeyError, TypeError) as exc:
            said = reason_line(ended.errors) or reason_line(ended.output)
            raise self._failure(said) from exc
        reason, usage = answer.get("stop_reason"), answer.get("usage")
        if reason == "refusal":
            return Reply("", Ending.FILTERED)
        if "output token maximum" in text and is_error:
            return Reply("", Ending.CUT_OFF)
        if is_error or ended.code:
            raise self._failure(text, status=read_count(answer, "api_error_status"))
        return Reply(
            text,
            Ending.CUT_OFF if reason == "max_tokens" else Ending.DONE,
            read_count(
                usage,
                "input_tokens",
                "cache_creation_input_tokens",
                "cache_read_input_tokens",
            ),
            read_count(usage, "output_tokens"),
        )
