"""Copies of a memory that are not complete yet, which nobody can use.

Every read and write checks this, as do hooks, so this module imports nothing.
"""

# The state of a history that says what is being copied into it.
COPYING = "copying"


def check_complete(is_copying: bool, place: str) -> None:
    """Raise ``StoreIncomplete`` for a copy that is not complete.

    Reading it would silently return only part of a memory, and the rest of the copying
    would overwrite what was written to it.
    """
    if is_copying:
        # Imported here so that the module itself imports nothing.
        from backstory.errors import StoreIncomplete

        raise StoreIncomplete(f"{place}: it is a copy that is not complete")
