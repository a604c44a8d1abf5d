"""Copies of a memory that are not complete yet, which nobody can use.

Every read and write looks at this, and hooks do, so nothing is imported here.
"""

# The name of the state of a history that says what is being copied there.
COPYING = "copying"


def check_complete(is_copying: bool, place: str) -> None:
    """Raise ``StoreIncomplete`` for a copy that is not complete.

    What is read there would be part of a memory, without a word about the rest, and
    copying would overwrite what is written there.
    """
    if is_copying:
        # As above.
        from backstory.errors import StoreIncomplete

        raise StoreIncomplete(f"{place}: it is a copy that is not complete")
