"""python -m backstory"""

from backstory.cli import main

main()
