"""The plugins for marketplaces are whole, and hold nothing of anybody's machine."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from backstory import __version__
from backstory.install.commands import (
    BEFORE_COMPACTION,
    PROMPT,
    SESSION_END,
    SESSION_START,
)
from backstory.install.hosts.opencode import read_plugin
from backstory.tools import ALL_TOOLS

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "integrations"
PLUGIN = FOLDER / "plugins/backstory"


def read_json(path: Path) -> object:
    return json.loads(path.read_text())


def test_the_marketplace_leads_to_a_plugin_of_this_version() -> None:
    market = json.loads((FOLDER / ".claude-plugin/marketplace.json").read_text())
    plugin = json.loads((PLUGIN / ".claude-plugin/plugin.json").read_text())

    (listed,) = market["plugins"]
    assert (FOLDER / listed["source"]).resolve() == PLUGIN
    assert (listed["name"], plugin["name"]) == ("backstory", "backstory")
    assert plugin["version"] == __version__


def test_the_plugin_starts_what_the_package_installs() -> None:
    servers = read_json(PLUGIN / ".mcp.json")
    hooks = json.loads((PLUGIN / "hooks/hooks.json").read_text())["hooks"]

    run = 'sh "${CLAUDE_PLUGIN_ROOT}/hooks/run.sh"'
    commands = {name: each[0]["hooks"][0]["command"] for name, each in hooks.items()}
    # Claude Code hides tools behind a search for them without "alwaysLoad".
    entry = {"command": "backstory", "args": ["mcp"], "alwaysLoad": True}
    assert servers == {"mcpServers": {"backstory": entry}}
    assert commands == {
        "SessionStart": f"{run} {SESSION_START}",
        "UserPromptSubmit": f"{run} {PROMPT}",
        "PreCompact": f"{run} {BEFORE_COMPACTION}",
        "SessionEnd": f"{run} {SESSION_END}",
    }


@pytest.mark.parametrize(
    ("variables", "host"),
    [
        ({"CLAUDE_PLUGIN_ROOT": "/p"}, "claude-code"),
        ({"CLAUDE_PLUGIN_ROOT": "/p", "PLUGIN_ROOT": "/p"}, "codex"),
        ({"PLUGIN_ROOT": "/p", "COPILOT_PLUGIN_ROOT": "/p"}, "copilot"),
    ],
)
def test_the_hook_knows_whose_it_is(
    tmp_path: Path, variables: dict[str, str], host: str
) -> None:
    program = tmp_path / "backstory-hook"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)

    done = run_hook({**variables, "PATH": f"{tmp_path}:{os.environ['PATH']}"})

    assert (done.returncode, done.stdout) == (0, f"prompt --host {host}\n")


def test_the_hook_is_silent_where_the_package_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")

    done = run_hook({"PATH": str(tmp_path)})

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def run_hook(environ: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["/bin/sh", str(PLUGIN / "hooks/run.sh"), "prompt"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_skill_names_tools_that_exist() -> None:
    skill = (PLUGIN / "skills/recall/SKILL.md").read_text()

    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", skill)) - {"date_from", "date_to"}
    assert named
    assert named <= {row.name for row in ALL_TOOLS}


def test_the_plugin_of_opencode_is_the_one_that_is_installed() -> None:
    assert (FOLDER / "opencode/backstory.js").read_text() == read_plugin()


def test_no_plugin_holds_a_path_of_a_machine() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file()]

    found = [
        (path.name, match)
        for path in files
        for match in re.findall(
            r"/(?:home|Users|tmp|root|work|usr)/\S*", path.read_text()
        )
    ]

    assert found == []
