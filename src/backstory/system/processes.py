"""Other processes of this machine."""

import os


def is_running(pid: int) -> bool:
    """Whether there is a process with this number, whoever it belongs to."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
