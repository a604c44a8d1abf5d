"""Where the folder is that everything is kept in, unless somebody says otherwise."""

import os
import sys


def find_default_home() -> str:
    """The folder ``backstory`` in the user's data folder."""
    if sys.platform == "linux":
        # As platformdirs does, which takes longer to import than a hook may take.
        data = os.environ.get("XDG_DATA_HOME", "").strip()
        return os.path.join(
            data or os.path.expanduser("~/.local/share"),
            "backstory",
        )
    # Slow to import.
    import platformdirs

    return platformdirs.user_data_dir("backstory", appauthor=False)
