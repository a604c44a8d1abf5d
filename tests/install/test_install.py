"""Installing adds our parts to files of agent programs; uninstalling removes them."""

import json
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from backstory.install.hosts import HOST_ROWS
from backstory.text.jsonc import parse_jsonc
from tests.install.host_files import HOSTS, USER_FILES, everything, write_files
from tests.install.programs import install_claude, install_failing
from tests.ordinary_user import as_ordinary_user
from tests.shell import Done, Shell


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> Shell:
    # Every user has it, and it does not go with us.
    (home / ".config").mkdir()
    return Shell(home, tmp_path / "kept")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with Claude Code's command on it, and nothing else."""
    return install_claude(tmp_path / "bin")


def run(shell: Shell, path: str, *words: str) -> Done:
    return shell.run(*words, PATH=path)


def backstory(shell: Shell) -> list[str]:
    return [str(Path(sys.executable).with_name("backstory")), "--home", str(shell.kept)]


def hook(shell: Shell, event: str, host: str) -> str:
    script = Path(sys.executable).with_name("backstory-hook")
    return f"{script} {event} --host {host} --home {shell.kept}"


def claude_hooks(shell: Shell, host: str, *events: tuple[str, str, int]) -> object:
    return {
        name: [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": hook(shell, event, host),
                        "timeout": timeout,
                    }
                ]
            }
        ]
        for name, event, timeout in events
    }


def test_every_host_has_files_to_try() -> None:
    assert tuple(row.name for row in HOST_ROWS) == HOSTS


# -- what is written ---


def test_claude_code_is_given_a_server_by_its_own_command_and_hooks(
    shell: Shell, path: str
) -> None:
    done = run(shell, path, "install", "claude-code")

    command, *args = [*backstory(shell), "mcp", "--host", "claude-code"]
    entry = {"type": "stdio", "command": command, "args": args, "env": {}}
    state = json.loads((shell.home / ".claude.json").read_text())
    settings = json.loads((shell.home / ".claude/settings.json").read_text())
    assert (done.returncode, done.stderr) == (0, "")
    assert state == {
        "firstStartTime": "now",
        "mcpServers": {"backstory": {**entry, "alwaysLoad": True}},
    }
    assert settings == {
        "hooks": claude_hooks(
            shell,
            "claude-code",
            ("SessionStart", "session-start", 10),
            ("UserPromptSubmit", "prompt", 10),
            ("PreCompact", "before-compaction", 10),
            ("SessionEnd", "session-end", 10),
        )
    }


def test_codex_is_given_a_server_and_hooks(shell: Shell, path: str) -> None:
    write_files(shell.home, USER_FILES["usual"])

    done = run(shell, path, "install", "codex")

    before = USER_FILES["usual"][".codex/config.toml"].decode()
    command, *args = [*backstory(shell), "mcp", "--host", "codex"]
    assert (shell.home / ".codex/config.toml").read_text() == (
        f"{before}\n[mcp_servers.backstory]\n"
        f"command = {json.dumps(command)}\nargs = {json.dumps(args)}\n"
    )
    assert "Codex asks once whether to trust the hooks" in done.stdout
    hooks = json.loads((shell.home / ".codex/hooks.json").read_text())
    assert hooks["hooks"].pop("Stop") == [{"hooks": []}]
    assert hooks["hooks"] == claude_hooks(
        shell,
        "codex",
        ("SessionStart", "session-start", 10),
        ("UserPromptSubmit", "prompt", 10),
        ("PreCompact", "before-compaction", 10),
        ("SessionEnd", "session-end", 3),
    )


def test_gemini_is_given_both_in_one_file(shell: Shell, path: str) -> None:
    write_files(shell.home, USER_FILES["usual"])

    run(shell, path, "install", "gemini")

    command, *args = [*backstory(shell), "mcp", "--host", "gemini-cli"]
    text = (shell.home / ".gemini/settings.json").read_text()
    assert text.startswith('{\n\t// look\n\t"ui": {"theme": "GitHub"},\n\t"mcpServers"')
    assert parse_jsonc(text).value == {
        "ui": {"theme": "GitHub"},
        "mcpServers": {"backstory": {"command": command, "args": args}},
        "hooks": claude_hooks(
            shell,
            "gemini",
            ("SessionStart", "session-start", 10_000),
            ("BeforeAgent", "prompt", 10_000),
            ("PreCompress", "before-compaction", 10_000),
            ("SessionEnd", "session-end", 10_000),
        ),
    }


