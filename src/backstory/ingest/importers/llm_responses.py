"""The older tables of llm: responses, and what was sent and called for each."""

from collections.abc import Iterator
from datetime import UTC, datetime

import apsw

from backstory.ingest.parsing.databases import list_tables
from backstory.ingest.parsing.rows import (
    ForeignTable,
    Lookup,
    lenient,
    report_long,
)
from backstory.text.json_values import (
    JsonObject,
    as_text,
    compact_json,
)
from backstory.values.history import Item, NewMessage, Problem, Role
from backstory.values.moments import Moment, parse_moment

# Tables whose rows belong to a response, and the table that each row refers to.
_LINKED = {
    "prompt_fragments": ("fragments", "fragment_id"),
    "system_fragments": ("fragments", "fragment_id"),
    "prompt_attachments": ("attachments", "attachment_id"),
    "tool_calls": None,
    "tool_results": None,
}


def list_conversations(db: apsw.Connection) -> Iterator[tuple[object, ...]]:
    """Id and state of conversations; a response without one counts as one by itself.

    A conversation has several rows here, because rows may be added to a known response.
    """
    tables = list_tables(db)
    if not {"responses", "conversations"} <= tables:
        return
    yield from db.execute(
        f"""
        WITH sizes AS MATERIALIZED (
          SELECT COALESCE(conversation_id, id) AS session_id, datetime_utc,
                 rowid AS place, octet_length(prompt) AS prompt,
                 octet_length(response) AS response
            FROM responses)
        SELECT {lenient("session_id")}, {lenient("MAX(conversations.name)")}, COUNT(*),
               MAX(place), {lenient("MAX(datetime_utc)")}, SUM(prompt), SUM(response)
          FROM sizes
          LEFT JOIN conversations ON conversations.id = session_id
         GROUP BY session_id
         ORDER BY session_id
        """
    )
    for table, named in _LINKED.items():
        if not tables.issuperset({table, *(named or ())[:1]}):
            continue
        # A row counts only if the row that it refers to exists.
        join = f"JOIN {named[0]} ON {named[0]}.id = {named[1]}" if named else ""
        yield from db.execute(
            f"""
            SELECT {lenient("COALESCE(responses.conversation_id, responses.id)")},
                   '{table}', COUNT(*), MAX({table}.rowid)
              FROM {table}
              JOIN responses ON responses.id = {table}.response_id {join}
             GROUP BY COALESCE(responses.conversation_id, responses.id)
            """
        )


