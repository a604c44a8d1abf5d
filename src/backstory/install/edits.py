"""What we add to the files of other programs, and how it is taken out again.

An edit is pure: it takes the text of a file and returns another. What it adds can be
told from what others wrote, so it can be taken out of any later version of the text.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from backstory.install.commands import is_our_hook, is_our_server, strings_in
from backstory.text.jsonc import (
    JsoncError,
    Key,
    Node,
    append_item,
    find_node,
    parse_jsonc,
    remove_node,
    set_member,
)
from backstory.values.structs import FrozenStruct

_EMPTY = "{}\n"
_MARK = "\ufeff"
_HEADER = re.compile(r"[ \t]*+\[{1,2}([^\[\]\r\n]+)\]{1,2}[ \t]*(?:#.*)?")
_QUOTES_AND_SPACES = re.compile(r"[\"' \t]")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


class EditRefused(Exception):
    """A text cannot be edited safely; ``place`` is where, such as ``:3:7``."""

    def __init__(self, reason: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(reason)
        self.place, self.hint = place, hint


def has_all(there: object, expected: object) -> bool:
    """Whether a value is what we expect; a user may have added to it, as a timeout."""
    if isinstance(there, dict) and isinstance(expected, Mapping):
        return all(
            key in there and has_all(there[key], value)
            for key, value in expected.items()
        )
    return there == expected


class Edit(Protocol):
    """What we add to one file."""

    @property
    def path(self) -> Path: ...

    def add(self, text: str | None) -> str:
        """The text with our parts; None if there is no file. Raises ``EditRefused``."""

    def has_parts(self, text: str) -> bool:
        """Whether anything of ours is in the text, whichever version of us added it."""

    def is_current(self, text: str) -> bool:
        """Whether all our parts are in the text, as they would be added now."""

    def strip(self, text: str, before: str | None = None) -> str:
        """The text without our parts, and without what is empty then.

        ``before`` is the text that our parts were added to, if that is known; what was
        empty there stays.
        """

    def is_bare(self, text: str) -> bool:
        """Whether a text without our parts says nothing that matters to anybody."""

    @property
    def is_whole(self) -> bool:
        """Whether the file is ours from beginning to end."""

    def read(self, text: str) -> object:
        """What the text says, to compare two. Raises ``EditRefused``."""


# -- JSON -----------------------------------------------------------------------------


class ServerEntry(FrozenStruct):
    """The entry of our MCP server, at a path of keys."""

    keys: tuple[str, ...]
    value: Mapping[str, object]


class HookEntry(FrozenStruct):
    """An item of a list of hooks."""

    keys: tuple[str, ...]
    value: Mapping[str, object]


class Default(FrozenStruct):
    """What a new file must say besides; others may depend on it."""

    key: str
    value: object


class JsonEdit(FrozenStruct):
    """Parts of a file in JSON, comments allowed."""

    path: Path
    parts: tuple[ServerEntry | HookEntry | Default, ...]

    def add(self, text: str | None) -> str:
        is_new = text is None or _is_blank(text)
        made = _EMPTY if text is None or is_new else text
        try:
            for part in self.parts:
                if is_new or not isinstance(part, Default):
                    made = self._add(made, part)
        except JsoncError as exc:
            raise _refused(exc) from exc
        return made

    def _add(self, text: str, part: ServerEntry | HookEntry | Default) -> str:
        match part:
            case ServerEntry(keys, value):
                there = find_node(parse_jsonc(text), keys)
                if there is not None and not is_our_server(there.value):
                    raise EditRefused(
                        f"another server is called '{keys[-1]}'",
                        place=f":{text.count(chr(10), 0, there.start) + 1}",
                        hint="rename it there, then run the command again",
                    )
                return set_member(text, keys, value)
            case HookEntry(keys, value):
                return append_item(text, keys, value)
            case Default(key, value):
                return set_member(text, (key,), value)

    def has_parts(self, text: str) -> bool:
        return self.strip(text, text) != text

    def is_current(self, text: str) -> bool:
        root = self._parse(text)
        for part in self.parts:
            match part:
                case ServerEntry(keys, value):
                    node = find_node(root, keys)
                    if node is None or not has_all(node.value, value):
                        return False
                case HookEntry(keys, value):
                    node = find_node(root, keys)
                    there = () if node is None else strings_in(node.value)
                    if not set(strings_in(value)) <= set(there):
                        return False
        return True

    def strip(self, text: str, before: str | None = None) -> str:
        self._parse(text)
        known = None if before is None else self._parse(before)
        for part in () if _is_blank(text) else self.parts:
            match part:
                case ServerEntry(keys):
                    text = _remove(text, keys, known, is_our_server)
                case HookEntry(keys):
                    text = self._strip_hooks(text, keys, known)
                case Default():
                    pass
        return text

    def strip_empty(self, text: str, before: str | None) -> str:
        """The text without what is empty since others took our servers out."""
        known = None if before is None else self._parse(before)
        for part in self.parts:
            if isinstance(part, ServerEntry):
                text = _remove_empty(text, part.keys, known)
        return text

    def is_bare(self, text: str) -> bool:
        left = self.read(text)
        defaults = {part.key for part in self.parts if isinstance(part, Default)}
        return isinstance(left, dict) and left.keys() <= defaults

    @property
    def is_whole(self) -> bool:
        return False

    def _strip_hooks(self, text: str, keys: tuple[str, ...], known: Node | None) -> str:
        listed = find_node(self._parse(text), keys)
        count = len(listed.children) if listed is not None else 0
        for index in reversed(range(count)):
            item = find_node(self._parse(text), (*keys, index))
            assert item is not None
            inner = find_node(item, ("hooks",))
            if inner is None or not isinstance(inner.value, list):
                text = _remove(text, (*keys, index), known, is_our_hook)
                continue
            # Somebody may have added a hook of their own to ours.
            for at in reversed(range(len(inner.children))):
                path: tuple[Key, ...] = (*keys, index, "hooks", at)
                text = _remove(text, path, known, is_our_hook)
        return text

    def read(self, text: str) -> object:
        return self._parse(text).value

    def _parse(self, text: str) -> Node:
        try:
            return parse_jsonc(_EMPTY if _is_blank(text) else text)
        except JsoncError as exc:
            raise _refused(exc) from exc


def _is_blank(text: str) -> bool:
    return not text.strip(_MARK + " \t\r\n")


def _refused(exc: JsoncError) -> EditRefused:
    return EditRefused(exc.reason, place=f":{exc.line}:{exc.column}")


def _remove(
    text: str,
    path: Sequence[Key],
    known: Node | None,
    is_ours: Callable[[object], bool],
) -> str:
    """Remove what is at the path if it is ours, and what is empty then.

    What was ``known`` before we added anything stays, even if it is empty.
    """
    node = find_node(parse_jsonc(text), path)
    if node is None or not is_ours(node.value):
        return text
    return _remove_empty(remove_node(text, path), path, known)


def _remove_empty(text: str, path: Sequence[Key], known: Node | None) -> str:
    """Remove what is around a path and empty, unless it was ``known`` before."""
    for length in range(len(path) - 1, 0, -1):
        outer = path[:length]
        node = find_node(parse_jsonc(text), outer)
        was_there = known is not None and find_node(known, outer) is not None
        if node is None or was_there or not _is_empty(node, outer):
            break
        text = remove_node(text, outer)
    return text


def _is_empty(node: Node, path: Sequence[Key]) -> bool:
    # A group of hooks is empty when it has none, whatever else it says.
    if isinstance(path[-1], int) and isinstance(node.value, dict):
        return not node.value.get("hooks")
    return not node.children


# -- TOML -----------------------------------------------------------------------------


class TomlEdit(FrozenStruct):
    """A table at the end of a TOML file, with texts and lists of texts in it."""

    path: Path
    table: tuple[str, ...]
    values: Mapping[str, object]

    def add(self, text: str | None) -> str:
        text = text or ""
        expected = self.read(text)
        *outer, name = self.table
        place: object = expected
        for key in outer:
            place = place.setdefault(key, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            raise EditRefused(f"'{'.'.join(outer)}' is not a table")
        if name in place and not is_our_server(place[name]):
            raise EditRefused(
                f"another server is called '{name}'",
                place=f":{self._line(text)}",
                hint="rename it there, then run the command again",
            )
        place[name] = dict(self.values)
        newline = "\r\n" if "\r\n" in text else "\n"
        gap = "" if not text.strip(_MARK) else newline
        end = "" if not text.strip(_MARK) or text.endswith("\n") else newline
        lines = [f"[{'.'.join(self.table)}]"]
        lines += [f"{key} = {_to_toml(value)}" for key, value in self.values.items()]
        made = text + end + gap + newline.join([*lines, ""])
        try:
            is_right = self.read(made) == expected
        except EditRefused:
            is_right = False
        if not is_right:
            raise EditRefused(
                f"'{'.'.join(outer)}' is written in a way that cannot be added to",
                hint=f"write it as a table, [{'.'.join(outer)}], or add by hand: "
                + "; ".join(lines),
            )
        return made

    def _line(self, text: str) -> int:
        for number, line in enumerate(text.splitlines(), start=1):
            if _header(line)[: len(self.table)] == self.table:
                return number
        return 1

    def has_parts(self, text: str) -> bool:
        there: object = self.read(text)
        for key in self.table:
            there = there.get(key) if isinstance(there, dict) else None
        return is_our_server(there)

    def is_current(self, text: str) -> bool:
        there: object = self.read(text)
        for key in self.table:
            there = there.get(key) if isinstance(there, dict) else None
        return has_all(there, self.values)

    def strip(self, text: str, before: str | None = None) -> str:
        if not self.has_parts(text):
            return text
        expected = self.read(text)
        place: object = expected
        for key in self.table[:-1]:
            assert isinstance(place, dict)
            place = place[key]
        assert isinstance(place, dict)
        del place[self.table[-1]]
        made = self._without_lines(text)
        try:
            left: object = self.read(made)
        except EditRefused:
            # A line of a long text looked like the beginning of a table.
            left = None
        if left not in (expected, _without_empty(expected, self.table[:-1])):
            raise EditRefused(
                f"[{'.'.join(self.table)}] is written in a way that cannot be removed",
                place=f":{self._line(text)}",
                hint="remove it by hand",
            )
        return made

    def is_bare(self, text: str) -> bool:
        return _is_blank(text)

    @property
    def is_whole(self) -> bool:
        return False

    def _without_lines(self, text: str) -> str:
        """The text without our tables; comments before the next one stay."""
        kept: list[str] = []
        waiting: list[str] = []
        is_inside = False
        for line in text.splitlines(keepends=True):
            if header := _header(line):
                was_inside, is_inside = (
                    is_inside,
                    header[: len(self.table)] == (self.table),
                )
                if is_inside and not was_inside and kept and not kept[-1].strip():
                    # The blank line that sets our table apart.
                    kept.pop()
                kept += waiting if not is_inside else []
                waiting = []
            if not is_inside:
                kept.append(line)
            elif not line.strip() or line.lstrip().startswith("#"):
                waiting.append(line)
            else:
                waiting = []
        return "".join(kept + [line for line in waiting if line.strip()])

    def read(self, text: str) -> dict[str, object]:
        try:
            return tomllib.loads(text.removeprefix(_MARK))
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as exc:
            raise EditRefused(f"not valid TOML ({exc})") from exc


def _header(line: str) -> tuple[str, ...]:
    found = _HEADER.fullmatch(line.rstrip("\r\n").lstrip(_MARK))
    return (
        () if found is None else tuple(_QUOTES_AND_SPACES.sub("", found[1]).split("."))
    )


def _without_empty(value: dict[str, object], path: Sequence[str]) -> object:
    """The same without the tables on the path that have nothing in them."""
    if not path:
        return value
    inner = value.get(path[0])
    if isinstance(inner, dict) and _without_empty(inner, path[1:]) == {}:
        return {key: each for key, each in value.items() if key != path[0]}
    return value


def _to_toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_to_toml(each) for each in value)}]"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# -- whole files ----------------------------------------------------------------------


class OwnFile(FrozenStruct):
    """A file that is ours from beginning to end."""

    path: Path
    content: str

    def add(self, text: str | None) -> str:
        if text is not None and not self.has_parts(text):
            raise EditRefused(
                "there is another file of this name",
                hint="move it away, then run the command again",
            )
        return self.content

    def has_parts(self, text: str) -> bool:
        return "backstory" in text

    def is_current(self, text: str) -> bool:
        return text == self.content

    def strip(self, text: str, before: str | None = None) -> str:
        return "" if self.has_parts(text) else text

    def is_bare(self, text: str) -> bool:
        return not text

    @property
    def is_whole(self) -> bool:
        return True

    def read(self, text: str) -> object:
        return text
