"""The command line: one file per group of commands."""

INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    # Nothing is loaded before this: whoever presses Ctrl-C wants no traceback, however
    # early it is.
    try:
        # An interrupt while it loads must be caught.
        from backstory.cli.app import run

        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
