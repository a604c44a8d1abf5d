"""The command line: one file per group of commands."""

from backstory.cli import (  # noqa: F401  # they register
    browsing,
    demo,
    reading,
    searching,
    state,
    upkeep,
)
from backstory.cli.app import commands


def main() -> None:
    """Run the command line."""
    commands(prog_name="backstory")
