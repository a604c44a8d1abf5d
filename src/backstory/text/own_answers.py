"""Recognize answers of Backstory's own tools in the program that they were given to.

A program may return an answer to its model under any name, and in any role. An answer
is recognized because it was given out, not by its looks: what another tool says stays
in the history, even if it looks the same.
"""

from collections import OrderedDict

_MAX_ANSWERS = 10_000
# How many answers may begin with the same line.
_MAX_ALIKE = 20
_Answer = tuple[int, int]


class OwnAnswers:
    """The tools that were given out, and what they answered. Safe for threads."""

    def __init__(self) -> None:
        self._tools: set[tuple[str | None, str]] = set()
        # Lengths and hashes, by the hash of the first line: no text is kept in memory.
        self._answers: OrderedDict[int, list[_Answer]] = OrderedDict()

    def add_tool(self, name: str, session: str | None = None) -> None:
        """Note that a tool was given out, to one session or to any."""
        self._tools.add((session, name))

    def has_tool(self, name: str | None, session: str | None = None) -> bool:
        """Whether a tool was given out, be it to anybody or only to that session."""
        if session is None:
            return any(name == given for _, given in tuple(self._tools))
        return (None, name) in self._tools or (session, name) in self._tools

    def add(self, answer: str) -> None:
        text = answer.strip()
        if not text:
            return
        line = hash(text.partition("\n")[0])
        known = self._answers.setdefault(line, [])
        self._answers.move_to_end(line)
        if (found := (len(text), hash(text))) not in known:
            known.append(found)
            del known[:-_MAX_ALIKE]
        if len(self._answers) > _MAX_ANSWERS:
            self._answers.popitem(last=False)

    def find(self, text: str) -> list[str]:
        """The answers in a text, each from the start of a line, in order."""
        found: list[str] = []
        at = 0
        while self._answers and 0 <= at < len(text):
            answer = self._find_at(text, at)
            if answer is not None:
                found.append(answer)
            next_line = text.find("\n", at + len(answer or ""))
            at = next_line + 1 if next_line >= 0 else -1
        return found

    def is_answer(self, text: str) -> bool:
        """Whether a text is one of the answers and nothing else."""
        stripped = text.strip()
        return bool(stripped) and self._find_at(stripped, 0) == stripped

    def _find_at(self, text: str, at: int) -> str | None:
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        # A shorter answer may be the beginning of a longer one.
        for length, hashed in sorted(self._answers.get(hash(line), ()), reverse=True):
            candidate = text[at : at + length]
            if len(candidate) == length and hash(candidate) == hashed:
                return candidate
        return None
