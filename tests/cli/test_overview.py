"""``backstory`` alone: what there is, and what to try next."""

import re
import shutil
from pathlib import Path

import apsw
import pytest

import backstory
from backstory.store.sqlite.history import HISTORY_NAME
from backstory.store.sqlite.page_checksums import VERIFIED
from tests.shell import Shell

SAMPLES = Path(backstory.__file__).parent / "cli" / "samples"
SLOW_TO_IMPORT = ("numpy", "onnxruntime", "markdown_it", "rich", "httpx", "mcp")
HINTS = """
Try:
  backstory search 'flaky test'  find what was said
  backstory sessions             list the conversations
  backstory stats                see when you worked on what
  backstory web                  browse it as a page
  backstory doctor               check that your agents are connected
  backstory --help               all commands
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """The shell of a person with the sample conversations; nothing is read yet."""
    shutil.copytree(SAMPLES, tmp_path / "home")
    return Shell(tmp_path / "home", tmp_path / "kept")


def read_samples(shell: Shell) -> None:
    assert shell.run("index").returncode == 0


def last_read(shell: Shell) -> str:
    (line,) = [
        line for line in shell.out("status").splitlines() if line.startswith("Last")
    ]
    return line.removeprefix("Last read: ")


def test_before_anything_is_read_it_names_the_agents_and_one_command(
    shell: Shell,
) -> None:
    assert (
        shell.out()
        == """\
Nothing has been read yet.

Found conversations of Claude Code, squidbot, Codex, Gemini CLI.

Start with:
  backstory install  read their conversations, and let them search the memory

Or:
  backstory index   only read them, and change no settings
  backstory demo    a tour, on sample conversations
  backstory --help  all commands
"""
    )
    assert not shell.kept.exists()


def test_on_a_machine_without_agents_it_offers_a_tour(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    assert (
        Shell(tmp_path / "home", tmp_path / "kept").out()
        == """\
Nothing has been read yet.

No agent program has left conversations on this machine.

Start with:
  backstory demo  a tour, on sample conversations

Or:
  backstory index --path FILE  read a file or an export from elsewhere
  backstory --help             all commands
"""
    )


def test_it_says_what_there_is_and_what_to_try(shell: Shell) -> None:
    read_samples(shell)
    shell.out("memory", "add", "Likes tea")

    assert (
        shell.out()
        == f"""\
Backstory remembers 5 sessions (25 messages) of 4 agent programs.

  Agents     claude-code 2, codex 1, gemini-cli 1, squidbot 1
  Last read  {last_read(shell)}
  Vectors    none of 18 texts yet; 'backstory index --wait' makes them
  Notes      1 fact in MEMORY.md
  Home       {shell.kept}
{HINTS}"""
    )


def test_on_a_narrow_terminal_lines_are_folded_and_commands_are_whole(
    shell: Shell,
) -> None:
    read_samples(shell)
    shown = shell.on_terminal(COLUMNS="40").replace("\r\n", "\n")

    assert "\x1b" not in shown
    assert [
        line
        for line in shown.splitlines()
        if len(line) > 40 and str(shell.kept) not in line
    ] == []
    assert "  backstory search 'flaky test'\n      find what was said\n" in shown


@pytest.mark.parametrize("name", [HISTORY_NAME, "index.db"])
def test_a_damaged_database_is_a_line_and_no_failure(shell: Shell, name: str) -> None:
    read_samples(shell)
    (shell.kept / name).write_bytes(b"not a database" * 1000)

    done = shell.run()

    assert (done.returncode, done.stderr) == (0, "")
    assert str(shell.kept / name) in done.stdout
    assert "it cannot be read" in " ".join(done.stdout.split())


def test_a_locked_database_is_a_line_and_no_failure(shell: Shell) -> None:
    read_samples(shell)
    other = apsw.Connection(str(shell.kept / HISTORY_NAME), vfs=VERIFIED)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    try:
        done = shell.process()
    finally:
        other.close()

    assert (done.returncode, done.stderr) == (0, "")
    assert "another process is using it" in " ".join(done.stdout.split())


def test_a_home_without_an_index_has_no_vectors_yet(shell: Shell) -> None:
    read_samples(shell)
    (shell.kept / "index.db").unlink()

    assert "  Vectors    none yet\n" in shell.out()


def test_the_status_of_the_samples(shell: Shell) -> None:
    read_samples(shell)
    shown = re.sub(r"[\d.]+ (KB|MB)", "100 KB", shell.out("status"))

    assert (
        shown
        == f"""\
Home:      {shell.kept}
Sessions:  5 (claude-code 2, codex 1, gemini-cli 1, squidbot 1)
Messages:  25
History:   100 KB
Index:     30 units, 100 KB
Vectors:   none of 18 texts yet; 'backstory index --wait' makes them
Logs:      no language model
Last read: {last_read(shell)}
Problems:  none
"""
    )


def test_settings_that_cannot_be_read_are_a_line_and_no_failure(shell: Shell) -> None:
    read_samples(shell)

    done = shell.run(BACKSTORY_EMBEDDER_NAME="abacus")

    assert (done.returncode, done.stderr) == (0, "")
    words = "'embedder.name' cannot be 'abacus'"
    assert words in " ".join(done.stdout.split())


def test_it_loads_nothing_slow_and_changes_nothing(shell: Shell) -> None:
    read_samples(shell)
    before = {file: file.read_bytes() for file in shell.kept.rglob("*.db")}
    code = (
        "import sys; from backstory.cli.app import run; code = run(); "
        f"print([each for each in {SLOW_TO_IMPORT} if each in sys.modules], code)"
    )

    done = shell.python(code)

    assert (done.stdout.splitlines()[-1], done.stderr) == ("[] 0", "")
    assert {file: file.read_bytes() for file in shell.kept.rglob("*.db")} == before


def test_help_is_still_the_whole_list_of_commands(shell: Shell) -> None:
    assert "Find and read:\n  search" in shell.out("--help")
