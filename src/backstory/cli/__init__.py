"""The command line: one file per group of commands."""

from importlib import import_module

INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    # Nothing is loaded before this: whoever presses Ctrl-C wants no traceback, however
    # early it is.
    try:
        import_module("backstory.cli.app").run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
