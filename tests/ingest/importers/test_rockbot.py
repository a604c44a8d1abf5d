"""RockBot: two files with the same turns, and a log that is moved aside and trimmed."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from backstory.ingest.importers.rockbot import RockBotConversation
from backstory.memory import Memory
from tests.samples import a_memory

QUESTION = {
    "role": "user",
    "content": "What is left?",
    "timestamp": "2026-02-20T14:32:10.1234567+00:00",
}
ANSWER = {
    "role": "assistant",
    "content": "The changelog.",
    "timestamp": "2026-02-20T14:32:14.9+00:00",
}
THANKS = {
    "role": "user",
    "content": "Thanks.",
    "timestamp": "2026-02-21T08:00:00+00:00",
}


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """The folder that the agent's environment names."""
    folder = tmp_path / "agent"
    (folder / "conversation-log").mkdir(parents=True)
    (folder / "conversations").mkdir()
    return folder


@pytest.fixture
def memory(tmp_path: Path, agent: Path) -> Iterator[Memory]:
    environ = {"AgentProfile__BasePath": str(agent)}
    with a_memory(tmp_path, environ=environ) as opened:
        yield opened


def write_log(agent: Path, *turns: dict[str, str]) -> None:
    lines = [orjson.dumps({"sessionId": "s1", **turn}) + b"\n" for turn in turns]
    (agent / "conversation-log" / "turns.jsonl").write_bytes(b"".join(lines))


def write_conversation(agent: Path, *turns: dict[str, str]) -> None:
    (agent / "conversations" / "s1.json").write_bytes(orjson.dumps(turns))


def texts(memory: Memory) -> list[str]:
    return [message.text for message in memory.messages(memory.session("s1"))]


def test_a_log_read_after_its_conversation_adds_only_what_is_new(
    memory: Memory, agent: Path
) -> None:
    write_conversation(agent, QUESTION, ANSWER)
    memory.index()

    write_log(agent, QUESTION, ANSWER, THANKS)
    report = memory.index()

    assert (report.new_messages, report.changed_messages) == (1, 0)
    assert report.problems == ()
    assert texts(memory) == ["What is left?", "The changelog.", "Thanks."]


def test_a_log_moved_aside_gives_nothing_twice(memory: Memory, agent: Path) -> None:
    write_log(agent, QUESTION, ANSWER)
    memory.index()

    log = agent / "conversation-log" / "turns.jsonl"
    log.rename(log.with_name("turns.jsonl.bak"))
    write_log(agent, THANKS)
    report = memory.index()

    assert report.new_messages == 1
    assert texts(memory) == ["What is left?", "The changelog.", "Thanks."]


def test_turns_that_fell_out_of_a_trimmed_log_stay(memory: Memory, agent: Path) -> None:
    write_log(agent, QUESTION, ANSWER)
    memory.index()

    write_log(agent, ANSWER, THANKS)
    report = memory.index()

    assert (report.new_messages, report.problems) == (1, ())
    assert texts(memory) == ["What is left?", "The changelog.", "Thanks."]


def test_a_conversation_is_known_by_an_agent_s_name_or_the_log_beside_it(
    agent: Path, tmp_path: Path
) -> None:
    named = orjson.dumps([{**QUESTION, "agentName": None}])
    plain = orjson.dumps([QUESTION])
    other = tmp_path / "other/conversations/1.json"
    importer = RockBotConversation()

    assert importer.recognizes(other, named)
    assert importer.recognizes(agent / "conversations/x/1.json", plain)
    assert not importer.recognizes(other, plain)