def test_copilot_is_given_a_server_and_a_file_of_hooks(shell: Shell, path: str) -> None:
    run(shell, path, "install", "copilot")

    command, *args = [*backstory(shell), "mcp", "--host", "copilot-cli"]
    entry = {"type": "local", "command": command, "args": args, "tools": ["*"]}
    servers = json.loads((shell.home / ".copilot/mcp-config.json").read_text())
    hooks = json.loads((shell.home / ".copilot/hooks/backstory.json").read_text())
    assert servers == {"mcpServers": {"backstory": entry}}
    assert hooks == {
        "hooks": claude_hooks(
            shell,
            "copilot",
            ("SessionStart", "session-start", 10),
            ("UserPromptSubmit", "prompt", 10),
            ("PreCompact", "before-compaction", 10),
            ("SessionEnd", "session-end", 10),
        )
    }


def test_opencode_is_given_a_server_and_a_plugin(shell: Shell, path: str) -> None:
    run(shell, path, "install", "opencode")

    folder = shell.home / ".config/opencode"
    command = [*backstory(shell), "mcp", "--host", "opencode"]
    settings = json.loads((folder / "opencode.json").read_text())
    plugin = (folder / "plugin/backstory.js").read_text()
    assert settings == {
        "$schema": "https://opencode.ai/config.json",
        "mcp": {"backstory": {"type": "local", "command": command, "enabled": True}},
    }
    script = Path(sys.executable).with_name("backstory-hook")
    assert f'const HOOK = ["{script}"];' in plugin
    assert f'const MORE = ["--home", "{shell.kept}"];' in plugin


def test_cursor_is_given_a_server_and_hooks(shell: Shell, path: str) -> None:
    run(shell, path, "install", "cursor")

    command, *args = [*backstory(shell), "mcp", "--host", "cursor"]
    servers = json.loads((shell.home / ".cursor/mcp.json").read_text())
    hooks = json.loads((shell.home / ".cursor/hooks.json").read_text())
    assert servers == {"mcpServers": {"backstory": {"command": command, "args": args}}}
    assert hooks == {
        "version": 1,
        "hooks": {
            name: [{"command": hook(shell, event, "cursor")}]
            for name, event in (
                ("sessionStart", "session-start"),
                ("beforeSubmitPrompt", "prompt"),
                ("preCompact", "before-compaction"),
                ("sessionEnd", "session-end"),
            )
        },
    }


def test_visual_studio_code_is_given_a_server(shell: Shell, path: str) -> None:
    run(shell, path, "install", "vscode")

    command, *args = [*backstory(shell), "mcp"]
    servers = json.loads((shell.home / ".config/Code/User/mcp.json").read_text())
    entry = {"type": "stdio", "command": command, "args": args}
    assert servers == {"servers": {"backstory": entry}}


def test_the_default_home_is_not_passed_on(shell: Shell, path: str) -> None:
    shell.run("install", "codex", PATH=path, BACKSTORY_HOME="")

    config = tomllib.loads((shell.home / ".codex/config.toml").read_text())
    assert config["mcp_servers"]["backstory"]["args"] == ["mcp", "--host", "codex"]


# -- there and back ---


@pytest.mark.parametrize("files", USER_FILES.values(), ids=USER_FILES)
@pytest.mark.parametrize("host", HOSTS)
def test_uninstalling_leaves_everything_as_it_was(
    shell: Shell, path: str, host: str, files: dict[str, bytes]
) -> None:
    # Without the command, Claude Code's state is edited as well.
    shutil.rmtree(path)
    write_files(shell.home, files)
    before = everything(shell.home)

    installed = run(shell, path, "install", host)
    during = everything(shell.home)
    removed = run(shell, path, "uninstall", host)

    assert (installed.returncode, removed.returncode) == (0, 0), installed.stdout
    assert during != before
    assert everything(shell.home) == before


@pytest.mark.parametrize("where", [(), ("--project",)], ids=["user", "project"])
@pytest.mark.parametrize("files", ["usual", "odd"])
def test_what_claude_codes_own_command_wrote_is_undone_to_the_byte(
    shell: Shell, path: str, files: str, where: Sequence[str]
) -> None:
    write_files(shell.home, USER_FILES[files])
    before = everything(shell.home)

    run(shell, path, "install", "claude-code", *where)
    during = everything(shell.home)
    run(shell, path, "uninstall", "claude-code", *where)

    assert during[".claude.json"] != before[".claude.json"]
    assert everything(shell.home) == before


