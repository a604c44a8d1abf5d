"""Run a Backstory command, then print its peak memory in MB on standard error."""

import re
import resource
import sys
from pathlib import Path

from backstory.cli import main


def peak_megabytes() -> float:
    """The peak of this process alone.

    On Linux, a child inherits its parent's peak in ``ru_maxrss``, so it is read from
    the process's own status instead.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        assert found is not None
        return int(found.group(1)) / 1_000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000_000


if __name__ == "__main__":
    try:
        main()
    except SystemExit as end:
        if end.code not in (0, 3):
            raise
    finally:
        print(peak_megabytes(), file=sys.stderr)
