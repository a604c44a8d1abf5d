"""Which session an agent program is running, for the servers that it has started.

A host tells its hooks the session, but not its MCP servers. So a hook leaves a note
about the process that ran it, and a server looks for notes about the processes that it
descends from. A note counts only while that very process runs.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping

from backstory.hooks.hosts import HookCall
from backstory.hooks.runtime import list_runtime_folders
from backstory.system.small_files import write_small_file

_SUFFIX = ".session"
# Between a host and its hook; its other children do not descend from them.
_SHELLS = frozenset(
    {"sh", "bash", "dash", "zsh", "ash", "busybox", "env", "timeout", "backstory-hook"}
)
_MAX_ANCESTORS = 30
_MAX_NOTE_BYTES = 20_000


class LiveSession:
    """A session in progress: the host as the history knows it, and what it said.

    ``session_id`` is the host's own; ``transcript`` and ``cwd`` may be empty.
    """

    __slots__ = ("cwd", "host", "session_id", "transcript")

    def __init__(self, host: str, session_id: str, transcript: str, cwd: str) -> None:
        self.host = host
        self.session_id = session_id
        self.transcript = transcript
        self.cwd = cwd

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LiveSession) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __repr__(self) -> str:
        return f"LiveSession{self._facts()!r}"

    def _facts(self) -> tuple[str, str, str, str]:
        return (self.host, self.session_id, self.transcript, self.cwd)


class _Process:
    __slots__ = ("name", "parent", "pid", "started")

    def __init__(self, pid: int, parent: int, name: str, started: str) -> None:
        self.pid = pid
        self.parent = parent
        self.name = name
        # Tells a process from a later one with the same number.
        self.started = started


# -- a hook ---------------------------------------------------------------------------


def note_live_session(folder: str, home: str, call: HookCall, *, pid: int) -> None:
    """Note which session the process runs that a hook was started by.

    ``pid`` is the process of the hook. Raises OSError.
    """
    host = _find_host(pid)
    if host is None or not call.session_id:
        return
    note = {
        "home": os.path.realpath(home),
        "started": host.started,
        "host": call.host.reads,
        "session_id": call.session_id,
        "transcript": call.transcript,
        "cwd": call.cwd,
    }
    write_small_file(_note_path(folder, host.pid), json.dumps(note).encode())


def forget_live_session(home: str, environ: Mapping[str, str], session_id: str) -> None:
    """Forget that the process that this hook was started by runs the session.

    It may run another by now: when somebody switches sessions, the hook of the one that
    ends and that of the one that begins run at the same time.
    """
    host = _find_host(os.getpid())
    if host is None:
        return
    for folder in list_runtime_folders(home, environ):
        path = _note_path(folder, host.pid)
        noted = _read_note(path, home, host.started)
        if noted is not None and noted.session_id != session_id:
            continue
        try:
            os.unlink(path)
        except OSError:
            pass


def clear_stale_notes(folder: str) -> None:
    """Delete the notes of processes that have ended."""
    # Only needed when a session begins.
    from backstory.system.processes import is_running

    for name in os.listdir(folder):
        number, _, suffix = name.partition(".")
        if f".{suffix}".startswith(_SUFFIX) and number.isdigit():
            if is_running(int(number)):
                continue
            try:
                os.unlink(os.path.join(folder, name))
            except OSError:
                pass


def _find_host(pid: int) -> _Process | None:
    """The nearest process above this one that is no shell."""
    above = _iter_ancestors(pid)
    return next((each for each in above if each.name not in _SHELLS), None)


# -- a server -------------------------------------------------------------------------


def find_live_session(
    home: str, environ: Mapping[str, str], *, pid: int | None = None
) -> LiveSession | None:
    """The session of the nearest process above this one that a hook knows.

    ``pid`` is the process that asks; by default this one.
    """
    folders = list_runtime_folders(home, environ)
    if not folders:
        return None
    for process in _iter_ancestors(os.getpid() if pid is None else pid):
        for folder in folders:
            found = _read_note(_note_path(folder, process.pid), home, process.started)
            if found is not None:
                return found
    return None


def _read_note(path: str, home: str, started: str) -> LiveSession | None:
    try:
        with open(path, "rb") as file:
            note = json.loads(file.read(_MAX_NOTE_BYTES))
        facts = [note[key] for key in ("host", "session_id", "transcript", "cwd")]
        is_ours = note["home"] == os.path.realpath(home) and note["started"] == started
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if not is_ours or not all(isinstance(fact, str) for fact in facts):
        return None
    return LiveSession(*facts)


def _note_path(folder: str, pid: int) -> str:
    return os.path.join(folder, f"{pid}{_SUFFIX}")


# -- processes ------------------------------------------------------------------------


def _iter_ancestors(pid: int) -> Iterator[_Process]:
    """The processes above one, the nearest first, as far as the system tells."""
    find = _find_in_proc if sys.platform == "linux" else _find_in_list()
    process = find(pid)
    for _ in range(_MAX_ANCESTORS):
        if process is None or process.parent <= 1:
            return
        process = find(process.parent)
        if process is not None:
            yield process


def _find_in_proc(pid: int) -> _Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            line = file.read()
    except OSError:
        return None
    # The name is in parentheses, and may have any characters.
    name, _, rest = line.partition(b"(")[2].rpartition(b")")
    fields = rest.split()
    if len(fields) < 20:
        return None
    started = fields[19].decode()
    return _Process(pid, int(fields[1]), name.decode(errors="replace"), started)


def _find_in_list() -> Callable[[int], _Process | None]:
    """A function that finds processes, where there is no /proc."""
    # Slow to import, and not needed on Linux.
    import subprocess

    command = ["ps", "-axo", "pid=,ppid=,lstart=,comm="]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=1)
    except (OSError, ValueError, subprocess.SubprocessError):
        return lambda pid: None
    found = {}
    for line in done.stdout.splitlines():
        pid, parent, *started, name = line.split(maxsplit=7)
        name = os.path.basename(name)
        found[int(pid)] = _Process(int(pid), int(parent), name, " ".join(started))
    return found.get
