"""Run the tutorial: its commands, on the sample conversations, and its Python.

``python -m tests.tutorial`` writes the output into the page; a test compares.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import backstory

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
_BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)


def run_page(text: str) -> str:
    """The page with the output that its commands give now."""
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(backstory.__file__).parent / "samples"
        shutil.copytree(samples, Path(folder) / "home")
        return _BLOCK.sub(lambda block: _run_block(block, Path(folder)), text)


def _run_block(block: re.Match[str], folder: Path) -> str:
    kind, body = block.groups()
    if kind == "python":
        _run(["-c", body], folder)
        return block.group()
    command = body.splitlines()[0]
    output = _run(["-m", *command.removeprefix("$ ").split()], folder)
    output = re.sub(r"in \d+\.\d s", "in 0.0 s", output)
    return f"```console\n{command}\n{output}```"


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
    PAGE.write_text(run_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
