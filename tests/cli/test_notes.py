"""memory and logs through the front door: whole output."""

import json
from pathlib import Path

import pytest

from tests.shell import Done, Shell


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> Shell:
    return Shell(home, tmp_path / "kept")


@pytest.fixture
def used(shell: Shell) -> Shell:
    """The shell of somebody who has noted a few things."""
    write(
        shell, "MEMORY.md", "# Long-term Memory\n\n## Pets\n- Hasi\n- Mimi\n\x1b[2J\n"
    )
    write(
        shell,
        "daily/2026-02-27.md",
        "# Daily Log - 2026-02-27\n\n<!-- backstory: m1 -->\n## Atlas\n- did x\n",
    )
    write(shell, "daily/2026-02-28.md", "- went home\n")
    return shell


def write(shell: Shell, name: str, text: str) -> Path:
    path = shell.kept / "memory" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def failed(done: Done) -> tuple[int, list[str]]:
    return done.returncode, done.stderr.splitlines()


# -- memory ---------------------------------------------------------------------------


def test_figures_of_the_notes(used: Shell) -> None:
    assert used.out("memory").splitlines() == [
        f"Folder      {used.kept}/memory",
        "Notes       3 files, 125 B",
        "Daily logs  2, 2026-02-27 to 2026-02-28",
        "MEMORY.md   2 facts in 6 lines",
        "            2  Pets",
    ]
    assert json.loads(used.out("memory", "--json")) == {
        "folder": f"{used.kept}/memory",
        "files": 3,
        "size_bytes": 125,
        "logs": 2,
        "first_day": "2026-02-27",
        "last_day": "2026-02-28",
        "memory_lines": 6,
        "max_given_lines": 200,
        "facts": {"Pets": 2},
    }


def test_a_memory_that_is_too_long_to_be_given_is_said_so(shell: Shell) -> None:
    write(shell, "MEMORY.md", "- a\n" * 201)

    assert shell.out("memory").splitlines()[-2:] == [
        "            201  (no topic)",
        "Only the first 200 lines are given to agents; shorten it with "
        "'backstory memory edit'.",
    ]


def test_the_memory_is_shown_safe_to_print_and_verbatim_as_json(used: Shell) -> None:
    assert used.out("memory", "show") == (
        "│ # Long-term Memory\n│\n│ ## Pets\n│ - Hasi\n│ - Mimi\n│ ␛[2J\n"
    )
    assert json.loads(used.out("memory", "show", "--json")) == {
        "path": f"{used.kept}/memory/MEMORY.md",
        "text": "# Long-term Memory\n\n## Pets\n- Hasi\n- Mimi\n\x1b[2J\n",
        "facts": [
            {"topic": "Pets", "text": "Hasi", "line": 4, "origins": []},
            {"topic": "Pets", "text": "Mimi\n\x1b[2J", "line": 5, "origins": []},
        ],
    }


def test_an_empty_memory_says_how_to_fill_it(shell: Shell) -> None:
    assert shell.out("memory", "show") == (
        "MEMORY.md is empty; 'backstory memory add' adds a fact.\n"
    )
    assert shell.out("memory").splitlines()[1:] == [
        "Notes       0 files, 0 B",
        "Daily logs  none",
        "MEMORY.md   0 facts in 0 lines",
    ]
    assert not shell.kept.exists()


def test_a_fact_is_added_once(shell: Shell) -> None:
    first = shell.out("memory", "add", "likes", "tea", "--topic", "Preferences")
    second = shell.out("memory", "add", "Likes tea.")

    assert first == "Saved: likes tea\n"
    assert second == "MEMORY.md already says: likes tea\n"
    assert shell.out("memory", "show") == (
        "│ # Long-term Memory\n│\n│ ## Preferences\n│ - likes tea\n"
    )


def test_a_fact_may_be_typed_as_it_is_listed(shell: Shell) -> None:
    added = shell.out("memory", "add", "- likes tea")
    gone = shell.out("memory", "forget", "- likes tea")

    assert (added, gone) == ("Saved: likes tea\n", "Forgotten: likes tea\n")


def test_a_person_may_keep_a_secret(shell: Shell) -> None:
    shell.out("memory", "add", "password = hunter2x")

    assert "hunter2x" in shell.out("memory", "show")


def test_a_fact_is_forgotten_by_words_that_only_it_has(used: Shell) -> None:
    assert used.out("memory", "forget", "Hasi") == "Forgotten: Hasi\n"
    assert failed(used.run("memory", "forget", "Hasi")) == (
        32,
        [
            "backstory: MEMORY.md does not say 'Hasi'",
            "  hint: run 'backstory memory show' to see how it is worded",
        ],
    )


