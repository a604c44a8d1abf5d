"""Run the tutorial: its commands, on the sample conversations, and its Python.

``python -m tests.tutorial`` writes the output into the page, and into the others that
show searches; a test compares. On these pages it is always the week after the samples,
so that "last week" means them.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import backstory

_DOCS = Path(__file__).parents[1] / "docs"
TUTORIAL = _DOCS / "tutorial.md"
# Each begins where everything has been read.
OTHERS = (
    _DOCS / "how-to" / "search-well.md",
    _DOCS / "how-to" / "edit-memory.md",
    _DOCS / "how-to" / "give-an-agent-the-tools.md",
    _DOCS / "how-to" / "search-the-current-run.md",
    _DOCS / "explanation" / "ranking.md",
)
PAGES = (TUTORIAL, *OTHERS)
_PROGRAM = """
import sys
from datetime import UTC, datetime

from backstory.cli.app import App, commands

today = datetime(2026, 3, 2, 9, tzinfo=UTC)
commands(prog_name="backstory", obj=App(clock=lambda: today))
"""
_BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)


def run_page(page: Path) -> str:
    """The page with the output that its commands give now."""
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(backstory.__file__).parent / "cli" / "samples"
        shutil.copytree(samples, Path(folder) / "home")
        if page in OTHERS:
            _run(["-c", _PROGRAM, "index", "--wait"], Path(folder))
        text = page.read_text(encoding="utf-8")
        return _BLOCK.sub(lambda block: _run_block(block, Path(folder)), text)


def _run_block(block: re.Match[str], folder: Path) -> str:
    kind, body = block.groups()
    if kind == "python":
        _run(["-c", body], folder)
        return block.group()
    command = body.splitlines()[0]
    words = shlex.split(command.removeprefix("$ backstory "))
    output = _run(["-c", _PROGRAM, *words], folder)
    output = re.sub(r"in \d+\.\d s", "in 0.0 s", output)
    return f"```console\n{command}\n{output}```"


def without_scores(text: str) -> str:
    """The text without scores, whose last digit may be another on other processors."""
    text = re.sub(r"(?m)^(\d+)  [01]\.\d\d  ", r"\1  0.00  ", text)
    text = re.sub(r"\b(meaning|fit|cosine) [-.\d]+", r"\1 0", text)
    return re.sub(r"(score|relevance): [01]\.\d\d", r"\1: 0.00", text)


def _run(words: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "BACKSTORY_HOME": str(folder / "kept"),
            "TZ": "UTC",
            "PYTHONUTF8": "1",
            "BACKSTORY_EMBEDDER_IN_BACKGROUND": "false",
        },
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(run_page(page), encoding="utf-8")
