"""What every test gets: an empty home, local time in UTC, no network."""

import socket
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unittest.mock import patch

import apsw
import pytest
from httpx import create_ssl_context
from hypothesis import HealthCheck, settings

from backstory.memory import Memory
from tests.chance import SOAK
from tests.samples import a_memory

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
    max_examples=1_000,
    print_blob=True,
)
settings.load_profile("soak" if SOAK else "test")


def pytest_report_header() -> str:
    return f"SQLite {apsw.sqlite_lib_version()}, apsw {apsw.apsw_version()}"


@pytest.fixture(autouse=True)
def _local_time_is_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def _no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that tests start leave none behind that still writes."""
    monkeypatch.setenv("BACKSTORY_EMBEDDER_IN_BACKGROUND", "false")


@pytest.fixture(scope="session")
def runtime_folder() -> Iterator[str]:
    """A folder for sockets, whose paths must be short."""
    with tempfile.TemporaryDirectory(prefix="bs-") as folder:
        yield folder


@pytest.fixture(autouse=True)
def _sockets_of_our_own(monkeypatch: pytest.MonkeyPatch, runtime_folder: str) -> None:
    """Servers that tests start are not found by those of the person who runs them."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime_folder)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def connect_to_loopback(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else "127.0.0.1"
        assert host in ("127.0.0.1", "::1", "localhost"), f"a test reached for {host}"
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", connect_to_loopback)


@pytest.fixture(autouse=True, scope="session")
def _one_tls_context() -> Iterator[None]:
    """Certificates are read once, and not by each of a thousand clients."""
    used_by_clients = "httpx._transports.default.create_ssl_context"
    with patch(used_by_clients, cache(create_ssl_context)):
        yield


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
