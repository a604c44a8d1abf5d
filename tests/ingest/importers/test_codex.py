"""What Codex rollouts and threads do over time, which one reading cannot show."""

from pathlib import Path
from typing import Any

import apsw
import orjson

from backstory.ingest.importers.base import Origin, Record
from backstory.ingest.importers.codex import Codex, CodexThreads
from backstory.memory import Memory
from backstory.system.zstd import compress
from backstory.values.history import Item, NewMessage, SessionFacts
from tests.samples import parse_records

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
    write(home / f"{ROLLOUT}.zst", compress(a_rollout()))
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

    _, first, second = parse(*records)

    assert first.native_id != second.native_id  # type: ignore[union-attr]


def a_message(*texts: str, kinds: list[str] | None = None) -> Record:
    content = [{"type": "input_text", "text": text} for text in texts]
    item: dict[str, Any] = {"type": "message", "role": "user", "content": content}
    if kinds is not None:
        item["internal_chat_message_metadata_passthrough"] = {
            "content_item_kinds": kinds
        }
    return Record(2, {"type": "response_item", "payload": item})


def parse(*records: Record) -> list[Item]:
    return parse_records(Codex(), records, Origin(Path("rollout-x.jsonl")), {})


def said(*records: Record) -> list[str]:
    return [item.text for item in parse(*records) if isinstance(item, NewMessage)]


def test_a_part_that_is_said_to_be_the_person_s_is_theirs_whatever_it_looks_like() -> (
    None
):
    text = "<environment_context>mine</environment_context>"

    assert said(a_message(text, kinds=["user.text"])) == [text]
    assert said(a_message(text)) == []


def test_words_between_two_contexts_are_the_person_s() -> None:
    context = "<environment_context>a</environment_context>"
    text = f"{context} please explain {context}"

    assert said(a_message(text)) == [text]


def test_a_rollout_without_a_folder_has_that_of_its_first_context() -> None:
    meta = Record(1, {"type": "session_meta", "payload": {"id": "s"}})
    contexts = [
        a_message(f"<environment_context>\n<cwd>{cwd}</cwd>\n</environment_context>")
        for cwd in ("/home/dev/a", "/home/dev/b")
    ]

    found = parse(meta, contexts[0], a_message("Hello"), contexts[1])

    assert found[:2] == [SessionFacts("s"), SessionFacts("s", project="/home/dev/a")]
    assert [type(item) for item in found[2:]] == [NewMessage]


def test_the_folder_in_the_meta_record_counts() -> None:
    meta = Record(1, {"type": "session_meta", "payload": {"id": "s", "cwd": "/a"}})
    context = "<environment_context><cwd>/b</cwd></environment_context>"

    assert parse(meta, a_message(context)) == [SessionFacts("s", project="/a")]