@pytest.mark.parametrize(
    ("files", "has_program"),
    [
        ("usual", True),
        ("odd", True),
        ("usual", False),
        ("odd", False),
        ("nothing", False),
    ],
)
@pytest.mark.parametrize("order", ["user one two", "two one user", "one user two"])
def test_parts_of_projects_in_one_file_are_undone_in_any_order(
    shell: Shell, path: str, files: str, order: str, *, has_program: bool
) -> None:
    path = path if has_program else ""
    projects = [shell.home / "one", shell.home / "two"]
    for project in projects:
        project.mkdir()
    write_files(shell.home, USER_FILES[files])
    before = everything(shell.home)
    at = {each.name: Shell(shell.home, shell.kept, folder=each) for each in projects}

    def change(command: str, where: str) -> set[str]:
        inside, only = (at[where], ["--project"]) if where in at else (shell, [])
        run(inside, path, command, "claude-code", *only)
        file = shell.home / ".claude.json"
        state = json.loads(file.read_text()) if file.exists() else {}
        held = state.get("projects", {})
        own = {each.name: held.get(str(each), {}) for each in projects}
        return {
            name
            for name, holder in {"user": state, **own}.items()
            if "backstory" in holder.get("mcpServers", {})
        }

    installed = [change("install", where) for where in ("user", "one", "two", "user")]
    removed = [change("uninstall", where) for where in order.split()]

    _, second, third = order.split()
    everywhere = {"user", "one", "two"}
    assert installed == [{"user"}, {"user", "one"}, everywhere, everywhere]
    assert removed == [{second, third}, {third}, set()]
    assert everything(shell.home) == before


def test_the_state_that_claude_code_made_for_itself_stays(
    shell: Shell, path: str
) -> None:
    run(shell, path, "install", "claude-code")

    run(shell, path, "uninstall", "claude-code")

    state = json.loads((shell.home / ".claude.json").read_text())
    assert state == {"firstStartTime": "now"}


def test_what_claude_code_wrote_itself_in_between_stays(
    shell: Shell, path: str
) -> None:
    state = shell.home / ".claude.json"
    state.write_text('{"numStartups": 3}')
    run(shell, path, "install", "claude-code")
    state.write_text(state.read_text().replace(": 3", ": 4"))

    run(shell, path, "uninstall", "claude-code")

    assert json.loads(state.read_text()) == {"numStartups": 4}


@pytest.mark.parametrize("files", USER_FILES.values(), ids=USER_FILES)
def test_installing_twice_is_the_same_as_once(
    shell: Shell, path: str, files: dict[str, bytes]
) -> None:
    write_files(shell.home, files)
    run(shell, path, "install", *HOSTS)
    once = everything(shell.home)

    done = run(shell, path, "install", *HOSTS)

    assert done.stdout.count("  already installed\n") == len(HOSTS)
    assert everything(shell.home) == once


def test_what_the_user_has_set_in_our_parts_stays(shell: Shell, path: str) -> None:
    run(shell, path, "install", "claude-code", "codex", "gemini")
    codex = shell.home / ".codex/config.toml"
    with codex.open("a") as file:
        file.write("required = true\n")
    claude = shell.home / ".claude.json"
    state = json.loads(claude.read_text())
    state["mcpServers"]["backstory"]["env"]["LANG"] = "C"
    claude.write_text(json.dumps(state))
    gemini = shell.home / ".gemini/settings.json"
    settings = json.loads(gemini.read_text())
    settings["mcpServers"]["backstory"]["timeout"] = 5000
    settings["hooks"]["SessionStart"][0]["hooks"][0]["timeout"] = 3000
    gemini.write_text(json.dumps(settings))
    mine = everything(shell.home)

    done = run(shell, path, "install", "claude-code", "codex", "gemini")
    doctor = run(shell, path, "doctor", "--json")
    kept = everything(shell.home)

    assert done.stdout.count("  already installed\n") == 3
    assert kept == mine
    found = {
        each["about"]: each["text"] for each in json.loads(doctor.stdout)["findings"]
    }
    titles = ("Claude Code", "Codex", "Gemini CLI")
    assert [found[title] for title in titles] == ["connected"] * 3


