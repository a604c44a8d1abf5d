"""Agents of other packages remember: the examples, against a scripted model.

Each runs where its package is installed; ``make examples`` installs them all.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest

import backstory
from tests import tutorial
from tests.agent_server import AgentServer, ToolCall, running_agent_server
from tests.processes import PATIENCE_S
from tests.samples import a_memory
from tests.shell import Shell

REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "docs/how-to/use-with-frameworks.md"
PACKAGES = {
    "openai_sdk": ("openai",),
    "anthropic_sdk": ("anthropic",),
    "openai_agents_sdk": ("agents",),
    "langchain_agent": ("langchain", "langchain_openai"),
    "pydantic_ai_agent": ("pydantic_ai", "openai"),
}
PROMPTS = (
    "What did we decide about the council export?",
    "Thanks. From now on, Nora checks the file before it goes out.",
)
QUERY = {"query": "council export", "max_results": 1}
ANSWER = "To keep it: the council asks for the CSV file every January."
SCRIPT = (ToolCall("search_history", dict(QUERY)), ANSWER, "Good to know.")
# However busy the machine is, the embedder is waited for, and no file is read again.
PATIENT = {
    "BACKSTORY_SEARCH_READ_CHANGED": "false",
    "BACKSTORY_CONTEXT_TIMEOUT_SECONDS": "600",
    "BACKSTORY_SEARCH_TIMEOUT_SECONDS": "600",
}
NOTE = "Wants every change explained in one sentence"
PLANTED = "keep the CSV export, the council asks for it every January"


def where_installed(name: str) -> pytest.MarkDecorator:
    missing = [each for each in PACKAGES[name] if find_spec(each) is None]
    reason = f"'make examples' installs what is missing: {', '.join(missing)}"
    return pytest.mark.skipif(bool(missing), reason=reason)


@pytest.fixture(scope="module")
def read_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Claude Code and others have worked for a week, all of it read."""
    folder = tmp_path_factory.mktemp("framework-examples")
    samples = Path(backstory.__file__).parent / "cli" / "samples"
    shutil.copytree(samples, folder / "home")
    shell = Shell(folder / "home", folder / "backstory")
    shell.out("memory", "add", NOTE)
    shell.out("index", "--wait")
    return folder


@pytest.fixture
def shell(read_home: Path, tmp_path: Path) -> Shell:
    shutil.copytree(read_home, tmp_path / "own")
    return Shell(tmp_path / "own" / "home", tmp_path / "own" / "backstory")


@pytest.fixture
def model() -> Iterator[AgentServer]:
    with running_agent_server(*SCRIPT) as server:
        yield server


def run_example(name: str, shell: Shell, model: AgentServer) -> str:
    """What an example prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, REPOSITORY / "examples" / f"{name}.py", *PROMPTS],
        env={
            **shell.environ,
            **PATIENT,
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_API_KEY": "none",
            # Otherwise it sends what it does to its makers.
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
        },
        cwd=shell.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=where_installed(name)) for name in PACKAGES]
)
def test_an_agent_finds_what_another_was_told_and_is_found_itself(
    name: str, shell: Shell, model: AgentServer
) -> None:
    printed = run_example(name, shell, model)

    assert printed == f"{ANSWER}\nGood to know.\n"
    with a_memory(shell.kept.parent, home=shell.home, environ=PATIENT) as memory:
        first, second, third = model.given()
        offered = [
            (each.name, each.description, each.parameters) for each in memory.tools()
        ]
        assert [given.tools for given in (first, second, third)] == [offered] * 3

        # It is reminded of notes, and told what Claude Code's user once said.
        assert first.system.startswith("You are a helpful assistant.\n\n## Long-term")
        assert f"\n> - {NOTE}\n" in first.system
        assert first.results == []
        assert PLANTED in second.results[0]
        assert third.results == second.results

        # What was said is kept, without what was recalled.
        (session,) = memory.sessions(host="python")
        kept = list(memory.messages(session))
        assert [
            (each.role.value, each.text) for each in kept if not each.tool_name
        ] == [
            ("user", PROMPTS[0]),
            ("assistant", ANSWER),
            ("user", PROMPTS[1]),
            ("assistant", "Good to know."),
        ]
        (call,) = [each for each in kept if each.tool_name]
        assert (call.role.value, call.tool_name, json.loads(call.text)) == (
            "tool_call",
            "backstory/search_history",
            QUERY,
        )

        # The next session of any agent finds it, and is reminded of it.
        (hit,) = memory.search("Nora checks", limit=1).hits
        assert (hit.text, hit.reply and hit.reply.text) == (PROMPTS[1], SCRIPT[-1])
        memory.embed()
        reminders = memory.context("Who checks the file before it goes out?")
        assert f"User: {PROMPTS[1]}\n  Agent: {SCRIPT[-1]}" in reminders.text


@where_installed("openai_sdk")
def test_the_page_shows_what_its_example_prints(
    shell: Shell, model: AgentServer
) -> None:
    printed = run_example("openai_sdk", shell, model)

    typed = " ".join(f'"{prompt}"' for prompt in PROMPTS)
    command = f"$ python examples/openai_sdk.py {typed}\n"
    assert f"```text\n{command}{printed}```" in PAGE.read_text("utf-8")


def test_the_page_shows_how_the_conversation_is_found(tmp_path: Path) -> None:
    said = [PROMPTS[0], ANSWER, PROMPTS[1], SCRIPT[-1]]
    roles = ["user", "assistant"] * 2
    messages = [
        {"role": role, "content": text} for role, text in zip(roles, said, strict=True)
    ]
    with a_memory(
        tmp_path, clock=lambda: datetime(2026, 3, 2, 9, tzinfo=UTC)
    ) as memory:
        memory.record_messages("5e1f0c2a-6d7b-4e55-8f3f-6a3c1d1b9f10", messages)

    (tmp_path / "home").mkdir()
    shell = Shell(tmp_path / "home", tmp_path / "backstory")
    found = shell.run("--set", "embedder.name=none", "search", "Nora checks", "-n", "1")

    command = '$ backstory search "Nora checks" -n 1\n'
    shown = tutorial.without_scores(PAGE.read_text("utf-8"))
    assert tutorial.without_scores(f"```text\n{command}{found.stdout}```") in shown


def test_the_code_on_the_page_is_that_of_the_examples() -> None:
    shown = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    examples = [
        (REPOSITORY / "examples" / f"{name}.py").read_text("utf-8") for name in PACKAGES
    ]

    assert len(shown) == 4
    assert [
        code for code in shown if not any(code in example for example in examples)
    ] == []
