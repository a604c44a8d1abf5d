"""The command line: one file per group of commands."""

import gc
import os
import sys

from backstory.version import __version__

INTERRUPTED = 130
# Loading a command makes many objects that stay. By default, Python would look through
# them for garbage some fifty times, which takes 10 ms.
_OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main() -> None:
    """Run the command line, and end the process."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    # numpy's threads would spin while it is loaded, and nothing here needs them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Nothing is loaded before this, so that Ctrl-C never shows a traceback, however
    # early it is pressed.
    try:
        _open_closed_streams()
        if sys.argv[1:] == ["--version"]:
            # Scripts ask for it often; the command line takes longer to load.
            _print_version_alone()
            return
        # Here, so that an interrupt while it loads is caught too.
        from backstory.cli.quick_imports import load_quickly

        load_quickly()
        # As above.
        from backstory.cli.app import end_process, run

        end_process(run())
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def _print_version_alone() -> None:
    """Print the version with nothing loaded that tells of failures."""
    try:
        print_version()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough: not a failure.
        os._exit(0)
    except OSError as exc:
        sys.stderr.write(f"backstory: {exc.strerror}\n")
        # A normal exit would try to write it once more.
        os._exit(10)


def print_version() -> None:
    """Print the version that is installed."""
    # Not click.echo: click is not loaded yet.
    sys.stdout.write(f"backstory {__version__}\n")


def _open_closed_streams() -> None:
    """Put the null device where a standard stream was closed, as in ``>&-``.

    Otherwise a database might be opened as standard output, and be written to.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(opened, mode, encoding="utf-8"))