def test_all_at_once_come_and_go_without_a_trace(shell: Shell, path: str) -> None:
    write_files(shell.home, USER_FILES["usual"])
    before = everything(shell.home)

    run(shell, path, "install", *HOSTS)
    done = run(shell, path, "uninstall")

    after = everything(shell.home)
    assert done.returncode == 0
    assert after == before


def test_another_home_replaces_the_first_and_goes_without_a_trace(
    shell: Shell, path: str, tmp_path: Path
) -> None:
    write_files(shell.home, USER_FILES["usual"])
    before = everything(shell.home)
    run(shell, path, "install", *HOSTS)

    other = run(shell, path, "--home", str(tmp_path / "other"), "install", *HOSTS)
    during = "".join(
        (content or b"").decode()
        for name, content in everything(shell.home).items()
        if "backups" not in name
    )
    run(shell, path, "uninstall")

    assert other.returncode == 0
    assert str(shell.kept) not in during
    after = everything(shell.home)
    assert after == before


def test_what_the_user_changed_in_between_stays(shell: Shell, path: str) -> None:
    write_files(shell.home, USER_FILES["usual"])
    changes = {
        ".claude/settings.json": (b'"opus"', b'"sonnet"'),
        ".codex/config.toml": (b'"trusted"\n', b'"trusted"\n\n[tui]\nok = true\n'),
        ".gemini/settings.json": (b'"GitHub"}', b'"Dracula"} /* ! */'),
        ".config/opencode/opencode.jsonc": (b"// mine", b"// still mine"),
        ".cursor/mcp.json": (b'"mcpServers"', b'"more": 1,\n    "mcpServers"'),
    }
    run(shell, path, "install", *HOSTS)
    expected = {}
    for name, (old, new) in changes.items():
        file = shell.home / name
        assert old in file.read_bytes()
        file.write_bytes(file.read_bytes().replace(old, new))
        expected[name] = USER_FILES["usual"][name].replace(old, new)

    done = run(shell, path, "uninstall")

    assert done.returncode == 0
    assert {name: (shell.home / name).read_bytes() for name in changes} == expected


def test_what_the_user_added_beside_our_parts_stays(shell: Shell, path: str) -> None:
    run(shell, path, "install", "codex", "cursor", "gemini")
    hooks = shell.home / ".codex/hooks.json"
    found = json.loads(hooks.read_text())
    found["hooks"]["SessionStart"][0]["hooks"].append({"command": "mine"})
    found["hooks"]["Stop"] = []
    hooks.write_text(json.dumps(found))
    config = shell.home / ".codex/config.toml"
    config.write_text(
        config.read_text() + "startup_timeout_sec = 9\n\n"
        "[mcp_servers.backstory.tools.search_history]\napproval_mode = 'approve'\n"
        "\n# mine\n[tui]\nok = true\n"
    )
    servers = shell.home / ".cursor/mcp.json"
    added = servers.read_text().replace('"mcpServers": {', '"mcpServers": {"x": {},')
    servers.write_text(added)
    (shell.home / ".gemini/settings.json").unlink()

    done = run(shell, path, "uninstall")

    assert done.returncode == 0
    assert json.loads(hooks.read_text()) == {
        "hooks": {"SessionStart": [{"hooks": [{"command": "mine"}]}], "Stop": []}
    }
    assert config.read_text() == "\n# mine\n[tui]\nok = true\n"
    assert json.loads(servers.read_text()) == {"mcpServers": {"x": {}}}
    assert not (shell.home / ".gemini").exists()


def test_our_parts_are_found_when_the_record_is_lost(shell: Shell, path: str) -> None:
    write_files(shell.home, USER_FILES["usual"])
    before = everything(shell.home)
    run(shell, path, "install", *HOSTS)
    shutil.rmtree(shell.home / ".config/backstory")

    done = run(shell, path, "uninstall")

    assert done.returncode == 0
    after = everything(shell.home)
    # Nobody can tell now which lists were there before, and empty.
    assert {name for name in before if after[name] != before[name]} == {
        ".claude.json",
        ".cursor/hooks.json",
        ".cursor/mcp.json",
        ".config/Code/User/mcp.json",
    }
    assert sorted(after.keys() - before.keys()) == [
        ".config/opencode/plugin",
        ".copilot/hooks",
    ]


