"""Find out whether Backstory works where it is installed, and how to mend it.

A hook and the MCP server are run as an agent program would run them, by the command
that is in the program's own settings.
"""

import json
import os
import shlex
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from backstory.errors import BackstoryError, InstallRefused, ProviderUnavailable
from backstory.hooks.log import LOG_NAME
from backstory.install.apply import HostCommand, is_current, is_installed
from backstory.install.commands import SESSION_START
from backstory.install.edits import JsonEdit, ServerEntry, TomlEdit
from backstory.install.hosts import HOST_ROWS
from backstory.install.hosts.base import HostRow, Switch, Target
from backstory.install.plugins import find_plugin, find_switched_off, has_unapproved
from backstory.memory import Memory
from backstory.render.format import render_count, render_path
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.values.structs import FrozenStruct, replace
from backstory.version import __version__

_TIMEOUT_S = 60
_MAX_SAID_CHARS = 200
_MAX_READ_BYTES = 10_000
_PROTOCOL = "2025-06-18"
_START_SERVER = "start its server, or: backstory settings set embedder.name auto"


class Mark(StrEnum):
    """How well something is; a note is no reason to worry."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


class Finding(FrozenStruct):
    """One thing that was looked at; ``fix`` is what to do about it."""

    mark: Mark
    about: str
    text: str
    fix: str = ""


def examine(
    target: Target,
    home: Path,
    open_memory: Callable[[], Memory],
    *,
    user_home: Path,
    folder: Path | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> Iterator[Finding]:
    """Everything that can be said about an installation, as it is found out.

    ``folder`` is the current one, which may have an installation of its own.
    ``timeout_s`` is how long the server and a hook may take each.
    """
    yield _find_version()
    yield from _examine_home(home, user_home)
    installed: list[tuple[HostRow, Target]] = []
    marks = set()
    for row in HOST_ROWS:
        finding, where = _examine_both(row, target, folder, user_home)
        if finding is not None:
            yield finding
            marks.add(finding.mark)
            if finding.mark is Mark.OK:
                installed.append((row, _as_started(row, where)))
                if find_plugin(row, where) is None and has_unapproved(row, where):
                    yield Finding(
                        Mark.NOTE,
                        f"{row.title} hooks",
                        "not run before you have approved them there",
                        f"start {row.program}, and choose to trust them",
                    )
    if installed:
        yield _run_server(*installed[0], timeout_s)
        with_hooks = [each for each in installed if each[0].has_hooks]
        if with_hooks:
            yield _run_hook(*with_hooks[0], home, timeout_s)
    elif Mark.PROBLEM not in marks:
        yield _explain_none(is_any_here=bool(marks))
    yield from _examine_memory(open_memory)


def _explain_none(*, is_any_here: bool) -> Finding:
    about = "agent programs"
    if is_any_here:
        text = "Backstory is not installed in any"
        return Finding(Mark.NOTE, about, text, "backstory install")
    return Finding(Mark.NOTE, about, "none that Backstory knows is on this machine")


# -- this installation ---


def _find_version() -> Finding:
    python = ".".join(map(str, sys.version_info[:3]))
    text = f"backstory {__version__}, Python {python}"
    return Finding(Mark.OK, "version", text)


def _examine_home(home: Path, user_home: Path) -> Iterator[Finding]:
    shown = render_path(str(home), user_home)
    if not home.exists():
        yield Finding(Mark.NOTE, "home", f"{shown} is not there yet", "backstory index")
        return
    if not home.is_dir():
        text, fix = f"{shown} is not a folder", "move it away, then: backstory index"
        yield Finding(Mark.PROBLEM, "home", text, fix)
        return
    if not os.access(home, os.W_OK | os.X_OK):
        yield Finding(
            Mark.PROBLEM,
            "home",
            f"{shown} cannot be written",
            f"chmod u+rwx {shlex.quote(str(home))}",
        )
        return
    opened = [
        path
        for path in (home, *sorted(home.iterdir()))
        if stat.S_IMODE(path.lstat().st_mode) & 0o077 and not path.is_symlink()
    ]
    if opened and sys.platform != "win32":
        yield Finding(
            Mark.PROBLEM,
            "permissions",
            f"others may read {render_path(str(opened[0]), user_home)}"
            + (f" and {len(opened) - 1} more" if len(opened) > 1 else ""),
            f"chmod -R go= {shlex.quote(str(home))}",
        )
    else:
        yield Finding(Mark.OK, "home", f"{shown}, only for you")


# -- the agent programs ---


def examine_host(row: HostRow, target: Target, user_home: Path) -> Finding | None:
    """Whether all our parts are there; None for a program that is not used here."""
    which = row.name if target.project is None else f"{row.name} --project"
    fix = f"backstory install {which}"
    try:
        steps = row.plan(target)
        there = [is_installed(step) for step in steps]
        plugin = find_plugin(row, target)
        switch = find_switched_off(row, target)
    except BackstoryError as exc:
        # Its own hint is for somebody who was changing the file.
        is_broken = exc.hint == InstallRefused.hint
        mend = f"correct it there, then: {fix}" if is_broken else exc.hint
        return Finding(Mark.PROBLEM, row.title, str(exc), mend)
    if plugin is not None and any(there):
        text = "connected twice, also by a plugin: memories are given twice"
        fix = f"backstory uninstall {which}"
        return Finding(Mark.PROBLEM, row.title, text, fix)
    if plugin is None and not any(there):
        if not row.is_here(target):
            return None
        return Finding(Mark.NOTE, row.title, "on this machine, but not connected", fix)
    if plugin is None and not all(there):
        missing = render_path(str(steps[there.index(False)].path), user_home)
        return Finding(
            Mark.PROBLEM, row.title, f"our part of {missing} is missing", fix
        )
    if switch is not None:
        return _tell_switch(row, switch, user_home)
    if plugin is not None:
        return _examine_path(row, target, "connected by a plugin")
    if _is_by_name(row, target):
        return _examine_path(row, target, "connected by name")
    if not all(is_current(step) for step in steps):
        text = "connected by another version, or for another home"
        return Finding(Mark.PROBLEM, row.title, text, fix)
    return Finding(Mark.OK, row.title, "connected")


def _tell_switch(row: HostRow, switch: Switch, user_home: Path) -> Finding:
    name, path = ".".join(switch.keys), render_path(str(switch.path), user_home)
    text = f"connected, but {switch.stops} switched off by '{name}' in {path}"
    fix = f"set '{name}' to {str(not switch.off).lower()} there"
    return Finding(Mark.PROBLEM, row.title, text, fix)


def _examine_both(
    row: HostRow, target: Target, folder: Path | None, user_home: Path
) -> tuple[Finding | None, Target]:
    """What is installed for the whole program or else for a folder, and which it is."""
    finding = examine_host(row, target, user_home)
    is_connected = finding is not None and finding.mark is not Mark.NOTE
    if is_connected or folder is None:
        return finding, target
    in_folder = replace(target, project=folder)
    own = examine_host(row, in_folder, user_home)
    if own is None or own.mark is Mark.NOTE:
        return finding, target
    return replace(own, text=f"{own.text}, in this folder only"), in_folder


def _examine_path(row: HostRow, target: Target, text: str) -> Finding:
    """Whether PATH leads to us, for programs that start us by our names."""
    commands = target.by_name().commands
    for name in (commands.backstory[0], commands.hook[0]):
        if target.find_program(name) is None:
            folder = Path(target.commands.backstory[0]).parent
            missing = f"{text}, but '{name}' is not on your PATH"
            fix = f"add {folder} to your PATH"
            return Finding(Mark.PROBLEM, row.title, missing, fix)
    return Finding(Mark.OK, row.title, text)


def _is_by_name(row: HostRow, target: Target) -> bool:
    return all(is_current(step) for step in row.plan(target.by_name()))


def _as_started(row: HostRow, target: Target) -> Target:
    """The target with the commands by which a program starts us."""
    has_plugin = find_plugin(row, target) is not None
    return target.by_name() if has_plugin or _is_by_name(row, target) else target


def _server_words(row: HostRow, target: Target) -> Sequence[str]:
    """The command of the server, as it is in the settings of a program."""
    for step in row.plan(target):
        values: Mapping[str, object] | None = None
        match step:
            case HostCommand(value=value):
                values = value
            case TomlEdit(values=value):
                values = value
            case JsonEdit(parts=parts):
                entries = [part for part in parts if isinstance(part, ServerEntry)]
                values = entries[0].value if entries else None
        if values is not None:
            command, args = values["command"], values.get("args", [])
            first = command if isinstance(command, list) else [command]
            assert isinstance(args, list)
            return [*first, *args]
    raise AssertionError(f"{row.name} has no server")


def _run_server(row: HostRow, target: Target, timeout_s: float) -> Finding:
    """Do as a program does first: shake hands, and ask for the tools."""
    about = "MCP server"
    hello = {
        "protocolVersion": _PROTOCOL,
        "capabilities": {},
        "clientInfo": {"name": "backstory doctor", "version": __version__},
    }
    messages: list[Mapping[str, object]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    words = _server_words(row, target)
    started = time.monotonic()
    is_late = threading.Event()
    try:
        with (
            TemporaryFile() as errors,
            subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Not a pipe, which could fill up while nobody reads it.
                stderr=errors,
                env=dict(target.machine.environ),
                text=True,
            ) as process,
        ):

            def give_up() -> None:
                is_late.set()
                process.kill()

            # Reading has no timeout of its own; it ends when the server has ended.
            timer = threading.Timer(timeout_s, give_up)
            timer.start()
            try:
                answer = _converse(process, messages, wanted=2)
            finally:
                timer.cancel()
            said = _first_line(errors)
    except (OSError, ValueError) as exc:
        said = one_line(neutralize(str(exc)), _MAX_SAID_CHARS)
        return Finding(
            Mark.PROBLEM, about, f"it does not start ({said})", shlex.join(words)
        )
    if is_late.is_set():
        text = f"it does not answer and end within {timeout_s:g} s"
        return Finding(Mark.PROBLEM, about, text, shlex.join(words))
    tools = answer.get("result", {})
    listed = tools.get("tools", []) if isinstance(tools, dict) else []
    if not listed:
        text = "it does not list its tools" + (f" ({said})" if said else "")
        return Finding(Mark.PROBLEM, about, text, shlex.join(words))
    took_s = time.monotonic() - started
    return Finding(
        Mark.OK, about, f"{render_count(len(listed), 'tool')}, in {took_s:.1f} s"
    )


def _first_line(errors: IO[bytes]) -> str:
    """What a program said first on its standard error; empty if nothing."""
    errors.seek(0)
    lines = errors.read(_MAX_READ_BYTES).decode(errors="replace").splitlines()
    return one_line(neutralize(lines[0]), _MAX_SAID_CHARS) if lines else ""


def _converse(
    process: "subprocess.Popen[str]",
    messages: Sequence[Mapping[str, object]],
    *,
    wanted: int,
) -> dict[str, object]:
    """Send messages, wait for one answer and for the end; empty without an answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    for message in messages:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
    found: dict[str, object] = {}
    for line in process.stdout:
        answer = json.loads(line)
        if isinstance(answer, dict) and answer.get("id") == wanted:
            found = answer
            break
    process.stdin.close()
    process.wait()
    return found


