"""What every test gets: an empty home, local time in UTC, no network."""

import gc
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING
from unittest.mock import patch

import apsw
import pytest
from httpx import create_ssl_context
from hypothesis import HealthCheck, settings

from backstory.memory import Memory
from tests.chance import EXAMPLES_OF_A_LAW, SOAK
from tests.samples import a_memory

if TYPE_CHECKING:
    from tests.postgres_server import PostgresServer

# How long an example takes, or the first one to be made, says something about the
# machine's moment and nothing about the law; and what was found by chance is kept as an
# example of the law, not in a database on one machine.
settings.register_profile(
    "test",
    derandomize=True,
    max_examples=25,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "soak",
    settings.get_profile("test"),
    derandomize=False,
    max_examples=EXAMPLES_OF_A_LAW,
    print_blob=True,
)
settings.load_profile("soak" if SOAK else "test")

# Tests create and delete some 40,000 files: in memory, none of them waits for a disk.
IN_MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 * 1024**3
if os.access(IN_MEMORY, os.W_OK) and disk_usage(IN_MEMORY).free >= ROOM_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


def pytest_sessionstart() -> None:
    # What is collected stays to the end: no search for garbage among it frees anything.
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_report_header() -> str:
    return f"SQLite {apsw.sqlite_lib_version()}, apsw {apsw.apsw_version()}"


@pytest.fixture(autouse=True, scope="session")
def _surroundings(runtime_folder: str) -> Iterator[None]:
    """What tests and the processes that they start find around them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        # Processes that tests start leave none behind that still writes.
        patched.setenv("BACKSTORY_EMBEDDER_IN_BACKGROUND", "false")
        # Servers that tests start are not found by those of the person who runs them.
        patched.setenv("XDG_RUNTIME_DIR", runtime_folder)
        patched.setattr(socket.socket, "connect", connect_to_loopback)
        yield
    time.tzset()


@pytest.fixture(autouse=True)
def _time_zone_is_restored() -> Iterator[None]:
    # It is set up before ``monkeypatch``, and so ends after it.
    yield
    if time.tzname != ("UTC", "UTC"):
        time.tzset()


@pytest.fixture(scope="session")
def runtime_folder() -> Iterator[str]:
    """A folder for sockets, whose paths must be short."""
    with tempfile.TemporaryDirectory(prefix="bs-") as folder:
        yield folder


@pytest.fixture
def own_runtime_folder(monkeypatch: pytest.MonkeyPatch, runtime_folder: str) -> None:
    """For tests with hooks, which keep there what each session was given."""
    folder = tempfile.mkdtemp(dir=runtime_folder)
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    # Where they keep it if they cannot use the other one.
    monkeypatch.setenv("TMPDIR", folder)


CONNECT = socket.socket.connect


def connect_to_loopback(self: socket.socket, address: object) -> None:
    host = address[0] if isinstance(address, tuple) else "127.0.0.1"
    assert host in ("127.0.0.1", "::1", "localhost"), f"a test reached for {host}"
    CONNECT(self, address)  # type: ignore[arg-type]


@pytest.fixture(autouse=True, scope="session")
def _one_tls_context() -> Iterator[None]:
    """Certificates are read once, and not by each of a thousand clients."""
    used_by_clients = "httpx._transports.default.create_ssl_context"
    with patch(used_by_clients, cache(create_ssl_context)):
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator["PostgresServer"]:
    """A PostgreSQL server; only for tests that are marked so."""
    # Slow to import, and most tests need none.
    from tests.postgres_server import running_server

    with running_server() as server:
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person's home folder, empty."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def memory(tmp_path: Path, home: Path) -> Iterator[Memory]:
    """The memory of that person."""
    with a_memory(tmp_path, home=home) as opened:
        yield opened
