"""What Pi's golden samples cannot show."""

from pathlib import Path

from backstory.ingest.importers.base import Origin, Record
from backstory.ingest.importers.pi import Pi
from backstory.values.history import NewMessage, Problem, Role, SessionFacts

MESSAGE = {"type": "message", "id": "1", "message": {"role": "user", "content": "Hi"}}


def test_a_file_whose_first_line_is_lost_is_known_by_its_name() -> None:
    origin = Origin(Path("2026-10-20T08-00-00-000Z_0198c0de.jsonl"))

    found = list(Pi().parse(Record(2, MESSAGE), origin, {}))

    assert found == [
        SessionFacts("0198c0de"),
        NewMessage("0198c0de", "1", Role.USER, "Hi"),
    ]


def test_a_message_of_an_unknown_role_is_a_problem() -> None:
    record = {"type": "message", "id": "1", "message": {"role": "oracle"}}

    found = list(Pi().parse(Record(7, record), Origin(Path("x.jsonl")), {}))

    assert found == [
        SessionFacts("x"),
        Problem("a message of the role 'oracle', which is unknown", 7),
    ]
