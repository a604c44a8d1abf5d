"""What a page offers besides reading."""

from backstory.values.structs import FrozenStruct


class Offers(FrozenStruct):
    """``is_local``: whoever looks at the page sits at the machine that serves it.

    Only then does it have pages about this machine: its agent programs, files, settings
    and commands. ``may_change`` is whether notes and conversations can be changed.
    """

    is_local: bool = True
    may_change: bool = True


# For whoever sits at this machine.
EVERYTHING = Offers()
