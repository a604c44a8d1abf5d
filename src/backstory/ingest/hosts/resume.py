"""The commands with which a person continues sessions in their own programs.

Whatever a session is called and wherever it ran, the command can be pasted into a
shell: ids and folders are what somebody else wrote.
"""

import os
import re
import shlex
from collections.abc import Collection
from pathlib import Path, PureWindowsPath

from backstory.ingest.hosts import HOSTS
from backstory.store.base.history import HistoryStore
from backstory.text.escape import neutralize
from backstory.values.history import Session

# Nothing in such an id is special to a shell, and no program takes it for an option.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_RESUMES = {host.name: host.resume for host in HOSTS if host.resume is not None}
# Host and native id.
_Key = tuple[str, str]
# Subagents of subagents of subagents.
_MAX_DEPTH = 8


def find_resume_commands(
    history: HistoryStore, sessions: Collection[Session], *, home: Path
) -> dict[int, str]:
    """The command of each session that can be continued, by the session's number.

    If the program has deleted the transcript, it cannot. ``home`` is the person's
    folder.
    """
    known: dict[_Key, Session | None] = {_to_key(each): each for each in sessions}
    commands = {}
    for session in sessions:
        root = _find_root(history, session, known)
        command = None if root is None else _to_command(root, home)
        if command is not None:
            commands[session.session_id] = command
    return commands


def _to_key(session: Session) -> _Key:
    return session.host, session.native_id


def _find_root(
    history: HistoryStore, session: Session, known: dict[_Key, Session | None]
) -> Session | None:
    """The session that can be continued: a subagent's parent, else itself."""
    resume = _RESUMES.get(session.host)
    for _ in range(_MAX_DEPTH):
        if resume is None or not (resume.is_of_parent and session.parent_id):
            break
        key = (session.host, session.parent_id)
        if key not in known:
            found = history.find_sessions("/".join(key))
            known[key] = next((each for each in found if _to_key(each) == key), None)
        parent = known[key]
        if parent is None:
            return None
        session = parent
    return None if resume is None else session


def _to_command(session: Session, home: Path) -> str | None:
    resume = _RESUMES[session.host]
    transcript = session.read_from or ""
    if not _ID.fullmatch(session.native_id) or not _is_there(transcript):
        return None
    if not transcript.endswith(resume.ending):
        return None
    command = resume.command.replace("{id}", session.native_id)
    if not resume.in_project:
        return command
    folder = _quote_folder(session.project or "", home)
    return None if folder is None else f"cd {folder} && {command}"


def _is_there(transcript: str) -> bool:
    if not transcript:
        return False
    try:
        Path(transcript).stat()
    except (OSError, ValueError):
        return False
    return True


def _quote_folder(folder: str, home: Path) -> str | None:
    """Quote a folder for a shell; None if it is no folder or not safe to print."""
    is_absolute = folder.startswith("/") or PureWindowsPath(folder).is_absolute()
    if not is_absolute or neutralize(folder) != folder or "\n" in folder:
        return None
    if folder == str(home):
        return "~"
    inside = folder.removeprefix(f"{home}{os.sep}")
    return shlex.quote(folder) if inside == folder else f"~/{shlex.quote(inside)}"
