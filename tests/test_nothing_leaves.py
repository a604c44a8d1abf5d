"""Nothing leaves the machine, nothing is written but to Backstory's own folders, and
nobody else can read it there.

Everything that Backstory can do is run under strace, with a umask of 0, and with keys
and proxies in the environment that it must not use.
"""

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click
import pytest

from backstory.cli.app import commands
from tests.chance import SOAK
from tests.every_command import COMMANDS
from tests.processes import PATIENCE_S

# One process runs it all, once.
pytestmark = pytest.mark.xdist_group("everything")

REPOSITORY = Path(__file__).parents[1]
LIFETIME_S = 10 if SOAK else 0
CALLS = (
    "connect,sendto,sendmsg,sendmmsg,bind,open,openat,openat2,creat,mkdir,mkdirat,"
    "rename,renameat,renameat2,link,linkat,symlink,symlinkat,truncate,mknod,mknodat"
)
CALL = re.compile(r"^\d+ +(?P<name>\w+)\((?P<given>.*)\) += (?P<result>-?\d+|\?)")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
FOLDER = re.compile(r"(?:AT_FDCWD|\d+)<([^>]*)>")
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")
# What a look-up of a name reads or asks.
RESOLVER = ("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf")
# Where "install" adds Backstory to programs, and "uninstall" removes it.
HOST_FOLDERS = (".codex", ".gemini", ".cursor")
DEVICES = ("/dev/null", "/dev/tty", "/dev/ptmx", "/dev/pts/")


@dataclass(frozen=True)
class Call:
    """A call of the system that succeeded, or would have reached for the network."""

    name: str
    given: str

    @property
    def paths(self) -> list[str]:
        """The paths that it names, each beside the folder that it is relative to."""
        folders = FOLDER.findall(self.given) or [""]
        return [
            os.path.normpath(Path(folders[min(at, len(folders) - 1)], path))
            for at, path in enumerate(TEXT.findall(self.given))
        ]


def parse_calls(trace: str) -> Iterator[Call]:
    for line in join_unfinished(trace.splitlines()):
        found = CALL.match(line)
        if found is None:
            continue
        is_network = found["name"] in ("connect", "sendto", "sendmsg", "sendmmsg")
        if is_network or not found["result"].startswith("-"):
            yield Call(found["name"], found["given"])


def join_unfinished(lines: list[str]) -> Iterator[str]:
    """Whole calls: one that another thread's call interrupts is in two lines."""
    begun: dict[str, str] = {}
    for line in lines:
        thread = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            begun[thread] = line.removesuffix("<unfinished ...>")
        elif " resumed>" in line and thread in begun:
            yield begun.pop(thread) + line.split(" resumed>", 1)[1]
        else:
            yield line


def list_commands() -> set[str]:
    """The path of every command, as the command line itself knows them."""
    context = click.Context(commands)
    found = {}
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        found[name] = command
        if isinstance(command, click.Group):
            found |= {f"{name} {each}": None for each in command.commands}
    return set(found)


def test_no_command_is_missing_here() -> None:
    assert set(COMMANDS) == list_commands()


