"""Run the tutorial: its commands, on the sample conversations, and its Python.

``python -m tests.tutorial`` writes the output into the page, and into the others that
show searches; a test compares. On these pages it is always the week after the samples,
so that "last week" means them.
"""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import backstory
from tests.shell import Shell

_DOCS = Path(__file__).parents[1] / "docs"
TUTORIAL = _DOCS / "tutorial.md"
# Each begins where everything has been read.
OTHERS = (
    _DOCS / "how-to" / "search-well.md",
    _DOCS / "how-to" / "read-conversations.md",
    _DOCS / "how-to" / "see-when-you-worked.md",
    _DOCS / "how-to" / "measure-searches.md",
    _DOCS / "how-to" / "edit-memory.md",
    _DOCS / "how-to" / "forget-conversations.md",
    _DOCS / "how-to" / "export-and-import.md",
    _DOCS / "how-to" / "give-an-agent-the-tools.md",
    _DOCS / "how-to" / "search-the-current-run.md",
    _DOCS / "explanation" / "ranking.md",
)
PAGES = (TUTORIAL, *OTHERS)
_TODAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
# Of JSON lines, only what has the name of a file is one.
_BLOCK = re.compile(r"```(console|python|jsonl(?= \S))(?: (\S+))?\n(.*?)```", re.DOTALL)


def run_page(page: Path) -> str:
    """The page with the output that its commands give now."""
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(backstory.__file__).parent / "cli" / "samples"
        shutil.copytree(samples, Path(folder) / "home")
        if page in OTHERS:
            _run("index", "--wait", folder=Path(folder))
        text = page.read_text(encoding="utf-8")
        return _BLOCK.sub(lambda block: _run_block(block, Path(folder)), text)


def _run_block(block: re.Match[str], folder: Path) -> str:
    kind, file, body = block.groups()
    if kind == "jsonl":
        (folder / file).write_text(body, encoding="utf-8")
        return block.group()
    if kind == "python":
        _run_python(body, folder)
        return block.group()
    command = body.splitlines()[0]
    words = shlex.split(command.removeprefix("$ backstory "))
    output = _run(*words, folder=folder)
    output = re.sub(r"in \d+\.\d s", "in 0.0 s", output)
    output = re.sub(r"takes \d+ ms", "takes 5 ms", output)
    # The seal of a home takes some tokens more or less.
    output = re.sub(r"(?m)( \d\.\d{3} +)[12]\d\d$", r"\g<1>170", output)
    output = same_seal(output)
    return f"```console\n{command}\n{output}```"


def same_seal(text: str) -> str:
    """The text with one seal for all: every home makes its own."""
    return re.sub(r"(?<=instructions\. )\[[0-9a-f]{12}\]", "[5d0c3e9a71f4]", text)


def without_scores(text: str) -> str:
    """The text without scores, whose last digit may be another on other processors.

    And without the sizes of exports, which have paths of this machine in them.
    """
    text = re.sub(r"\([\d.]+ KB\)\.", "(0 KB).", text)
    text = re.sub(r"(?m)^(\d+)  [01]\.\d\d  ", r"\1  0.00  ", text)
    text = re.sub(r"\b(meaning|fit|cosine) [-.\d]+", r"\1 0", text)
    return re.sub(r"(score|relevance): [01]\.\d\d", r"\1: 0.00", text)


def _run(*words: str, folder: Path) -> str:
    """What a command prints in that week."""
    done = Shell(folder / "home", folder / "kept", folder, _TODAY).run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _run_python(program: str, folder: Path) -> None:
    shell = Shell(folder / "home", folder / "kept")
    subprocess.run(
        [sys.executable, "-c", program], env=shell.environ, cwd=folder, check=True
    )


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(run_page(page), encoding="utf-8")
