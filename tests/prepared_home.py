"""An empty home whose databases are copies, as creating them takes longer than most
tests do.

Each copy gets an identity of its own, like a database that was created.
"""

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import apsw

from backstory.store.sqlite import embeddings, history, index_connection
from backstory.store.sqlite.connection import close_database, open_database
from backstory.store.sqlite.index_files import EMBEDDINGS_NAME, INDEX_NAME
from backstory.store.sqlite.page_checksums import VERIFIED

_DATABASES = {
    history.HISTORY_NAME: history.MIGRATIONS,
    INDEX_NAME: index_connection.MIGRATIONS,
    EMBEDDINGS_NAME: embeddings.MIGRATIONS,
}
_NEW_IDENTITIES = {
    history.HISTORY_NAME: "UPDATE identity SET value = lower(hex(randomblob(16)))",
    EMBEDDINGS_NAME: """
        UPDATE state SET value = lower(hex(randomblob(16))) WHERE name = 'identity'
    """,
}


def prepare_home(home: Path) -> None:
    """Make the databases of a new home, unless there is something in its place."""
    if home.exists() or home.is_symlink():
        return
    # Elsewhere first: some tests kill whoever is at it, and half a copy is no home.
    made = home.with_name(f"{home.name}-{os.getpid()}")
    made.mkdir(mode=0o700, parents=True)
    for name in _DATABASES:
        shutil.copy(_originals() / name, made / name)
    for name, statement in _NEW_IDENTITIES.items():
        db = apsw.Connection(str(made / name), vfs=VERIFIED)
        # It need not outlive a power cut.
        db.execute("PRAGMA synchronous = OFF")
        db.execute(statement)
        db.close()
    try:
        made.rename(home)
    except OSError:
        # Another process of the same test may have been faster.
        shutil.rmtree(made)
        if not home.exists():
            raise


@cache
def _originals() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="backstory-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, migrations in _DATABASES.items():
        close_database(open_database(folder / name, migrations))
    return folder
