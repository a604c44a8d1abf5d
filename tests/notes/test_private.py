"""Private passages of notes: in the file alone, and shown to nobody but its owner."""

from datetime import date
from pathlib import Path

import pytest

from backstory.memory import Memory
from tests.index_builders import all_traces

DAY = date(2026, 11, 16)
MEMORY = """# Memory

## Servers

- The staging server is called Kiwi.
- The door code is <private>qzwxv-1</private>, ask Ann.

< Private reason="mine" >
- The Kiwi safe is qzwxv-2.
</private>

- Deploy on Mondays.
"""


@pytest.fixture
def noted(memory: Memory) -> Memory:
    path = memory.notebook.memory_path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MEMORY, encoding="utf-8")
    log = memory.notebook.log_path(DAY)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(
        "# 2026-11-16\n\nKiwi was set up, <private>qzwxv-3", encoding="utf-8"
    )
    memory.index()
    return memory


def test_they_are_in_no_other_file(noted: Memory) -> None:
    assert all_traces(noted.home, "qzwxv") == [
        "memory/MEMORY.md",
        f"memory/daily/{DAY}.md",
    ]
    assert noted.notebook.read_memory() == MEMORY


def test_they_are_not_found(noted: Memory) -> None:
    shown = [hit.text for hit in noted.search("Kiwi").hits]

    assert any("staging server is called Kiwi" in text for text in shown)
    assert not any("qzwxv" in text for text in shown)
    assert not any("qzwxv" in hit.text for hit in noted.search("qzwxv").hits)


def test_a_session_is_not_told_them(noted: Memory, tmp_path: Path) -> None:
    told = noted.opening(project=tmp_path)

    assert "The door code is [private], ask Ann." in told
    assert "Deploy on Mondays." in told
    assert "qzwxv" not in told
    assert "qzwxv" not in noted.context("what is the Kiwi door code?").text


def test_what_an_agent_saves_keeps_none(memory: Memory) -> None:
    saved = memory.notebook.add_fact("the code is <private>qzwxv</private> now")
    memory.notebook.append_log(DAY, "### A\n- <private a=1>qzwxv", "<!-- x -->")

    assert saved == "the code is [private] now"
    assert all_traces(memory.home, "qzwxv") == []
