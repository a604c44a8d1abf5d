"""Tool results that a loop passes to its model as text, in a message of another role.

The loop says which texts these are; answers of our own tools are recognized anyway. So
a result is recorded as one, can be trimmed, and never passes for the user's words.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from backstory.errors import BadQuery, show_value
from backstory.runs.dialects import find_dialect, parts_of, to_plain
from backstory.runs.dialects.base import Part
from backstory.text.arguments import check_function
from backstory.text.json_values import JsonObject
from backstory.text.own_answers import OwnAnswers
from backstory.values.history import Role
from backstory.values.runs import TextResult
from backstory.values.structs import FrozenStruct, replace

_SPOKEN = frozenset({Role.USER, Role.ASSISTANT})
_CONTENT_KEYS = ("content", "text")

FindResults = Callable[[object], Sequence[TextResult]]


class _ReadPart(FrozenStruct):
    """A part, and its number among the parts that its dialect reads.

    The number is None for a result that is a piece of another part's text.
    """

    part: Part
    number: int | None


class MessageReader:
    """Reads messages in any dialect, including results that are text in them."""

    def __init__(self, find_results: FindResults | None, answers: OwnAnswers) -> None:
        check_function(find_results, "find_results")
        self._find_results = find_results
        self._answers = answers

    def read(self, message: object) -> list[Part]:
        """What a message holds, in order. Raises ``BadQuery`` for an unknown format."""
        return [each.part for each in self._read(message)]

    def replace_results(self, message: object, texts: Mapping[int, str]) -> JsonObject:
        """A copy of a message in which some tool results have a different text.

        ``texts`` are keyed by their position in the list that ``read`` returns.
        """
        plain = to_plain(message)
        of_dialect: dict[int, str] = {}
        pieces: list[tuple[str, str]] = []
        for place, each in enumerate(self._read(message)):
            if place not in texts:
                continue
            if each.number is None:
                pieces.append((each.part.text, texts[place]))
            else:
                of_dialect[each.number] = texts[place]
        changed = find_dialect(plain).replace_results(plain, of_dialect)
        for old, new in pieces:
            changed = _replace_text(changed, old, new) or changed
        return changed

    def _read(self, message: object) -> list[_ReadPart]:
        marked = self._list_marked(message)
        read: list[_ReadPart] = []
        for number, part in enumerate(parts_of(message)):
            found = self._results_in(part, marked)
            if not found:
                read.append(_ReadPart(part, number))
                continue
            # What surrounds marked results is the loop's own frame.
            role = Role.SYSTEM if marked else part.role
            split = _split(replace(part, role=role), found)
            read += [
                _ReadPart(self._fix(message, each), None)
                if each.role is Role.TOOL_RESULT
                else _ReadPart(each, number)
                for each in split
            ]
        return read

    def _list_marked(self, message: object) -> Sequence[TextResult]:
        if self._find_results is None:
            return ()
        try:
            marked = self._find_results(message)
        except Exception as exc:
            raise BadQuery(f"find_results failed: {show_value(exc)}") from exc
        if not isinstance(marked, Sequence) or not all(
            isinstance(each, TextResult) and isinstance(each.text, str)
            for each in marked
        ):
            raise BadQuery(
                f"find_results returned {show_value(marked)}, not a list of TextResult"
            )
        return marked

    def _results_in(
        self, part: Part, marked: Sequence[TextResult]
    ) -> Sequence[TextResult]:
        if part.role not in _SPOKEN:
            return ()
        if marked:
            return [each for each in marked if each.text and each.text in part.text]
        return [TextResult(answer) for answer in self._answers.find(part.text)]

    def _fix(self, message: object, part: Part) -> Part:
        """Note whether a result cannot be replaced in its message, and must stay."""
        is_fixed = _replace_text(to_plain(message), part.text, "") is None
        return replace(part, is_fixed=is_fixed)


def _split(part: Part, results: Sequence[TextResult]) -> Iterator[Part]:
    """What is said before, between and after results, and the results themselves."""
    rest = part.text
    media = part.media
    for result in results:
        before, found, after = rest.partition(result.text)
        if not found:
            continue
        if before.strip():
            yield replace(part, text=before, media=media)
            media = 0
        yield Part(Role.TOOL_RESULT, result.text, result.tool_name, result.call_id)
        rest = after
    if rest.strip():
        yield replace(part, text=rest, media=media)


def _replace_text(message: JsonObject, old: str, new: str) -> JsonObject | None:
    """A copy of a message with a different text; None if it lacks the old one."""
    for key in _CONTENT_KEYS:
        changed = _replace_in(message.get(key), old, new)
        if changed is not None:
            return {**message, key: changed}
    return None


def _replace_in(content: object, old: str, new: str) -> object | None:
    if isinstance(content, str):
        return content.replace(old, new, 1) if old in content else None
    if isinstance(content, list):
        for place, block in enumerate(content):
            changed = _replace_in(block, old, new)
            if changed is not None:
                return [*content[:place], changed, *content[place + 1 :]]
    if isinstance(content, dict):
        return _replace_text(content, old, new)
    return None
