"""What a server does beside answering: progress of long calls, reading, hooks."""

import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from mcp.types import CallToolResult

from backstory.hooks.server import HookServer
from backstory.hooks.upkeep import Upkeep
from backstory.ingest.announced import announce_session
from backstory.memory import Memory
from backstory.settings import read_settings
from backstory.system.machine import Machine
from backstory.tools.base import Tool, ToolResult
from mcp import Client
from tests.builders import SESSION, a_line, append, session_file
from tests.mcp.clients import ask_memory, each_version
from tests.processes import PATIENCE_S, comes_true
from tests.samples import a_memory


@pytest.fixture
def memory(tmp_path: Path, home: Path) -> Iterator[Memory]:
    with a_memory(tmp_path, home=home, settings=("embedder.name=none",)) as opened:
        opened.index()
        yield opened


class HeldTool(Tool):
    """A tool that answers when it is let go."""

    may_end = threading.Event()

    def call(self, arguments: object = None) -> ToolResult:
        assert self.may_end.wait(PATIENCE_S)
        return ToolResult("done")


class HeldMemory:
    """A memory whose tools take as long as a test wants."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __getattr__(self, name: str) -> object:
        return getattr(self._memory, name)

    def tools(self, **where: object) -> list[Tool]:
        tools = list(self._memory.tools(**where))  # type: ignore[arg-type]
        for tool in tools:
            tool.__class__ = HeldTool
        return tools


@each_version
def test_a_long_call_reports_its_progress(memory: Memory, version: str) -> None:
    told: list[tuple[float, str | None]] = []
    HeldTool.may_end.clear()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))
        if len(told) == 2:
            HeldTool.may_end.set()

    async def ask(client: Client) -> CallToolResult:
        arguments = {"query": "ferry"}
        return await client.call_tool(
            "search_history", arguments, progress_callback=hear
        )

    held: Memory = HeldMemory(memory)  # type: ignore[assignment]
    result = ask_memory(held, ask, version=version, with_data=False)

    assert not result.is_error
    assert told == [(0.5, "Running search_history"), (1.5, "Running search_history")]


def test_a_call_that_is_given_up_does_not_hold_up_the_next(memory: Memory) -> None:
    HeldTool.may_end.clear()

    async def ask(client: Client) -> int:
        with anyio.move_on_after(0.05):
            await client.call_tool("search_history", {"query": "ferry"})
        listed = await client.list_resources()
        HeldTool.may_end.set()
        return len(listed.resources)

    held: Memory = HeldMemory(memory)  # type: ignore[assignment]

    assert ask_memory(held, ask, with_data=False) == 1


def test_what_is_new_is_read_without_a_search_until_the_server_ends(
    memory: Memory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TemporaryDirectory(prefix="bs-", dir="/tmp") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        hooks = HookServer(memory)
        upkeep = Upkeep(memory, hooks, quiet_s=0, every_s=0.01)
        append(session_file(home), a_line("the ferry to Rousay", uuid="1"))

        upkeep.start()
        upkeep.start()

        assert comes_true(lambda: bool(memory.sessions()))
        assert [each.native_id for each in memory.sessions()] == [SESSION]
        assert comes_true(lambda: not memory.status().index.is_behind)
        assert hooks.path
        upkeep.close()
        assert hooks.path == ""


def test_what_goes_wrong_in_the_background_is_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    memory = a_memory(tmp_path, settings=("embedder.name=none",))
    upkeep = Upkeep(memory, HookServer(memory), quiet_s=0, every_s=0.01)
    memory.close()

    upkeep.start()
    upkeep.close()


def test_in_a_new_home_the_worker_is_asked_to_read_all_agent_programs(
    tmp_path: Path, home: Path
) -> None:
    append(session_file(home), a_line("the ferry to Rousay", uuid="1"))
    settings = read_settings(environ={}, flags=("embedder.name=none",))
    started: list[str] = []
    with Memory(
        tmp_path / "kept",
        settings,
        Machine("linux", home, {}),
        start_worker=lambda: started.append("worker"),
    ) as memory:
        assert memory.read_new() == ()
        assert (started, memory.sessions()) == (["worker"], [])

        memory.work()

        assert [each.native_id for each in memory.sessions()] == [SESSION]
        # Once all were read, the server reads what is new by itself.
        append(session_file(home), a_line("at 9:40", uuid="2", role="assistant"))
        memory.read_new()
        assert [each.message_count for each in memory.sessions()] == [2]
        assert started == ["worker"]

        # A hook that was ended before it could start a worker.
        announce_session(str(memory.home), "claude-code", SESSION, "session end")
        memory.read_new()
        assert started == ["worker", "worker"]
