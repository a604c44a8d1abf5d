"""Values and files with all defaults filled in; override what matters to the test."""

from pathlib import Path
from typing import Any

import orjson

from backstory.options import search_options
from backstory.settings import read_settings

# What a search is told by the settings as they are by default.
USUAL = search_options(read_settings(environ={}))

SESSION = "5d0c1c53-8a57-4f43-9f0e-3c3f6d8f2b11"
PROJECT = "/home/dev/demo"


def a_line(
    text: str = "hello",
    *,
    uuid: str,
    role: str = "user",
    session: str = SESSION,
    cwd: str = PROJECT,
    at: str = "2026-02-20T14:32:10.000Z",
    **more: object,
) -> bytes:
    """One line of a Claude Code session."""
    return _line(
        type=role,
        message={"role": role, "content": text},
        uuid=uuid,
        timestamp=at,
        cwd=cwd,
        sessionId=session,
        gitBranch="main",
        **more,
    )


def a_tool_call(
    name: str, arguments: dict[str, Any], *, uuid: str, call: str, **more: object
) -> bytes:
    """A line in which the assistant calls a tool."""
    block = {"type": "tool_use", "id": call, "name": name, "input": arguments}
    return _line(
        type="assistant",
        message={"role": "assistant", "content": [block]},
        uuid=uuid,
        timestamp="2026-02-20T14:33:00.000Z",
        cwd=PROJECT,
        sessionId=SESSION,
        **more,
    )


def a_tool_result(text: str, *, uuid: str, call: str, **more: object) -> bytes:
    """A line in which a tool answers."""
    block = {"type": "tool_result", "tool_use_id": call, "content": text}
    return _line(
        type="user",
        message={"role": "user", "content": [block]},
        uuid=uuid,
        timestamp="2026-02-20T14:33:01.000Z",
        cwd=PROJECT,
        sessionId=SESSION,
        **more,
    )


def _line(**fields: object) -> bytes:
    return orjson.dumps(fields) + b"\n"


def session_file(home: Path, name: str = SESSION) -> Path:
    """Where Claude Code keeps the session of that name; its folder is made."""
    folder = home / ".claude" / "projects" / "-home-dev-demo"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.jsonl"


def append(path: Path, *lines: bytes) -> None:
    """Write more lines at the end, as the host does."""
    with path.open("ab") as file:
        file.write(b"".join(lines))
