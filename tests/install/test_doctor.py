"""The doctor finds what is wrong with an installation, and says what to do."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backstory.install.apply import Installation
from backstory.install.commands import StartCommands
from backstory.install.doctor import Mark, examine
from backstory.install.hosts import get_host_row
from backstory.install.hosts.base import Target
from backstory.install.record import InstallRecord
from backstory.memory import Memory
from backstory.settings import read_settings
from backstory.system.machine import Machine
from tests.builders import a_line, append, session_file
from tests.install.host_files import write_files
from tests.shell import Shell


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> Shell:
    return Shell(home, tmp_path / "kept")


def findings(shell: Shell, path: Path) -> tuple[int, dict[str, tuple[str, str, str]]]:
    done = shell.run("doctor", "--json", PATH=str(path))
    found = json.loads(done.stdout)["findings"]
    return done.returncode, {
        each["about"]: (
            each["mark"],
            re.sub(r"\d+\.\d+ s", "0.0 s", each["text"]),
            each["fix"],
        )
        for each in found
        if each["about"] != "version"
    }


def test_a_working_installation_is_well(shell: Shell, tmp_path: Path) -> None:
    shell.run("install", "cursor", PATH=str(tmp_path))

    code, found = findings(shell, tmp_path)

    assert (code, found) == (
        0,
        {
            "home": ("ok", f"{shell.kept}, only for you", ""),
            "Cursor": ("ok", "connected", ""),
            "MCP server": ("ok", "7 tools, in 0.0 s", ""),
            "hook": ("ok", "runs, in 0.0 s", ""),
            "history": ("note", "nothing was read yet", "backstory index"),
            "index": ("ok", "complete", ""),
            "embedder": ("ok", "auto works, in 0.0 s", ""),
            "language model": (
                "note",
                "none: no daily logs are written",
                "backstory settings set llm.name claude (or another)",
            ),
        },
    )


def test_files_that_were_not_read_yet_are_told(shell: Shell, tmp_path: Path) -> None:
    file = session_file(shell.home)
    append(file, a_line("the ferry to Rousay", uuid="1"))
    shell.run("index")
    _, before = findings(shell, tmp_path)

    append(file, a_line("leaves at 9:40", uuid="2"))
    code, after = findings(shell, tmp_path)

    assert "agents' files" not in before
    assert before["history"] == ("ok", "1 session, 1 message", "")
    assert (code, after["agents' files"]) == (
        0,
        ("note", "changed since they were read: 1 of Claude Code", "backstory index"),
    )


def test_what_is_missing_broken_or_open_to_others_is_found(
    shell: Shell, tmp_path: Path
) -> None:
    shell.run("install", "cursor", "codex", "gemini", PATH=str(tmp_path))
    (shell.home / ".cursor/hooks.json").unlink()
    (shell.home / ".codex/hooks.json").write_text("{")
    config = shell.home / ".gemini/settings.json"
    config.write_text(config.read_text().replace(str(shell.kept), "/elsewhere"))
    write_files(shell.home, {".copilot/config.json": b"{}"})
    (shell.kept / "history.db").chmod(0o644)

    code, found = findings(shell, tmp_path)

    assert code == 3
    about = ("permissions", "Cursor", "Codex", "Gemini CLI", "GitHub Copilot CLI")
    assert {name: found[name] for name in about} == {
        "permissions": (
            "problem",
            f"others may read {shell.kept / 'history.db'}",
            f"chmod -R go= {shell.kept}",
        ),
        "Cursor": (
            "problem",
            "our part of ~/.cursor/hooks.json is missing",
            "backstory install cursor",
        ),
        "Codex": (
            "problem",
            f"{shell.home / '.codex/hooks.json'}:1:2: expected a name in double quotes",
            "correct it there, then: backstory install codex",
        ),
        "Gemini CLI": (
            "problem",
            "connected by another version, or for another home",
            "backstory install gemini",
        ),
        "GitHub Copilot CLI": (
            "note",
            "on this machine, but not connected",
            "backstory install copilot",
        ),
    }


def test_what_is_installed_in_the_current_folder_is_found_there(
    shell: Shell, tmp_path: Path
) -> None:
    project = shell.home / "project"
    project.mkdir()
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("backstory", "backstory-hook"):
        (programs / name).symlink_to(Path(sys.executable).with_name(name))
    inside = Shell(shell.home, shell.kept, folder=project)
    inside.run("install", "cursor", "gemini", "--project", PATH=str(programs))
    (project / ".gemini/settings.json").write_text('{"hooks": {}}')
    (project / ".cursor/hooks.json").unlink()

    _, elsewhere = findings(shell, programs)
    _, broken = findings(inside, programs)
    inside.run("install", "cursor", "--project", PATH=str(programs))
    _, mended = findings(inside, programs)

    assert "Cursor" not in elsewhere
    assert broken["Cursor"] == (
        "problem",
        "our part of ~/project/.cursor/hooks.json is missing, in this folder only",
        "backstory install cursor --project",
    )
    assert mended["Cursor"][:2] == ("ok", "connected, in this folder only")
    assert mended["hook"] == ("ok", "runs, in 0.0 s", "")
    assert "Gemini CLI" not in mended


def test_people_get_a_line_for_each_finding_and_its_fix(
    shell: Shell, tmp_path: Path
) -> None:
    done = shell.run("doctor", PATH=str(tmp_path))

    assert done.returncode == 0
    assert done.stdout.splitlines()[1:5] == [
        f"note     home            {shell.kept} is not there yet",
        "                         fix: backstory index",
        "note     agent programs  none that Backstory knows is on this machine",
        "note     history         nothing was read yet",
    ]


def test_an_embedder_that_does_not_answer_is_a_problem(
    shell: Shell, tmp_path: Path
) -> None:
    done = shell.run(
        "doctor",
        "--json",
        PATH=str(tmp_path),
        BACKSTORY_EMBEDDER_NAME="ollama",
        BACKSTORY_EMBEDDER_URL="http://127.0.0.1:1",  # nothing listens there
    )

    (found,) = [
        each
        for each in json.loads(done.stdout)["findings"]
        if each["about"] == "embedder"
    ]
    assert (done.returncode, found["mark"]) == (3, "problem")
    assert found["text"] == (
        "ollama does not work: the embedder 'ollama' at 127.0.0.1:1 cannot be reached"
    )


LLM_CASES = {
    "a program that is not there": (
        {"LLM_NAME": "claude"},
        "problem",
        "no daily logs: the program 'claude' is not on the PATH",
        "install it, or set llm.name to another model",
    ),
    "a server that is not running": (
        {"LLM_NAME": "ollama", "LLM_URL": "http://127.0.0.1:1"},
        "problem",
        "no daily logs: the language model 'ollama' at 127.0.0.1:1 cannot be reached",
        "start Ollama, or set llm.url to where it runs",
    ),
    "a provider without a key": (
        {"LLM_NAME": "anthropic"},
        "problem",
        "no daily logs: the language model 'anthropic' needs a key for "
        "api.anthropic.com",
        "set llm.key, or llm.url to a server that needs none",
    ),
    "nothing that is set up": (
        {"LLM_NAME": "auto"},
        "note",
        "none: no daily logs are written",
        "backstory settings set llm.name claude (or another)",
    ),
    "a server that may have it": (
        {"LLM_NAME": "openai", "LLM_URL": "http://127.0.0.1:1", "LLM_MODEL": "m"},
        "ok",
        "openai m, not asked anything",
        "",
    ),
}


@pytest.mark.parametrize(
    ("variables", "mark", "text", "fix"), LLM_CASES.values(), ids=LLM_CASES
)
def test_it_says_whether_the_language_model_is_there(
    shell: Shell,
    tmp_path: Path,
    variables: dict[str, str],
    mark: str,
    text: str,
    fix: str,
) -> None:
    chosen = {f"BACKSTORY_{name}": value for name, value in variables.items()}

    done = shell.run("doctor", "--json", PATH=str(tmp_path), **chosen)

    (found,) = [
        each
        for each in json.loads(done.stdout)["findings"]
        if each["about"] == "language model"
    ]
    assert (found["mark"], found["text"], found["fix"]) == (mark, text, fix)


SWITCHES = {
    "claude-code": (
        ".claude/settings.json",
        lambda text: text.replace("{", '{"disableAllHooks": true,', 1),
        "its hooks are switched off by 'disableAllHooks' in ~/.claude/settings.json",
        "set 'disableAllHooks' to false there",
    ),
    "codex": (
        ".codex/config.toml",
        lambda text: f"[features]\nhooks = false\n{text}",
        "its hooks are switched off by 'features.hooks' in ~/.codex/config.toml",
        "set 'features.hooks' to true there",
    ),
    "codex, server": (
        ".codex/config.toml",
        lambda text: f"{text}enabled = false\n",
        "our server is switched off by 'mcp_servers.backstory.enabled' in "
        "~/.codex/config.toml",
        "set 'mcp_servers.backstory.enabled' to true there",
    ),
    "gemini": (
        ".gemini/settings.json",
        lambda text: text.replace("{", '{"hooksConfig": {"enabled": false},', 1),
        "its hooks are switched off by 'hooksConfig.enabled' in "
        "~/.gemini/settings.json",
        "set 'hooksConfig.enabled' to true there",
    ),
    "opencode": (
        ".config/opencode/opencode.json",
        lambda text: text.replace('"enabled": true', '"enabled": false'),
        "our server is switched off by 'mcp.backstory.enabled' in "
        "~/.config/opencode/opencode.json",
        "set 'mcp.backstory.enabled' to true there",
    ),
}


@pytest.mark.parametrize(
    ("name", "file", "switch_off", "text", "fix"),
    [(name.partition(",")[0], *case) for name, case in SWITCHES.items()],
    ids=SWITCHES,
)
def test_what_a_user_has_switched_off_in_a_program_is_a_problem(
    shell: Shell,
    tmp_path: Path,
    name: str,
    file: str,
    switch_off: Callable[[str], str],
    text: str,
    fix: str,
) -> None:
    row = get_host_row(name)
    shell.run("install", name, PATH=str(tmp_path))
    _, before = findings(shell, tmp_path)
    path = shell.home / file
    path.write_text(switch_off(path.read_text()))

    code, after = findings(shell, tmp_path)

    assert before[row.title] == ("ok", "connected", "")
    assert (code, after[row.title]) == (3, ("problem", f"connected, but {text}", fix))


def test_hooks_that_codex_was_not_told_to_trust_are_noted(
    shell: Shell, tmp_path: Path
) -> None:
    shell.run("install", "codex", PATH=str(tmp_path))
    codex = shell.home / ".codex"

    _, before = findings(shell, tmp_path)
    with (codex / "config.toml").open("a") as file:
        for event in ("session_start", "user_prompt_submit", "pre_compact"):
            file.write(f'[hooks.state."{codex}/hooks.json:{event}:0:0"]\n')
            file.write('trusted_hash = "sha256:0"\n')
    _, meanwhile = findings(shell, tmp_path)
    with (codex / "config.toml").open("a") as file:
        file.write(f'[hooks.state."{codex}/hooks.json:session_end:0:0"]\n')
    _, after = findings(shell, tmp_path)

    expected = (
        "note",
        "not run before you have approved them there",
        "start codex, and choose to trust them",
    )
    assert before["Codex"] == after["Codex"] == ("ok", "connected", "")
    assert (before["Codex hooks"], meanwhile["Codex hooks"]) == (expected, expected)
    assert "Codex hooks" not in after


def test_a_memory_that_is_no_text_is_a_problem(shell: Shell, tmp_path: Path) -> None:
    shell.run("index")
    memory = shell.kept / "memory/MEMORY.md"
    memory.parent.mkdir(mode=0o700, exist_ok=True)
    memory.write_bytes(b"\xff\xfe")

    code, found = findings(shell, tmp_path)

    assert (code, found["MEMORY.md"]) == (
        3,
        (
            "problem",
            f"{memory}: byte 0 is not UTF-8",
            "save the file as UTF-8 in your editor; nothing was changed",
        ),
    )


def test_a_home_that_is_a_file_is_a_problem(shell: Shell, tmp_path: Path) -> None:
    variables = {"PATH": str(tmp_path), "BACKSTORY_HOME": ""}
    kept = shell.home / ".local/share/backstory"
    shell.run("install", "cursor", **variables)
    shutil.rmtree(kept)
    kept.write_text("")

    done = shell.run("doctor", "--json", **variables)

    found = {each["about"]: each for each in json.loads(done.stdout)["findings"]}
    assert found["home"] == {
        "mark": "problem",
        "about": "home",
        "text": "~/.local/share/backstory is not a folder",
        "fix": "move it away, then: backstory index",
    }
    assert found["MCP server"]["text"] == (
        f"it does not list its tools (backstory: {kept}: File exists)"
    )


def test_a_hook_that_fails_in_silence_is_a_problem(
    shell: Shell, tmp_path: Path
) -> None:
    shell.run("install", "cursor", PATH=str(tmp_path))
    (shell.kept / "history.db").write_bytes(b"no database" * 1000)

    code, found = findings(shell, tmp_path)

    mark, text, _ = found["hook"]
    assert (code, mark) == (3, "problem")
    assert text.startswith("it fails (")
    assert f"NotADBError: {shell.kept / 'history.db'}: " in text


def a_program(path: Path, script: str) -> tuple[str]:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return (str(path),)


SERVER_CASES = {
    "says nothing and stays": "exec /bin/sleep 600",
    "says something else and stays": "echo '{}'; exec /bin/sleep 600",
    "answers and stays": """echo '{"id": 2}'; exec /bin/sleep 600""",
}


@pytest.mark.parametrize("script", SERVER_CASES.values(), ids=SERVER_CASES)
def test_a_server_that_hangs_is_not_waited_for(
    tmp_path: Path, home: Path, script: str
) -> None:
    commands = StartCommands(
        a_program(tmp_path / "backstory", script),
        a_program(tmp_path / "backstory-hook", script),
    )
    machine = Machine("linux", home, {}, home)
    target = Target(machine, commands)
    installation = Installation(InstallRecord(tmp_path / "ours"), {}, is_dry_run=False)
    installation.install(get_host_row("cursor").plan(target))
    settings = read_settings(environ={}, flags=("embedder.name=none",))

    with Memory(tmp_path / "kept", settings, machine) as memory:
        found = {
            each.about: (each.mark, each.text, each.fix)
            for each in examine(
                target, memory.home, lambda: memory, user_home=home, timeout_s=0.2
            )
        }

    assert found["Cursor"] == (Mark.OK, "connected", "")
    assert found["MCP server"] == (
        Mark.PROBLEM,
        "it does not answer and end within 0.2 s",
        f"{tmp_path}/backstory mcp --host cursor",
    )
    mark, text, _ = found["hook"]
    assert (mark, text[:16]) == (Mark.PROBLEM, "it does not run ")


PUBLISHED = Path(__file__).parents[2] / "integrations"
PLUGIN_FILES = {
    ".claude/settings.json": b'{"enabledPlugins": {"backstory@backstory": true}}',
    ".codex/config.toml": b'[plugins."backstory@mine"]\nenabled = true\n',
    ".copilot/settings.json": b'{"enabledPlugins": {"backstory@backstory": false}}',
}


def test_what_a_plugin_manager_or_a_person_installed_is_run_as_they_start_us(
    shell: Shell, tmp_path: Path
) -> None:
    write_files(shell.home, PLUGIN_FILES)
    config = shell.home / ".config/opencode"
    entry = re.findall(
        r"```json\n(.*?)```", (PUBLISHED / "README.md").read_text(), re.S
    )
    write_files(
        config,
        {
            "opencode.json": entry[0].encode(),
            "plugin/backstory.js": (PUBLISHED / "opencode/backstory.js").read_bytes(),
        },
    )
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("backstory", "backstory-hook"):
        ours = Path(sys.executable).with_name(name)
        a_program(programs / name, f'exec "{ours}" "$@"')

    code, found = findings(shell, programs)

    about = {"home", "history", "index", "embedder", "language model"}
    assert {name: found[name][:2] for name in found.keys() - about} == {
        "Claude Code": ("ok", "connected by a plugin"),
        "Codex": ("ok", "connected by a plugin"),
        "GitHub Copilot CLI": ("note", "on this machine, but not connected"),
        "opencode": ("ok", "connected by name"),
        "MCP server": ("ok", "7 tools, in 0.0 s"),
        "hook": ("ok", "runs, in 0.0 s"),
    }
    assert code == 0


def test_a_plugin_that_cannot_start_us_or_is_one_too_many_is_a_problem(
    shell: Shell, tmp_path: Path
) -> None:
    write_files(shell.home, PLUGIN_FILES)

    done = shell.run("install", "codex", PATH=str(tmp_path))
    code, found = findings(shell, tmp_path)

    assert (
        "  Codex has our plugin as well, so memories are given twice; "
        "remove it with: codex plugin remove backstory@mine" in done.stdout.splitlines()
    )
    bin_folder = Path(sys.executable).parent
    assert (code, found["Claude Code"], found["Codex"]) == (
        3,
        (
            "problem",
            "connected by a plugin, but 'backstory' is not on your PATH",
            f"add {bin_folder} to your PATH",
        ),
        (
            "problem",
            "connected twice, also by a plugin: memories are given twice",
            "backstory uninstall codex",
        ),
    )
