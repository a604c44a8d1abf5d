"""A made-up run of an agent, always the same: turns, tool calls and results.

Turns come in the order of a loop. Three out of four results are program output: code,
logs, JSON and listings of folders, with hashes and ids that occur nowhere else. One in
ten items is in another script, and some results have a few characters beyond ASCII,
such as the marks that test programs print.
"""

import json
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, islice

from backstory.values.history import Role
from bench.search_corpus import SearchCorpus

_SEED = 20260220
_FOREIGN_SHARE = 0.1
_MARKED_SHARE = 0.06
_MARKS = ("✓", "→", "…", "✔", "│", "├──", "🚀")
_TOOLS = ("Bash", "Read", "Grep", "WebFetch", "ListFiles")
_LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "WARN", "ERROR")
_ASKING = ("can you", "please", "why does", "now", "what about", "I think", "try to")
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_CYRILLIC = str.maketrans(_LATIN, "абцдефгхийклмнопярстувшхыз")
_GREEK = str.maketrans(_LATIN, "αβκδεφγηιικλμνοπθρστυβωξψζ")
# Words that are frequent, but not function words.
_FREQUENT = slice(130, 280)


@dataclass(frozen=True)
class Item:
    """What ``RunHistory.record`` is given."""

    role: Role
    text: str
    tool_name: str | None = None
    call_id: str | None = None


@dataclass(frozen=True)
class Query:
    kind: str
    text: str


