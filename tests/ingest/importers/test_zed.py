"""Threads of Zed while they are written, and what a thread may unpack to."""

from pathlib import Path
from typing import Any

import apsw
import orjson

from backstory.ingest.parsing.json_documents import MAX_DOCUMENT_BYTES
from backstory.system.zstd import compress
from tests.samples import a_memory

SCHEMA = "CREATE TABLE threads (id, summary, updated_at, data_type, data)"
ASKED = {"User": {"id": "u1", "content": [{"Text": "Look."}]}}


def write_thread(home: Path, content: bytes, *, updated_at: str) -> None:
    file = home / ".local/share/zed/threads/threads.db"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    db = apsw.Connection(str(file))
    db.execute(SCHEMA)
    row = ("t", "A title", updated_at, "zstd", compress(content))
    db.execute("INSERT INTO threads VALUES (?, ?, ?, ?, ?)", row)
    db.close()


def a_thread(*messages: object) -> bytes:
    return orjson.dumps({"version": "0.3.0", "messages": messages})


def a_call(number: int) -> dict[str, Any]:
    return {"ToolUse": {"id": f"c{number}", "name": "read", "input": {"n": number}}}


def a_result(number: int) -> dict[str, Any]:
    return {"tool_use_id": f"c{number}", "content": {"Text": f"result {number}"}}


def test_an_answer_that_is_still_written_is_replaced_by_the_whole(
    tmp_path: Path,
) -> None:
    begun = {"content": [{"Text": "I"}, a_call(1)], "tool_results": {"c1": a_result(1)}}
    ended = {
        "content": [{"Text": "I will."}, a_call(1), a_call(2)],
        "tool_results": {"c1": a_result(1), "c2": a_result(2)},
    }
    with a_memory(tmp_path, home=tmp_path) as memory:
        write_thread(
            tmp_path, a_thread(ASKED, {"Agent": begun}), updated_at="2026-05-04T10:00Z"
        )
        memory.index()
        write_thread(
            tmp_path, a_thread(ASKED, {"Agent": ended}), updated_at="2026-05-04T10:01Z"
        )
        memory.index()

        (session,) = memory.sessions()
        said = [(each.role.value, each.text) for each in memory.messages(session)]
        assert sorted(said) == [
            ("assistant", "I will."),
            ("tool_call", '{"n":1}'),
            ("tool_call", '{"n":2}'),
            ("tool_result", "result 1"),
            ("tool_result", "result 2"),
            ("user", "Look."),
        ]


def test_a_thread_that_unpacks_to_too_much_is_a_problem(tmp_path: Path) -> None:
    huge = a_thread({"User": {"content": [{"Text": "a" * MAX_DOCUMENT_BYTES}]}})
    write_thread(tmp_path, huge, updated_at="2026-05-04T10:00Z")
    with a_memory(tmp_path, home=tmp_path) as memory:
        report = memory.index()

        assert memory.sessions() == []
        assert [problem.reason for problem in report.problems] == [
            f"the thread t: a document of more than {MAX_DOCUMENT_BYTES:,} bytes"
        ]