def test_what_fits_several_facts_is_refused(used: Shell) -> None:
    write(used, "MEMORY.md", "- tea at one\n- tea at two\n")

    assert failed(used.run("memory", "forget", "tea")) == (
        33,
        [
            "backstory: 'tea' matches 2 places in MEMORY.md",
            "  hint: give more of it; the matches are: 'tea at one', 'tea at two'",
        ],
    )


def test_an_empty_fact_is_refused(used: Shell) -> None:
    done = used.run("memory", "add", " ")

    assert failed(done) == (
        14,
        ["backstory: the fact is empty"],
    )


def test_notes_can_be_read_whatever_the_databases_are_like(used: Shell) -> None:
    (used.kept / "history.db").write_bytes(b"no database" * 100)

    assert used.run("memory", "show").returncode == 0
    assert used.run("logs").returncode == 0


# -- editing --------------------------------------------------------------------------


def an_editor(shell: Shell, script: str) -> str:
    """An editor that does what a script says to the file ``$1``."""
    path = shell.home / "editor with space.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return f"'{path}' "


def in_memory_folder(shell: Shell) -> list[str]:
    return sorted(path.name for path in (shell.kept / "memory").iterdir())


def test_an_editor_changes_the_memory_and_the_old_one_is_kept(used: Shell) -> None:
    editor = an_editor(used, 'sed -i s/Hasi/Klopfer/ "$1"')

    done = used.run("memory", "edit", EDITOR=editor)

    assert (done.returncode, done.stdout) == (0, "Saved.\n")
    assert "- Klopfer\n" in used.out("memory", "show")
    assert in_memory_folder(used) == ["MEMORY.md", "backups", "daily"]
    (backup,) = (used.kept / "memory" / "backups").iterdir()
    assert "- Hasi\n" in backup.read_text()


def test_visual_goes_before_editor_and_a_new_memory_has_a_title(shell: Shell) -> None:
    editor = an_editor(shell, 'echo "- new" >> "$1"')

    done = shell.run("memory", "edit", VISUAL=editor, EDITOR="false")

    assert done.returncode == 0
    assert shell.out("memory", "show") == "│ # Long-term Memory\n│ - new\n"


def test_an_editor_that_changes_nothing_leaves_nothing(used: Shell) -> None:
    done = used.run("memory", "edit", EDITOR="true")

    assert (done.returncode, done.stdout) == (0, "Nothing was changed.\n")
    assert in_memory_folder(used) == ["MEMORY.md", "daily"]


def test_a_text_is_kept_when_the_memory_was_changed_meanwhile(used: Shell) -> None:
    theirs = used.kept / "memory" / "MEMORY.md"
    editor = an_editor(used, f'echo mine > "$1"; echo theirs > "{theirs}"')

    done = used.run("memory", "edit", EDITOR=editor)

    mine = theirs.with_name("MEMORY-edited-1.md")
    assert failed(done) == (
        31,
        [
            f"backstory: {theirs} was changed by someone else in the meantime",
            f"  hint: your text is in {mine}; compare the two, then edit again",
        ],
    )
    assert (mine.read_text(), theirs.read_text()) == ("mine\n", "theirs\n")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('echo mine > "$1"; exit 3', "the editor '{editor}' exited with code 3"),
        ("printf 'mine\\377' > \"$1\"", "{mine}: byte 4 is not UTF-8"),
    ],
    ids=["the editor fails", "not UTF-8"],
)
def test_a_text_that_cannot_be_taken_is_kept(
    used: Shell, script: str, reason: str
) -> None:
    editor = an_editor(used, script)

    done = used.run("memory", "edit", EDITOR=editor)

    mine = used.kept / "memory" / "MEMORY-edited-1.md"
    said = reason.format(editor=editor.strip(" '"), mine=mine)
    assert failed(done) == (
        30,
        [f"backstory: {said}", f"  hint: your text is in {mine}"],
    )
    assert mine.read_bytes().startswith(b"mine")
    assert "- Hasi\n" in used.out("memory", "show")


def test_an_editor_that_is_not_there_is_said_so(used: Shell) -> None:
    assert failed(used.run("memory", "edit", EDITOR="no-such-editor")) == (
        12,
        [
            "backstory: the editor 'no-such-editor' cannot be started "
            "(No such file or directory)",
            "  hint: set $EDITOR to the name of an installed editor",
        ],
    )
    assert in_memory_folder(used) == ["MEMORY.md", "daily"]


