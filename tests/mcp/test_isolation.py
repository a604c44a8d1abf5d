"""Projects that are kept apart: a server and hooks show an agent its own alone."""

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backstory.hooks.server import HookServer
from backstory.mcp.calls import Calls
from backstory.mcp.current_session import CurrentSession
from backstory.mcp.tools import ServedTools
from backstory.memory import Memory
from backstory.notes.log_markers import make_marker
from backstory.settings import read_settings
from backstory.system.machine import Machine
from mcp import Client
from tests.builders import SESSION, a_line, append, session_file
from tests.hooks.hook_home import Hooks, environ_of
from tests.mcp.clients import LONG_AGO, ask_memory, each_version
from tests.mcp.test_resources import innermost

pytestmark = pytest.mark.usefixtures("own_runtime_folder")

# The time of day: hooks know no other.
NOW = datetime.now(UTC)
SHOP, BELOW, AROUND, BLOG = "/dev/shop", "/dev/shop/web", "/dev", "/dev/blog"
SAID = {
    SHOP: "The zebra launch of the shop moves to Monday",
    BELOW: "The zebra launch of the page moves to Tuesday",
    AROUND: "The zebra launch of the folder moves to Wednesday",
    BLOG: "The zebra launch of the blog moves to Thursday",
}
QUESTION = "When is the zebra launch of the shop, the page, the folder and the blog?"


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """What was said and logged in four folders, for an agent in one of them."""
    environ = environ_of(tmp_path)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    config = tmp_path / "config.toml"
    config.write_text('embedder.name = "none"\nsearch.isolate_projects = true\n')
    settings = read_settings(user_file=config, environ={})
    machine = Machine("linux", tmp_path / "nobody", environ, Path(SHOP))
    with Memory(tmp_path / "kept", settings, machine, clock=lambda: NOW) as opened:
        for number, (project, text) in enumerate(SAID.items()):
            at = NOW - timedelta(days=2, hours=number)
            name = f"s{number}"
            opened.record(name, "user", text, project=project, sent_at=at, title=name)
            opened.notebook.append_log(
                (NOW - timedelta(days=1)).date(),
                f"## Log\n\n### Decisions\n- {text}\n",
                marker=make_marker(opened.session(name)),
            )
        for number in range(40):
            at = NOW - timedelta(days=300 + number)
            opened.record("older", "user", f"plum{number} pear{number}", sent_at=at)
        opened.search("zebra")
        yield opened


def projects_in(text: str) -> set[str]:
    """The folders of which something is told."""
    return {project for project, said in SAID.items() if said in text}


@each_version
def test_only_sessions_of_the_project_are_resources(
    memory: Memory, version: str
) -> None:
    async def ask(client: Client) -> list[str]:
        listed = (await client.list_resources()).resources
        texts = [(await client.read_resource(each.uri)).contents[0] for each in listed]
        assert projects_in("".join(each.text for each in texts)) == {SHOP, BELOW}  # type: ignore[union-attr]
        return [each.uri for each in listed]

    assert ask_memory(memory, ask, version=version) == [
        "backstory://memory",
        "backstory://session/s0",
        "backstory://session/s1",
    ]


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("session/s2", "No session of this project is called 's2'"),
        ("session/s3", "No session of this project is called 's3'"),
        ("session/python%2Fs3", "No session of this project is called 'python/s3'"),
        (
            "daily/2026-02-28",
            "Daily logs are about all projects, which are kept apart",
        ),
    ],
)
def test_what_is_not_of_the_project_cannot_be_read_by_its_address(
    memory: Memory, uri: str, words: str
) -> None:
    async def ask(client: Client) -> None:
        await client.read_resource(f"backstory://{uri}")

    with pytest.raises(BaseException) as raised:  # noqa: PT011 (a group)
        ask_memory(memory, ask)

    assert innermost(raised.value).message.partition(".")[0] == words


def test_the_prompt_recalls_what_is_of_the_project(memory: Memory) -> None:
    async def ask(client: Client) -> str:
        found = await client.get_prompt("recall", {"topic": QUESTION})
        text: str = found.messages[0].content.text  # type: ignore[union-attr]
        return text

    assert projects_in(ask_memory(memory, ask)) == {SHOP, BELOW}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_conversation_history", {"query": "zebra"}),
        ("get_conversation_item", {"id": "1"}),
    ],
)
def test_the_tools_of_a_run_take_no_other_session(
    memory: Memory, tmp_path: Path, name: str, arguments: dict[str, str]
) -> None:
    home, other = tmp_path / "nobody", SESSION[:-1] + "2"
    append(session_file(home), a_line(SAID[SHOP], uuid="1", cwd=SHOP))
    append(
        session_file(home, other),
        a_line(SAID[BLOG], uuid="2", session=other, cwd=BLOG),
    )
    current = CurrentSession(memory, started_at=LONG_AGO)
    tools = ServedTools(memory, current, Calls(), with_data=False)

    async def ask(client: Client) -> dict[str, set[str]]:
        listed = (await client.list_tools()).tools
        return {each.name: set(each.input_schema["properties"]) for each in listed}

    refused = tools.run(name, {**arguments, "session": other})
    allowed = tools.run("search_conversation_history", {"query": "zebra"})

    assert "session" not in ask_memory(memory, ask)[name]
    assert refused.error == "validation_error"
    assert refused.text.startswith("Unknown parameter 'session'.")
    assert projects_in(allowed.text) == {SHOP}


# -- hooks ----------------------------------------------------------------------------


@pytest.mark.parametrize("has_server", [False, True], ids=["alone", "with a server"])
def test_hooks_tell_what_is_of_the_project(
    memory: Memory, tmp_path: Path, has_server: bool
) -> None:
    hooks = Hooks(memory.home, environ_of(tmp_path))

    def tell(event: str, cwd: str) -> set[str]:
        payload = {"session_id": f"{event} {cwd}", "cwd": cwd, "prompt": QUESTION}
        return projects_in(str(hooks.answer(event, "claude-code", payload)))

    with HookServer(memory) if has_server else nullcontext() as server:
        if server is not None:
            server.warm_up()
        told = {
            (event, cwd): tell(event, cwd)
            for event in ("session-start", "prompt")
            for cwd in (*SAID, "/dev/garden")
        }

    expected = {
        SHOP: {SHOP, BELOW},
        BELOW: {BELOW},
        BLOG: {BLOG},
        "/dev/garden": set(),
    }
    for event in ("session-start", "prompt"):
        assert {cwd: told[event, cwd] for cwd in expected} == expected


def test_a_hook_that_cannot_read_the_settings_tells_nothing(
    memory: Memory, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.unlink()
    config.mkdir()
    hooks = Hooks(memory.home, environ_of(tmp_path))

    payload = {"session_id": "s9", "cwd": BLOG, "prompt": QUESTION}
    done = hooks.run("prompt", "--host", "claude-code", payload=payload)

    assert (done.returncode, done.stdout) == (0, b"")
    assert len(hooks.log()) == 1
