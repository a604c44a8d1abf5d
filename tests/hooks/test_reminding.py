"""A hook that searches by itself reminds of the same as a memory does."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backstory.hooks.reminding import NeedsMemory, remind_by_words
from backstory.memory import Memory
from tests.hooks.hook_home import PROJECT
from tests.samples import a_memory

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SESSION = "s1"
TOPICS = """
    invoice ledger contoso parser rounding currency penny total refund receipt
    webhook retry backoff jitter queue kafka offset partition consumer lag
    terraform module bucket policy iam role state drift import plan
    sakura sushi shibuya booking guests friday terrace vegetarian menu deposit
"""


def sentence(chance: random.Random, topics: list[str]) -> str:
    words = chance.sample(topics, chance.randint(4, 12))
    return " ".join(words).capitalize() + chance.choice([".", "?", ""])


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """Many short texts, of this project and others, in chats and with tools."""
    folder = tmp_path_factory.mktemp("reminding")
    chance = random.Random(5)
    topics = TOPICS.split() + [f"filler{number}" for number in range(300)]
    settings = ("embedder.name=none",)
    with a_memory(folder, settings=settings, clock=lambda: NOW) as it:
        for number in range(25):
            project = (PROJECT, f"{PROJECT}/src", "/home/dev/shop", None)[number % 4]
            at = NOW - timedelta(days=number)
            # A step, what the turn came to, and a question that is answered at once.
            for role in ("user", "assistant", "assistant", "user", "assistant"):
                text = " ".join(sentence(chance, topics) for _ in range(6))
                it.record(
                    f"old {number}",
                    role,
                    text * (1 + 9 * (number == 3)),
                    sent_at=at,
                    project=project,
                )
            if number % 2:
                # And one that came to nothing.
                step = " ".join(chance.sample(topics, 14))
                it.record(f"old {number}", "user", sentence(chance, topics))
                it.record(f"old {number}", "assistant", step, sent_at=at)
                it.record(f"old {number}", "tool_result", "done", tool_name="bash")
        it.record("repeated", "user", text, sent_at=NOW, project=PROJECT)
        own = "contoso refund penny rounding currency ledger total"
        it.record(SESSION, "user", own, host="claude-code", project=PROJECT)
        it.record("sub", "user", own, host="claude-code", parent=SESSION)
        it.notebook.append_log(NOW.date(), "- Kafka consumer lag jitter\n", "mine")
        it.notebook.change_memory(
            lambda _: "# Long-term Memory\n\n- Terraform drift: import state, plan\n"
        )
        it.search("contoso")
        yield it


def remind(memory: Memory, prompt: str, *, session: str, cwd: str) -> str:
    """As a hook does; without the seal, as a memory seals the same words the same."""
    text, _ = remind_by_words(
        str(memory.home),
        prompt,
        host="claude-code",
        native_id=session,
        cwd=cwd,
        given=[],
    )
    return text


@pytest.mark.parametrize("session", [SESSION, "a new one"])
def test_a_hook_reminds_of_the_same_as_a_memory(memory: Memory, session: str) -> None:
    chance = random.Random(7)
    topics = [each for each in TOPICS.split() if each != "friday"]
    prompts = [sentence(chance, topics) for _ in range(40)]
    prompts += ["run the tests", "", "ok", "why Kafka?", "Sakura “Sushi” Überweisung"]
    cwds = [PROJECT, f"{PROJECT}/src/deep", "/home/dev/shop", "/home/dev"]
    told, differ = 0, []
    for number, prompt in enumerate(prompts):
        cwd = cwds[number % len(cwds)]
        name = f"claude-code/{session}"
        wanted = memory.context(prompt, session=name, project=cwd, given=[]).text
        try:
            found = remind(memory, prompt, session=session, cwd=cwd)
        except NeedsMemory:
            # A log was found that may be of the session itself.
            assert session == SESSION
            continue
        told += bool(wanted)
        if found != wanted:
            differ.append((prompt, cwd, found, wanted))

    assert differ == []
    assert told > 15


@pytest.mark.parametrize("embedder", ["none", "minilm"])
def test_nobody_is_reminded_of_a_warm_up(tmp_path: Path, embedder: str) -> None:
    ready = "Hello! I'm ready to help you explore the greenhouse firmware codebase."
    asked = "The greenhouse firmware codebase has its drivers in src/sensors."
    settings = (f"embedder.name={embedder}", "embedder.in_background=false")
    with a_memory(tmp_path, settings=settings, clock=lambda: NOW) as memory:
        for number in range(60):
            memory.record("other", "user", f"plum{number} pear{number}")
        for session, parent, said in (
            ("warm", None, ["Warmup", ready]),
            ("silent", "gone", [ready.replace("Hello", "Greetings")]),
            ("asked", None, ["Where are the drivers?", asked]),
        ):
            for text in said:
                memory.record(
                    session,
                    "assistant" if text == said[-1] else "user",
                    text,
                    host="claude-code",
                    project=PROJECT,
                    parent=parent,
                )
        memory.index()
        memory.embed()
        prompt = "explore the greenhouse firmware codebase"
        context = memory.context(prompt, project=PROJECT)
        told = remind(memory, prompt, session="new", cwd=PROJECT)

    for text in (context.text, told):
        assert asked in text
        assert "ready to help" not in text


def test_a_prompt_that_names_a_day_needs_the_memory(memory: Memory) -> None:
    with pytest.raises(NeedsMemory):
        remind(memory, "what about Contoso yesterday?", session=SESSION, cwd=PROJECT)


def test_reminding_changes_nothing_in_the_home(memory: Memory, tmp_path: Path) -> None:
    def state() -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in memory.home.rglob("*")
            if path.is_file() and not path.name.endswith("-shm")
        }

    before = state()
    prompt = "contoso invoice rounding penny refund ledger currency"
    assert remind(memory, prompt, session="other", cwd=PROJECT)

    assert state() == before
