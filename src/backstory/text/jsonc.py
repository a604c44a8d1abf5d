"""Edit JSON with comments as text, so that everything else in it stays as it is.

Agent programs let people write comments and trailing commas in their settings. An edit
inserts or removes the text of one member or item, in the style of its surroundings;
no other character changes, and removing what was inserted last restores the text,
except that spaces within otherwise empty brackets may differ.
"""

import json
import re
from collections.abc import Sequence

from backstory.values.structs import FrozenStruct

Key = str | int

_MAX_DEPTH = 200
_SPACE = re.compile(r"[ \t\r\n\ufeff]+")
_LINE_COMMENT = re.compile(r"//[^\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*+"')
_BLANKS = re.compile(r"[ \t]*+")
_INDENTED = re.compile(r'\n([ \t]++)["\]}]')
_WORDS = {"true": True, "false": False, "null": None}
_BRACKETS = {"{": "}", "[": "]"}


class JsoncError(ValueError):
    """Not JSON with comments, or not of the expected shape; says where."""

    def __init__(self, text: str, at: int, reason: str) -> None:
        self.line = text.count("\n", 0, at) + 1
        self.column = at - text.rfind("\n", 0, at)
        self.reason = reason
        super().__init__(f"line {self.line}, column {self.column}: {reason}")


class Node(FrozenStruct):
    """A value and its place in the text; the ``children`` of an object have keys.

    ``begins`` is where its text begins, including a key. ``before`` is the end of the
    token or comment before it, ``comma`` the end of the comma after it, if any.
    ``inside`` is the end of the last token or comment between its own brackets.
    """

    start: int
    end: int
    value: object
    children: "tuple[Node, ...]" = ()
    key: str | None = None
    begins: int = 0
    before: int = 0
    comma: int | None = None
    inside: int = 0
    follows_line_comment: bool = False


def parse_jsonc(text: str) -> Node:
    """The value that the text holds. Raises ``JsoncError``."""
    return _Parser(text).parse()


def find_node(root: Node, path: Sequence[Key]) -> Node | None:
    """The value at a path of keys and positions; None if there is none.

    If several members have the same key, the last one counts, as for every parser.
    """
    node = root
    for key in path:
        index = _index(node, key)
        if index is None:
            return None
        node = node.children[index]
    return node


def set_member(text: str, path: Sequence[str], value: object) -> str:
    """Set the member at the path, and create the objects that lead to it.

    Raises ``JsoncError`` if anything but an object is in the way.
    """
    node, done = _walk(parse_jsonc(text), path)
    if done == len(path):
        made = _dump(text, value, _line_indent(text, node.begins))
        return text[: node.start] + made + text[node.end :]
    _check_bracket(text, node, "{", path[:done])
    for key in reversed(path[done + 1 :]):
        value = {key: value}
    return _insert(text, node, value, key=path[done])


def append_item(text: str, path: Sequence[str], value: object) -> str:
    """Append to the list at the path; create it, and the objects that lead to it."""
    node, done = _walk(parse_jsonc(text), path)
    if done < len(path):
        return set_member(text, path, [value])
    _check_bracket(text, node, "[", path)
    return _insert(text, node, value)


def remove_node(text: str, path: Sequence[Key]) -> str:
    """Remove the member or item at the path, with its comma; comments stay."""
    parent = find_node(parse_jsonc(text), path[:-1])
    index = None if parent is None else _index(parent, path[-1])
    if parent is None or index is None:
        return text
    child = parent.children[index]
    end = child.end if child.comma is None else child.comma
    before = child.before
    if child.follows_line_comment and not text[end:].startswith(("\n", "\r\n")):
        # What follows must not become part of the comment.
        before = child.begins
    if len(parent.children) == 1:
        rest = text[parent.start + 1 : before] + text[end : parent.end - 1]
        inner = rest if rest.strip() else ""
        return text[: parent.start + 1] + inner + text[parent.end - 1 :]
    if child.comma is None:
        # The last one: the comma before it would be left over.
        previous = parent.children[index - 1]
        assert previous.comma is not None
        between = text[previous.comma : before]
        return text[: previous.comma - 1] + between + text[end:]
    return text[:before] + text[end:]


# -- inserting ------------------------------------------------------------------------


def _walk(root: Node, path: Sequence[str]) -> tuple[Node, int]:
    """The last value on the path that exists, and how many keys lead to it."""
    node = root
    for done, key in enumerate(path):
        index = _index(node, key)
        if index is None:
            return node, done
        node = node.children[index]
    return node, len(path)


def _index(node: Node, key: Key) -> int | None:
    if isinstance(key, int):
        is_there = isinstance(node.value, list) and 0 <= key < len(node.children)
        return key if is_there else None
    found = [at for at, child in enumerate(node.children) if child.key == key]
    return found[-1] if found else None


def _check_bracket(text: str, node: Node, bracket: str, path: Sequence[str]) -> None:
    if text[node.start] != bracket:
        kind = "an object" if bracket == "{" else "a list"
        name = f"'{'.'.join(path)}'" if path else "the file"
        raise JsoncError(text, node.start, f"{name} is not {kind}")


def _insert(text: str, parent: Node, value: object, *, key: str | None = None) -> str:
    """Insert a child at the end of an object or list."""
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    if not parent.children:
        outer = _line_indent(text, parent.start)
        indent = outer + _indent_unit(text)
        child = _newline(text) + indent + name + _dump(text, value, indent)
        rest = text[parent.inside : parent.end - 1]
        close = "" if "\n" in rest else _newline(text) + outer
        return text[: parent.inside] + child + close + text[parent.inside :]
    last = parent.children[-1]
    if "\n" not in text[last.before : last.begins]:
        # All on one line: the new one joins it.
        space = "" if last.before == last.begins and len(parent.children) > 1 else " "
        compact = json.dumps(value, ensure_ascii=False)
        if last.comma is None:
            return text[: last.end] + f",{space}{name}{compact}" + text[last.end :]
        return text[: last.comma] + f"{space}{name}{compact}," + text[last.comma :]
    indent = _line_indent(text, last.begins)
    child = _newline(text) + indent + name + _dump(text, value, indent)
    if last.comma is None:
        at = _after_comments(text, last.end)
        return text[: last.end] + "," + text[last.end : at] + child + text[at:]
    at = _after_comments(text, last.comma)
    return text[:at] + child + "," + text[at:]


def _after_comments(text: str, at: int) -> int:
    """The end of the comments that follow on the same line."""
    end = at
    while True:
        blanks = _BLANKS.match(text, at)
        at = blanks.end() if blanks else at
        if comment := _LINE_COMMENT.match(text, at):
            return comment.end()
        close = text.find("*/", at + 2) if text.startswith("/*", at) else -1
        if close < 0 or "\n" in text[at:close]:
            return end
        at = end = close + 2


def _dump(text: str, value: object, indent: str) -> str:
    lines = json.dumps(value, indent=_indent_unit(text), ensure_ascii=False)
    return lines.replace("\n", _newline(text) + indent)


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_unit(text: str) -> str:
    """What the text indents with: the white space before its first indented line."""
    found = _INDENTED.search(text)
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# -- parsing --------------------------------------------------------------------------


class _Parser:
    """One pass over the text. ``end`` is the end of the last token or comment."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.end = text, 0, 0
        self.is_after_line_comment = False

    def parse(self) -> Node:
        self.skip()
        root = self.read_value(0)
        self.skip()
        if self.at < len(self.text):
            raise self.error("something follows the end of the value")
        return root

    def error(self, reason: str) -> JsoncError:
        return JsoncError(self.text, self.at, reason)

    def skip(self) -> None:
        """Skip spaces and comments."""
        text = self.text
        self.is_after_line_comment = False
        while self.at < len(text):
            if space := _SPACE.match(text, self.at):
                self.at = space.end()
            elif comment := _LINE_COMMENT.match(text, self.at):
                self.at = self.end = comment.end()
                self.is_after_line_comment = True
            elif text.startswith("/*", self.at):
                close = text.find("*/", self.at + 2)
                if close < 0:
                    raise self.error("a comment is not closed")
                self.at = self.end = close + 2
                self.is_after_line_comment = False
            else:
                return

    def read_value(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise self.error("nested too deeply")
        start = self.at
        first = self.text[start : start + 1]
        if first in _BRACKETS and first:
            return self.read_children(depth, _BRACKETS[first])
        value: object
        if first == '"':
            value = self.read_string()
        elif number := _NUMBER.match(self.text, start):
            self.at = number.end()
            value = _to_number(number[0])
        else:
            word = next((w for w in _WORDS if self.text.startswith(w, start)), None)
            if word is None:
                raise self.error(
                    "a value is missing" if first else "the text ends too early"
                )
            self.at, value = start + len(word), _WORDS[word]
        self.end = self.at
        return Node(start, self.at, value)

    def read_string(self) -> str:
        found = _STRING.match(self.text, self.at)
        try:
            value = json.loads(found[0]) if found else None
        except ValueError:
            value = None
        if found is None or not isinstance(value, str):
            raise self.error("a string is not valid, or not closed")
        self.at = self.end = found.end()
        return value

    def read_children(self, depth: int, close: str) -> Node:
        start = self.at
        self.at = self.end = start + 1
        children: list[Node] = []
        while True:
            self.skip()
            if self.text.startswith(close, self.at):
                break
            if children and children[-1].comma is None:
                raise self.error(f"expected a comma or {close}")
            children.append(self.read_child(depth, has_key=close == "}"))
        inside = self.end
        self.at += 1
        self.end = self.at
        value: object = [child.value for child in children]
        if close == "}":
            value = {child.key: child.value for child in children}
        return Node(start, self.at, value, tuple(children), inside=inside)

    def read_child(self, depth: int, *, has_key: bool) -> Node:
        before, begins, key = self.end, self.at, None
        follows_line_comment = self.is_after_line_comment
        if has_key:
            if not self.text.startswith('"', self.at):
                raise self.error("expected a name in double quotes")
            key = self.read_string()
            self.skip()
            if not self.text.startswith(":", self.at):
                raise self.error("expected a colon")
            self.at += 1
            self.skip()
        node = self.read_value(depth + 1)
        self.skip()
        comma = None
        if self.text.startswith(",", self.at):
            self.at = self.end = comma = self.at + 1
        return Node(
            node.start,
            node.end,
            node.value,
            node.children,
            key,
            begins,
            before,
            comma,
            node.inside,
            follows_line_comment,
        )


def _to_number(written: str) -> int | float:
    try:
        return int(written)
    except ValueError:
        # A fraction, or more digits than Python converts to an integer.
        return float(written)
