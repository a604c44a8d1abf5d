"""References to what units belong to."""

from backstory.values.units import Container, FileRef, SessionRef


def test_a_session_is_not_the_file_with_the_same_number() -> None:
    both: set[Container] = {SessionRef(1), FileRef(1)}

    assert both == {SessionRef(1), FileRef(1)}
    assert len(both) == 2
