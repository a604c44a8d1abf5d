"""What Codex rollouts and threads do over time, which one reading cannot show."""

from pathlib import Path
from typing import Any

import apsw
import orjson
import zstandard

from backstory.importers.base import Origin, Record
from backstory.importers.codex import Codex, CodexThreads
from backstory.memory import Memory
from backstory.model import SessionFacts

THREAD = "01a1e056-77f1-7c31-93ec-08efe33d3b02"
ROLLOUT = f".codex/sessions/2026/11/15/rollout-2026-11-15T17-52-05-{THREAD}.jsonl"


def a_line(kind: str, **payload: Any) -> bytes:
    record = {
        "timestamp": "2026-11-15T17:52:05.000Z",
        "type": kind,
        "payload": payload,
    }
    return orjson.dumps(record) + b"\n"


def a_rollout() -> bytes:
    said = [{"type": "input_text", "text": "Hello"}]
    return a_line("session_meta", id=THREAD, cwd="/home/dev/demo") + a_line(
        "response_item", type="message", role="user", content=said
    )


def write(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def a_state_database(file: Path) -> apsw.Connection:
    db = apsw.Connection(str(file))
    db.execute("CREATE TABLE threads (id TEXT, title TEXT, name TEXT, cwd TEXT)")
    db.execute(
        "INSERT INTO threads VALUES (?, 'Hello', NULL, '/home/dev/demo')", (THREAD,)
    )
    return db


def texts(memory: Memory) -> list[str]:
    return [
        message.text
        for session in memory.sessions()
        for message in memory.messages(session)
    ]


def test_a_rollout_that_is_compressed_later_gives_no_message_twice(
    memory: Memory, home: Path
) -> None:
    write(home / ROLLOUT, a_rollout())
    memory.index()

    (home / ROLLOUT).unlink()
    write(home / f"{ROLLOUT}.zst", zstandard.compress(a_rollout()))
    memory.index()

    assert texts(memory) == ["Hello"]


def test_a_thread_that_is_renamed_gets_its_new_title(
    memory: Memory, home: Path
) -> None:
    write(home / ROLLOUT, a_rollout())
    db = a_state_database(home / ".codex/state_5.sqlite")
    memory.index()

    db.execute("UPDATE threads SET name = 'Greetings'")
    db.close()
    memory.index()

    assert [session.title for session in memory.sessions()] == ["Greetings"]


def test_a_title_comes_with_its_project_so_that_it_can_be_excluded(
    tmp_path: Path,
) -> None:
    db = a_state_database(tmp_path / "state_5.sqlite")

    found = list(CodexThreads().parse(db, THREAD, Origin(tmp_path)))

    assert found == [SessionFacts(THREAD, title="Hello", project="/home/dev/demo")]


def test_equal_outputs_at_the_same_instant_are_told_apart_by_their_calls() -> None:
    lines = [
        a_line("session_meta", id=THREAD),
        a_line("response_item", type="function_call_output", call_id="a", output="ok"),
        a_line("response_item", type="function_call_output", call_id="b", output="ok"),
    ]
    records = [Record(n, orjson.loads(line)) for n, line in enumerate(lines, start=1)]

    _, first, second = Codex().parse(records, Origin(Path("rollout.jsonl")), {})

    assert first.native_id != second.native_id  # type: ignore[union-attr]