def test_links_and_permissions_stay(shell: Shell, path: str, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o604)
    (shell.home / ".gemini").mkdir()
    link = shell.home / ".gemini/settings.json"
    link.symlink_to(real)

    run(shell, path, "install", "gemini")
    during = (
        link.is_symlink(),
        real.stat().st_mode & 0o777,
        "backstory" in (real.read_text()),
    )
    run(shell, path, "uninstall")

    assert during == (True, 0o604, True)
    assert (link.is_symlink(), real.read_text()) == (True, "{}")


def test_a_link_to_a_file_that_is_not_there_yet_stays(shell: Shell, path: str) -> None:
    target = shell.home / "dotfiles/gemini.json"
    target.parent.mkdir()
    link = shell.home / ".gemini/settings.json"
    link.parent.mkdir()
    link.symlink_to(target)

    run(shell, path, "install", "gemini")
    during = "backstory" in target.read_text()
    run(shell, path, "uninstall")

    assert during
    assert (link.is_symlink(), link.readlink(), target.exists()) == (
        True,
        target,
        False,
    )


def test_a_project_has_files_of_its_own(shell: Shell, path: str) -> None:
    project = shell.home / "project"
    project.mkdir()
    inside = Shell(shell.home, shell.kept, folder=project)

    installed = run(inside, path, "install", *HOSTS, "--project")
    during = everything(shell.home)
    removed = run(inside, path, "uninstall", "--project")

    assert (installed.returncode, removed.returncode) == (0, 0)
    # What is committed has no path of this machine, and needs the PATH.
    shared = {
        name: content
        for name, content in during.items()
        if name.startswith("project/") and "/.claude/" not in name and content
    }
    here = str(Path(sys.executable).parent).encode()
    assert [name for name, content in shared.items() if here in content] == []
    assert "'backstory' is not on your PATH" in installed.stdout
    assert sorted(name for name, content in during.items() if content is not None) == [
        ".claude.json",
        *sorted(
            name
            for name in during
            if name.startswith(".config/backstory") and "." in name.rpartition("/")[2]
        ),
        "project/.claude/settings.local.json",
        "project/.codex/config.toml",
        "project/.codex/hooks.json",
        "project/.cursor/hooks.json",
        "project/.cursor/mcp.json",
        "project/.gemini/settings.json",
        "project/.github/hooks/backstory.json",
        "project/.github/mcp.json",
        "project/.opencode/plugin/backstory.js",
        "project/.vscode/mcp.json",
        "project/opencode.json",
    ]
    assert list(project.iterdir()) == []


def test_uninstalling_names_the_folders_that_still_have_it(
    shell: Shell, path: str
) -> None:
    for name in ("one", "two"):
        (shell.home / name).mkdir()
        inside = Shell(shell.home, shell.kept, folder=shell.home / name)
        run(inside, path, "install", "codex", "opencode", "--project")
    run(shell, path, "install", "codex", "opencode")

    said = run(shell, path, "uninstall").stdout
    run(inside, path, "uninstall", "--project")
    again = run(shell, path, "uninstall").stdout

    told = "Some folders still have it; run 'backstory uninstall --project' in each:"
    assert said.endswith(f"{told}\n  ~/one\n  ~/two\n")
    assert again.endswith(f"in any agent program.\n{told}\n  ~/one\n")


# -- what cannot be done ---