class RunCorpus:
    """Makes items, and queries about them."""

    def __init__(self) -> None:
        known = SearchCorpus()
        self._chance = random.Random(_SEED)
        self._draw_word = self._drawing(known.words)
        self._frequent = known.words[_FREQUENT]
        self._paths = [name for name in known.identifiers if "/" in name]
        names = [name for name in known.identifiers if "/" not in name]
        self._draw_name = self._drawing(names)
        self._draw_han = self._drawing(known.cjk_words)
        hangul = [
            "".join(chr(self._chance.randrange(0xAC00, 0xAC00 + 2_000)) for _ in "abc")
            for _ in range(3_000)
        ]
        self._draw_hangul = self._drawing(hangul)

    def _drawing(self, words: Sequence[str]) -> Callable[[int], list[str]]:
        """A function that draws words by Zipf's law."""
        weights = list(accumulate(1 / place for place in range(1, len(words) + 1)))

        def draw(how_many: int) -> list[str]:
            return self._chance.choices(words, cum_weights=weights, k=how_many)

        return draw

    # -- items ------------------------------------------------------------------------

    def make_items(self, how_many: int, size_bytes: int) -> list[Item]:
        """``how_many`` items with ``size_bytes`` of text in UTF-8 in total."""
        made = list(islice(self._iter_loop(), how_many))
        results = [
            place for place, each in enumerate(made) if each.role is Role.TOOL_RESULT
        ]
        left = size_bytes - sum(len(each.text.encode()) for each in made)
        weights = [self._chance.lognormvariate(0, 1.3) for _ in results]
        unit = left / sum(weights)
        for place, weight in zip(results, weights, strict=True):
            # Whatever is left over after cutting goes to the next item.
            size = max(1, min(left, round(weight * unit)))
            if place == results[-1]:
                size = max(1, left)
            each = made[place]
            text = self._make_result(size)
            left -= len(text.encode())
            made[place] = Item(each.role, text, each.tool_name, each.call_id)
        return made

    def _iter_loop(self) -> Iterator[Item]:
        """Turns and calls, with empty results to be filled later."""
        for number in count():
            yield Item(Role.USER, self._make_turn(15, asks=True))
            for _ in range(self._chance.randint(2, 10)):
                if self._chance.random() < 0.5:
                    yield Item(Role.ASSISTANT, self._make_turn(35))
                tool = self._chance.choice(_TOOLS)
                call_id = f"toolu_{self._chance.getrandbits(96):024x}"
                yield Item(Role.TOOL_CALL, self._make_call(), tool, call_id)
                yield Item(Role.TOOL_RESULT, "", tool, call_id)
            yield Item(Role.ASSISTANT, f"{self._make_turn(90)} ({number})")

    def _make_call(self) -> str:
        is_foreign = self._chance.random() < _FOREIGN_SHARE
        arguments = {
            "path": self._chance.choice(self._paths),
            "command": " ".join(self._draw_name(3)),
            "description": next(self._foreign_lines())
            if is_foreign
            else self._prose(6),
        }
        return json.dumps(arguments, ensure_ascii=False)

    def _make_turn(self, words: int, *, asks: bool = False) -> str:
        size = max(3, round(words * self._chance.lognormvariate(0, 0.6)))
        if self._chance.random() < _FOREIGN_SHARE:
            return "\n".join(islice(self._foreign_lines(), max(1, size // 12)))
        begins = f"{self._chance.choice(_ASKING)} " if asks else ""
        return begins + self._prose(size)

    def _make_result(self, size_bytes: int) -> str:
        if self._chance.random() < _FOREIGN_SHARE:
            lines = self._foreign_lines()
        else:
            (kind,) = self._chance.choices(
                (
                    self._code_lines,
                    self._log_lines,
                    self._json_lines,
                    self._listing_lines,
                    self._prose_lines,
                ),
                (30, 25, 15, 15, 15),
            )
            lines = kind()
            if self._chance.random() < _MARKED_SHARE:
                lines = self._marked(lines)
        return _cut_to(lines, size_bytes)

    # -- lines ------------------------------------------------------------------------

    def _prose(self, words: int) -> str:
        text = " ".join(self._draw_word(words))
        return f"{text[0].upper()}{text[1:]}."

    def _prose_lines(self) -> Iterator[str]:
        while True:
            yield self._prose(self._chance.randint(8, 25))

    def _code_lines(self) -> Iterator[str]:
        while True:
            one, two, three, four = self._draw_name(4)
            yield f"def {one}({two}, {three}):"
            yield f'    """{self._prose(9)}"""'
            for _ in range(self._chance.randint(2, 9)):
                left, right, other = self._draw_name(3)
                number = self._chance.randrange(10_000)
                yield f"        {left} = {right}({other}, {number})  # {four}"
            yield f"    return {two}[{self._chance.randrange(99)}]\n"

    def _log_lines(self) -> Iterator[str]:
        chance = self._chance
        second = chance.randrange(86_400)
        while True:
            second = (second + chance.randrange(4)) % 86_400
            at = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
            yield (
                f"2026-02-20T{at}.{chance.randrange(1000):03}Z {chance.choice(_LEVELS)}"
                f" [{self._draw_name(1)[0]}] request={self._uuid()}"
                f" {' '.join(self._draw_word(6))} took={chance.randrange(9_000)}ms"
                f" sha={chance.getrandbits(160):040x}"
            )

    def _json_lines(self) -> Iterator[str]:
        yield "["
        while True:
            name, title = self._draw_name(2)
            record = {
                "id": self._uuid(),
                "name": name,
                "title": self._prose(5),
                "size": self._chance.randrange(10**7),
                "tags": self._draw_word(3),
                "nested": {"key": title, "ok": True, "at": self._chance.random()},
            }
            yield json.dumps(record, indent=2) + ","

    def _listing_lines(self) -> Iterator[str]:
        while True:
            size, minute = self._chance.randrange(10**6), self._chance.randrange(1440)
            at = f"{minute // 60:02}:{minute % 60:02}"
            path = self._chance.choice(self._paths)
            yield f"-rw-r--r-- 1 dev dev {size:>8} Feb 20 {at} {path}"

    def _foreign_lines(self) -> Iterator[str]:
        """Texts in one other language: Chinese half of the time."""
        kind = self._chance.randrange(6)
        while True:
            size = self._chance.randint(8, 16)
            if kind < 3:
                yield "".join(self._draw_han(size)) + "。"
            elif kind == 3:
                yield " ".join(self._draw_hangul(size))
            else:
                table = _CYRILLIC if kind == 4 else _GREEK
                yield " ".join(self._draw_word(size)).translate(table)

    def _marked(self, lines: Iterator[str]) -> Iterator[str]:
        mark = self._chance.choice(_MARKS)
        for line in lines:
            yield f"{mark} {line}" if self._chance.random() < 0.1 else line

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))

    # -- queries ----------------------------------------------------------------------

    def make_queries(self, items: Sequence[Item], each_kind: int) -> list[Query]:
        """Queries that a model may ask about the items, ``each_kind`` of each kind."""
        chance = self._chance
        told = [each.text for each in items if len(each.text) > 400]
        logs = [text for text in told if " sha=" in text]
        han = [text for text in told if text.count("。") > 4]
        prose = [text for text in told if text[:1].isupper() and text.isascii()]
        signs = (
            "});",
            "=>",
            "!==",
            "???",
            "|||",
            "<<<<<<<",
            "]]",
            "%%",
            "✓",
            "&&",
            "@",
        )
        made: list[Query] = []
        for number in range(each_kind):
            line = chance.choice(chance.choice(logs).splitlines()[:-1] or [" sha=0"])
            sentences = chance.choice(han).split("。")
            words = chance.choice(prose).split()
            start = chance.randrange(max(1, len(words) - 6))
            phrase = " ".join(words[start : start + 5])
            question = ", ".join(
                " ".join(self._draw_word(9)) for _ in range(chance.randint(2, 4))
            )
            made += [
                Query("rare identifier", line.rpartition("=")[2]),
                Query("common words", " ".join(chance.sample(self._frequent, 3))),
                Query("long question", f"what did the tool say about {question}?"),
                Query("exact phrase", f'"{phrase}"'),
                Query("path", chance.choice(self._paths)),
                Query("CJK", chance.choice(sentences)[:6].strip() or "記憶"),
                Query("nowhere", f"zyq{chance.randrange(10**6)}wv{number}"),
                Query("signs only", signs[number % len(signs)]),
            ]
        return made


def _cut_to(lines: Iterator[str], size_bytes: int) -> str:
    """Lines with ``size_bytes`` in total; the last one is cut, as tools do."""
    taken: list[str] = []
    size = 0
    while size < size_bytes:
        taken.append(next(lines))
        size += len(taken[-1].encode()) + 1
    return "\n".join(taken).encode()[:size_bytes].decode(errors="ignore")
