"""Nothing leaves the machine, and nothing is written but to Backstory's own folders.

Everything that Backstory can do is run under strace, with keys and proxies in the
environment that it must not use.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
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


@pytest.fixture(scope="module")
def places(
    tmp_path_factory: pytest.TempPathFactory, runtime_folder: str
) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("world")
    places = {name: root / name for name in ("home", "kept", "temporary")}
    for folder in places.values():
        folder.mkdir()
    return {**places, "sockets": Path(runtime_folder)}


@pytest.fixture(scope="module")
def calls(places: dict[str, Path]) -> list[Call]:
    """What is asked of the system while everything is done that can be done."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    trace = places["home"].parent / "trace"
    program = [sys.executable, "-m", "tests.every_command", str(places["temporary"])]
    done = subprocess.run(
        [
            *(strace, "-f", "-y", "--seccomp-bpf", "-s", "4096", "-o", str(trace)),
            *("-e", f"trace={CALLS}", "-e", "signal=none"),
            *program,
            str(LIFETIME_S),
        ],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(places["home"]),
            "BACKSTORY_HOME": str(places["kept"]),
            "TMPDIR": str(places["temporary"]),
            "XDG_RUNTIME_DIR": str(places["sockets"]),
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
        timeout=PATIENCE_S,
    )
    if "ptrace" in done.stderr and "not permitted" in done.stderr:
        pytest.skip("strace may not watch processes here")
    assert done.returncode == 0, done.stderr
    codes = json.loads(done.stdout.splitlines()[-1])
    odd = {path for path, code in codes.items() if code not in COMMANDS[path][1]}
    assert odd == set(), (codes, done.stderr)
    # strace itself ends with the last of the processes, workers included.
    return list(parse_calls(trace.read_text(encoding="utf-8", errors="replace")))


def test_the_calls_are_seen(calls: list[Call], places: dict[str, Path]) -> None:
    opened = {path for call in calls if call.name == "openat" for path in call.paths}
    assert str(places["kept"] / "history.db") in opened
    assert any("onnxruntime" in path for path in opened)


def test_no_connection_is_opened(calls: list[Call], places: dict[str, Path]) -> None:
    names = ("connect", "sendto", "sendmsg", "sendmmsg", "bind")
    reached = [call for call in calls if call.name in names]

    def stays(call: Call) -> bool:
        if "sa_family=AF_" not in call.given:
            # Of a socket that is connected already: a pair, or one that is listed here.
            return True
        own = f'sun_path="{places["sockets"]}'
        return "sa_family=AF_UNIX" in call.given and own in call.given

    assert [call for call in reached if not stays(call)] == []


def test_no_name_is_looked_up(calls: list[Call]) -> None:
    looked = [call for call in calls if any(path in RESOLVER for path in call.paths)]
    assert looked == []


def test_nothing_is_written_elsewhere(
    calls: list[Call], places: dict[str, Path]
) -> None:
    # A setting is written to the file of the user's settings, and samples to the home.
    own = [places[name] for name in ("kept", "temporary", "sockets")]
    own += [places["home"] / ".config/backstory", places["home"] / ".config"]
    allowed = (*map(str, own), *DEVICES)
    samples = str(places["home"] / ".claude")

    elsewhere = {
        path
        for call in calls
        if call.name not in ("connect", "bind", "sendto", "sendmsg", "sendmmsg")
        if not call.name.startswith("open") or WRITES.search(call.given)
        for path in call.paths
        if not path.startswith((*allowed, samples))
    }

    assert elsewhere == set()


def test_the_user_is_left_with_nothing_but_their_settings(
    calls: list[Call], places: dict[str, Path]
) -> None:
    left = {
        file.relative_to(places["home"]).parts[0] for file in places["home"].iterdir()
    }
    assert left <= {".claude", ".config"}
    config = [
        file for file in (places["home"] / ".config").rglob("*") if file.is_file()
    ]
    assert [file.name for file in config] == ["config.toml"]
