"""Put a server together from the settings, and run it.

Everything that can be wrong is checked before the web server is loaded, which takes
most of a second.
"""

import gc
import platform
import signal
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from backstory.access import open_access_tokens, open_jobs
from backstory.address import read_database
from backstory.assembly.parts import keep_memory_low
from backstory.errors import ConfigError
from backstory.memory import Memory
from backstory.serve.json_log import log_as_json
from backstory.serve.limits import ServeLimits
from backstory.serve.listening import Listening, open_listener
from backstory.serve.names import AllowedNames, check_name
from backstory.serve.workers import JobWorker
from backstory.settings import Settings, load_settings
from backstory.stores import allow_connections
from backstory.system.loopback import port_of
from backstory.system.machine import Machine
from backstory.system.worker import start_worker
from backstory.values.identity import bytes_hash
from backstory.values.structs import FrozenStruct, replace

_LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")
# A pushed session must not make this machine read its own files: the folder of the
# session is on another machine, whatever is at that path here.
_FOR_SERVERS = ("index.guidance=false",)
# Nor does anything that agent programs wrote on this machine belong to a tenant.
_FOR_TENANTS = ("search.read_changed=false",)
_TENANTS = "tenants"
# How long jobs that have begun may take to finish.
_WORKER_GRACE_S = 10.0
# A search asks for several things at once.
_CONNECTIONS_A_THREAD = 4


def serve_memory(
    home: Path,
    machine: Machine,
    flags: Sequence[str],
    listening: Listening,
    *,
    names: Sequence[str],
    clock: Callable[[], datetime],
    tell: Callable[[str], None],
) -> None:
    """Serve until told to end; ``tell`` is called with lines for whoever started it.

    Raises ``ConfigError`` if the server would be open to anybody, or to nobody.
    """
    listening.check()
    for name in names:
        check_name(name)
    settings = load_settings(machine, (*flags, *_FOR_SERVERS))
    database = read_database(settings, machine)
    limits = read_limits(settings)
    if database is not None:
        allow_connections(limits.threads * _CONNECTIONS_A_THREAD)
    tokens = open_access_tokens(home, database, clock=clock)
    if not tokens.has_usable():
        more = "" if database is None else " --tenant TENANT --owner URL"
        raise ConfigError(
            "there is no token that works, so nobody could use the server",
            hint=f"make one: backstory token create NAME{more}",
        )
    listener = open_listener(listening)
    # Thousands of classes are made and none is thrown away, as with 'mcp'.
    gc.disable()
    # Slow to import: the web server and the MCP library.
    from backstory.serve.app import TeamServer
    from backstory.serve.process import serve_until_told

    gc.freeze()
    gc.enable()
    keep_memory_low()
    log_as_json()
    memories = _TenantMemories(
        home, machine, flags, clock, has_tenants=database is not None
    )
    app = TeamServer(
        tokens,
        memories,
        AllowedNames((*_LOCAL_NAMES, listening.host, platform.node(), *names)),
        limits,
        is_enabled=settings.flag,
    )
    workers = []
    if database is not None:
        workers = [
            JobWorker(open_jobs(database), memories, app.metrics)
            for _ in range(settings.whole("serve.workers"))
        ]
    for worker in workers:
        worker.start()
    tell(f"Serving {listening.to_url(port_of(listener))}")
    try:
        serve_until_told(app, listener, listening)
    finally:
        _end(workers)


def work_for_tenants(
    home: Path,
    machine: Machine,
    flags: Sequence[str],
    *,
    clock: Callable[[], datetime],
    is_once: bool,
) -> int:
    """Do the background work of all tenants; returns how many jobs were done.

    Works until the process is told to end or, with ``is_once``, until nothing is due.
    """
    database = read_database(load_settings(machine, flags), machine)
    if database is None:
        raise ConfigError(
            "store.url is not set, so there are no tenants",
            hint="a home in files does its work by itself",
        )
    memories = _TenantMemories(home, machine, flags, clock, has_tenants=True)
    worker = JobWorker(open_jobs(database), memories)
    if is_once:
        return worker.run_until_done()
    log_as_json()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    worker.run()
    return 0


def _end(workers: Sequence[JobWorker]) -> None:
    """Let workers finish; other processes take over jobs that take longer."""
    for worker in workers:
        worker.stop()
    ends_at = time.monotonic() + _WORKER_GRACE_S
    for worker in workers:
        worker.join(max(0.0, ends_at - time.monotonic()))


def read_limits(settings: Settings) -> ServeLimits:
    """What the settings say about how much a server takes."""
    return ServeLimits(
        requests_per_minute=settings.whole("serve.requests_per_minute"),
        requests_at_once=settings.whole("serve.requests_at_once"),
        open_memories=settings.whole("serve.open_memories"),
        idle_s=settings.number("serve.idle_minutes") * 60,
        threads=settings.whole("serve.threads"),
    )


class _TenantMemories(FrozenStruct):
    """Opens the memories of a database's tenants, or the one memory of a home."""

    home: Path
    machine: Machine
    flags: Sequence[str]
    clock: Callable[[], datetime]
    has_tenants: bool

    def __call__(self, tenant: str) -> Memory:
        flags, home = [*self.flags, *_FOR_SERVERS], self.home
        if self.has_tenants:
            flags += [*_FOR_TENANTS, f"store.tenant={tenant}"]
            # For files about this machine; hashed, because no name becomes a path.
            home = home / _TENANTS / bytes_hash(tenant.encode()).replace(":", "-")
        machine = replace(self.machine, folder=None)
        settings = load_settings(machine, flags)
        # The background work for tenants is shared out as jobs.
        wake = None if self.has_tenants else partial(start_worker, home, self.flags)
        return Memory(home, settings, machine, clock=self.clock, start_worker=wake)
