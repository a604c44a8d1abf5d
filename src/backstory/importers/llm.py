"""llm: one SQLite database of prompts and responses, in two generations of tables.

Newer versions keep messages by the hash of their content and of all that came before
them, so that conversations share what they have in common; a turn says which messages
were sent and which came back. What a turn added is what it did not find there already.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import apsw

from backstory.identity import content_id
from backstory.importers.base import (
    JsonObject,
    Origin,
    Unit,
    as_list,
    as_object,
    as_text,
    compact_json,
    unknown_record,
)
from backstory.importers.databases import list_columns, list_tables
from backstory.importers.foreign_json import parse_json
from backstory.model import Item, NewMessage, Problem, Role, SessionFacts
from backstory.moments import Moment, parse_moment

_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "tool": Role.TOOL_RESULT,
}


class Llm:
    """The log of llm by Simon Willison.

    Threads, turns, messages and parts seen in 0.36 (2026-11); tool calls, fragments,
    attachments and the older tables as https://github.com/simonw/llm has them in
    ``logs.py`` and ``migrations.py`` (read 2026-11). The table ``logs`` of versions
    before 0.6 is not read.
    """

    kind: Literal["database"] = "database"
    tables = frozenset({"_llm_migrations"})

    def recognises(self, path: Path, head: bytes) -> bool:
        return path.name == "logs.db" and head.startswith(b"SQLite format 3\0")

    def list_units(self, db: apsw.Connection) -> Iterator[Unit]:
        versions: dict[str, list[str]] = {}
        for session_id, *state in _list_threads(db) + _list_conversations(db):
            if as_text(session_id):
                versions.setdefault(session_id, []).extend(map(str, state))
        for session_id, state in versions.items():
            yield Unit(session_id, content_id(*state))

    def parse(self, db: apsw.Connection, unit: str, origin: Origin) -> Iterator[Item]:
        tables = list_tables(db)
        older = _Older(db, tables)
        responses = older.responses(unit)
        systems: set[str] = set()
        yield from _facts(db, tables, unit)
        yield from _responses(older, unit, responses, systems)
        if "turns" in tables:
            yield from _turns(db, unit, systems, is_continued=bool(responses))


# Any: a column of another program's table can hold anything.
Rows = list[tuple[Any, ...]]


def _list_threads(db: apsw.Connection) -> Rows:
    if "turns" not in list_tables(db):
        return []
    return db.execute(
        """
        SELECT threads.id, threads.name, threads.tip_message_hash, COUNT(turns.id),
               MAX(turns.id), MAX(turns.datetime_utc)
          FROM threads
          LEFT JOIN turns ON turns.thread_id = threads.id
         GROUP BY threads.id
         ORDER BY threads.id
        """
    ).fetchall()


def _list_conversations(db: apsw.Connection) -> Rows:
    """Conversations, and responses that belong to none: each is one of its own."""
    if not {"responses", "conversations"} <= list_tables(db):
        return []
    return db.execute(
        """
        SELECT COALESCE(responses.conversation_id, responses.id) AS session_id,
               MAX(conversations.name), COUNT(*), MAX(responses.id),
               MAX(responses.datetime_utc)
          FROM responses
          LEFT JOIN conversations ON conversations.id = responses.conversation_id
         GROUP BY session_id
         ORDER BY session_id
        """
    ).fetchall()


def _facts(
    db: apsw.Connection, tables: frozenset[str], session_id: str
) -> Iterator[Item]:
    title = parent_id = None
    if "conversations" in tables:
        title = db.execute(
            "SELECT name FROM conversations WHERE id = ?", (session_id,)
        ).get
    if "threads" in tables:
        rows = db.execute(
            "SELECT name, forked_from FROM threads WHERE id = ?", (session_id,)
        )
        for name, forked_from in rows:
            title, parent_id = as_text(name) or title, forked_from
    yield SessionFacts(session_id, title=as_text(title), parent_id=as_text(parent_id))


def _moment(value: object) -> Moment | None:
    """A time of the log: always UTC, with or without saying so."""
    return parse_moment(value, _as_utc)


def _as_utc(naive: datetime) -> datetime:
    return naive.replace(tzinfo=UTC)


def _mark(mime_type: object) -> str:
    kind = (as_text(mime_type) or "attachment").partition("/")[0]
    return f"[{kind if kind in ('image', 'audio', 'video') else 'attachment'}]"


# -- turns and their messages ---------------------------------------------------------


class _Node(NamedTuple):
    """A message in the tree, without its parts."""

    hash: str
    role: str | None


def _turns(
    db: apsw.Connection, session_id: str, systems: set[str], *, is_continued: bool
) -> Iterator[Item]:
    """What each turn added; a conversation from before there were turns goes on."""
    seen = _hashes_of_origin(db, session_id)
    rows = db.execute(
        """
        SELECT parent_message_hash, tip_message_hash, datetime_utc FROM turns
         WHERE thread_id = ?
         ORDER BY datetime_utc, id
        """,
        (session_id,),
    ).fetchall()
    for sent_hash, tip_hash, time in rows:
        chain, is_known = _climb(db, tip_hash, seen)
        if is_continued and not is_known:
            chain = _own_part(chain, sent_hash)
        is_continued = True
        for node in reversed(chain):
            seen.add(node.hash)
            for item in _message(db, session_id, node, _moment(time)):
                # Every turn has its system prompt; it is worth telling once.
                if isinstance(item, NewMessage) and item.role is Role.SYSTEM:
                    if item.text in systems:
                        continue
                    systems.add(item.text)
                yield item


def _hashes_of_origin(db: apsw.Connection, session_id: str) -> set[str]:
    """The messages that a forked thread shares with the thread it was forked from."""
    seen: set[str] = set()
    rows = db.execute(
        """
        SELECT turns.tip_message_hash FROM turns
          JOIN threads ON threads.forked_from = turns.thread_id
         WHERE threads.id = ?
        """,
        (session_id,),
    ).fetchall()
    for (tip_hash,) in rows:
        seen.update(node.hash for node in _climb(db, tip_hash, seen)[0])
    return seen


def _climb(
    db: apsw.Connection, tip_hash: object, seen: set[str]
) -> tuple[list[_Node], bool]:
    """The messages from a tip upwards that are not seen yet, and whether any was."""
    chain: list[_Node] = []
    climbed: set[str] = set()
    current = tip_hash
    while isinstance(current, str) and current and current not in climbed:
        if current in seen:
            return chain, True
        climbed.add(current)
        row = db.execute(
            "SELECT role, parent_hash FROM messages WHERE hash = ?", (current,)
        ).fetchone()
        if row is None:
            break
        chain.append(_Node(current, as_text(row[0])))
        current = row[1]
    return chain, False


def _own_part(chain: Sequence[_Node], sent_hash: object) -> list[_Node]:
    """What a later turn added when all its history was written anew.

    A changed system prompt changes the hash of every message after it. New are the
    answers, the prompts and tool results since the answer before, and that prompt.
    """
    own: list[_Node] = []
    is_output = True
    for node in chain:
        is_output = is_output and node.hash != sent_hash
        if not is_output and node.role not in ("user", "tool"):
            break
        own.append(node)
    return own + [node for node in chain[len(own) :] if node.role == "system"]


def _message(
    db: apsw.Connection, session_id: str, node: _Node, sent: Moment | None
) -> Iterator[Item]:
    role = _ROLES.get(node.role or "")
    if role is None:
        yield unknown_record(node.role, None)
        return
    rows = db.execute(
        """
        SELECT id, position, type, text, payload FROM parts
         WHERE message_hash = ?
         ORDER BY position
        """,
        (node.hash,),
    )
    for part_id, position, kind, text, payload in rows.fetchall():
        native_id = f"{node.hash}/{position}" if position else node.hash
        part = _decode(payload)
        if part is None:
            yield Problem(f"the part {part_id!r:.80} is not a JSON object")
            continue
        found = _part(db, kind, text, part, role)
        if found is not None:
            yield NewMessage(
                session_id,
                native_id,
                *found,
                tool_name=as_text(part.get("name")),
                call_id=as_text(part.get("tool_call_id")),
                sent=sent,
            )
        elif kind not in ("text", "reasoning"):
            yield unknown_record(kind, None)


def _decode(payload: object) -> JsonObject | None:
    """The JSON of a part; a part that is all text has none."""
    if payload is None or payload == "":
        return {}
    try:
        value = parse_json(payload) if isinstance(payload, str | bytes) else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _part(
    db: apsw.Connection, kind: object, text: object, part: JsonObject, role: Role
) -> tuple[Role, str] | None:
    """Who says what in a part; None when it says nothing, or nothing we know."""
    match kind:
        case "text":
            words = as_text(text) or as_text(_resolve(db, part))
            return None if words is None else (role, words)
        case "tool_call":
            return Role.TOOL_CALL, compact_json(part.get("arguments"))
        case "tool_result":
            ids = [
                as_object(file).get("id") for file in as_list(part.get("attachments"))
            ]
            marks = [_attachment_mark(db, attachment_id) for attachment_id in ids]
            output = _result_text(part.get("output"), part.get("exception"))
            return Role.TOOL_RESULT, "\n".join([output, *marks])
        case "attachment":
            attachment_id = as_object(part.get("attachment")).get("id")
            return role, _attachment_mark(db, attachment_id)
        case _:
            return None


def _resolve(db: apsw.Connection, part: JsonObject) -> str:
    """The text of a part that quotes fragments instead of repeating them."""
    pieces: list[str] = []
    for piece in as_list(part.get("text_ref")):
        match piece:
            case {"literal": str(literal)}:
                pieces.append(literal)
            case {"fragment": int(fragment_id)}:
                # As text: JSON knows numbers that SQLite does not.
                content = db.execute(
                    "SELECT content FROM fragments WHERE id = CAST(? AS INTEGER)",
                    (str(fragment_id),),
                ).get
                pieces.append(content if isinstance(content, str) else "[fragment]")
    return "".join(pieces)


def _attachment_mark(db: apsw.Connection, attachment_id: object) -> str:
    if not isinstance(attachment_id, str):
        return _mark(None)
    return _mark(
        db.execute("SELECT type FROM attachments WHERE id = ?", (attachment_id,)).get
    )


def _result_text(output: object, exception: object) -> str:
    """What a tool gave back; llm puts an exception into the output as well."""
    text = "" if output is None else compact_json(output)
    return text or as_text(exception) or ""


# -- responses, before there were turns -----------------------------------------------


class _Older:
    """The tables of older versions, some of which came later than others."""

    def __init__(self, db: apsw.Connection, tables: frozenset[str]) -> None:
        self._db = db
        self._tables = tables

    def responses(self, session_id: str) -> Rows:
        """Responses of a conversation that are not turns as well."""
        if not self._has("responses"):
            return []
        logged = "AND id NOT IN (SELECT id FROM turns)" if self._has("turns") else ""
        return self._db.execute(
            f"""
            SELECT id, prompt, system, response, datetime_utc FROM responses
             WHERE COALESCE(conversation_id, id) = ? {logged}
             ORDER BY datetime_utc, id
            """,
            (session_id,),
        ).fetchall()

    def prompt_fragments(self, response_id: str) -> list[str]:
        if not self._has("fragments", "prompt_fragments"):
            return []
        rows = self._db.execute(
            """
            SELECT content FROM prompt_fragments
              JOIN fragments ON fragments.id = prompt_fragments.fragment_id
             WHERE response_id = ? ORDER BY "order"
            """,
            (response_id,),
        )
        return [content for (content,) in rows if isinstance(content, str)]

    def system_fragments(self, response_id: str) -> list[str]:
        if not self._has("fragments", "system_fragments"):
            return []
        rows = self._db.execute(
            """
            SELECT content FROM system_fragments
              JOIN fragments ON fragments.id = system_fragments.fragment_id
             WHERE response_id = ? ORDER BY "order"
            """,
            (response_id,),
        )
        return [content for (content,) in rows if isinstance(content, str)]

    def attachment_types(self, response_id: str) -> list[object]:
        if not self._has("attachments", "prompt_attachments"):
            return []
        rows = self._db.execute(
            """
            SELECT attachments.type FROM prompt_attachments
              JOIN attachments ON attachments.id = prompt_attachments.attachment_id
             WHERE response_id = ? ORDER BY "order"
            """,
            (response_id,),
        )
        return [mime_type for (mime_type,) in rows]

    def tool_calls(self, response_id: str) -> Rows:
        if not self._has("tool_calls"):
            return []
        return self._db.execute(
            """
            SELECT id, name, arguments, tool_call_id FROM tool_calls
             WHERE response_id = ? ORDER BY id
            """,
            (response_id,),
        ).fetchall()

    def tool_results(self, response_id: str) -> Rows:
        if not self._has("tool_results"):
            return []
        has_exception = "exception" in list_columns(self._db, "tool_results")
        return self._db.execute(
            f"""
            SELECT id, name, output, {"exception" if has_exception else "NULL"},
                   tool_call_id
              FROM tool_results
             WHERE response_id = ? ORDER BY id
            """,
            (response_id,),
        ).fetchall()

    def _has(self, *tables: str) -> bool:
        return self._tables.issuperset(tables)


def _responses(
    older: _Older, session_id: str, responses: Rows, systems: set[str]
) -> Iterator[Item]:
    """Each response after what was sent for it: tool results, then the prompt."""
    for response_id, prompt, system, response, time in responses:
        if as_text(response_id) is None:
            yield Problem("a response without an id")
            continue
        sent = _moment(time)
        texts = [*older.system_fragments(response_id), as_text(system) or ""]
        full_system = "\n\n".join(text.strip() for text in texts if text.strip())
        if full_system and full_system not in systems:
            systems.add(full_system)
            native_id = f"{response_id}/system"
            yield NewMessage(session_id, native_id, Role.SYSTEM, full_system, sent=sent)
        yield from _tool_results(older, session_id, response_id, sent)
        texts = [*older.prompt_fragments(response_id), as_text(prompt) or ""]
        texts += map(_mark, older.attachment_types(response_id))
        full_prompt = "\n".join(text for text in texts if text)
        if full_prompt:
            native_id = f"{response_id}/prompt"
            yield NewMessage(session_id, native_id, Role.USER, full_prompt, sent=sent)
        if as_text(response):
            yield NewMessage(
                session_id, response_id, Role.ASSISTANT, response, sent=sent
            )
        yield from _tool_calls(older, session_id, response_id, sent)


def _tool_calls(
    older: _Older, session_id: str, response_id: str, sent: Moment | None
) -> Iterator[Item]:
    for number, name, arguments, call_id in older.tool_calls(response_id):
        yield NewMessage(
            session_id,
            f"{response_id}/call{number}",
            Role.TOOL_CALL,
            compact_json(arguments),
            as_text(name),
            as_text(call_id),
            sent,
        )


def _tool_results(
    older: _Older, session_id: str, response_id: str, sent: Moment | None
) -> Iterator[Item]:
    for number, name, output, exception, call_id in older.tool_results(response_id):
        yield NewMessage(
            session_id,
            f"{response_id}/result{number}",
            Role.TOOL_RESULT,
            _result_text(output, exception),
            as_text(name),
            as_text(call_id),
            sent,
        )
