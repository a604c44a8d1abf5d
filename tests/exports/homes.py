"""Memories to export, and everything that one holds, to compare it with another."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from backstory import FactOrigin, Memory, Message, Session, Teller
from backstory.values.structs import replace

DAY = date(2026, 2, 20)
NOON = datetime(2026, 2, 20, 12, 0, tzinfo=UTC)


def fill(memory: Memory) -> None:
    """Two conversations, one with a subagent, and notes."""
    memory.record(
        "trip",
        "user",
        "Where did we put the ladder?",
        sent_at=NOON,
        message="m1",
        title="The ladder",
        project="/home/dev/barn",
    )
    memory.record("trip", "assistant", "Below the stairs.", sent_at=NOON, message="m2")
    memory.record(
        "trip/helper", "user", "Look for it.", sent_at=NOON, message="h1", parent="trip"
    )
    memory.record(
        "paint", "user", "The fence is green.", sent_at=NOON, message="p1", host="other"
    )
    number = next(iter(memory.messages("trip"))).message_id
    told = FactOrigin(Teller.USER, "python", "trip", DAY, (number,))
    memory.notebook.add_fact("Has a ladder", "Tools", origin=told)
    memory.notebook.append_log(DAY, "- Looked for the ladder", "log-1")


Conversation = tuple[Session, list[Message]]


@dataclass(frozen=True)
class Held:
    """All that a memory holds, without what differs from machine to machine."""

    conversations: list[Conversation]
    notes: dict[str, bytes]
    origins: dict[str, tuple[FactOrigin, ...]]


def held_by(memory: Memory) -> Held:
    return Held(
        conversations_of(memory),
        {file.name: file.raw for file in memory.notebook.iter_files()},
        {
            fact: tuple(replace(each, messages=()) for each in told)
            for fact, told in memory.notebook.read_origins().items()
        },
    )


def conversations_of(memory: Memory) -> list[Conversation]:
    found = []
    for session in memory.sessions():
        messages = list(memory.messages(session))
        logged = session.last_logged_message_id
        position = next((m.position for m in messages if m.message_id == logged), None)
        found.append(
            (
                replace(session, session_id=0, last_logged_message_id=position),
                [replace(each, message_id=0, session_id=0) for each in messages],
            )
        )
    return sorted(found, key=lambda each: (each[0].host, each[0].native_id))


def texts_of(memory: Memory) -> list[str]:
    return sorted(m.text for s in memory.sessions() for m in memory.messages(s))


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def data_file(folder: Path, part: str) -> Path:
    """The JSONL file whose name has this part."""
    (found,) = folder.glob(f"conversations/*/*{part}*.backstory.jsonl")
    return found
