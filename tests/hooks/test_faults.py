"""Whatever goes wrong, an agent does not notice: real processes, sockets and files."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from backstory.hooks.ask import ask_server
from backstory.hooks.live_sessions import LiveSession, find_live_session
from backstory.hooks.runtime import list_runtime_folders, make_runtime_folder
from backstory.hooks.server import HookServer
from backstory.ingest.announced import iter_announced
from backstory.memory import Memory
from backstory.system.locks import try_locked
from tests.hooks.hook_home import (
    NOW,
    PROJECT,
    QUESTION,
    SAID,
    Hooks,
    environ_of,
    fill,
    make_home,
)
from tests.processes import comes_true, kill_sometime
from tests.samples import a_memory
from tests.small_disks import leave_room, make_read_only, small_disk

pytestmark = pytest.mark.usefixtures("own_runtime_folder")

ASKED = {"session_id": "s1", "cwd": PROJECT, "prompt": QUESTION}
PROMPT = ("prompt", "--host", "claude-code")


@pytest.fixture
def hooks(tmp_path: Path) -> Hooks:
    return Hooks(make_home(tmp_path), environ_of(tmp_path))


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    for name, value in environ_of(tmp_path).items():
        monkeypatch.setenv(name, value)
    with a_memory(tmp_path, settings=("embedder.name=none",), clock=lambda: NOW) as it:
        fill(it)
        yield it


def of(memory: Memory, tmp_path: Path) -> Hooks:
    return Hooks(memory.home, environ_of(tmp_path))


def ask(hooks: Hooks, event: str = "prompt", home: str = "") -> bytes | None:
    """What a server says is to be printed, if there is one."""
    passed = json.dumps(ASKED).encode()
    where = home or str(hooks.home)
    return ask_server(event, "claude-code", where, passed, hooks.environ)


def is_silent(done: "subprocess.CompletedProcess[bytes]") -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# -- the program ----------------------------------------------------------------------


def test_the_program_prints_what_the_host_takes(hooks: Hooks) -> None:
    done = hooks.run(*PROMPT, payload=ASKED)

    assert (done.returncode, done.stderr, hooks.log()) == (0, b"", [])
    assert SAID in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]


# What no event needs, and what only few do.
NEVER = {"numpy", "onnxruntime", "click", "httpx", "pydantic", "mcp", "orjson"}
NEVER |= {"backstory.memory", "backstory.settings", "backstory.notes.notebook"}
RARELY = {"dataclasses", "msgspec", "typing", "pathlib", "logging", "subprocess"}
RARELY |= {"contextlib", "hashlib", "socket", "threading"}


@pytest.mark.parametrize(
    ("event", "slow"),
    [
        ("session-start", NEVER | RARELY),
        ("prompt", NEVER | RARELY),
        # They start a process.
        ("before-compaction", NEVER | {"dataclasses"}),
        ("session-end", NEVER | {"dataclasses"}),
    ],
)
def test_an_event_is_answered_with_few_imports(
    hooks: Hooks, event: str, slow: set[str]
) -> None:
    code = (
        "import sys\n"
        "from backstory.hooks.events import answer_event\n"
        "import os\n"
        "given = sys.stdin.buffer.read()\n"
        f"home = {str(hooks.home)!r}\n"
        f"found = answer_event({event!r}, 'codex', home, given, os.environ)\n"
        "print(len(found), *sys.modules)"
    )
    environ = dict(hooks.environ)
    # With it, the settings must be read.
    del environ["BACKSTORY_EMBEDDER_IN_BACKGROUND"]
    # No worker is started while there is one.
    with try_locked(hooks.home / "worker.lock"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(ASKED).encode(),
            capture_output=True,
            env=environ,
            check=True,
        )

    printed, *imported = done.stdout.decode().split()
    assert (printed != "0") == (event in ("session-start", "prompt"))
    assert slow & set(imported) == set()
    assert (hooks.home / "worker-wanted").exists() == (printed == "0")


def test_with_a_server_next_to_nothing_is_imported(
    memory: Memory, tmp_path: Path
) -> None:
    hooks = of(memory, tmp_path)
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from backstory.hooks.events import answer_event\n"
        "import os\n"
        f"home = {str(hooks.home)!r}\n"
        f"given = {json.dumps(ASKED).encode()!r}\n"
        "found = answer_event('prompt', 'codex', home, given, os.environ)\n"
        "print(len(found), *(set(sys.modules) - before))"
    )
    with HookServer(memory) as server:
        server.warm_up()
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            env=hooks.environ,
            check=True,
        )

    printed, *imported = done.stdout.decode().split()
    assert int(printed) > 0
    # Without what is built in, in most Pythons.
    assert {name for name in imported if name not in ("_socket", "zlib")} == {
        "backstory",
        "backstory.hooks",
        "backstory.hooks.ask",
        "backstory.hooks.events",
        "backstory.hooks.limits",
        "backstory.hooks.runtime",
    }


def test_where_no_folder_is_known_to_be_private_hooks_work_without_notes(
    hooks: Hooks,
) -> None:
    # As on Windows.
    code = "import os; del os.getuid; from backstory.hooks.entry import main; main()"

    done = subprocess.run(
        [sys.executable, "-c", code, *PROMPT, "--home", str(hooks.home)],
        input=json.dumps(ASKED).encode(),
        capture_output=True,
        env=hooks.environ,
    )

    assert (SAID.encode() in done.stdout, done.stderr, hooks.log()) == (True, b"", [])


BROKEN = {
    "not JSON": (PROMPT, b"{"),
    "no object": (PROMPT, b"[1]"),
    "nothing": (PROMPT, b""),
    "not UTF-8": (PROMPT, b'{"prompt": "\xff"}'),
    "nested too deep": (PROMPT, b"[" * 100_000),
    "an endless number": (PROMPT, b'{"prompt": ' + b"9" * 10_000 + b"}"),
    "more than any host passes": (PROMPT, b" " * (33 * 1024 * 1024)),
    "an unknown host": (("prompt", "--host", "emacs"), b"{}"),
    "an unknown event": (("lunch", "--host", "codex"), b"{}"),
    "no host": (("prompt",), b"{}"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_call_is_one_line_in_the_log(hooks: Hooks, name: str) -> None:
    arguments, passed = BROKEN[name]

    assert is_silent(hooks.run(*arguments, raw=passed))
    assert len(hooks.log()) == 1


def test_hostile_values_are_ignored(hooks: Hooks) -> None:
    for payload in (
        {"session_id": 7, "cwd": ["x"], "prompt": {"a": 1}},
        {"session_id": "a\0b", "cwd": "\0", "prompt": QUESTION},
        {"session_id": "../../etc/passwd\n", "cwd": "../..", "prompt": "\ud800"},
        {"session_id": "x" * 100_000, "cwd": "/" * 100_000, "prompt": None},
    ):
        hooks.answer("prompt", "claude-code", payload)
        hooks.answer("session-start", "claude-code", payload)
        hooks.answer("session-end", "claude-code", payload)


def test_ten_megabytes_are_read_and_cut(hooks: Hooks) -> None:
    payload = {**ASKED, "prompt": QUESTION + " " + "x" * 10_000_000}

    done = hooks.run(*PROMPT, payload=payload)

    assert (done.returncode, done.stderr, hooks.log()) == (0, b"", [])


def test_a_host_that_never_closes_its_end_is_not_waited_for(hooks: Hooks) -> None:
    with subprocess.Popen(
        hooks.command(*PROMPT),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=hooks.environ,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.read() == b""
        assert running.wait() == 0
    assert len(hooks.log()) == 1


def test_without_standard_input_nothing_happens(hooks: Hooks) -> None:
    command = " ".join(map(repr, hooks.command(*PROMPT)))
    done = subprocess.run(
        f"{command} <&-", shell=True, capture_output=True, env=hooks.environ
    )

    assert is_silent(done)


def test_an_input_that_cannot_be_read_is_one_line_in_the_log(hooks: Hooks) -> None:
    written = os.open(os.devnull, os.O_WRONLY)
    done = subprocess.run(
        hooks.command(*PROMPT), stdin=written, capture_output=True, env=hooks.environ
    )
    os.close(written)

    assert is_silent(done)
    assert len(hooks.log()) == 1


def test_an_output_that_takes_nothing_is_one_line_in_the_log(hooks: Hooks) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            hooks.command(*PROMPT),
            input=json.dumps(ASKED).encode(),
            stdout=full,
            stderr=subprocess.PIPE,
            env=hooks.environ,
        )

    assert (done.returncode, done.stderr) == (0, b"")
    assert len(hooks.log()) == 1


# -- the home -------------------------------------------------------------------------


def test_without_a_memory_nothing_is_created(hooks: Hooks, tmp_path: Path) -> None:
    nowhere = Hooks(tmp_path / "nowhere", hooks.environ)

    assert is_silent(nowhere.run(*PROMPT, payload=ASKED))
    assert not nowhere.home.exists()


def test_a_failure_before_anything_is_loaded_is_logged_in_the_home(
    hooks: Hooks, tmp_path: Path
) -> None:
    code = (
        "import sys\n"
        "from backstory.hooks.entry import main\n"
        "sys.modules['backstory.hooks.events'] = None\n"
        "main()"
    )
    folder = tmp_path / "project"
    folder.mkdir()

    done = subprocess.run(
        [sys.executable, "-c", code, *PROMPT, "--home", str(hooks.home)],
        cwd=folder,
        env=hooks.environ,
        capture_output=True,
        input=b"{}",
    )

    assert is_silent(done)
    assert len(hooks.log()) == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["index.db", "history.db"])
def test_a_damaged_database_gives_nothing(hooks: Hooks, name: str) -> None:
    path = hooks.home / name
    path.write_bytes(os.urandom(path.stat().st_size))

    assert is_silent(hooks.run(*PROMPT, payload=ASKED))
    assert len(hooks.log()) == 1


def test_without_an_index_nothing_is_found_or_built(hooks: Hooks) -> None:
    (hooks.home / "index.db").unlink()

    assert is_silent(hooks.run(*PROMPT, payload=ASKED))
    assert not (hooks.home / "index.db").exists()


@pytest.mark.parametrize("name", ["index.db", "history.db"])
def test_a_locked_database_is_not_waited_for(hooks: Hooks, name: str) -> None:
    db = apsw.Connection(str(hooks.home / name))
    db.pragma("locking_mode", "EXCLUSIVE")
    db.execute("BEGIN EXCLUSIVE")

    assert is_silent(hooks.run(*PROMPT, payload=ASKED))
    assert len(hooks.log()) == 1
    db.close()
    assert SAID in str(hooks.answer("prompt", "claude-code", ASKED))


def test_a_home_that_nobody_can_write_is_read(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        hooks = Hooks(make_home(disk), environ_of(tmp_path))
        make_read_only(disk)

        done = hooks.run(*PROMPT, payload=ASKED)
        opened = hooks.run("session-start", "--host", "claude-code", payload=ASKED)

        assert SAID in done.stdout.decode()
        assert b"Answers in German" in opened.stdout
        for event in ("before-compaction", "session-end"):
            ended = hooks.run(event, "--host", "claude-code", payload=ASKED)
            assert is_silent(ended)
        assert (done.stderr, opened.stderr, hooks.log()) == (b"", b"", [])


def test_on_a_full_disk_hooks_read_and_leave_nothing_half_written(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        hooks = Hooks(make_home(disk), environ_of(tmp_path))
        leave_room(disk, 0)
        before = files_in(disk)

        done = hooks.run(*PROMPT, payload=ASKED)
        ended = hooks.run("session-end", "--host", "claude-code", payload=ASKED)

        assert SAID in done.stdout.decode()
        assert is_silent(ended)
        # The log has room for no line. SQLite's own files are empty, or shared memory.
        new = {name for name in files_in(disk) - before if "-" not in name}
        assert new <= {"backstory/hooks.log"}


def files_in(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    }


def test_a_hook_that_is_killed_leaves_nothing_in_the_way(hooks: Hooks) -> None:
    events = ("session-start", "prompt", "before-compaction", "session-end")
    for number, event in enumerate(events):
        payload = {**ASKED, "session_id": event}
        chance = random.Random(number)
        deaths = 0
        while kill_sometime(
            lambda event=event, payload=payload: hooks.answer(  # type: ignore[misc]
                event, "claude-code", payload
            ),
            chance,
            attempt=deaths,
        ):
            deaths += 1
        assert deaths

    assert SAID in str(hooks.answer("prompt", "claude-code", ASKED))
    announced = list(iter_announced(str(hooks.home)))
    assert {(each.session_id, each.cause) for each in announced} == {
        ("before-compaction", "compaction"),
        ("session-end", "session end"),
    }
    for each in announced:
        each.delete()
    assert list((hooks.home / "announced").iterdir()) == []


def test_the_log_does_not_grow_for_ever(hooks: Hooks) -> None:
    log = hooks.home / "hooks.log"
    log.write_text("x" * 199_999, encoding="utf-8")
    for _ in range(3):
        with pytest.raises(ValueError, match="JSON"):
            hooks.answer("prompt", "claude-code", [])
    hooks.run(*PROMPT, raw=b"{")
    hooks.run(*PROMPT, raw=b"{")

    assert log.stat().st_size < 1_000
    assert (hooks.home / "hooks.log.1").stat().st_size > 199_999


# -- servers --------------------------------------------------------------------------


def test_a_server_answers_once_it_is_warm(memory: Memory, tmp_path: Path) -> None:
    hooks = of(memory, tmp_path)
    with HookServer(memory) as server:
        server.warm_up()
        answer = ask(hooks)
        path = Path(server.path)
        assert path.exists()

    assert answer is not None
    assert SAID in json.loads(answer)["hookSpecificOutput"]["additionalContext"]
    assert not path.exists()
    assert ask(hooks) is None


def test_what_a_server_tells_a_session_is_noted_as_if_the_hook_did(
    memory: Memory, tmp_path: Path
) -> None:
    hooks = of(memory, tmp_path)
    with HookServer(memory) as server:
        server.warm_up()
        printed = [hooks.run(*PROMPT, payload=ASKED).stdout for _ in range(2)]
    alone = hooks.run(*PROMPT, payload=ASKED)

    assert [SAID.encode() in each for each in printed] == [True, False]
    assert is_silent(alone)
    child = subprocess.Popen(["sleep", "1000"])
    found = find_live_session(str(hooks.home), hooks.environ, pid=child.pid)
    child.kill()
    child.wait()
    assert found == LiveSession("claude-code", "s1", "", PROJECT)


def test_a_session_whose_hook_gave_up_was_told_nothing(
    memory: Memory, tmp_path: Path
) -> None:
    hooks = of(memory, tmp_path)
    with HookServer(memory) as server:
        server.warm_up()
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(server.path)
            asking.sendall(request_of(memory, "prompt", Path(server.path).parent))
        # It is answered after the other; and a server that ends waits for both.
        hooks.answer("prompt", "claude-code", {**ASKED, "session_id": "s2"})

    assert SAID in str(hooks.answer("prompt", "claude-code", ASKED))
    assert hooks.answer("prompt", "claude-code", {**ASKED, "session_id": "s2"}) is None


def request_of(memory: Memory, event: str, folder: Path) -> bytes:
    """What a hook of Claude Code sends to a server."""
    facts = (memory.home.resolve(), event, "claude-code", os.getpid(), folder)
    return "\0".join([*map(str, facts), json.dumps(ASKED)]).encode()


def test_a_server_that_is_not_warm_leaves_the_prompt_to_the_hook(
    memory: Memory, tmp_path: Path
) -> None:
    hooks = of(memory, tmp_path)
    with HookServer(memory):
        first = ask(hooks)
        assert SAID in str(hooks.answer("prompt", "claude-code", ASKED))

        assert first is None
        assert comes_true(lambda: ask(hooks) is not None)


def test_a_server_of_another_home_is_not_asked(memory: Memory, tmp_path: Path) -> None:
    hooks = of(memory, tmp_path)
    with HookServer(memory) as server:
        server.warm_up()
        # Two homes may share a folder for sockets.
        other = tmp_path / "other"
        other.mkdir()
        theirs = Path(make_runtime_folder(str(other), hooks.environ), "1-0.sock")
        theirs.symlink_to(server.path)

        assert ask(hooks) is not None
        assert ask(hooks, home=str(other)) is None


@pytest.mark.parametrize(
    "sent",
    [b"", b"{", b"\0" * 5, b"/home\0prompt\0codex\x001\0/tmp\0{}", b"x" * 2_000_000],
)
def test_what_is_no_request_is_not_answered(memory: Memory, sent: bytes) -> None:
    with HookServer(memory) as server:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(server.path)
            try:
                asking.sendall(sent)
                asking.shutdown(socket.SHUT_WR)
                assert asking.recv(100) == b""
            except OSError:
                pass  # it hung up before all was sent
        with socket.socket(socket.AF_UNIX) as again:
            again.connect(server.path)


def test_the_socket_of_a_killed_server_is_cleared_away(hooks: Hooks) -> None:
    code = (
        "import sys, time\n"
        "from backstory.hooks.server import HookServer\n"
        "from backstory.memory import Memory\n"
        f"server = HookServer(Memory.open({str(hooks.home)!r}))\n"
        "server.start()\n"
        "print(server.path, flush=True)\n"
        "time.sleep(1000)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env={**hooks.environ, "BACKSTORY_EMBEDDER_NAME": "none"},
    ) as running:
        assert running.stdout is not None
        path = Path(running.stdout.readline().decode().strip())
        assert path.exists()
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert path.exists()

    assert SAID in str(hooks.answer("prompt", "claude-code", ASKED))
    assert not path.exists()


def test_a_folder_that_others_can_enter_is_not_used(
    memory: Memory, tmp_path: Path
) -> None:
    hooks = of(memory, tmp_path)
    with HookServer(memory) as server:
        folder = Path(server.path).parent
        folder.chmod(0o755)

        assert list_runtime_folders(str(memory.home), hooks.environ) == []
        assert SAID in str(hooks.answer("prompt", "claude-code", ASKED))
        folder.chmod(0o700)


def test_a_request_of_another_user_is_refused(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exchange() -> bytes:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(server.path)
            try:
                folder = Path(server.path).parent
                asking.sendall(request_of(memory, "session-start", folder))
                asking.shutdown(socket.SHUT_WR)
                return asking.recv(10_000)
            except OSError:
                return b""  # it hung up before all was sent

    with HookServer(memory) as server:
        ours = exchange()
        # As if this server were another user's.
        user = os.getuid()
        monkeypatch.setattr("backstory.hooks.server.os.getuid", lambda: user + 1)
        theirs = exchange()

    assert b"Answers in German" in ours
    assert theirs == b""


def test_many_hooks_and_servers_at_once(memory: Memory, tmp_path: Path) -> None:
    hooks = of(memory, tmp_path)
    servers = [HookServer(memory) for _ in range(4)]
    for server in servers:
        server.start()
        server.warm_up()
    running = []
    for number in range(20):
        started = subprocess.Popen(
            hooks.command(*PROMPT),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=hooks.environ,
        )
        assert started.stdin is not None
        started.stdin.write(json.dumps({**ASKED, "session_id": f"{number}"}).encode())
        started.stdin.close()
        started.stdin = None
        running.append(started)
    servers[0].close()
    printed = [each.communicate()[0] for each in running]
    for server in servers:
        server.close()

    assert [each.returncode for each in running] == [0] * 20
    assert [SAID.encode() in each for each in printed] == [True] * 20
    assert hooks.log() == []


# -- what is left to others -----------------------------------------------------------


def test_a_server_knows_the_session_of_its_program(hooks: Hooks) -> None:
    payload = {"session_id": "s1", "cwd": PROJECT, "transcript_path": "/t.jsonl"}
    left = payload | {"session_id": "s0"}

    # Stands in for the server, a child of the program as the hooks are.
    with subprocess.Popen(["sleep", "1000"]) as child:

        def find(home: str = str(hooks.home)) -> LiveSession | None:
            return find_live_session(home, hooks.environ, pid=child.pid)

        hooks.run("session-start", "--host", "gemini", payload=payload)
        found = [find(), find("/other")]
        # Its hook may come after that of the session that was begun instead.
        hooks.run("session-end", "--host", "gemini", payload=left)
        found.append(find())
        hooks.run("session-end", "--host", "gemini", payload=payload)
        found.append(find())
        child.kill()

    known = LiveSession("gemini-cli", "s1", "/t.jsonl", PROJECT)
    assert found == [known, None, known, None]


def test_the_worker_reads_and_marks_what_ended(tmp_path: Path, home: Path) -> None:
    line = {
        "type": "user",
        "uuid": "u1",
        "sessionId": "s1",
        "timestamp": "2026-02-28T10:00:00Z",
        "cwd": PROJECT,
        "message": {"role": "user", "content": "The kestrel job failed again"},
    }
    transcript = home / ".claude/projects/x/s1.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(json.dumps(line) + "\n", encoding="utf-8")
    settings = ("embedder.name=none", "llm.name=none")
    with a_memory(tmp_path, home=home, settings=settings) as memory:
        memory.search("anything")
        hooks = Hooks(memory.home, environ_of(tmp_path))
        payload = {
            "session_id": "s1",
            "cwd": PROJECT,
            "transcript_path": str(transcript),
        }
        assert hooks.answer("session-end", "claude-code", payload) is None
        assert len(list((memory.home / "announced").iterdir())) == 1

        memory.work()

        assert list((memory.home / "announced").iterdir()) == []
        assert [hit.text for hit in memory.search("kestrel").hits] == [
            "The kestrel job failed again"
        ]
