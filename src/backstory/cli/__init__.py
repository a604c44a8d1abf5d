"""The command line: one file per group of commands."""

import os
import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line, and end the process."""
    # Nothing is loaded before this, so that Ctrl-C never shows a traceback, however
    # early it is pressed.
    try:
        _open_closed_streams()
        # Here, so that an interrupt while it loads is caught too.
        from backstory.cli.app import end_process, run

        end_process(run())
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def _open_closed_streams() -> None:
    """Put the null device where a standard stream was closed, as in ``>&-``.

    Otherwise a database might be opened as standard output, and be written to.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(opened, mode, encoding="utf-8"))
