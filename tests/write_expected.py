"""Rewrite ``expected.json``: python -m tests.write_expected FORMAT …

The difference is the review: read every line of it before it is committed.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from tests.samples import all_cases, write_expected

if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    for case in all_cases():
        if case.format in sys.argv[1:]:
            with tempfile.TemporaryDirectory() as folder:
                write_expected(case, Path(folder))