@pytest.mark.parametrize(
    ("name", "content", "host", "reason"),
    [
        (
            ".gemini/settings.json",
            b'{\n  "ui": {\n  "mcpServers": {}\n}',
            "gemini",
            ":4:2: expected a comma or }",
        ),
        (".cursor/mcp.json", b"[]", "cursor", ":1:1: the file is not an object"),
        (
            ".cursor/mcp.json",
            b'{"mcpServers": []}',
            "cursor",
            ":1:16: 'mcpServers' is not an object",
        ),
        (
            ".claude/settings.json",
            b'{"hooks": {"SessionStart": {}}}',
            "claude-code",
            ":1:28: 'hooks.SessionStart' is not a list",
        ),
        (".copilot/mcp-config.json", b"{\n\xff}", "copilot", ":2: not valid UTF-8"),
        (
            ".codex/config.toml",
            b"[mcp_servers\n",
            "codex",
            ": not valid TOML (Expected ']' at the end of a table declaration "
            "(at line 1, column 13))",
        ),
        (
            ".codex/config.toml",
            b"mcp_servers = 1\n",
            "codex",
            ": 'mcp_servers' is not a table",
        ),
        (
            ".codex/config.toml",
            b"mcp_servers = {}\n",
            "codex",
            ": 'mcp_servers' is written in a way that cannot be added to",
        ),
        (
            ".codex/config.toml",
            b'x = 1\n[mcp_servers.backstory]\ncommand = "npx"\n',
            "codex",
            ":2: another server is called 'backstory'",
        ),
        (
            ".config/Code/User/mcp.json",
            b'{\n "servers": {\n  "backstory": {"command": "other"}}}',
            "vscode",
            ":3: another server is called 'backstory'",
        ),
        (
            ".config/opencode/plugin/backstory.js",
            b"export const x = 1;\n",
            "opencode",
            ": there is another file of this name",
        ),
    ],
)
def test_a_file_that_cannot_be_edited_is_named_and_nothing_changes(
    shell: Shell, path: str, name: str, content: bytes, host: str, reason: str
) -> None:
    write_files(shell.home, {name: content})
    before = everything(shell.home)

    done = run(shell, path, "install", host)

    said = done.stdout.splitlines()[1]
    assert (done.returncode, said) == (34, f"  error: {shell.home / name}{reason}")
    assert everything(shell.home) == before


def test_one_broken_file_does_not_keep_the_others_from_being_installed(
    shell: Shell, path: str
) -> None:
    write_files(shell.home, {".gemini/settings.json": b"{"})

    done = run(shell, path, "install", "gemini", "cursor")

    assert done.returncode == 3
    assert (shell.home / ".cursor/mcp.json").exists()
    assert "  created: ~/.cursor/mcp.json\n" in done.stdout


def test_a_read_only_file_is_left_alone(shell: Shell, path: str) -> None:
    write_files(shell.home, {".gemini/settings.json": b"{}"})
    (shell.home / ".gemini/settings.json").chmod(0o444)

    with as_ordinary_user():
        done = run(shell, path, "install", "gemini")

    file = shell.home / ".gemini/settings.json"
    assert done.returncode == 34
    assert done.stdout.splitlines()[1] == f"  error: {file}: Permission denied"
    assert file.read_bytes() == b"{}"


def test_what_the_program_answers_is_passed_on(shell: Shell, tmp_path: Path) -> None:
    path = install_failing(tmp_path / "bin", "claude", "managed by your organization")

    done = run(shell, path, "install", "claude-code")

    assert done.returncode == 34
    assert done.stdout.splitlines()[1] == (
        f"  error: {path}/claude mcp add-json -s user: managed by your organization"
    )
    assert not (shell.home / ".config/backstory").exists()


def test_an_unknown_program_is_refused_with_the_nearest_name(shell: Shell) -> None:
    done = shell.run("install", "cluade-code")

    assert (done.returncode, done.stderr) == (
        12,
        "backstory: Backstory cannot be installed in 'cluade-code'\n"
        "  hint: did you mean 'claude-code'?\n",
    )


# -- what is said ---


def test_names_and_all_of_them_are_not_both_meant(shell: Shell, path: str) -> None:
    done = run(shell, path, "install", "codex", "--all")

    assert done.returncode == 2
    assert "Name agent programs or use --all, not both." in done.stderr


def test_without_names_it_says_what_is_on_the_machine(shell: Shell, path: str) -> None:
    (shell.home / ".cursor").mkdir()

    done = run(shell, path, "install")

    assert done.returncode == 2
    assert done.stderr.endswith(
        "Error: On this machine: Claude Code, Cursor. Name those that you want "
        "(backstory install claude-code cursor), or use --all.\n"
    )


def test_on_a_terminal_it_asks_and_no_changes_nothing(shell: Shell, path: str) -> None:
    before = everything(shell.home)

    shown = shell.on_terminal("install", typed="n\n", PATH=path)

    assert shown.splitlines() == [
        "n",  # a terminal echoes what is typed before anybody asks
        "On this machine: Claude Code.",
        "Connect them to Backstory? [Y/n]: "
        "Nothing was changed. To connect only some of them, name those: "
        "backstory install claude-code",
    ]
    assert everything(shell.home) == before


