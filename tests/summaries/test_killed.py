"""Killed at any moment of summarizing and curating, nothing is lost or there twice."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backstory.memory import Memory
from tests.chance import seeds
from tests.llm_server import LlmServer, Script, running_server
from tests.processes import kill_sometime
from tests.samples import a_memory

NOW = datetime(2026, 2, 28, 12, tzinfo=UTC)
SECRET = "hunter2abc"
MEMORY = f"""# Long-term Memory

## Notes
- Staging password: {SECRET}, on db1
- Likes tea
- The user likes tea
"""
SAID = [f"said {name}{number}" for name in "abc" for number in (1, 2)]


def answer(prompt: str) -> str:
    """A model that repeats what was said, and rewords a fact."""
    asked = json.loads(prompt)
    if "said" in asked:
        texts = [each["text"] for each in asked["said"]]
        return json.dumps({"topics": texts, "remember": [{"fact": texts[0]}]})
    old = "Staging password: [masked], on db1"
    changes = [{"old": old, "new": old.replace(", on", " on")}]
    return json.dumps({"remove": ["The user likes tea"], "replace": changes})


@pytest.fixture(scope="module")
def server() -> Iterator[LlmServer]:
    with running_server() as made:
        made.follow(Script(reply=answer))
        yield made


def open_memory(folder: Path, server: LlmServer) -> Memory:
    return a_memory(
        folder,
        settings=("embedder.name=none", "llm.name=openai", f"llm.url={server.url}/v1"),
        clock=lambda: NOW,
    )


@pytest.mark.parametrize("seed", seeds(1, soaking=30))
def test_killed_at_any_moment_each_message_is_logged_once_and_no_fact_is_lost(
    tmp_path: Path, server: LlmServer, seed: int
) -> None:
    chance = random.Random(seed)
    with open_memory(tmp_path, server) as memory:
        memory.notebook.replace_memory(MEMORY, expected="")
        for text in SAID:
            memory.record(text[5], "user", text)
        memory.background()

    def work() -> None:
        with open_memory(tmp_path, server) as memory:
            memory.work()

    attempt = 0
    while kill_sometime(work, chance, attempt=attempt):
        attempt += 1
    with open_memory(tmp_path, server) as memory:
        # A curation that was killed is for the next day, or for whoever asks.
        memory.curate()
        lines = (memory.notebook.read_log(NOW.date()) or "").splitlines()
        facts = memory.notebook.read_memory().splitlines()
        status = memory.status().logs

    assert sorted(line for line in lines if line.startswith("- ")) == [
        f"- {text}" for text in SAID
    ]
    assert sorted(line for line in facts if line.startswith("- ")) == [
        "- Likes tea",
        f"- Staging password: {SECRET} on db1",
        "- said a1",
        "- said b1",
        "- said c1",
    ]
    assert (status.due, status.set_aside) == (0, 0)
