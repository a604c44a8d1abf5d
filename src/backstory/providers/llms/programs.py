"""Run a program with a text on its standard input, within limits of time and size.

Input and output are unnamed files: nothing is left behind, no pipe can fill up, and
unlike command lines, other users cannot read them.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from backstory.values.structs import FrozenStruct

_LOOK_S = 0.02


class TookTooLong(Exception):
    """The program did not end in time, and was killed."""


class WroteTooMuch(Exception):
    """The program wrote too much, and was killed."""


class Ended(FrozenStruct):
    """How a program ended, and what it wrote."""

    code: int
    output: str
    errors: str


def run_program(
    command: Sequence[str],
    *,
    text: str,
    folder: Path,
    environ: Mapping[str, str],
    timeout_s: float,
    max_bytes: int,
) -> Ended:
    """Run the program in ``folder`` until it and everything it started has ended.

    Raises ``TookTooLong``, ``WroteTooMuch`` and ``OSError``.
    """
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        given.write(text.encode())
        given.seek(0)
        process = subprocess.Popen(
            command,
            stdin=given,
            stdout=output,
            stderr=errors,
            cwd=folder,
            env=dict(environ),
            # In its own process group, so that all of it can be killed.
            start_new_session=True,
        )
        try:
            code = _wait(
                process, (output.fileno(), errors.fileno()), timeout_s, max_bytes
            )
        finally:
            # Not reaped yet, so the number is still this program's.
            if process.returncode is None:
                _end_group(process)
        return Ended(
            code, *(_read(file.fileno(), max_bytes) for file in (output, errors))
        )


def _wait(
    process: subprocess.Popen[bytes],
    written: Sequence[int],
    timeout_s: float,
    max_bytes: int,
) -> int:
    ends_s = time.monotonic() + timeout_s
    while True:
        try:
            return process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            if any(os.fstat(each).st_size > max_bytes for each in written):
                raise WroteTooMuch from None
            if time.monotonic() > ends_s:
                raise TookTooLong from None


def _end_group(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        subprocess.run(
            ["taskkill", "/F", "/T", "/PID", str(process.pid)],
            capture_output=True,
            check=False,
        )
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(descriptor: int, max_bytes: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, max_bytes).decode("utf-8", errors="replace")
