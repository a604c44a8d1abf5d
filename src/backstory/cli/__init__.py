"""The command line: one file per group of commands."""

INTERRUPTED = 130


def main() -> None:
    """Run the command line, and end the process."""
    # Nothing is loaded before this, so that Ctrl-C never shows a traceback, however
    # early it is pressed.
    try:
        # Here, so that an interrupt while it loads is caught too.
        from backstory.cli.app import end_process, run

        end_process(run())
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
