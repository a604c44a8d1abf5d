"""What a tool call says, taken apart for a reader: the point, edits, code."""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence

from backstory.values.structs import FrozenStruct

# Arguments that say what a call is about, the most telling first.
_POINTS = (
    "description",
    "command",
    "cmd",
    "file_path",
    "filePath",
    "path",
    "pattern",
    "query",
    "url",
    "subject",
    "skill",
    "prompt",
    "name",
)
# It is read above the call, so it is not repeated within it.
_SHORT_POINT = 80
_EDITS = (
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
)
# Arguments that are shown as code, without the quotes and escapes of JSON.
_TEXTS = ("command", "cmd", "content", "file_text", "plan", "prompt", "message")
_COMMANDS = ("command", "cmd")
_SHELL = "bash"
_FILES = ("file_path", "filePath", "path")
_PATCH_STARTS = ("*** Begin Patch", "diff --git ", "--- ")
_MAX_JSON_CHARS = 500_000
# With more lines, both versions are shown one below the other: comparing them takes
# time that grows with the square of their number.
_MAX_COMPARED_LINES = 100
_CONTEXT_LINES = 3


class DiffLine(FrozenStruct):
    """A line of a diff; ``sign`` is "+", "-", " " or "@" for a heading."""

    sign: str
    text: str


class CallPart(FrozenStruct):
    """A piece of a call: a diff, or a text with the name of its argument.

    ``language`` is the one that the text is written in, if it is code.
    """

    name: str
    text: str = ""
    diff: tuple[DiffLine, ...] = ()
    language: str = ""


class ReadCall(FrozenStruct):
    """A call as it is shown: what it is about, and its parts."""

    point: str
    parts: tuple[CallPart, ...]


def parse_call(text: str) -> ReadCall:
    """Take a call's text apart; what is not JSON is one part."""
    arguments = _parse_arguments(text)
    if arguments is None:
        return ReadCall(text, tuple(_show_text("", text)))
    point = _find_point(arguments)
    shown = {
        name: value
        for name, value in arguments.items()
        if value != point or len(point) > _SHORT_POINT
    }
    language = _find_language(arguments)
    return ReadCall(point, tuple(_show_arguments(shown, language)))


def _parse_arguments(text: str) -> dict[str, object] | None:
    if not text.startswith("{") or len(text) > _MAX_JSON_CHARS:
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _find_point(arguments: Mapping[str, object]) -> str:
    for name in _POINTS:
        value = arguments.get(name)
        if isinstance(value, list):
            value = " ".join(map(str, value))
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _show_arguments(
    arguments: dict[str, object], file_language: str = ""
) -> Iterator[CallPart]:
    rest = dict(arguments)
    for old, new in _EDITS:
        if isinstance(rest.get(old), str) and isinstance(rest.get(new), str):
            yield _compare(str(rest.pop(old)), str(rest.pop(new)))
    edits = rest.get("edits")
    if isinstance(edits, list) and edits and all(isinstance(e, dict) for e in edits):
        for edit in rest.pop("edits"):  # type: ignore[attr-defined]
            yield from _show_arguments(edit, file_language)
    for name, value in list(rest.items()):
        if not isinstance(value, str):
            continue
        if name in _TEXTS or value.startswith(_PATCH_STARTS):
            language = _SHELL if name in _COMMANDS else file_language
            yield from _show_text(name, str(rest.pop(name)), language)
    if rest:
        written = json.dumps(rest, indent=2, ensure_ascii=False)
        yield CallPart("", written, language="json")


def _find_language(arguments: Mapping[str, object]) -> str:
    """What the file of a call is written in, by the end of its name."""
    for name in _FILES:
        path = arguments.get(name)
        if isinstance(path, str) and "." in path:
            return path.rpartition(".")[2]
    return ""


def _show_text(name: str, text: str, language: str = "") -> Iterator[CallPart]:
    if text.startswith(_PATCH_STARTS):
        yield CallPart(name, diff=tuple(map(_patch_line, text.split("\n"))))
    elif text:
        yield CallPart(name, text, language=language)


def _patch_line(line: str) -> DiffLine:
    if line.startswith(("***", "@@", "diff ", "---", "+++", "index ")):
        return DiffLine("@", line)
    if line[:1] in ("+", "-", " "):
        return DiffLine(line[0], line[1:])
    return DiffLine(" ", line)


def _compare(old: str, new: str) -> CallPart:
    if old.endswith("\n") and new.endswith("\n"):
        old, new = old[:-1], new[:-1]
    before, after = old.split("\n"), new.split("\n")
    head = _count_same(before, after)
    tail = _count_same(before[head:][::-1], after[head:][::-1])
    removed = before[head : len(before) - tail]
    added = after[head : len(after) - tail]
    around = [DiffLine(" ", line) for line in before]
    return CallPart(
        "",
        diff=(
            *around[max(0, head - _CONTEXT_LINES) : head],
            *_compare_lines(removed, added),
            *around[len(before) - tail :][:_CONTEXT_LINES],
        ),
    )


def _count_same(before: Sequence[str], after: Sequence[str]) -> int:
    """How many lines both begin with."""
    pairs = enumerate(zip(before, after, strict=False))
    shorter = min(len(before), len(after))
    return next((place for place, (one, two) in pairs if one != two), shorter)


def _compare_lines(removed: Sequence[str], added: Sequence[str]) -> Iterator[DiffLine]:
    if max(len(removed), len(added)) > _MAX_COMPARED_LINES:
        yield from (DiffLine("-", line) for line in removed)
        yield from (DiffLine("+", line) for line in added)
        return
    matcher = difflib.SequenceMatcher(None, removed, added, autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind == "equal":
            yield from (DiffLine(" ", line) for line in removed[first:last])
        else:
            yield from (DiffLine("-", line) for line in removed[first:last])
            yield from (DiffLine("+", line) for line in added[start:end])
