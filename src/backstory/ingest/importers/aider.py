"""Aider: one Markdown file per project, to which every session is added.

Aider records no time but the start of a session, so its messages have none. Messages
are identified by their order in the session, and a session by its start and its
project's folder.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

from backstory.ingest.importers.base import (
    Origin,
    ReadBeside,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.identity import content_id
from backstory.values.structs import Struct, field

FILE_NAME = ".aider.chat.history.md"
_HEADER = "# aider chat started at "
_HEADER_LINE = re.compile(re.escape(_HEADER) + r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\s*")
_USER = "####"
_PROGRAM = ">"
# Aider ends every line that is the person's or its own with a Markdown line break.
_BREAK = "  "
# What Aider writes when the person enters nothing.
_NOTHING = "<blank>"
# Commands that ask the model something; all others are for Aider itself.
_ASKING = ("/architect ", "/ask ", "/code ", "/context ", "/help ")

MAX_LINE_BYTES = 1024 * 1024
MAX_MESSAGE_CHARS = 4 * 1024 * 1024

# Stands for the prompt of messages that come before the first one.
_START = "start"


class Aider:
    """Chat history of Aider.

    The shape was learnt in November 2026 from Aider-AI/aider (``aider/io.py`` and
    ``aider/utils.py``) and from histories of 0.37 in public repositories.
    Lines with ``####`` are the person's, those with ``>`` what the program reports:
    files added, edits applied, tokens, questions and the answer to them. These have the
    role ``system``, since no tool was called. Everything else is the model's.
    """

    kind: Literal["document"] = "document"

    def recognizes(self, path: Path, head: bytes) -> bool:
        return path.name == FILE_NAME or (
            path.suffix.lower() == ".md" and head.lstrip().startswith(_HEADER.encode())
        )

    def look_beside(self, path: Path, read: ReadBeside) -> Mapping[str, str]:
        return {}

    def parse(self, file: IO[bytes], origin: Origin) -> Iterator[Item]:
        reading = _Reading(origin)
        is_repaired = False
        number = 0
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            length = len(raw) + _skip_rest(file, raw)
            if length > len(raw):
                yield Problem(
                    f"a line of {length:,} bytes; only its beginning was kept", number
                )
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError:
                line = raw.decode("utf-8", errors="replace")
                if not is_repaired:
                    yield Problem("bytes that are not UTF-8 were replaced", number)
                is_repaired = True
            line = line.rstrip("\r\n").removeprefix("\ufeff")
            yield from reading.take(line, number)
        yield from reading.finish_message()


def _is_command(text: str) -> bool:
    """Whether a person typed a command for the program, or one for the shell."""
    return text.startswith(("/", "!")) and not text.startswith(_ASKING)


def _skip_rest(file: IO[bytes], start: bytes) -> int:
    """Read to the end of a line that was cut; returns how many characters were left."""
    length, chunk = 0, start
    while len(chunk) >= MAX_LINE_BYTES and not chunk.endswith(b"\n"):
        chunk = file.readline(MAX_LINE_BYTES)
        length += len(chunk.rstrip(b"\n"))
    return length


class _Reading(Struct):
    """One pass over a history: the session, and the message that is being read."""

    origin: Origin
    session_id: str | None = None
    prompts: dict[str, int] = field(default_factory=dict)
    turn: str = _START
    turn_messages: int = 0
    role: Role = Role.ASSISTANT
    lines: list[str] = field(default_factory=list)
    length: int = 0
    # Whether lines have the line breaks, which some editors remove; None: not known
    # yet.
    has_breaks: bool | None = None
    starts_seen: dict[str, int] = field(default_factory=dict)

    def take(self, line: str, number: int) -> Iterator[Item]:
        header = _HEADER_LINE.fullmatch(line)
        if header is not None:
            yield from self.finish_message()
            yield self._begin(f"{header[1]}T{header[2]}")
            return
        role, text = self._read(line)
        if role is not self.role:
            yield from self.finish_message()
            self.role = role
        was_full = self.length > MAX_MESSAGE_CHARS
        self.length += len(text) + 1
        if self.length <= MAX_MESSAGE_CHARS:
            self.lines.append(text)
        elif not was_full:
            yield Problem(
                "a message that is too long; only its beginning was kept", number
            )

    def finish_message(self) -> Iterator[Item]:
        text = "\n".join(self.lines)
        self.lines.clear()
        self.length = 0
        if self.role is Role.ASSISTANT:
            text = text.strip()
        if not text.strip() or (self.role is Role.USER and text == _NOTHING):
            return
        if self.session_id is None:
            yield self._begin(None)
        assert self.session_id is not None
        message_id, role = self._message_id(text), self.role
        if role is Role.USER and _is_command(text):
            role = Role.SYSTEM
        yield NewMessage(self.session_id, message_id, role, text)

    def _message_id(self, text: str) -> str:
        """An id made from the prompt that the message is, or that it follows.

        It stays the same when an answer grows, and when people remove what comes
        before.
        """
        if self.role is Role.USER:
            prompt = content_id(text)
            count = self.prompts[prompt] = self.prompts.get(prompt, 0) + 1
            self.turn = prompt if count == 1 else f"{prompt}~{count}"
            self.turn_messages = 0
            return self.turn
        self.turn_messages += 1
        return f"{self.turn}/{self.turn_messages}"

    def _begin(self, start: str | None) -> SessionFacts:
        """Begin the session that started then, or the one before the first header."""
        path = self.origin.path
        name = start or "before-first-start"
        place = path.parent if start else path
        seen = self.starts_seen[name] = self.starts_seen.get(name, 0) + 1
        self.session_id = f"{name}-{content_id(str(place)).removeprefix('b2:')[:8]}"
        if seen > 1:
            self.session_id += f"-{seen}"
        self.prompts, self.has_breaks = {}, None
        self.turn, self.turn_messages = _START, 0
        started = self.origin.moment(start)
        return SessionFacts(
            self.session_id,
            # Inside a zip file a folder is not one of this machine.
            project=str(path.parent) if path.is_absolute() else None,
            started=started,
            last_active=started,
        )

    def _read(self, line: str) -> tuple[Role, str]:
        """Who wrote a line, and what it says.

        Models write headings and quotations too; those without a line break are theirs.
        """
        for mark, role in ((_USER, Role.USER), (_PROGRAM, Role.SYSTEM)):
            if line.rstrip() != mark and not line.startswith(f"{mark} "):
                continue
            if self.has_breaks is None:
                self.has_breaks = line.endswith(_BREAK)
            if self.has_breaks and not line.endswith(_BREAK):
                break
            return role, line.removesuffix(_BREAK)[len(mark) + 1 :]
        return Role.ASSISTANT, line
