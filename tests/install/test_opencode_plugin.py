"""The plugin of opencode, run by Node.js as opencode runs it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shell import Shell

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None, reason="Node.js is not there"
)

# Stands in for our hook: it writes down what it was asked, and reminds of that.
_HOOK = """\
#!{python}
import json, sys
from pathlib import Path

given = json.load(sys.stdin)
said = [sys.argv[1], given["session_id"], given.get("prompt", given.get("source"))]
with Path({log!r}).open("a") as file:
    file.write(json.dumps(said) + "\\n")
print(json.dumps({{"additionalContext": " ".join(filter(None, said))}}))
"""
# Calls the plugin as opencode does, and prints what is added to the system prompt.
_PROGRAM = """\
import {{ Backstory }} from {plugin};
const plugin = await Backstory({{ directory: "/work" }});
const say = (sessionID, text) =>
  plugin["chat.message"]({{ sessionID }}, {{ parts: [{{ type: "text", text }}] }});
const tell = (type, properties) => plugin.event({{ event: {{ type, properties }} }});
{calls}
"""


def run_plugin(shell: Shell, folder: Path, calls: str) -> tuple[str, list[list[str]]]:
    """What the calls print, and what our hook was asked meanwhile."""
    shell.run("install", "opencode", PATH=str(folder))
    log, hook = folder / "log", folder / "hook"
    hook.write_text(_HOOK.format(python=sys.executable, log=str(log)))
    hook.chmod(0o755)
    installed = (shell.home / ".config/opencode/plugin/backstory.js").read_text()
    lines = installed.splitlines(keepends=True)
    (at,) = [at for at, line in enumerate(lines) if line.startswith("const HOOK = ")]
    lines[at] = f"const HOOK = {json.dumps([str(hook)])};\n"
    plugin, program = folder / "plugin.mjs", folder / "program.mjs"
    plugin.write_text("".join(lines))
    program.write_text(_PROGRAM.format(plugin=json.dumps(plugin.as_uri()), calls=calls))
    done = subprocess.run(
        [str(shutil.which("node")), program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout, [json.loads(line) for line in log.read_text().splitlines()]


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> Shell:
    return Shell(home, tmp_path / "kept")


def test_a_session_ends_when_another_begins_or_the_program_ends(
    shell: Shell, tmp_path: Path
) -> None:
    _, asked = run_plugin(
        shell,
        tmp_path,
        """
        await say("one", "hello");
        await tell("session.idle", { sessionID: "one" });
        await say("one", "and now?");
        await tell("session.idle", { sessionID: "one" });
        await tell("session.created", { info: { id: "sub", parentID: "one" } });
        await say("sub", "a task");
        await say("two", "something else");
        await plugin.dispose();
        """,
    )

    of_one = [each for each in asked if each[1] == "one"]
    of_two = [each for each in asked if each[1] == "two"]
    assert of_one == [
        ["session-start", "one", "startup"],
        ["prompt", "one", "hello"],
        ["prompt", "one", "and now?"],
        ["session-end", "one", None],
    ]
    assert of_two == [
        ["session-start", "two", "startup"],
        ["prompt", "two", "something else"],
        ["session-end", "two", None],
    ]
    assert len(asked) == len(of_one) + len(of_two)


def test_what_a_hook_returns_is_added_to_the_system_prompt(
    shell: Shell, tmp_path: Path
) -> None:
    printed, _ = run_plugin(
        shell,
        tmp_path,
        """
        await say("one", "hello");
        const system = ["You are an agent."];
        const transform = plugin["experimental.chat.system.transform"];
        await transform({ sessionID: "one" }, { system });
        await transform({ sessionID: "other" }, { system });
        console.log(JSON.stringify(system));
        """,
    )

    assert json.loads(printed) == [
        "You are an agent.",
        "session-start one startup",
        "prompt one hello",
    ]


def test_a_session_that_was_deleted_does_not_end(shell: Shell, tmp_path: Path) -> None:
    _, asked = run_plugin(
        shell,
        tmp_path,
        """
        await say("one", "hello");
        await tell("session.deleted", { info: { id: "one" } });
        await plugin.dispose();
        """,
    )

    assert asked == [["session-start", "one", "startup"], ["prompt", "one", "hello"]]
