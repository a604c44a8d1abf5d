"""The tools over HTTP, for several tenants at one address."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from mcp import Client
from tests.serve.team import Team

pytestmark = pytest.mark.xdist_group("serve")

READING = ["search_history", "read_session", "memory_search"]
WRITING = ["save_memory", "update_memory"]


def call(team: Team, token: str, name: str, **arguments: object) -> tuple[bool, str]:
    """What a tool answers, and whether it is an error."""

    async def talk() -> tuple[bool, str]:
        async with connected(team, token) as client:
            try:
                result = await client.call_tool(name, arguments)
            except MCPError as exc:
                return True, exc.error.message
            return result.is_error, result.content[0].text  # type: ignore[union-attr]

    return anyio.run(talk)


@asynccontextmanager
async def connected(team: Team, token: str) -> AsyncIterator[Client]:
    async with create_mcp_http_client({"Authorization": f"Bearer {token}"}) as http:
        reached = streamable_http_client(f"{team.url}/mcp", http_client=http)
        async with Client(reached) as client:
            yield client


@pytest.mark.parametrize(
    ("token", "expected"), [("anna-reads", READING), ("anna-writes", READING + WRITING)]
)
def test_a_token_is_offered_the_tools_that_it_may_use(
    team: Team, token: str, expected: list[str]
) -> None:
    async def talk() -> list[str]:
        async with connected(team, token) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert anyio.run(talk) == expected


def test_a_search_finds_what_its_own_tenant_said(team: Team) -> None:
    answers = {
        token: call(team, token, "search_history", query="code word")
        for token in ("anna-reads", "bo-reads")
    }

    assert {token: is_error for token, (is_error, _) in answers.items()} == {
        "anna-reads": False,
        "bo-reads": False,
    }
    assert ["apricot" in text for _, text in answers.values()] == [True, False]
    assert ["blueberry" in text for _, text in answers.values()] == [False, True]


def test_what_one_tenant_saves_another_does_not_see(team: Team) -> None:
    is_error, _ = call(team, "bo-writes", "save_memory", content="Bo rides a unicycle")

    seen = [
        "rides" in call(team, token, "search_history", query="unicycle")[1]
        for token in ("anna-reads", "bo-reads")
    ]

    assert (is_error, seen) == (False, [False, True])
    assert "unicycle" in team.memories["bo"].notebook.read_memory()


def test_a_session_of_another_tenant_cannot_be_read(team: Team) -> None:
    is_error, text = call(team, "anna-writes", "read_session", session="s-bo")

    assert is_error
    assert "blueberry" not in text


@pytest.mark.parametrize("name", WRITING)
def test_a_tool_that_writes_is_refused_to_whoever_may_only_read(
    team: Team, name: str
) -> None:
    before = team.memories["anna"].notebook.read_memory()

    answer = call(team, "anna-reads", name, content="x")

    assert answer == (True, f"Unknown tool: {name} (your token may only read)")
    assert team.memories["anna"].notebook.read_memory() == before


def test_a_run_on_this_machine_is_not_there_for_others(team: Team) -> None:
    is_error, text = call(team, "anna-writes", "search_conversation_history", query="x")

    assert is_error
    assert text.startswith("Unknown tool: search_conversation_history (")


def test_resources_are_of_the_tenant(team: Team) -> None:
    async def talk(token: str) -> str:
        async with connected(team, token) as client:
            listed = [each.uri for each in (await client.list_resources()).resources]
            read = await client.read_resource("backstory://memory")
            return f"{listed} {read.contents[0].text}"  # type: ignore[union-attr]

    anna, bo = anyio.run(talk, "anna-reads"), anyio.run(talk, "bo-reads")

    assert ("s-anna" in anna, "s-bo" in anna) == (True, False)
    assert ("likes apricot" in anna, "likes apricot" in bo) == (True, False)


HOSTILE = [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"jsonrpc":"2.0"}', b"[" * 10_000,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_history",'
    b'"arguments":{"query":{"$ne":1}}}}',
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_no_message_breaks_the_server(team: Team, number: int) -> None:
    answer = team.post(
        "/mcp",
        "anna-reads",
        content=HOSTILE[number],
        headers={
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        },
    )

    assert answer.status_code < 500
    assert "Traceback" not in answer.text
    assert team.get("/health").status_code == 200
