"""Aider's histories in real folders, which golden samples cannot show."""

import io
from pathlib import Path

from backstory.ingest.importers.aider import MAX_LINE_BYTES, MAX_MESSAGE_CHARS, Aider
from backstory.ingest.importers.base import Origin
from backstory.memory import Memory
from backstory.values.history import Item, NewMessage, Problem, Session

# Aider ends its lines and the person's with two spaces.
HISTORY = """
# aider chat started at 2026-02-20 14:32:10

> Aider v0.86.2{br}

#### {question}{br}

{answer}

"""


def written(question: str, answer: str) -> str:
    return HISTORY.format(question=question, answer=answer, br="  ")


def a_history(folder: Path, question: str, answer: str = "Done.") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / ".aider.chat.history.md"
    file.write_text(written(question, answer), encoding="utf-8")
    return file


def texts(memory: Memory, session: Session) -> list[str]:
    return [message.text for message in memory.messages(session)]


def test_a_history_is_found_in_a_folder_where_another_agent_worked(
    memory: Memory, home: Path
) -> None:
    a_history(home / "shop", "Round the total.")
    memory.record("s1", "user", "Hello", project=home / "shop", host="other")

    memory.index()

    (session,) = memory.sessions(host="aider")
    assert session.project == str(home / "shop")
    assert texts(memory, session) == ["Aider v0.86.2", "Round the total.", "Done."]


def test_two_projects_that_started_in_the_same_second_stay_apart(
    memory: Memory, home: Path
) -> None:
    a_history(home / "shop", "Round the total.")
    a_history(home / "wiki", "Fix the links.")

    memory.index(path=home)

    found = {session.project: session.title for session in memory.sessions()}
    assert found == {
        str(home / "shop"): "Round the total.",
        str(home / "wiki"): "Fix the links.",
    }


def test_a_session_that_goes_on_gains_messages_and_keeps_the_old_ones(
    memory: Memory, home: Path
) -> None:
    file = a_history(home, "Round the total.", answer="I would use")
    memory.index(path=home)
    more = written("Round the total.", "I would use Decimal.")
    file.write_text(more + "#### Thanks.  \n", encoding="utf-8")

    report = memory.index(path=home)

    (session,) = memory.sessions()
    assert (report.new_messages, report.changed_messages) == (1, 1)
    assert texts(memory, session) == [
        "Aider v0.86.2",
        "Round the total.",
        "I would use Decimal.",
        "Thanks.",
    ]


def test_a_history_of_another_name_is_known_by_its_first_line(
    memory: Memory, home: Path
) -> None:
    a_history(home, "Round the total.").rename(home / "chats.md")

    memory.index(path=home)

    assert [session.title for session in memory.sessions()] == ["Round the total."]


# -- what is too long ---


def parse(data: bytes) -> list[Item]:
    return list(Aider().parse(io.BytesIO(data), Origin(Path("/shop/history.md"))))


def test_a_long_line_is_cut_and_what_follows_is_read() -> None:
    data = b"x" * (MAX_LINE_BYTES + 10) + b"\n#### Thanks.  \n"

    found = parse(data)

    assert [item for item in found if isinstance(item, Problem)] == [
        Problem("a line of 1,048,586 bytes; only its beginning was kept", 1)
    ]
    messages = [item for item in found if isinstance(item, NewMessage)]
    assert [len(message.text) for message in messages] == [MAX_LINE_BYTES, 7]


def test_a_long_message_is_cut_and_what_follows_is_read() -> None:
    line = b"x" * 99_999 + b"\n"
    count = MAX_MESSAGE_CHARS // len(line)

    found = parse(line * (count + 20) + b"#### Thanks.  \n")

    assert [item for item in found if isinstance(item, Problem)] == [
        Problem("a message that is too long; only its beginning was kept", count + 1)
    ]
    messages = [item for item in found if isinstance(item, NewMessage)]
    assert [len(message.text) for message in messages] == [count * len(line) - 1, 7]


def test_what_was_read_stays_when_people_shorten_the_history(
    memory: Memory, tmp_path: Path
) -> None:
    header = "# aider chat started at 2026-02-20 14:32:10\n\n"
    first, second = "#### one  \n\nAnswer one.\n\n", "#### two  \n\nAnswer two.\n\n"
    file = tmp_path / ".aider.chat.history.md"
    file.write_text(header + first + second)
    memory.index(path=file)
    file.write_text(header + second + "#### three  \n")

    memory.index(path=file)

    (session,) = memory.sessions()
    assert [message.text for message in memory.messages(session)] == [
        "one",
        "Answer one.",
        "two",
        "Answer two.",
        "three",
    ]
