"""The table ``index_states``: values by name."""

from backstory.store.postgres.connecting import Connection

# How many numbers a vector has.
DIMENSIONS = "vector_dimensions"
# Set while the server's files may still have what was deleted.
IS_ERASE_DUE = "erase_is_due"
# The value of it if somebody could still see what was to be erased.
WAS_BLOCKED = "blocked"


def get_state(db: Connection, index_id: int, name: str) -> str | None:
    row = db.execute(
        "SELECT value FROM index_states WHERE index_id = %s AND name = %s",
        (index_id, name),
    ).fetchone()
    return None if row is None else str(row[0])


def list_states(db: Connection, index_id: int) -> dict[str, str]:
    rows = db.execute(
        "SELECT name, value FROM index_states WHERE index_id = %s", (index_id,)
    )
    return {str(name): str(value) for name, value in rows}


def set_state(db: Connection, index_id: int, name: str, value: str) -> None:
    db.execute(
        """
        INSERT INTO index_states (index_id, name, value) VALUES (%s, %s, %s)
            ON CONFLICT (tenant_id, index_id, name)
            DO UPDATE SET value = excluded.value
        """,
        (index_id, name, value),
    )
