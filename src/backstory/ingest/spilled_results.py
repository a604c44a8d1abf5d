"""Tool results that a program saved to files of their own, because they are long.

The transcript holds the path of the file and part of the result. A transcript can say
anything, so only files in the session's own folder are read.
"""

import os
import re
from pathlib import Path

import orjson

from backstory.ingest.parsing.lines import MAX_LINE_BYTES
from backstory.system.files import open_file
from backstory.text.cut import cut_mark
from backstory.text.json_values import plain_text
from backstory.values.history import NewMessage, Source

# Longer files are truncated, like longer lines.
_MAX_SPILLED_BYTES = MAX_LINE_BYTES
# The file is named within this many characters of a result, after the first "saved to";
# a later one is not tried.
_NOTICE_CHARS = 4096

# Programs save a result that is too long for their model, and give it the file's name
# and a part of the result. Claude Code has done so since 2.0.60, in the words seen in
# https://github.com/anthropics/claude-code/issues/23948 and in transcripts; Gemini CLI
# in those of formatTruncatedToolOutput in https://github.com/google-gemini/gemini-cli
# (all read 2026-11). Copilot CLI saves them outside the session's folder.
_NOTICES = {
    "claude-code": re.compile(
        r"(?:<persisted-output>\s{0,8}|(?:Error: )?result \()"
        r"(?>[^\n]*? saved to:? )[^\n]*"
        r"[/\\]tool-results[/\\](?P<name>[^\n/\\]++)$",
        re.MULTILINE,
    ),
    "gemini-cli": re.compile(
        r"Output too large\. Showing first (?>[^\n]*? For full output see: )[^\n]*"
        r"[/\\]tool-outputs[/\\]session-[^\n/\\]++[/\\](?P<name>[^\n/\\]++)$",
        re.MULTILINE,
    ),
}


def find_spilled(source: Source, message: NewMessage) -> Path | None:
    """The file with the full result, if it is in the session's own folder."""
    notice = _NOTICES.get(source.format)
    found = notice.match(message.text[:_NOTICE_CHARS]) if notice else None
    folder = _spill_folder(source, message.session_id)
    if found is None or folder is None:
        return None
    try:
        # No link below the transcripts' folder is followed.
        expected = (
            folder[0].resolve() / folder[1] / found["name"].strip().removesuffix(".")
        )
        path = expected.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        return None
    return path if path == expected and path.is_file() else None


def _spill_folder(source: Source, session_id: str) -> tuple[Path, str] | None:
    """Where a session's long results are: the transcripts' folder and a path in it."""
    path = source.file.path
    if source.format == "gemini-cli":
        chats = next((each for each in path.parents if each.name == "chats"), None)
        below = f"tool-outputs/session-{session_id}"
        return None if chats is None else (chats.parent, below)
    # A subagent shares the folder of the session that it works for.
    shared = next((each for each in path.parents if each.name == "subagents"), None)
    session = shared.parent if shared else path.with_suffix("")
    return session.parent, f"{session.name}/tool-results"


def read_spilled(path: Path) -> str:
    with open_file(path) as file:
        raw = file.read(_MAX_SPILLED_BYTES)
        rest = os.fstat(file.fileno()).st_size - len(raw)
    text = raw.decode("utf-8", errors="replace")
    if rest > 0:
        return text + cut_mark(len(raw), len(raw) + rest)
    return _from_blocks(text)


def _from_blocks(text: str) -> str:
    """The text of content blocks, in which results of MCP servers are saved."""
    if not text.startswith("["):
        return text
    try:
        blocks = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    is_content = all(isinstance(each, dict) and "type" in each for each in blocks)
    return plain_text(blocks) if blocks and is_content else text
