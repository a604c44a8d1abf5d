"""Agents of other packages remember: the examples, against a scripted model.

Each runs where its package is installed; ``make examples`` installs them all.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import backstory
from backstory import Memory
from tests import tutorial
from tests.agent_server import AgentServer, ToolCall, running_agent_server
from tests.processes import PATIENCE_S
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
    shell = Shell(folder / "home", folder / "kept")
    shell.out("memory", "add", NOTE)
    shell.out("index", "--wait")
    return folder


@pytest.fixture
def shell(read_home: Path, tmp_path: Path) -> Shell:
    shutil.copytree(read_home, tmp_path / "own")
    return Shell(tmp_path / "own" / "home", tmp_path / "own" / "kept")


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
    with Memory.open(shell.kept) as memory:
        first, second, third = model.given()
        offered = [
            (each.name, each.description, each.parameters) for each in memory.tools()
        ]
        assert [given.tools for given in (first, second, third)] == [offered] * 3

        # It is reminded of notes, and told what Claude Code's user once said.
        assert first.system.startswith("You are a helpful assistant.\n\n## Long-term")
        assert f"\n- {NOTE}\n" in first.system
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
def test_the_page_shows_what_its_example_prints_and_is_given(
    shell: Shell, model: AgentServer
) -> None:
    printed = run_example("openai_sdk", shell, model)

    shown = _without_what_changes(PAGE.read_text(encoding="utf-8"))
    first, second, _ = model.given()
    typed = " ".join(f'"{prompt}"' for prompt in PROMPTS)
    shell.out("index", "--wait")
    found = shell.out("search", "Nora checks", "-n", "1")
    blocks = [
        f"$ python examples/openai_sdk.py {typed}\n{printed}",
        f"{first.system}\n",
        f"{second.results[0]}\n",
        f'$ backstory search "Nora checks" -n 1\n{found}',
    ]
    missing = [
        block for block in map(_without_what_changes, blocks) if block not in shown
    ]
    assert missing == []


def _without_what_changes(text: str) -> str:
    """The text without scores, seals, and when and as what it was recorded."""
    text = tutorial.without_scores(tutorial.same_seal(text))
    text = re.sub(
        r"python  \d{4}-\d\d-\d\d \d\d:\d\d", "python  2026-03-02 09:00", text
    )
    return re.sub(r"backstory show [0-9a-f]{8}", "backstory show 5e1f0c2a", text)


def test_the_code_on_the_page_is_that_of_the_examples() -> None:
    shown = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    examples = [
        (REPOSITORY / "examples" / f"{name}.py").read_text("utf-8") for name in PACKAGES
    ]

    assert len(shown) == 4
    assert [
        code for code in shown if not any(code in example for example in examples)
    ] == []
