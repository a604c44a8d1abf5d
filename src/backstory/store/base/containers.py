"""Containers as the tables store them: a session's number, or a file's, negated."""

from functools import lru_cache

from backstory.values.units import Container, FileRef, SessionRef


def to_number(container: Container) -> int:
    # Not a match statement: this runs for every unit that is indexed.
    if isinstance(container, SessionRef):
        return container.session_id
    return -container.file_id


# Most units that are found together are in a few containers.
@lru_cache(maxsize=1_024)
def from_number(number: int) -> Container:
    return SessionRef(number) if number > 0 else FileRef(-number)
