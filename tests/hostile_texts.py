"""Texts that make a badly written regular expression take quadratic time.

They are derived from the expression itself: every repetition in it is given what it
repeats, behind a beginning that matches and before an end that does not. So they are as
hostile as the texts of somebody who has read our code.
"""

# Private, but the only way to read an expression without writing a parser for it.
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

# One of every kind of character that an expression may treat in its own way.
_KINDS = "aZ1_-./:=+@#!<>{[(\"'`\\,;| \t\n\ré中か\u0301\u200b\U0001f600"
_CATEGORIES = {
    ops.CATEGORY_DIGIT: "1",
    ops.CATEGORY_NOT_DIGIT: "a- ",
    ops.CATEGORY_SPACE: " \n\t",
    ops.CATEGORY_NOT_SPACE: "a1-",
    ops.CATEGORY_WORD: "a1_",
    ops.CATEGORY_NOT_WORD: "- \n",
}
_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
_LOOKS = (ops.ASSERT, ops.ASSERT_NOT)
# What may come behind a repetition, so that the rest of the expression fails.
_ENDINGS = ("", "\0", "\n")
_FEW_TIMES = 40
# How many members of a set, and how many branches, are tried for one text.
_CHOICES = 3

# A node of a parsed expression: an operation and what belongs to it.
Node = tuple[Any, Any]


class Shape(NamedTuple):
    """A text that can be made of any length."""

    beginning: str
    repeated: str
    ending: str

    def to_text(self, length: int) -> str:
        times = length // len(self.repeated) + 1
        return self.beginning + (self.repeated * times)[:length] + self.ending


def hostile_shapes(pattern: str, flags: int) -> list[Shape]:
    """The shapes of the texts for an expression, in an order that stays the same."""
    nodes = parser.parse(pattern, flags)
    shapes = dict.fromkeys([*_iter_plain_shapes(), *_iter_shapes(nodes)])
    return [Shape(*shape) for shape in shapes if shape[1]]


def _iter_plain_shapes() -> Iterator[tuple[str, str, str]]:
    for kind in _KINDS:
        yield "", kind, ""
    for between in " \n":
        yield "", f"a{between}", ""
        yield "", f"1{between}", ""


def _iter_shapes(nodes: Sequence[Node]) -> Iterator[tuple[str, str, str]]:
    endings = (*_ENDINGS, *dict.fromkeys(_iter_refused(nodes)))
    for choice in range(_CHOICES):
        whole = _sample(nodes, choice)
        yield "", whole[:-1], ""
        for ending in endings:
            yield "", whole, ending
        for beginning, unit in _iter_repeats(nodes, "", choice):
            for ending in endings:
                yield "", unit, ending
                yield beginning, unit, ending
                yield "", beginning + unit, ending
            yield "", beginning, ""
            yield "", beginning[:-1], ""
            yield "", beginning + unit * _FEW_TIMES + "\0", ""
            yield "", beginning + unit * _FEW_TIMES + "\n", ""


def _iter_refused(nodes: Sequence[Node]) -> Iterator[str]:
    """What the expression must not be followed by, in any of its parts."""
    for operation, argument in nodes:
        if operation is ops.ASSERT_NOT:
            yield _sample(argument[1], 0)
        for part in _parts(operation, argument):
            yield from _iter_refused(part)


def _iter_repeats(
    nodes: Sequence[Node], beginning: str, choice: int
) -> Iterator[tuple[str, str]]:
    """Each repetition, as a text that leads up to it and a text that it repeats."""
    for operation, argument in nodes:
        if operation in _REPEATS:
            yield beginning, _sample(argument[2], choice)
        for part in _parts(operation, argument):
            yield from _iter_repeats(part, beginning, choice)
        beginning += _sample_node(operation, argument, choice)


def _parts(operation: Any, argument: Any) -> Sequence[Sequence[Node]]:
    """The expressions within a node."""
    if operation in _REPEATS:
        return [argument[2]]
    if operation is ops.SUBPATTERN:
        return [argument[3]]
    if operation is ops.ATOMIC_GROUP:
        return [argument]
    if operation in _LOOKS:
        return [argument[1]]
    # Parsed by the standard library, so the branches are what the types say.
    return list(argument[1]) if operation is ops.BRANCH else []


def _sample(nodes: Sequence[Node], choice: int) -> str:
    """A text that matches, as far as that can be told without looking around."""
    return "".join(_sample_node(*node, choice) for node in nodes)


def _sample_node(operation: Any, argument: Any, choice: int) -> str:
    if operation is ops.LITERAL:
        return chr(argument)
    if operation in (ops.ANY, ops.NOT_LITERAL):
        return "a1 "[choice % 3]
    if operation is ops.IN:
        members = _members(argument)
        return members[choice * (len(members) // 2) % len(members)]
    if operation is ops.BRANCH:
        branches = argument[1]
        return _sample(branches[choice % len(branches)], choice)
    if operation in _REPEATS:
        least, most, body = argument
        times: int = min(max(least, 1), most)
        return _sample(body, choice) * times
    if operation in _LOOKS:
        return ""
    return "".join(_sample(part, choice) for part in _parts(operation, argument))


def _members(choices: Sequence[Node]) -> str:
    """Some characters of a set."""
    if choices[0][0] is ops.NEGATE:
        left_out = _members(choices[1:])
        return "".join(each for each in _KINDS if each not in left_out)
    members = ""
    for operation, argument in choices:
        if operation is ops.LITERAL:
            members += chr(argument)
        elif operation is ops.RANGE:
            members += chr(argument[0]) + chr(argument[1])
        else:
            members += _CATEGORIES[argument]
    return members