@dataclass(frozen=True)
class World:
    """Where everything was done, and what was asked of the system meanwhile.

    ``calls`` are None where nobody may watch, and ``unwatched`` says why.
    """

    root: Path
    sockets: Path
    port: int
    calls: list[Call] | None
    unwatched: str

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def kept(self) -> Path:
        # Neither it nor the folder above it exists before.
        return self.root / "data" / "kept"

    @property
    def temporary(self) -> Path:
        return self.root / "temporary"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, runtime_folder: str) -> World:
    """Everything is done in it that can be done."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    strace, unwatched = find_strace()
    root, sockets = tmp_path_factory.mktemp("world"), Path(runtime_folder, "every")
    empty = World(root, sockets, port, None, unwatched)
    for folder in (empty.home, empty.temporary, empty.sockets):
        folder.mkdir(mode=0o700)
    trace = empty.root / "trace"
    watching = [
        *("-f", "-y", "--seccomp-bpf", "-s", "4096", "-o", str(trace)),
        *("-e", f"trace={CALLS}", "-e", "signal=none"),
    ]
    done = subprocess.run(
        [
            *([strace, *watching] if strace else ()),
            *(sys.executable, "-m", "tests.every_command"),
            *(str(empty.temporary), str(port), str(LIFETIME_S)),
        ],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(empty.home),
            "BACKSTORY_HOME": str(empty.kept),
            "TMPDIR": str(empty.temporary),
            "XDG_RUNTIME_DIR": str(empty.sockets),
            "EDITOR": "true",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUTF8": "1",
            "TZ": "UTC",
            # None of this is a permission.
            "ANTHROPIC_API_KEY": "sk-ant-test",
            "GEMINI_API_KEY": "test",
            "OPENAI_API_KEY": "sk-test",
            "HTTPS_PROXY": "http://proxy.invalid:3128",
            "ORT_DISABLE_TELEMETRY": "0",
            "HF_TOKEN": "hf_test",
        },
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        # A busy machine runs the watched processes many times more slowly.
        timeout=4 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    codes = json.loads(done.stdout.splitlines()[-1])
    odd = {path for path, code in codes.items() if code not in COMMANDS[path][1]}
    assert odd == set(), (codes, done.stderr)
    if strace is None:
        return empty
    # strace itself ends with the last of the processes, workers included.
    seen = trace.read_text(encoding="utf-8", errors="replace")
    return replace(empty, calls=list(parse_calls(seen)))


def find_strace() -> tuple[str | None, str]:
    """The program, or why it cannot be used."""
    strace = shutil.which("strace")
    if strace is None:
        return None, "strace is not installed"
    tried = subprocess.run(
        [strace, "-f", "--seccomp-bpf", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "--seccomp-bpf" in tried.stderr:
        return None, "strace is too old: it has no --seccomp-bpf, which came with 5.3"
    if tried.returncode:
        return None, "strace may not watch processes here"
    return strace, ""


@pytest.fixture
def calls(world: World) -> list[Call]:
    """What is asked of the system while everything is done that can be done."""
    if world.calls is None:
        pytest.skip(world.unwatched)
    return world.calls


def test_the_calls_are_seen(calls: list[Call], world: World) -> None:
    opened = {path for call in calls if call.name == "openat" for path in call.paths}
    assert str(world.kept / "history.db") in opened
    assert any("onnxruntime" in path for path in opened)
    bound = [call.given for call in calls if call.name == "bind"]
    assert any(f"sin_port=htons({world.port})" in given for given in bound)


def test_no_connection_is_opened(calls: list[Call], world: World) -> None:
    names = ("connect", "sendto", "sendmsg", "sendmmsg", "bind")
    reached = [call for call in calls if call.name in names]
    # What asked for it was "mcp --http" with this port, and the test that talks to it.
    served = f'sin_port=htons({world.port}), sin_addr=inet_addr("127.0.0.1")'

    def stays(call: Call) -> bool:
        if "sa_family=AF_" not in call.given:
            # Of a socket that is connected already: a pair, or one that is listed here.
            return True
        if "sa_family=AF_INET," in call.given:
            return served in call.given
        own = f'sun_path="{world.sockets}'
        return "sa_family=AF_UNIX" in call.given and own in call.given

    assert [call for call in reached if not stays(call)] == []


def test_no_name_is_looked_up(calls: list[Call]) -> None:
    looked = [call for call in calls if any(path in RESOLVER for path in call.paths)]
    assert looked == []


def writes(call: Call) -> bool:
    if call.name in ("connect", "bind", "sendto", "sendmsg", "sendmmsg"):
        return False
    return not call.name.startswith("open") or bool(WRITES.search(call.given))


def is_samples(path: str, world: World) -> bool:
    """Whether the tests wrote it, or it is of a program that Backstory is added to."""
    samples = (*HOST_FOLDERS, ".claude")
    return path.startswith(tuple(str(world.home / name) for name in samples))


def test_nothing_is_written_elsewhere(calls: list[Call], world: World) -> None:
    # A setting is written to the file of the user's settings.
    config = world.home / ".config"
    own = (world.kept, world.temporary, world.sockets, config / "backstory")
    allowed = (*map(str, own), *DEVICES)
    made_on_the_way = {str(config), str(world.kept.parent)}

    elsewhere = {
        path
        for call in calls
        if writes(call)
        for path in call.paths
        if not path.startswith(allowed) and not is_samples(path, world)
    }

    assert elsewhere <= made_on_the_way


def test_the_user_is_left_with_nothing_but_their_settings(world: World) -> None:
    left = {path.name for path in world.home.iterdir()}
    assert left <= {".claude", ".config"}
    config = [file for file in (world.home / ".config").rglob("*") if file.is_file()]
    assert [file.name for file in config] == ["config.toml"]


# -- nobody else may read it ---


def test_everything_that_is_left_is_private(world: World) -> None:
    modes = {
        path: stat.S_IMODE(path.lstat().st_mode)
        for folder in (world.home, world.kept.parent, world.temporary, world.sockets)
        for path in (folder, *folder.rglob("*"))
        if not is_samples(str(path), world)
        # The tests' own.
        if path != world.temporary / "questions.jsonl"
    }

    assert world.kept / "history.db" in modes
    assert world.kept / "mcp-token" in modes
    assert world.temporary / "notes.zip" in modes
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}


def test_everything_is_private_from_the_moment_it_is_made(
    calls: list[Call], world: World
) -> None:
    """Also what is deleted again, such as temporary files."""
    first: dict[str, int] = {}
    for call in calls:
        if call.name.startswith("link"):
            # An empty database is made under another name.
            made_as, path = call.paths
            first.setdefault(path, first[made_as])
        elif call.name.startswith("mkdir") or "O_CREAT" in call.given:
            # SQLite names another mode for files that exist already.
            mode = int(call.given.rpartition(", ")[2], 8)
            first.setdefault(call.paths[-1], mode)

    readable = {
        path: oct(mode)
        for path, mode in first.items()
        if not path.startswith(DEVICES) and not is_samples(path, world)
        if path != str(world.temporary / "questions.jsonl")
        if mode & 0o077
    }

    assert readable == {}
    assert any("backstory-demo-" in path for path in first)
    assert any(path.endswith("-wal") for path in first)
