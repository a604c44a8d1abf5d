"""A person's shell: commands typed in it, in this process or in one of their own."""

import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch

from backstory.cli.app import App, run
from tests.processes import PATIENCE_S

BACKSTORY = (sys.executable, "-m", "backstory")

# Where the tests keep what processes tell each other.
_FOLDERS = ("XDG_RUNTIME_DIR", "TMPDIR")

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Shell:
    """A person's home folder, and what Backstory keeps for them."""

    home: Path
    kept: Path
    # Where they stand, otherwise at home; and what time it is there, otherwise now.
    folder: Path | None = None
    now: datetime | None = None

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "BACKSTORY_HOME": str(self.kept),
            "TZ": "UTC",
            "PYTHONUTF8": "1",
            "BACKSTORY_EMBEDDER_IN_BACKGROUND": "false",
            # Hooks keep there what a session was given. In a folder that outlives the
            # tests, the next run would find it under the same paths and be silent.
            **{name: os.environ[name] for name in _FOLDERS if name in os.environ},
        }

    def run(self, *words: str, typed: str = "", **more: str) -> Done:
        """Run a command in this process, which spares it the start of another."""
        streams = [TextIOWrapper(BytesIO(), "utf-8") for _ in range(2)]
        out, err = streams
        with (
            patch.dict(os.environ, {**self.environ, **more}, clear=True),
            patch("sys.argv", ["backstory", *words]),
            patch("sys.stdin", TextIOWrapper(BytesIO(os.fsencode(typed)), "utf-8")),
            chdir(self.folder or self.home),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = run(App(clock=lambda: self.now or datetime.now(UTC)))
        return Done(words, code, *(_written(stream) for stream in streams))

    def process(self, *words: str, **more: str) -> Done:
        """Run a command in a process of its own, from its start to its exit code."""
        return self._start([*BACKSTORY, *words], more)

    def python(self, code: str, **more: str) -> Done:
        """Run Python code in a process of its own, as if no command had been typed."""
        return self._start([sys.executable, "-c", code], more)

    def _start(self, command: Sequence[str], more: Mapping[str, str]) -> Done:
        return subprocess.run(
            command,
            env={**self.environ, **more},
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    def on_terminal(
        self, *words: str, typed: str = "", exit_code: int = 0, **more: str
    ) -> str:
        """What a command writes, out and err, when it runs on a terminal."""
        leader, follower = pty.openpty()
        os.write(leader, typed.encode())
        with subprocess.Popen(
            [*BACKSTORY, *words],
            env={
                **self.environ,
                "TERM": "xterm",
                "COLUMNS": "80",
                "PAGER": "cat",
                **more,
            },
            stdin=follower,
            stdout=follower,
            stderr=follower,
        ) as process:
            os.close(follower)
            written = b"".join(iter(lambda: _read_terminal(leader), b""))
        os.close(leader)
        assert process.returncode == exit_code
        return written.decode()

    def out(self, *words: str) -> str:
        """What a command writes that ends well and has nothing to complain about."""
        done = self.run(*words)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


def _read_terminal(leader: int) -> bytes:
    """Some of what was written; nothing at the end, which Linux calls an error."""
    try:
        return os.read(leader, 65536)
    except OSError:
        return b""


def _written(stream: TextIOWrapper) -> str:
    stream.flush()
    written = stream.detach()
    assert isinstance(written, BytesIO)
    return written.getvalue().decode()
