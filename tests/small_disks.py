"""File systems with little room, to see what happens when a disk is full."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, *, size: str = "3m") -> Iterator[Path]:
    """Mount one; the test is skipped if this user may not."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a file system")
    try:
        yield folder
    finally:
        # Also after a failure: later runs of the tests could not delete the folder.
        subprocess.run(["umount", str(folder)], check=True)


def make_room(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)


def leave_room(disk: Path, room_kb: int) -> Path:
    """Fill the disk with something else, but for so much."""
    filler = disk / "filler"
    room = shutil.disk_usage(disk).free - room_kb * 1024
    filler.write_bytes(bytes(max(0, room)))
    return filler


def make_read_only(disk: Path) -> None:
    """Keep everybody from writing, root as well."""
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
