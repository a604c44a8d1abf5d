"""Permissions that hold for the tests too, when they run as root in a container."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# From linux/capability.h: read and write whatever the permissions say.
_VERSION_3 = 0x20080522
_DAC_OVERRIDE = 1 << 1
_DAC_READ_SEARCH = 1 << 2


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Give up root's right to read and write everything, while in the block."""
    if sys.platform != "linux" or os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    # Effective, permitted and inheritable, twice: for the low and the high 32 bits.
    sets = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0, os.strerror(ctypes.get_errno())
    before = sets[0]
    sets[0] = before & ~(_DAC_OVERRIDE | _DAC_READ_SEARCH)
    assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        sets[0] = before
        libc.capset(header, sets)
