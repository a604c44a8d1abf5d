"""Run the command line with ``python -m backstory``."""

from backstory.cli import main

main()
