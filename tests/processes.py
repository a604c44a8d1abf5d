"""Children of the test process: forked, waited for, killed."""

import os
import signal
import time
import traceback
from collections.abc import Callable

# How long to wait for what must happen, however busy the machine: only a failure
# takes so long.
PATIENCE_S = 300.0


def in_child(work: Callable[[], object]) -> int:
    """Run ``work`` in a forked child; return the child's process id."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid


def end_of(pid: int, *, limit_s: float = PATIENCE_S) -> str:
    """How a child ended: ``well``, ``badly``, by the name of a signal, or ``never``."""
    give_up_at = time.monotonic() + limit_s
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= give_up_at:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "never"
        time.sleep(0.002)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return "badly" if status else "well"


def kill_after(seconds: float, work: Callable[[], object]) -> bool:
    """Run ``work`` in a child and kill it; returns whether that was before its end."""
    pid = in_child(work)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    end = end_of(pid)
    assert end in ("SIGKILL", "well")
    return end == "SIGKILL"
