"""The doctor finds what is wrong with an installation, and says what to do."""

import json
import re
from pathlib import Path

import pytest

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
            "Cursor": ("ok", "installed", ""),
            "MCP server": ("ok", "7 tools, in 0.0 s", ""),
            "hook": ("ok", "runs, in 0.0 s", ""),
            "history": ("note", "nothing was read yet", "backstory index"),
            "index": ("ok", "complete", ""),
            "embedder": ("ok", "auto", ""),
            "language model": (
                "note",
                "none: no daily logs are written",
                "backstory settings set llm.name MODEL",
            ),
        },
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
            f"our part of {shell.home / '.cursor/hooks.json'} is gone",
            "backstory install cursor",
        ),
        "Codex": (
            "problem",
            f"{shell.home / '.codex/hooks.json'}:1:2: expected a name in double quotes",
            "nothing was changed there; correct it, then run the command again",
        ),
        "Gemini CLI": (
            "problem",
            "installed by another version, or for another home",
            "backstory install gemini",
        ),
        "GitHub Copilot CLI": (
            "note",
            "here, but not installed in it",
            "backstory install copilot",
        ),
    }


def test_people_get_a_line_for_each_finding_and_its_fix(
    shell: Shell, tmp_path: Path
) -> None:
    done = shell.run("doctor", PATH=str(tmp_path))

    assert done.returncode == 0
    assert done.stdout.splitlines()[1:5] == [
        f"note     home            {shell.kept} is not there yet",
        "                         fix: backstory index",
        "note     agent programs  Backstory is not installed in any",
        "                         fix: backstory install",
    ]
