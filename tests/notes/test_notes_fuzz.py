"""Agents and a person write the same notes, in any order, on top of any bytes.

No fact is lost or doubled, every byte of the person stays outside of what was changed,
and whatever cannot be done is said and changes nothing.
"""

import random
from collections.abc import Callable
from datetime import date
from itertools import takewhile
from pathlib import Path

import pytest

from backstory.errors import SourceUnreadable
from backstory.memory import Memory
from backstory.notes.facts import get_fact
from backstory.tools import ToolResult
from tests.chance import seeds
from tests.samples import a_memory

DAY = date(2026, 3, 14)
# What a person's file may be like before anybody else writes to it.
BEGINNINGS = (
    None,
    b"",
    b"\n",
    b"x",
    b"\x00",
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbf# Long-term Memory\r\n\r\n## Notes\r\n- mine\r\n",
    b"# Long-term Memory\n\n## Notes\n- mine",
    b"- mine\r\n\r\n- other\n* third\r\n",
    b"Prose\n===\n\nmore\n---\n\n> quote\n\n    code\n\n| a | b |\n|---|---|\n",
    b"## Notes\n\n```\nan open fence\n## Preferences\n",
    b"## Notes\n<!-- an open comment\n- mine\n",
    b"---\nfront: matter\n---\n## Preferences\n1. one\n2. two\n   - nested\n",
    b"## Preferences\n- mine\n## Preferences\n- again\n# Notes\n",
    "## Ünïcödé 漢字\n- \u202eabc \U0001f600\n".encode(),
    "a\rb\x0cc\x1cd\x85\n- e\n".encode(),
    b"#" * 5_000 + b"\n" + b"- " * 5_000,
)
BROKEN = (b"\xff\xfe", b"- mine\n\xc3", b"\x00\xd8", b"x" * 2_000_001)
# How a fact may be written by an agent, around the word that makes it unique.
SHAPES = (
    "likes {}",
    "- {} is in a list",
    "# {} would be a heading",
    "{}\nand a second line",
    "```\n{}\n```",
    "<!-- {}",
    "{} \x1b[31m\x00 \ufeff \u202e",
    "> {} quoted",
    "1. {}",
    "{} --- \r\n ---",
    "**{}** `code` [link](x) \\",
    "   {}   ",
    "{}" + " word" * 300,
)
CATEGORIES = ("notes", "preferences", "profile", None)


