"""Whether a person may have changed certain settings, without reading them all.

Reading the settings takes longer than a hook may take, and few people change those that
hooks depend on.
"""

import os
from collections.abc import Mapping

from backstory.system.home import find_default_config

# What the names of settings contain that decide what an agent is told.
TOLD = ("context", "search", "project")
# What those contain that choose a database: then there are no files to read.
STORED = ("store",)
# And whether a worker may be started.
STARTED = ("in_background",)


def may_be_set(names: tuple[str, ...], environ: Mapping[str, str]) -> bool:
    """Whether the environment or the configuration says anything with such a name."""
    if any(
        variable.startswith("BACKSTORY_") and name.upper() in variable
        for variable in environ
        for name in names
    ):
        return True
    path = environ.get("BACKSTORY_CONFIG") or find_default_config()
    try:
        with open(os.path.expanduser(path), "rb") as file:
            written = file.read()
    except FileNotFoundError:
        return False
    except OSError:
        return True  # whoever reads it says what is wrong with it
    return any(name.encode() in written for name in names)
