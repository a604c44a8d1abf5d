"""How much a tenant may ask for, and how long it may take to ask."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backstory.memory import Memory
from backstory.serve import process, requests
from backstory.serve.limits import RequestLimits, ServeLimits
from backstory.serve.memories import AllInUse, OpenMemories
from tests.processes import comes_true
from tests.serve.team import Team, running_team


@pytest.fixture
def small_team(tmp_path: Path) -> Iterator[Team]:
    limits = ServeLimits(requests_per_minute=5, open_memories=1, idle_s=0)
    with running_team(tmp_path, limits) as running:
        yield running


def test_a_tenant_that_asks_too_often_is_told_when_to_try_again(
    small_team: Team,
) -> None:
    statuses = [
        small_team.get("/api/sessions", "anna-reads").status_code for _ in range(5)
    ]
    one_too_many = small_team.get("/api/sessions", "anna-writes")

    assert statuses == [200] * 5
    assert one_too_many.status_code == 429
    assert 1 <= int(one_too_many.headers["retry-after"]) <= 12
    # It is nobody else's business.
    assert small_team.get("/api/sessions", "bo-reads").status_code == 200
    assert small_team.get("/metrics", "figures").status_code == 200


def test_requests_come_back_with_time() -> None:
    now = 0.0
    limits = RequestLimits(60, 2, clock=lambda: now)

    first = [limits.begin("anna") for _ in range(2)]
    third = limits.begin("anna")
    for _ in range(2):
        limits.end("anna")
    rest = []
    for _ in range(59):
        rest.append(limits.begin("anna"))
        limits.end("anna")
    now += 1.0

    # Two at once, then sixty in a minute, and one more a second later.
    assert (first, third) == ([None, None], 1.0)
    assert rest == [None] * 58 + [pytest.approx(1.0)]
    assert limits.begin("anna") is None


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "/api/memory"), ("POST", "/mcp"), ("POST", "/forget")]
)
def test_a_request_that_says_it_is_too_large_is_refused_unread(
    small_team: Team, method: str, path: str
) -> None:
    answer = small_team.ask(method, path, "anna-writes", content=b"x" * 4_100_000)

    assert answer.status_code == 413


def test_a_request_that_does_not_say_how_large_it_is_is_counted(
    small_team: Team,
) -> None:
    answer = small_team.ask(
        "PUT", "/api/memory", "anna-writes", content=(b"x" * 100_000 for _ in range(50))
    )

    assert answer.status_code == 413


def test_a_sign_in_takes_a_token_and_not_a_book(small_team: Team) -> None:
    answer = small_team.post("/sign-in", data={"token": "x" * 20_000})

    assert answer.status_code == 413


def connect(team: Team) -> socket.socket:
    port = int(team.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def test_whoever_says_nothing_is_cut_off(
    small_team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "HEAD_S", 0.2)
    with connect(small_team) as silent, connect(small_team) as slow:
        slow.sendall(b"GET /health HT")

        assert (silent.recv(100), slow.recv(100)) == (b"", b"")


def test_whoever_asks_a_second_time_and_does_not_end_is_cut_off(
    small_team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(small_team) as slow:
        slow.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        while b"ok" not in slow.recv(10_000):
            pass
        monkeypatch.setattr(process, "HEAD_S", 0.2)
        slow.sendall(b"GET /hea")

        assert slow.recv(100) == b""


def test_whoever_takes_too_long_to_send_a_body_is_told_so(
    small_team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "BODY_S", 0.5)
    with connect(small_team) as slow:
        head = "PUT /api/memory HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
        head += "Authorization: Bearer anna-writes\r\n\r\n{"
        slow.sendall(head.encode())

        assert slow.recv(100).startswith(b"HTTP/1.1 408")


def test_who_has_not_asked_when_the_server_ends_is_told_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE_S", 1)
    with running_team(tmp_path) as team:
        slow = connect(team)
        head = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
        head += "Authorization: Bearer anna-reads\r\n"
        head += "Content-Type: application/json\r\n"
        head += "Accept: application/json, text/event-stream\r\n\r\n{"
        slow.sendall(head.encode())
        # It is counted when its head has been read.
        assert comes_true(lambda: len(team.app.memories) == 1)

    with slow:
        answer = slow.recv(10_000)
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"retry-after: 5\r\n" in answer
    assert answer.endswith(b"The server is ending\n")


# -- open memories ---


class FakeMemory:
    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Opening:
    """Opens memories, slowly, and knows which."""

    def __init__(self, most: int = 2) -> None:
        self.made: list[FakeMemory] = []
        self.now = 0.0
        self.open = OpenMemories(
            self._open, lambda _: "built", most=most, idle_s=10, clock=lambda: self.now
        )

    def _open(self, tenant: str) -> Memory:
        time.sleep(0.01)
        made = FakeMemory(tenant)
        self.made.append(made)
        return made  # type: ignore[return-value]


def test_a_memory_is_opened_once_for_all_who_ask_at_the_same_time() -> None:
    opening = Opening()
    barrier = threading.Barrier(8)

    def take(_: int) -> object:
        barrier.wait()
        return opening.open.take("anna").memory

    with ThreadPoolExecutor(8) as threads:
        taken = set(map(id, threads.map(take, range(8))))

    assert (len(taken), len(opening.made)) == (1, 1)


def test_of_too_many_the_one_that_was_used_longest_ago_is_closed() -> None:
    opening = Opening()
    for tenant in ("anna", "bo", "anna", "cid"):
        opening.open.give_back(opening.open.take(tenant))

    assert {each.tenant: each.is_closed for each in opening.made} == {
        "anna": False,
        "bo": True,
        "cid": False,
    }


def test_no_memory_is_closed_while_somebody_uses_it() -> None:
    opening = Opening()
    used = [opening.open.take(tenant) for tenant in ("anna", "bo")]

    with pytest.raises(AllInUse):
        opening.open.take("cid")
    opening.open.give_back(used[1])
    opening.open.take("cid")

    assert {each.tenant: each.is_closed for each in opening.made} == {
        "anna": False,
        "bo": True,
        "cid": False,
    }


def test_what_nobody_uses_for_a_while_is_closed() -> None:
    opening = Opening()
    opening.open.give_back(opening.open.take("anna"))
    used = opening.open.take("bo")
    opening.now = 11
    opening.open.close_idle()
    opening.open.give_back(used)
    opening.open.close_idle()

    assert [each.is_closed for each in opening.made] == [True, False]


def test_a_tenant_is_answered_again_after_its_memory_was_closed(
    small_team: Team,
) -> None:
    seen = [
        small_team.get("/api/sessions", token).status_code
        for token in ("anna-reads", "bo-reads", "anna-reads", "bo-reads")
    ]

    assert seen == [200] * 4
    assert len(small_team.app.memories) == 1
