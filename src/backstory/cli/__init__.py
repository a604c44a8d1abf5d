"""The command line: one file per group of commands."""

from backstory.cli import browsing, demo, reading, state  # noqa: F401  # they register
from backstory.cli.app import commands


def main() -> None:
    """Run the command line."""
    commands(prog_name="backstory")
