"""Containers as the tables store them: a session's number, or a file's, negated."""

from backstory.values.units import Container, FileRef, SessionRef


def to_number(container: Container) -> int:
    match container:
        case SessionRef(session_id):
            return session_id
        case FileRef(file_id):
            return -file_id


def from_number(number: int) -> Container:
    return SessionRef(number) if number > 0 else FileRef(-number)
