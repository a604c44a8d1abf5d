"""``python -m backstory.hooks``: the same where the program is not installed."""

from backstory.hooks.entry import main

main()
