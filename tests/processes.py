"""Children of the test process: forked, waited for, killed."""

import os
import random
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable

from tests.chance import SOAK

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
    process = os.pidfd_open(pid)
    has_ended = select.select([process], [], [], limit_s)[0]
    os.close(process)
    if not has_ended:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return "never"
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return "badly" if status else "well"


def comes_true(check: Callable[[], bool]) -> bool:
    """Wait until something is so; False if it never is."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not check():
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(0.01)
    return True


# -- killing --------------------------------------------------------------------------


def kill_sometime(
    work: Callable[[], object], chance: random.Random, *, attempt: int
) -> bool:
    """Run ``work`` in a child and kill it; returns whether that was before its end.

    The moment is later with every attempt, so that one gets to the end. It is counted
    in calls of functions, which are as many on every machine; in a soak it is a time as
    often as not, which may also be in the midst of a call.
    """
    if SOAK and chance.random() < 0.5:
        return _kill_after(chance.uniform(0, 0.02 * 1.3**attempt), work)
    return _kill_at_call(int(chance.uniform(50, 500) * 1.7**attempt), work)


def _kill_after(seconds: float, work: Callable[[], object]) -> bool:
    pid = in_child(work)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    return _was_killed(pid)


def _kill_at_call(number: int, work: Callable[[], object]) -> bool:
    left = number

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal left
        left -= event in ("call", "c_call")
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def work_and_count() -> None:
        sys.setprofile(count)
        work()

    return _was_killed(in_child(work_and_count))


def _was_killed(pid: int) -> bool:
    end = end_of(pid)
    assert end in ("SIGKILL", "well")
    return end == "SIGKILL"
