"""Install packages with npm, and a Node.js that is new enough for them.

For an older Node.js, npm silently installs an older version of a program, which is not
the one that people have.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

# Node.js is also available as an npm package.
_NODE = "node@22"
_LEAST_VERSION = (22, 19)


def install_node(prefix: Path) -> str:
    """A PATH with a Node.js that is new enough, in ``prefix`` if the machine's is not.

    Raises ``CalledProcessError`` if npm cannot install it.
    """
    done = subprocess.run(
        ["node", "--version"], capture_output=True, text=True, check=True
    )
    if tuple(map(int, re.findall(r"\d+", done.stdout)))[:2] >= _LEAST_VERSION:
        return os.environ["PATH"]
    folder = prefix / "node_modules/node/bin"
    if not folder.exists():
        install_packages(prefix, [_NODE], path=os.environ["PATH"])
    return f"{folder}:{os.environ['PATH']}"


def install_packages(prefix: Path, packages: Sequence[str], *, path: str) -> None:
    """Have npm install packages into a folder; ``path`` is the PATH to run it with.

    Raises ``CalledProcessError`` if it cannot.
    """
    prefix.mkdir(parents=True, exist_ok=True)
    words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(prefix)]
    subprocess.run(
        [*words, *packages],
        env={**os.environ, "PATH": path},
        stdout=subprocess.DEVNULL,
        check=True,
    )
