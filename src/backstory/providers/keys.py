"""Read keys from the environment or a private file, never from a setting itself.

Settings files are copied, shown and committed, and so would be any key in them.
"""

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from backstory.errors import ConfigError
from backstory.text.cut import one_line
from backstory.text.escape import neutralize

_FROM_VARIABLE = "env:"
_FROM_FILE = "file:"
_MAX_KEY_BYTES = 16_384


def read_key(
    chosen: str,
    variables: Sequence[str],
    environ: Mapping[str, str],
    *,
    is_elsewhere: bool,
    setting: str,
) -> str:
    """The key that ``setting`` names as ``env:NAME`` or ``file:/path``.

    If it is empty, the first of the provider's ``variables`` that is set, unless the
    server ``is_elsewhere``: such a key is only sent to its provider. Empty if there is
    no key. Raises ``ConfigError``.
    """
    if not chosen:
        found = (environ.get(name, "") for name in variables if not is_elsewhere)
        return next(filter(None, found), "")
    check_key_place(chosen, setting)
    if chosen.startswith(_FROM_VARIABLE):
        return _from_variable(chosen.removeprefix(_FROM_VARIABLE), environ, setting)
    return _from_file(chosen.removeprefix(_FROM_FILE), setting)


def is_key_place(chosen: str) -> bool:
    """Whether a setting says where a key is, or is empty; otherwise it is a key."""
    return not chosen or chosen.startswith((_FROM_VARIABLE, _FROM_FILE))


def check_key_place(chosen: str, setting: str) -> None:
    """Raise ``ConfigError`` unless ``setting`` says where a key is, or is empty."""
    if not is_key_place(chosen):
        raise ConfigError(
            f"{setting} must say where the key is, not be the key itself",
            hint=f'write {setting} = "env:NAME" or "file:/path"',
        )


def _from_variable(name: str, environ: Mapping[str, str], setting: str) -> str:
    key = environ.get(name, "").strip()
    if not key:
        raise ConfigError(
            f"{setting} names the environment variable {one_line(neutralize(name), 80)}"
            ", which is not set",
            hint="set it, and make sure the agent program that starts Backstory sees "
            "it",
        )
    return key


def _from_file(name: str, setting: str) -> str:
    path = Path(name)
    shown = one_line(neutralize(name), 200)
    if not path.is_absolute():
        raise ConfigError(
            f"{setting} names the file '{shown}', which is not an absolute path",
            hint=f'write {setting} = "file:/path"',
        )
    try:
        # Without waiting: a pipe that nobody writes to would block forever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            # The open file is checked: the name could lead elsewhere a moment later.
            _check_private(os.fstat(descriptor), shown)
            content = file.read(_MAX_KEY_BYTES + 1)
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else exc
        raise ConfigError(
            f"{setting} names the file '{shown}', which cannot be read ({reason})",
            hint="check the path, and that you may read the file",
        ) from exc
    key = content.decode("utf-8", errors="replace").strip()
    if not key or len(content) > _MAX_KEY_BYTES:
        raise ConfigError(
            f"{shown}: it is empty or too long",
            hint=f"the file must hold what {setting} needs, and nothing else",
        )
    return key


def _check_private(found: os.stat_result, shown: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{shown}: it is not a file", hint="name an ordinary file")
    if sys.platform == "win32":
        return  # its mode does not say who may read a file there
    if found.st_uid != os.geteuid():
        raise ConfigError(
            f"{shown}: the file belongs to somebody else",
            hint="make a copy that you own: others could change this one",
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise ConfigError(
            f"{shown}: others may read it (its mode is "
            f"{stat.S_IMODE(found.st_mode):04o})",
            hint=f"run: chmod 600 '{shown}'",
        )