def _run_hook(row: HostRow, target: Target, home: Path, timeout_s: float) -> Finding:
    """Begin a session, as a program does. A hook that fails tells only its log."""
    words = target.commands.hook_words(SESSION_START, row.name)
    given = {"session_id": "doctor", "cwd": str(target.machine.home)}
    logged = len(_read_hook_log(home))
    started = time.monotonic()
    try:
        done = subprocess.run(
            words,
            input=json.dumps(given),
            env=dict(target.machine.environ),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return Finding(
            Mark.PROBLEM, "hook", f"it does not run ({exc})", shlex.join(words)
        )
    took_s = time.monotonic() - started
    said = done.stderr.strip() or "".join(_read_hook_log(home)[logged:][-1:])
    if done.returncode != 0 or said:
        said = one_line(neutralize(said), _MAX_SAID_CHARS)
        return Finding(Mark.PROBLEM, "hook", f"it fails ({said})", shlex.join(words))
    return Finding(Mark.OK, "hook", f"runs, in {took_s:.2f} s")


def _read_hook_log(home: Path) -> list[str]:
    try:
        return (home / LOG_NAME).read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []


# -- the memory ---


def _examine_memory(open_memory: Callable[[], Memory]) -> Iterator[Finding]:
    try:
        memory = open_memory()
        status, unread = memory.status(), memory.count_unread()
    except BackstoryError as exc:
        yield Finding(Mark.PROBLEM, "history", str(exc), exc.hint)
        return
    sessions = render_count(status.sessions, "session")
    text = f"{sessions}, {render_count(status.messages, 'message')}"
    if status.messages:
        yield Finding(Mark.OK, "history", text)
    else:
        yield Finding(Mark.NOTE, "history", "nothing was read yet", "backstory index")
    if status.problems:
        count = len(status.problems)
        yield Finding(
            Mark.NOTE, "sources", f"{count} could not be read", "backstory status"
        )
    try:
        memory.notebook.read_memory()
    except BackstoryError as exc:
        yield Finding(Mark.PROBLEM, "MEMORY.md", str(exc), exc.hint)
    if unread:
        listed = ", ".join(f"{count:,} of {name}" for name, count in unread.items())
        yield Finding(
            Mark.NOTE,
            "agents' files",
            f"changed since they were read: {listed}",
            "backstory index",
        )
    index = status.index
    if index.is_behind:
        yield Finding(
            Mark.NOTE, "index", "not everything is indexed yet", "backstory index"
        )
    else:
        yield Finding(Mark.OK, "index", "complete")
    if index.problem:
        yield Finding(Mark.PROBLEM, "index", index.problem, "backstory rebuild")
    missing = index.with_meaning - index.embedded
    if missing > 0 and index.embedder != "none":
        yield Finding(
            Mark.NOTE,
            "vectors",
            f"{missing:,} of {index.with_meaning:,} are missing",
            "backstory index --wait",
        )


def examine_models(
    embedder: str, try_embedder: Callable[[], None], check_llm: Callable[[], str]
) -> Iterator[Finding]:
    """Which models are used, if any, and whether they work.

    ``try_embedder`` uses it once; ``check_llm`` returns what is set up, empty for none,
    and asks it nothing. They raise ``BackstoryError`` if something is wrong.
    """
    yield _run_embedder(embedder, try_embedder)
    yield _check_llm(check_llm)


def _check_llm(check_llm: Callable[[], str]) -> Finding:
    about = "language model"
    try:
        title = check_llm()
    except BackstoryError as exc:
        said = one_line(neutralize(str(exc)), _MAX_SAID_CHARS)
        return Finding(Mark.PROBLEM, about, f"no daily logs: {said}", exc.hint)
    if title:
        return Finding(Mark.OK, about, f"{title}, not asked anything")
    text = "none: no daily logs are written"
    fix = "backstory settings set llm.name claude (or another)"
    return Finding(Mark.NOTE, about, text, fix)


def _run_embedder(name: str, try_embedder: Callable[[], None]) -> Finding:
    about = "embedder"
    if name == "none":
        text = "none: searches go by words alone"
        fix = "backstory settings unset embedder.name"
        return Finding(Mark.NOTE, about, text, fix)
    started = time.monotonic()
    try:
        try_embedder()
    except BackstoryError as exc:
        said = one_line(neutralize(str(exc)), _MAX_SAID_CHARS)
        # What the error says otherwise is meant for a search that goes on without.
        is_down = exc.hint == ProviderUnavailable.hint
        fix = _START_SERVER if is_down else exc.hint
        return Finding(Mark.PROBLEM, about, f"{name} does not work: {said}", fix)
    took_s = time.monotonic() - started
    return Finding(Mark.OK, about, f"{name} works, in {took_s:.1f} s")
