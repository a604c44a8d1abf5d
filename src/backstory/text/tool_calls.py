"""What a tool call says, taken apart for a reader: the point, edits, code."""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence

from backstory.values.structs import FrozenStruct, replace

# Arguments that say what a call is about, most telling first.
_POINTS = (
    "description",
    "command",
    "cmd",
    "pattern",
    "query",
    "file_path",
    "filePath",
    "path",
    "url",
    "subject",
    "skill",
    "prompt",
    "name",
)
# A point this short is shown above the call, so it is not repeated within it.
_SHORT_POINT = 80
_EDITS = (
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("oldText", "newText"),
)
# Arguments that are shown as text, without the quotes and escapes of JSON.
_TEXTS = ("command", "cmd", "content", "file_text", "plan", "prompt", "message")
_COMMANDS = ("command", "cmd")
_SHELL = "bash"
_FILES = ("file_path", "filePath", "path")
_PATCH_STARTS = ("*** Begin Patch", "diff --git ", "--- ")
# A patch that a shell command hands to a program begins on a line of its own.
_PATCH_WITHIN = "\n*** Begin Patch\n"
# The complete new content of a file, if the call names the file.
_WHOLE_FILES = ("content", "file_text")
# How Cline and Roo Code mark what to search for and what to replace it with.
_SEARCH_STARTS = ("<<<<<<< SEARCH", "------- SEARCH")
_REPLACE_ENDS = (">>>>>>> REPLACE", "+++++++ REPLACE")
_MAX_JSON_CHARS = 500_000
# With more lines, both versions are shown one below the other: the time to compare them
# grows with the square of their number.
_MAX_COMPARED_LINES = 100
_CONTEXT_LINES = 3


class DiffLine(FrozenStruct):
    """A line of a diff; ``sign`` is "+", "-", " " or "@" for a heading."""

    sign: str
    text: str

    @property
    def written(self) -> str:
        """The line as it is written in a diff."""
        return self.text if self.sign == "@" else self.sign + self.text


class CallPart(FrozenStruct):
    """A piece of a call: a diff, or a text with the name of its argument.

    ``language`` is that of the text, if it is code; ``is_whole_file``: the text is the
    complete content of a file.
    """

    name: str
    text: str = ""
    diff: tuple[DiffLine, ...] = ()
    language: str = ""
    is_whole_file: bool = False

    @property
    def changes(self) -> tuple[DiffLine, ...]:
        """What changes in a file: the diff, or every line of a whole file."""
        if not self.is_whole_file:
            return self.diff
        lines = self.text.removesuffix("\n").split("\n")
        return tuple(DiffLine("+", line) for line in lines)


class ReadCall(FrozenStruct):
    """A call as it is shown: what it is about, and its parts."""

    point: str
    parts: tuple[CallPart, ...]


def parse_call(text: str) -> ReadCall:
    """Take a call's text apart; if it is not JSON, it is one part."""
    arguments = _parse_arguments(text)
    if arguments is None:
        return ReadCall(text, tuple(_show_text("", text)))
    point = _find_point(arguments)
    shown = {
        name: value
        for name, value in arguments.items()
        if value != point or (len(point) > _SHORT_POINT and name not in _FILES)
    }
    file = _find_file(arguments)
    return ReadCall(point, tuple(_show_arguments(shown, file)))


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


def _show_arguments(arguments: dict[str, object], file: str) -> Iterator[CallPart]:
    rest = dict(arguments)
    for old, new in _EDITS:
        if isinstance(rest.get(old), str) and isinstance(rest.get(new), str):
            yield _compare(str(rest.pop(old)), str(rest.pop(new)))
    edits = rest.get("edits")
    if isinstance(edits, list) and edits and all(isinstance(e, dict) for e in edits):
        for edit in rest.pop("edits"):  # type: ignore[attr-defined]
            yield from _show_arguments(edit, file)
    for name, value in list(rest.items()):
        if isinstance(value, list) and _has_patch(value):
            value = "\n".join(map(str, value))
        if not isinstance(value, str):
            continue
        if name in _TEXTS or value.startswith((*_PATCH_STARTS, *_SEARCH_STARTS)):
            del rest[name]
            language = _SHELL if name in _COMMANDS else _find_language(file)
            is_whole_file = bool(file) and name in _WHOLE_FILES
            for part in _show_text(name, value, language):
                yield replace(part, is_whole_file=is_whole_file and not part.diff)
    if rest:
        written = json.dumps(rest, indent=2, ensure_ascii=False)
        yield CallPart("", written, language="json")


def _has_patch(words: Sequence[object]) -> bool:
    """Whether a command contains a patch, as Codex passes one to apply_patch."""
    return any(
        isinstance(word, str) and word.startswith(_PATCH_STARTS) for word in words
    )


def _find_file(arguments: Mapping[str, object]) -> str:
    """The file that a call is about; empty if it names none."""
    paths = (arguments.get(name) for name in _FILES)
    return next((path for path in paths if isinstance(path, str)), "")


def _find_language(file: str) -> str:
    """The language of a file, by the extension of its name."""
    return file.rpartition(".")[2] if "." in file else ""


def _show_text(name: str, text: str, language: str = "") -> Iterator[CallPart]:
    before, found, patch = text.partition(_PATCH_WITHIN)
    if text.startswith(_PATCH_STARTS):
        yield CallPart(name, diff=tuple(map(_patch_line, text.split("\n"))))
    elif text.startswith(_SEARCH_STARTS):
        yield CallPart(name, diff=tuple(_parse_replacements(text)))
    elif found:
        yield CallPart(name, before, language=language)
        patch = found[1:] + patch
        yield CallPart("", diff=tuple(map(_patch_line, patch.split("\n"))))
    elif text:
        yield CallPart(name, text, language=language)


def _patch_line(line: str) -> DiffLine:
    if line.startswith(("***", "@@", "diff ", "---", "+++", "index ")):
        return DiffLine("@", line)
    if line[:1] in ("+", "-", " "):
        return DiffLine(line[0], line[1:])
    return DiffLine(" ", line)


def _parse_replacements(text: str) -> Iterator[DiffLine]:
    """Blocks of what is searched for and what replaces it."""
    sign = " "
    for line in text.split("\n"):
        if line.startswith(_SEARCH_STARTS):
            sign = "-"
            yield DiffLine("@", line)
        elif sign == "-" and line == "=" * 7:
            sign = "+"
        elif sign == "-" and (line.startswith(":start_line:") or line == "-" * 7):
            yield DiffLine("@", line)
        elif sign == "+" and line.startswith(_REPLACE_ENDS):
            sign = " "
        else:
            yield DiffLine(sign, line)


def _compare(old: str, new: str) -> CallPart:
    end = "\n" if all(text.endswith("\n") for text in (old, new) if text) else ""
    # An empty text has no lines, rather than an empty one.
    before, after = (
        text.removesuffix(end).split("\n") if text else [] for text in (old, new)
    )
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
    """How many lines at the beginning of both are the same."""
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