class Responses:
    """The tables of older versions, some of which came later than others."""

    def __init__(self, db: apsw.Connection) -> None:
        columns = ("id", "prompt", "system", "response", "datetime_utc")
        self._table = ForeignTable(db, "responses", columns)
        self._by_session = Lookup(
            self._table, ("conversation_id", "id"), ("datetime_utc", "id")
        )
        self._fragments = ForeignTable(db, "fragments", ("content",))
        self._attachments = ForeignTable(db, "attachments", ("type",))
        self._prompt_fragments = _linked(db, "prompt_fragments", ("fragment_id",))
        self._system_fragments = _linked(db, "system_fragments", ("fragment_id",))
        self._prompt_attachments = _linked(db, "prompt_attachments", ("attachment_id",))
        self._tool_calls = _linked(
            db, "tool_calls", ("id", "name", "arguments", "tool_call_id")
        )
        self._tool_results = _linked(
            db, "tool_results", ("id", "name", "output", "exception", "tool_call_id")
        )

    def holds(self, session_id: str, response_id: object) -> bool:
        """Whether a response of that id belongs to the conversation."""
        if not isinstance(response_id, str) or self._by_session.is_empty:
            return False
        where = "WHERE id = ? AND COALESCE(conversation_id, id) = ?"
        return any(True for _ in self._table.rows(where, (response_id, session_id)))

    def parse(self, session_id: str, systems: set[str]) -> Iterator[Item]:
        """Each response, after what was sent for it: tool results, then the prompt."""
        for row in self._by_session.rows(session_id):
            response_id = as_text(row["id"])
            if response_id is None:
                yield Problem("a response without an id")
                continue
            yield from report_long(row, f"the response {response_id}")
            yield from self._response(session_id, response_id, row, systems)

    def _response(
        self, session_id: str, response_id: str, row: JsonObject, systems: set[str]
    ) -> Iterator[Item]:
        sent = moment(row["datetime_utc"])
        own_system = (as_text(row["system"]) or "").strip()
        texts = [*self._contents(self._system_fragments, response_id), own_system]
        system = "\n\n".join(text.strip() for text in texts if text.strip())
        if system and system not in systems:
            # A response whose fragments are not stored yet has only this.
            systems.update((system, own_system))
            native_id = f"{response_id}/system"
            yield NewMessage(session_id, native_id, Role.SYSTEM, system, sent=sent)
        yield from self._results(session_id, response_id, sent)
        texts = [
            *self._contents(self._prompt_fragments, response_id),
            as_text(row["prompt"]) or "",
            *self._marks(response_id),
        ]
        prompt = "\n".join(text for text in texts if text)
        if prompt:
            native_id = f"{response_id}/prompt"
            yield NewMessage(session_id, native_id, Role.USER, prompt, sent=sent)
        answer = as_text(row["response"])
        if answer is not None:
            yield NewMessage(session_id, response_id, Role.ASSISTANT, answer, sent=sent)
        yield from self._calls(session_id, response_id, sent)

    def _contents(self, fragments: Lookup, response_id: str) -> Iterator[str]:
        for link in fragments.rows(response_id):
            where, fragment_id = "WHERE id = CAST(? AS INTEGER)", link["fragment_id"]
            for row in self._fragments.rows(where, (str(fragment_id),)):
                if isinstance(row["content"], str):
                    yield row["content"]

    def _marks(self, response_id: str) -> Iterator[str]:
        for link in self._prompt_attachments.rows(response_id):
            attachment_id = str(link["attachment_id"])
            for row in self._attachments.rows("WHERE id = ?", (attachment_id,)):
                yield attachment_mark(row["type"])

    def _calls(
        self, session_id: str, response_id: str, sent: Moment | None
    ) -> Iterator[Item]:
        for row in self._tool_calls.rows(response_id):
            native_id = f"{response_id}/call{row['id']}"
            yield from report_long(row, f"the call {native_id}")
            yield NewMessage(
                session_id,
                native_id,
                Role.TOOL_CALL,
                compact_json(row["arguments"]),
                as_text(row["name"]),
                as_text(row["tool_call_id"]),
                sent,
            )

    def _results(
        self, session_id: str, response_id: str, sent: Moment | None
    ) -> Iterator[Item]:
        for row in self._tool_results.rows(response_id):
            native_id = f"{response_id}/result{row['id']}"
            yield from report_long(row, f"the result {native_id}")
            yield NewMessage(
                session_id,
                native_id,
                Role.TOOL_RESULT,
                result_text(row["output"], row["exception"]),
                as_text(row["name"]),
                as_text(row["tool_call_id"]),
                sent,
            )


def _linked(db: apsw.Connection, name: str, columns: tuple[str, ...]) -> Lookup:
    return Lookup(ForeignTable(db, name, columns), ("response_id",), ("order", "id"))


# -- what both generations have in common ---------------------------------------------


def moment(value: object) -> Moment | None:
    """A time of the log, which is always UTC, whether it says so or not."""
    return parse_moment(value, _as_utc)


def _as_utc(naive: datetime) -> datetime:
    return naive.replace(tzinfo=UTC)


def attachment_mark(mime_type: object) -> str:
    kind = (as_text(mime_type) or "attachment").partition("/")[0]
    return f"[{kind if kind in ('image', 'audio', 'video') else 'attachment'}]"


def result_text(output: object, exception: object) -> str:
    """What a tool gave back; llm puts an exception into the output as well."""
    text = "" if output is None else compact_json(output)
    return text or as_text(exception) or ""