# -- logs -----------------------------------------------------------------------------


def test_logs_are_listed_with_the_newest_last(used: Shell) -> None:
    assert used.out("logs").splitlines() == [
        "DAY         SIZE  ABOUT",
        "2026-02-27  66 B  Atlas",
        "2026-02-28  12 B  went home",
    ]
    assert json.loads(used.out("logs", "--json")) == [
        {
            "day": "2026-02-27",
            "path": f"{used.kept}/memory/daily/2026-02-27.md",
            "size_bytes": 66,
            "about": "Atlas",
            "problem": None,
        },
        {
            "day": "2026-02-28",
            "path": f"{used.kept}/memory/daily/2026-02-28.md",
            "size_bytes": 12,
            "about": "went home",
            "problem": None,
        },
    ]


def test_a_log_is_shown_as_people_see_it(used: Shell) -> None:
    assert used.out("logs", "2026-02-27") == (
        "│ # Daily Log - 2026-02-27\n│\n│ ## Atlas\n│ - did x\n"
    )
    assert json.loads(used.out("logs", "2026-02-27", "--json")) == {
        "day": "2026-02-27",
        "path": f"{used.kept}/memory/daily/2026-02-27.md",
        "text": "# Daily Log - 2026-02-27\n\n<!-- backstory: m1 -->\n"
        "## Atlas\n- did x\n",
    }


@pytest.mark.parametrize("day", ["yesterday", "2026-02-26"])
def test_a_day_without_a_log_is_said_so(used: Shell, day: str) -> None:
    code, lines = failed(used.run("logs", day))

    assert code == 12
    assert lines[0].startswith("backstory: there is no daily log for 2")
    assert lines[1:] == ["  hint: run 'backstory logs' to see which days have one"]


def test_what_is_no_day_is_refused(used: Shell) -> None:
    done = used.run("logs", "soon")

    assert done.returncode == 2
    assert "'soon' is not a date" in done.stderr


def test_no_logs_are_said_so(shell: Shell) -> None:
    done = shell.run("logs")

    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "There are no daily logs yet.\n",
        "  hint: a language model writes them; "
        "choose one: backstory settings set llm.name claude (or another)\n",
    )
    assert shell.out("--set", "llm.name=ollama", "logs") == done.stdout
    assert shell.out("logs", "--json") == "[]\n"


def test_a_log_that_cannot_be_read_does_not_hide_the_others(used: Shell) -> None:
    path = used.kept / "memory" / "daily" / "2026-02-28.md"
    path.write_bytes(b"\xff")

    done = used.run("logs")

    assert done.returncode == 3
    assert done.stdout.splitlines()[1:] == [
        "2026-02-27  66 B  Atlas",
        f"2026-02-28        {path}: byte 0 is not UTF-8",
    ]


# -- export and import ----------------------------------------------------------------


def test_notes_are_taken_to_another_home(used: Shell, tmp_path: Path) -> None:
    file = tmp_path / "notes.zip"
    other = Shell(used.home, tmp_path / "other")
    write(other, "MEMORY.md", "## Pets\n- Klopfer\n")

    assert used.out("memory", "export", str(file)) == f"3 files in {file}.\n"
    assert other.out("memory", "import", str(file)).splitlines() == [
        "Added to MEMORY.md: 2 blocks.",
        "Added to daily logs: 2 blocks, on 2 days.",
    ]

    assert other.out("memory", "show") == (
        "│ ## Pets\n│ - Klopfer\n│ - Hasi\n│ - Mimi\n│ ␛[2J\n"
    )
    assert other.out("logs") == used.out("logs")
    assert other.out("memory", "import", str(file)).splitlines() == [
        "Added to MEMORY.md: 0 blocks.",
        "Added to daily logs: 0 blocks, on 0 days.",
    ]


def test_no_file_is_overwritten(used: Shell) -> None:
    write(used, "notes.zip", "mine")
    file = used.kept / "memory" / "notes.zip"

    assert failed(used.run("memory", "export", str(file))) == (
        26,
        [f"backstory: {file}: File exists", "  hint: choose another name"],
    )


def test_what_is_no_archive_is_refused(used: Shell) -> None:
    file = write(used, "notes.zip", "mine")

    code, lines = failed(used.run("memory", "import", str(file)))

    assert code == 30
    assert lines == [
        f"backstory: {file}: not a readable zip file (File is not a zip file)"
    ]
