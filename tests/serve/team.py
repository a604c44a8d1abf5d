"""A server for two tenants, on a free port, in a thread of the test's own process.

Each tenant has a home of its own behind it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import uvicorn

from backstory.memory import Memory
from backstory.serve.app import TeamServer
from backstory.serve.limits import ServeLimits
from backstory.serve.listening import Listening
from backstory.serve.names import AllowedNames
from backstory.serve.process import configure
from backstory.system.loopback import listen, port_of
from backstory.values.access import AccessToken, Grant, Scope
from tests.processes import comes_true
from tests.samples import a_memory

# One of each kind: whose it is and what for.
TOKENS = {
    "anna-writes": Grant(1, "anna", Scope.READ_WRITE),
    "anna-reads": Grant(2, "anna", Scope.READ),
    "bo-writes": Grant(3, "bo", Scope.READ_WRITE),
    "bo-reads": Grant(4, "bo", Scope.READ),
    "figures": Grant(5, "", Scope.METRICS),
}
HOST = "memory.example.org"


class GivenTokens:
    """Tokens in a table."""

    def __init__(self) -> None:
        self.grants = dict(TOKENS)
        self.error: Exception | None = None

    def find_grant(self, token: str) -> Grant | None:
        if self.error is not None:
            raise self.error
        return self.grants.get(token)

    def has_usable(self) -> bool:
        if self.error is not None:
            raise self.error
        return True

    def create(self, name: str, **about: object) -> tuple[str, AccessToken]:
        raise NotImplementedError

    def list(self) -> list[AccessToken]:
        raise NotImplementedError

    def revoke(self, token_id: int) -> AccessToken:
        raise NotImplementedError

    def close(self) -> None:
        pass


@dataclass
class Team:
    """A running server, and memories of its tenants beside it."""

    url: str
    app: TeamServer
    tokens: GivenTokens
    memories: dict[str, Memory] = field(default_factory=dict)

    def ask(
        self, method: str, path: str, token: str | None = None, **more: object
    ) -> httpx.Response:
        """The answer to one request, on a connection of its own."""
        headers = dict(more.pop("headers", {}))  # type: ignore[call-overload]
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return httpx.request(
            method,
            self.url + path,
            headers=headers,
            timeout=60,
            **more,  # type: ignore[arg-type]
        )

    def get(
        self, path: str, token: str | None = None, **more: object
    ) -> httpx.Response:
        return self.ask("GET", path, token, **more)

    def post(
        self, path: str, token: str | None = None, **more: object
    ) -> httpx.Response:
        return self.ask("POST", path, token, **more)


@contextmanager
def running_team(folder: Path, limits: ServeLimits | None = None) -> Iterator[Team]:
    def open_memory(tenant: str) -> Memory:
        flags = ("embedder.name=none", "index.guidance=false")
        return a_memory(folder / tenant, settings=flags)

    for tenant in ("anna", "bo"):
        (folder / tenant).mkdir(exist_ok=True)
    tokens = GivenTokens()
    app = TeamServer(
        tokens,
        open_memory,
        AllowedNames(("127.0.0.1", HOST)),
        limits or ServeLimits(),
    )
    listener = listen(0)
    port = port_of(listener)
    config = configure(app, Listening("127.0.0.1", port))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    memories = {tenant: open_memory(tenant) for tenant in ("anna", "bo")}
    try:
        assert comes_true(lambda: server.started)
        yield Team(f"http://127.0.0.1:{port}", app, tokens, memories)
    finally:
        server.should_exit = True
        thread.join()
        app.close()
        for each in memories.values():
            each.close()
