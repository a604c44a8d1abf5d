"""What each agent program passes to its hooks and takes back: one row each.

The shapes were seen in Claude Code 2.1, Codex 0.166, Gemini CLI 0.61 and Copilot CLI
1.0.102 (November 2026); Cursor's are from its documentation. opencode has no hooks: our
plugin for it calls this program, with the same keys as Claude Code.
"""

import json
from collections.abc import Callable, Mapping

from backstory.hooks.events import EVENTS, PROMPT, SESSION_START

# The name of the host's event, and the text to add to the agent's context.
Shape = Callable[[str, str], dict[str, object]]


def _nested(event: str, text: str) -> dict[str, object]:
    # Codex fails a hook that returns any other key.
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _flat(event: str, text: str) -> dict[str, object]:
    return {"additionalContext": text}


def _cursor(event: str, text: str) -> dict[str, object]:
    return {"additional_context": text}


# Not a dataclass: they take longer to import than a hook may take.
class HookHost:
    """An agent program that runs hooks.

    ``reads`` is the host as the history knows it; ``events`` are the host's own names
    for our events, of which those in ``takes`` can add to the context.
    """

    __slots__ = ("events", "name", "reads", "shape", "takes")

    def __init__(
        self,
        name: str,
        shape: Shape,
        events: tuple[str, str, str, str],
        *,
        reads: str | None = None,
        takes: tuple[str, ...] = (SESSION_START, PROMPT),
    ) -> None:
        self.name = name
        self.reads = reads or name
        self.shape = shape
        self.events = dict(zip(EVENTS, events, strict=True))
        self.takes = takes


_CLAUDE_EVENTS = ("SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd")
_ROWS = (
    HookHost("claude-code", _nested, _CLAUDE_EVENTS),
    HookHost("codex", _nested, _CLAUDE_EVENTS),
    HookHost(
        "gemini",
        _nested,
        ("SessionStart", "BeforeAgent", "PreCompress", "SessionEnd"),
        reads="gemini-cli",
    ),
    HookHost("copilot", _flat, _CLAUDE_EVENTS, reads="copilot-cli"),
    HookHost(
        "opencode",
        _flat,
        (
            "session.created",
            "chat.message",
            "experimental.session.compacting",
            "dispose",
        ),
    ),
    HookHost(
        "cursor",
        _cursor,
        ("sessionStart", "beforeSubmitPrompt", "preCompact", "sessionEnd"),
        takes=(SESSION_START,),
    ),
)
HOOK_HOSTS: Mapping[str, HookHost] = {host.name: host for host in _ROWS}


# -- what they pass -------------------------------------------------------------------

# More of a prompt than a search reads.
_MAX_PROMPT_CHARS = 20_000
_MAX_ID_CHARS = 500
_MAX_PATH_CHARS = 5_000
# Gemini passes on what hooks added before.
_CONTEXT_START, _CONTEXT_END = "<hook_context>", "</hook_context>"

_SESSION_KEYS = ("session_id", "sessionId", "conversation_id")
_TRANSCRIPT_KEYS = ("transcript_path", "transcriptPath")


class HookCall:
    """One call of a hook: what happened, in which session and folder."""

    __slots__ = (
        "cwd",
        "event",
        "host",
        "is_of_subagent",
        "prompt",
        "session_id",
        "source",
        "transcript",
    )

    def __init__(
        self, event: str, host: HookHost, payload: Mapping[str, object]
    ) -> None:
        self.event = event
        self.host = host
        self.session_id = _text(payload, _SESSION_KEYS, _MAX_ID_CHARS)
        self.transcript = _text(payload, _TRANSCRIPT_KEYS, _MAX_PATH_CHARS)
        self.cwd = _text(payload, ("cwd",), _MAX_PATH_CHARS) or _first_root(payload)
        self.source = _text(payload, ("source",), _MAX_ID_CHARS)
        self.prompt = _without_context(_prompt(payload))
        # A subagent is told by its agent what it needs to know.
        self.is_of_subagent = "agent_id" in payload or "parent_agent_id" in payload

    @property
    def session(self) -> str:
        """The session as a memory names it; empty if the host did not name one."""
        return f"{self.host.reads}/{self.session_id}" if self.session_id else ""


def parse_call(event: str, host_name: str, payload: bytes) -> HookCall:
    """A call as a host makes it. Raises ValueError for what makes no sense."""
    host = HOOK_HOSTS.get(host_name)
    if host is None:
        raise ValueError(f"unknown host '{host_name}'")
    if event not in EVENTS:
        raise ValueError(f"unknown event '{event}'")
    found = json.loads(payload)
    if not isinstance(found, dict):
        raise ValueError("the payload is not a JSON object")
    return HookCall(event, host, found)


def _text(payload: Mapping[str, object], keys: tuple[str, ...], max_chars: int) -> str:
    for key in keys:
        value = payload.get(key)
        if isinstance(value, str) and len(value) <= max_chars and "\0" not in value:
            # A half of a character, which a database cannot be asked for.
            return value.encode("utf-8", "backslashreplace").decode()
    return ""


def _prompt(payload: Mapping[str, object]) -> str:
    value = payload.get("prompt")
    return value if isinstance(value, str) else ""


def _without_context(prompt: str) -> str:
    while prompt.startswith(_CONTEXT_START) and _CONTEXT_END in prompt:
        prompt = prompt.partition(_CONTEXT_END)[2].lstrip()
    return prompt[:_MAX_PROMPT_CHARS]


def _first_root(payload: Mapping[str, object]) -> str:
    roots = payload.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else ""
    return first if isinstance(first, str) and "\0" not in first else ""