def test_on_a_terminal_it_asks_for_the_model_once(shell: Shell, path: str) -> None:
    (shell.home / ".cursor").mkdir()

    first = shell.on_terminal("install", typed="y\nchatgpt\n\n", PATH=path)
    again = shell.on_terminal("install", typed="y\n", PATH=path)

    assert "'chatgpt' is not one of 'none', 'auto'" in first
    assert (first.count("Which one may do that?"), again.count("Which one")) == (2, 0)
    assert "already installed" in again
    assert (shell.home / ".cursor/mcp.json").exists()
    config = shell.home / ".config/backstory/config.toml"
    assert config.read_text() == '[llm]\nname = "none"\n'


def test_a_machine_without_agent_programs_is_told_so(
    shell: Shell, tmp_path: Path
) -> None:
    done = run(shell, str(tmp_path), "install", "--all")

    assert done.returncode == 11
    assert "no agent program that Backstory knows is on this machine" in done.stderr


def test_a_dry_run_shows_the_changes_and_makes_none(shell: Shell, path: str) -> None:
    write_files(shell.home, {".cursor/mcp.json": b'{\n  "mcpServers": {}\n}\n'})
    before = everything(shell.home)

    done = run(shell, path, "install", "cursor", "--dry-run")

    command, *args = [*backstory(shell), "mcp", "--host", "cursor"]
    assert done.stdout.splitlines()[:16] == [
        "Cursor",
        "  would change: ~/.cursor/mcp.json",
        "    @@ -1,3 +1,14 @@",
        "     {",
        '    -  "mcpServers": {}',
        '    +  "mcpServers": {',
        '    +    "backstory": {',
        f'    +      "command": "{command}",',
        '    +      "args": [',
        *(f'    +        "{word}",' for word in args[:-1]),
        f'    +        "{args[-1]}"',
        "    +      ]",
        "    +    }",
    ]
    assert done.stdout.endswith("\n\nThis was a dry run: nothing was changed.\n")
    assert everything(shell.home) == before
    assert not shell.kept.exists()


def test_what_was_done_is_printed_as_json(shell: Shell, path: str) -> None:
    write_files(shell.home, {".cursor/mcp.json": b"{}"})

    done = run(shell, path, "install", "cursor", "--json")

    made = json.loads(done.stdout)
    backup = made["hosts"][0]["changes"][0].pop("backup")
    assert Path(backup).read_bytes() == b"{}"
    assert made["hosts"] == [
        {
            "host": "cursor",
            "title": "Cursor",
            "changes": [
                {
                    "kind": "file",
                    "action": "change",
                    "path": str(shell.home / ".cursor/mcp.json"),
                },
                {
                    "kind": "file",
                    "action": "create",
                    "path": str(shell.home / ".cursor/hooks.json"),
                    "backup": None,
                },
            ],
            "dry_run": False,
            "error": None,
        }
    ]
    assert (made["approve"], made["read"]["new_sessions"]) == ([], 0)


def test_uninstalling_what_is_not_installed_says_so(shell: Shell, path: str) -> None:
    every = run(shell, path, "uninstall")
    one = run(shell, path, "uninstall", "codex")

    assert every.stdout == "Backstory is not installed in any agent program.\n"
    assert one.stdout.startswith("Codex\n  not installed\n")


# -- the language model ---


def test_the_model_and_its_budget_are_set_by_options(shell: Shell, path: str) -> None:
    words = ("--logs", "ollama", "--daily-tokens", "9000")

    done = run(shell, path, "install", "cursor", *words)

    config = shell.home / ".config/backstory/config.toml"
    assert done.returncode == 0
    assert tomllib.loads(config.read_text()) == {
        "llm": {"name": "ollama", "daily_tokens": 9000}
    }


@pytest.mark.parametrize(
    ("model", "left"),
    [
        (
            "codex",
            [
                "No daily logs can be written yet: the program 'codex' is not on the "
                "PATH; install it, or set llm.name to another model."
            ],
        ),
        ("none", []),
    ],
)
def test_a_model_that_is_not_there_is_left_to_do(
    shell: Shell, path: str, model: str, left: list[str]
) -> None:
    done = run(shell, path, "install", "cursor", "--json", "--logs", model)

    assert json.loads(done.stdout)["approve"] == left


def test_without_a_terminal_no_model_is_chosen(shell: Shell, path: str) -> None:
    run(shell, path, "install", "cursor")

    assert not (shell.home / ".config/backstory/config.toml").exists()
