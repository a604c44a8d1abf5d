"""The command line: one file per group of commands."""

INTERRUPTED = 130


def main() -> None:
    """Run the command line, and end the process."""
    # Nothing is loaded before this: whoever presses Ctrl-C wants no traceback, however
    # early it is.
    try:
        # An interrupt while it loads must be caught.
        from backstory.cli.app import end_process, run

        end_process(run())
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
