"""Filters for lists of conversations."""

from collections.abc import Sequence

from backstory.render.people.hits import folder_name
from backstory.values.history import Session


def list_folder_names(sessions: Sequence[Session]) -> list[str]:
    """The names of the folders that sessions ran in, the latest first."""
    names = (folder_name(each.project) for each in sessions)
    return list(dict.fromkeys(name for name in names if name))


def read_number(text: str, default: int, most: int) -> int:
    """How many results an address asks for, from one to ``most``."""
    number = int(text) if text.isdecimal() and len(text) < 10 else default
    return min(max(1, number), most)
