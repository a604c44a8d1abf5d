"""Where the memory and its configuration are, unless somebody says otherwise.

On Linux, these are the same as those of platformdirs, which takes longer to import than
a hook may take.
"""

import os
import sys


def find_default_home() -> str:
    """The folder ``backstory`` in the user's data folder."""
    if sys.platform == "linux":
        return _in_folder("XDG_DATA_HOME", "~/.local/share", "backstory")
    # Slow to import.
    import platformdirs

    return platformdirs.user_data_dir("backstory", appauthor=False)


def find_default_config() -> str:
    """The file ``config.toml`` in the user's configuration folder."""
    if sys.platform == "linux":
        return _in_folder("XDG_CONFIG_HOME", "~/.config", "backstory/config.toml")
    # Slow to import.
    import platformdirs

    folder = platformdirs.user_config_dir("backstory", appauthor=False)
    return os.path.join(folder, "config.toml")


def _in_folder(variable: str, otherwise: str, name: str) -> str:
    folder = os.environ.get(variable, "").strip() or os.path.expanduser(otherwise)
    return os.path.join(folder, name)
