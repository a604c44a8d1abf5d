"""The address of the database that a home is kept in, as the settings say it."""

from collections.abc import Mapping

from backstory.errors import ConfigError
from backstory.providers.keys import is_key_place, read_key
from backstory.settings import STORE_URL, Settings
from backstory.system.machine import Machine
from backstory.values.structs import FrozenStruct

_SCHEMES = ("postgresql://", "postgres://")


class DatabaseAddress(FrozenStruct):
    """A PostgreSQL database, and the tenant whose rows are meant."""

    url: str
    tenant: str


def read_database(settings: Settings, machine: Machine) -> DatabaseAddress | None:
    """The database that everything is kept in; None for files in the home.

    Raises ``ConfigError``.
    """
    chosen = settings.text(STORE_URL)
    if not chosen:
        return None
    url = read_address(chosen, STORE_URL, machine.environ)
    return DatabaseAddress(url, settings.text("store.tenant"))


def read_address(chosen: str, setting: str, environ: Mapping[str, str]) -> str:
    """The address of a database, which ``env:NAME`` or ``file:/path`` may hold.

    Raises ``ConfigError``.
    """
    url = chosen
    if is_key_place(chosen):
        url = read_key(chosen, (), environ, is_elsewhere=True, setting=setting)
    if not url.startswith(_SCHEMES):
        # Not repeated: part of it may be a password.
        raise ConfigError(
            f"{setting} is not the address of a PostgreSQL database",
            hint="it looks like postgresql://user:password@host:5432/database",
        )
    return url