class Writers:
    """Agents and a person at one MEMORY.md, and what must be in it.

    ``lines`` are those that it began with.
    """

    def __init__(
        self, memory: Memory, chance: random.Random, lines: list[bytes]
    ) -> None:
        self.memory = memory
        self.chance = chance
        self.path = memory.notebook.memory_path
        self.tools = {tool.name: tool for tool in memory.tools()}
        self.words: set[str] = set()
        self.lines = lines
        self.count = 0

    def new_word(self) -> str:
        self.count += 1
        return f"zq{self.count}q"

    def raw(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""

    # -- what they do ---

    def save(self) -> None:
        word = self.new_word()
        category = self.chance.choice(CATEGORIES)
        fact = self.chance.choice(SHAPES).format(word)
        before = self.raw()
        more = {} if category is None else {"category": category}

        result = self.tools["save_memory"].call({"content": fact, **more})

        assert result.error is None, result.text
        self.words.add(word)
        assert_is_one_change(before, self.raw(), removed=b"")

    def update(self) -> None:
        old = self.chance.choice(sorted(self.words) or ["nothing"])
        new = self.chance.choice((self.new_word(), ""))
        before = self.raw()

        result = self.tools["update_memory"].call({"old_text": old, "new_text": new})

        self.take(result, old, new, before)

    def forget(self) -> None:
        old = self.chance.choice(sorted(self.words) or ["nothing"])
        before = self.raw()

        result = self.tools["update_memory"].call({"old_text": old, "new_text": ""})

        self.take(result, old, "", before)

    def take(self, result: ToolResult, old: str, new: str, before: bytes) -> None:
        if result.error is not None:
            assert self.raw() == before
            return
        after = self.raw()
        assert_is_one_change(before, after, removed=old.encode())
        # A fact is an item with all its lines, whoever wrote them.
        fact = get_fact(before.decode(), old)
        self.lines = [line for line in self.lines if line.decode().strip() not in fact]
        self.words.remove(old)
        if new:
            self.words.add(new)
        gone = {word for word in self.words if word.encode() not in after}
        if not new:
            self.words -= {word for word in gone if word in fact}

    def edit(self) -> None:
        """A person adds a line anywhere, and saves as their editor does."""
        word = self.new_word()
        end = self.chance.choice((b"\n", b"\r\n"))
        lines = self.raw().splitlines(keepends=True)
        place = self.chance.randint(0, len(lines))
        if place and not lines[place - 1].endswith(b"\n"):
            lines[place - 1] += end
        shape = self.chance.choice((b"- %s", b"%s", b"## %s", b"  - %s", b"> %s"))
        lines.insert(place, shape % word.encode() + end)
        raw = b"".join(lines)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.chance.random() < 0.5:
            beside = self.path.with_name("editor.tmp")
            beside.write_bytes(raw)
            beside.replace(self.path)
        else:
            self.path.write_bytes(raw)
        self.words.add(word)

    def log(self) -> None:
        marker = f"m{self.chance.randint(0, 5)}"
        path = self.memory.notebook.log_path(DAY)
        before = path.read_bytes() if path.exists() else b""

        is_new = self.memory.notebook.append_log(DAY, f"did {marker}", marker)

        after = path.read_bytes()
        assert after.startswith(before)
        assert is_new == (after != before)
        assert after.count(f"backstory: {marker} ".encode()) == 1

    def search(self) -> None:
        if self.words:
            self.memory.search(self.chance.choice(sorted(self.words)))

    # -- what must hold ---

    def check(self) -> None:
        raw = self.raw()
        counts = {word: raw.count(word.encode()) for word in self.words}
        assert set(counts.values()) <= {1}, counts
        assert sorted(path.name for path in self.path.parent.glob(".*")) == []


def assert_is_one_change(before: bytes, after: bytes, *, removed: bytes) -> None:
    """The files differ in neighbouring lines, which had what was to be removed.

    Without that, no line may be gone, but the last one may have got its line end.
    """
    old, new = (raw.splitlines(keepends=True) for raw in (before, after))
    start = count_equal(old, new)
    end = count_equal(old[start:][::-1], new[start:][::-1])
    gone = b"".join(old[start : len(old) - end])
    if removed:
        assert removed in gone, (gone, before, after)
    elif gone:
        assert (start, end) == (len(old) - 1, 0), (gone, before, after)
        assert not gone.endswith(b"\n")
        assert new[start].startswith(gone)


def count_equal(one: list[bytes], other: list[bytes]) -> int:
    """How many lines at the beginning are the same."""
    return len(
        list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    )


# What a person wrote became part of the fact that was changed: below it, or behind it.
_PARTS_OF_A_FACT = [425278064, 2966057895, 2990705312]


@pytest.mark.parametrize("seed", [*seeds(12, soaking=200), *_PARTS_OF_A_FACT])
def test_nobody_loses_a_fact_and_nobody_doubles_one(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with a_memory(tmp_path, settings=("embedder.name=none",)) as memory:
        # Every beginning in turn, so that a few seeds try them all.
        beginning = BEGINNINGS[seed % len(BEGINNINGS)]
        writers = Writers(memory, chance, (beginning or b"").splitlines())
        if beginning is not None:
            writers.path.parent.mkdir(parents=True)
            writers.path.write_bytes(beginning)
        steps: list[Callable[[], None]] = [
            writers.save,
            writers.save,
            writers.update,
            writers.forget,
            writers.edit,
            writers.log,
        ]

        for _ in range(chance.randint(1, 25)):
            chance.choice(steps)()
            writers.check()

        writers.search()
        assert [line for line in writers.lines if line not in writers.raw()] == []


@pytest.mark.parametrize("raw", BROKEN, ids=["bytes", "half", "UTF-16", "too large"])
def test_what_is_not_a_note_is_said_and_stays_byte_for_byte(
    tmp_path: Path, raw: bytes
) -> None:
    with a_memory(tmp_path, settings=("embedder.name=none",)) as memory:
        path, log = memory.notebook.memory_path, memory.notebook.log_path(DAY)
        log.parent.mkdir(parents=True)
        path.write_bytes(raw)
        log.write_bytes(raw)
        tools = {tool.name: tool for tool in memory.tools()}

        saved = tools["save_memory"].call({"content": "a fact"})
        updated = tools["update_memory"].call({"old_text": "mine", "new_text": "x"})
        with pytest.raises(SourceUnreadable):
            memory.notebook.append_log(DAY, "a block", "m1")
        memory.search("mine")
        memory.context("mine?")

        assert (path.read_bytes(), log.read_bytes()) == (raw, raw)
        assert (saved.error, updated.error) == ("save_error", "save_error")
        assert "MEMORY.md" in saved.text
        assert "MEMORY.md" in updated.text
