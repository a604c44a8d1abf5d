"""What commands print for the sample conversations, as whole files.

``python -m tests.outputs`` writes them anew. The difference is the review: read every
line of it before it is committed.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from tests.samples import Case
from tests.shell import Shell

OUTPUTS = Path(__file__).parent / "data" / "outputs"
_WIDTHS = (60, 80, 160)
_EDITS, _PATCH, _REPLACED = "6f1d2c30", "019c9a10", "5a6b7c8d"

_LISTS = {
    "sessions": ["sessions"],
    "sessions-all": ["sessions", "--subagents", "--warm-ups", "--resume"],
    "sources": ["sources"],
    "tools": ["tools"],
}
_CONVERSATIONS = {
    "show": ["show", _EDITS],
    "show-tools": ["show", _EDITS, "--tools"],
}
# What is printed into a pipe, by the name of the file that keeps it.
_PIPED = {
    **{f"{name}.txt": words for name, words in (_LISTS | _CONVERSATIONS).items()},
    "sessions.json": ["sessions", "--json", "--subagents"],
    "show-patch.txt": ["show", _PATCH, "--tools"],
    "show-replaced.txt": ["show", _REPLACED, "--tools"],
    "show-around.txt": ["show", _EDITS, "--around", "5", "-C", "1"],
    "show.json": ["show", _EDITS, "--around", "5", "-C", "1", "--format", "json"],
    **{
        f"{name}.{end}": [*words, "--format", format_name]
        for name, words in _CONVERSATIONS.items()
        for format_name, end in (("markdown", "md"), ("html", "html"))
    },
}


def prepare_outputs(folder: Path) -> Shell:
    """A person's home with the sample conversations, which are read."""
    case = Case("", "outputs", OUTPUTS)
    shell = Shell(case.lay_out(folder), folder / "kept")
    done = shell.run("index")
    assert done.returncode == 0, done.stderr
    return shell


def iter_outputs(shell: Shell) -> Iterator[tuple[str, str]]:
    """The name of each file, and what is printed."""
    for name, words in _PIPED.items():
        yield name, _print(shell, *words)
    for width in _WIDTHS:
        with (
            patch("backstory.cli.index.terminal_width", return_value=width),
            patch("backstory.cli.sessions.terminal_width", return_value=width),
            patch("backstory.cli.show.terminal_width", return_value=width),
            patch("backstory.cli.tools.terminal_width", return_value=width),
        ):
            for name, words in (_LISTS | _CONVERSATIONS).items():
                yield f"{name}-{width}.txt", _print(shell, *words)


def _print(shell: Shell, *words: str) -> str:
    """What is printed; the person's folder has a name that is the same everywhere."""
    done = shell.run(*words)
    assert done.returncode == 0, done.stderr
    return (done.stdout + done.stderr).replace(str(shell.home), "/home/dev")


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    with tempfile.TemporaryDirectory() as temporary:
        for made, text in iter_outputs(prepare_outputs(Path(temporary))):
            (OUTPUTS / made).write_text(text, encoding="utf-8")
            sys.stdout.write(f"{made}\n")
