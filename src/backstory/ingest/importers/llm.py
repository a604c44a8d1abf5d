"""llm: one SQLite database of prompts and responses, in two generations of tables.

Newer versions keep messages by the hash of their content and of everything before them,
so that conversations share what they have in common; a turn says which messages were
sent and which came back. What a turn added is what was not there before.

For the time being, llm writes both generations, the response before its turn. What is
read from a response is not read again from the turn with the same id.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import apsw

from backstory.ingest.importers.base import (
    Conversation,
    Origin,
    unknown_record,
)
from backstory.ingest.importers.llm_responses import (
    Responses,
    attachment_mark,
    list_conversations,
    moment,
    result_text,
)
from backstory.ingest.parsing.databases import list_tables
from backstory.ingest.parsing.json_documents import parse_json
from backstory.ingest.parsing.rows import (
    ForeignTable,
    Lookup,
    decode,
    lenient,
    report_long,
)
from backstory.text.json_values import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    compact_json,
)
from backstory.values.history import Item, NewMessage, Problem, Role, SessionFacts
from backstory.values.identity import content_id
from backstory.values.moments import Moment

_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "tool": Role.TOOL_RESULT,
}


class LlmLogs:
    """The log of llm by Simon Willison.

    Threads, turns, messages and parts seen in 0.36 (2026-11); tool calls, fragments,
    attachments and the older tables as https://github.com/simonw/llm has them in
    ``logs.py`` and ``migrations.py`` (read 2026-11). The table ``logs`` of versions
    before 0.6 is not read.
    """

    kind: Literal["database"] = "database"
    tables = frozenset({"_llm_migrations"})

    def recognizes(self, path: Path, head: bytes) -> bool:
        return path.name == "logs.db" and head.startswith(b"SQLite format 3\0")

    def __init__(self) -> None:
        self._log: _Log | None = None

    def list_conversations(self, db: apsw.Connection) -> Iterator[Conversation]:
        # Forget what was looked up before, which may be older than this list.
        self._log = None
        versions: dict[str, str] = {}
        for rows in (_list_threads(db), list_conversations(db)):
            for row in rows:
                found, *state = map(decode, row)
                session_id = as_text(found)
                if session_id is not None:
                    before = versions.get(session_id, "")
                    versions[session_id] = content_id(before, *map(str, state))
        for session_id, version in versions.items():
            yield Conversation(session_id, version)

    def parse(
        self, db: apsw.Connection, session_id: str, origin: Origin
    ) -> Iterator[Item]:
        if self._log is None or self._log.db is not db:
            self._log = _Log(db)
        yield from self._log.parse(session_id)


def _list_threads(db: apsw.Connection) -> Iterator[tuple[object, ...]]:
    if "turns" not in list_tables(db):
        return
    yield from db.execute(
        f"""
        SELECT {lenient("threads.id")}, {lenient("threads.name")},
               {lenient("threads.tip_message_hash")}, {lenient("threads.forked_from")},
               COUNT(turns.id), MAX(turns.rowid), {lenient("MAX(turns.datetime_utc)")}
          FROM threads
          LEFT JOIN turns ON turns.thread_id = threads.id
         GROUP BY threads.id
         ORDER BY threads.id
        """
    )


class _Node(NamedTuple):
    """A message in the tree, without its parts."""

    hash: str
    role: str | None


class _Log:
    """The tables of one database, as far as it has them."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self._responses = Responses(db)
        self._conversations = ForeignTable(db, "conversations", ("name",))
        self._threads = ForeignTable(db, "threads", ("name", "forked_from"))
        turn_columns = ("id", "parent_message_hash", "tip_message_hash", "datetime_utc")
        self._turns = Lookup(
            ForeignTable(db, "turns", turn_columns),
            ("thread_id",),
            ("datetime_utc", "id"),
        )
        self._messages = ForeignTable(db, "messages", ("role", "parent_hash"))
        part_columns = ("id", "position", "type", "text", "payload")
        self._parts = Lookup(
            ForeignTable(db, "parts", part_columns), ("message_hash",), ("position",)
        )
        self._fragments = ForeignTable(db, "fragments", ("content",))
        self._attachments = ForeignTable(db, "attachments", ("type",))

    def parse(self, session_id: str) -> Iterator[Item]:
        title = forked_from = None
        for row in self._conversations.rows("WHERE id = ?", (session_id,)):
            title = as_text(row["name"])
        for row in self._threads.rows("WHERE id = ?", (session_id,)):
            title = as_text(row["name"]) or title
            forked_from = as_text(row["forked_from"])
        yield SessionFacts(session_id, title=title)
        systems: set[str] = set()
        has_responses = False
        for item in self._responses.parse(session_id, systems):
            has_responses = True
            yield item
        yield from self._parse_turns(
            session_id, forked_from, systems, is_continued=has_responses
        )

    def _parse_turns(
        self,
        session_id: str,
        forked_from: str | None,
        systems: set[str],
        *,
        is_continued: bool,
    ) -> Iterator[Item]:
        """What each turn added; the conversation may be older than its first turn."""
        seen = self._hashes_of(forked_from)
        for turn in self._turns.rows(session_id):
            chain, is_known = self._climb(turn["tip_message_hash"], seen)
            if self._responses.holds(session_id, turn["id"]):
                seen.update(node.hash for node in chain)
                continue
            if is_continued and not is_known:
                chain = _own_part(chain, turn["parent_message_hash"])
            is_continued = True
            sent = moment(turn["datetime_utc"])
            for node in reversed(chain):
                seen.add(node.hash)
                for item in self._message(session_id, node, sent):
                    # Every turn repeats its system prompt; once is enough.
                    if isinstance(item, NewMessage) and item.role is Role.SYSTEM:
                        if item.text in systems:
                            continue
                        systems.add(item.text)
                    yield item

    def _hashes_of(self, thread_id: str | None) -> set[str]:
        """The messages of the thread that a thread was forked from."""
        seen: set[str] = set()
        if thread_id is not None:
            for turn in self._turns.rows(thread_id):
                chain, _ = self._climb(turn["tip_message_hash"], seen)
                seen.update(node.hash for node in chain)
        return seen

    def _climb(self, tip_hash: object, seen: set[str]) -> tuple[list[_Node], bool]:
        """The messages from a tip up to one already seen, and whether there was one."""
        chain: list[_Node] = []
        climbed: set[str] = set()
        current = tip_hash
        while isinstance(current, str) and current and current not in climbed:
            if current in seen:
                return chain, True
            climbed.add(current)
            row = next(self._messages.rows("WHERE hash = ?", (current,)), None)
            if row is None:
                break
            chain.append(_Node(current, as_text(row["role"])))
            current = row["parent_hash"]
        return chain, False

    def _message(
        self, session_id: str, node: _Node, sent: Moment | None
    ) -> Iterator[Item]:
        role = _ROLES.get(node.role or "")
        if role is None:
            yield unknown_record(node.role, None)
            return
        for row in self._parts.rows(node.hash):
            position, kind = row["position"], row["type"]
            yield from report_long(row, f"the part {row['id']!r:.80}")
            part = _decode(row["payload"])
            if part is None:
                yield Problem(f"the part {row['id']!r:.80} is not a JSON object")
                continue
            found = self._part(kind, row["text"], part, role)
            if found is not None:
                yield NewMessage(
                    session_id,
                    f"{node.hash}/{position}" if position else node.hash,
                    *found,
                    tool_name=as_text(part.get("name")),
                    call_id=as_text(part.get("tool_call_id")),
                    sent=sent,
                )
            elif kind not in ("text", "reasoning"):
                yield unknown_record(kind, None)

    def _part(
        self, kind: object, text: object, part: JsonObject, role: Role
    ) -> tuple[Role, str] | None:
        """Who says what in a part; None if it is empty or of an unknown kind."""
        match kind:
            case "text":
                words = as_text(text) or as_text(self._resolve(part))
                return None if words is None else (role, words)
            case "tool_call":
                return Role.TOOL_CALL, compact_json(part.get("arguments"))
            case "tool_result":
                files = map(as_object, as_list(part.get("attachments")))
                marks = [self._mark(file.get("id")) for file in files]
                output = result_text(part.get("output"), part.get("exception"))
                return Role.TOOL_RESULT, "\n".join([output, *marks])
            case "attachment":
                return role, self._mark(as_object(part.get("attachment")).get("id"))
            case _:
                return None

    def _resolve(self, part: JsonObject) -> str:
        """The text of a part that quotes fragments instead of repeating them."""
        pieces: list[str] = []
        for piece in as_list(part.get("text_ref")):
            match piece:
                case {"literal": str(literal)}:
                    pieces.append(literal)
                case {"fragment": int(fragment_id)}:
                    # Cast from text, because JSON can have numbers that SQLite cannot
                    # bind.
                    where = "WHERE id = CAST(? AS INTEGER)"
                    row = next(self._fragments.rows(where, (str(fragment_id),)), {})
                    pieces.append(as_text(row.get("content")) or "[fragment]")
        return "".join(pieces)

    def _mark(self, attachment_id: object) -> str:
        if not isinstance(attachment_id, str):
            return attachment_mark(None)
        row = next(self._attachments.rows("WHERE id = ?", (attachment_id,)), {})
        return attachment_mark(row.get("type"))


def _own_part(chain: Sequence[_Node], sent_hash: object) -> list[_Node]:
    """What a later turn added if all its history was written again.

    A changed system prompt changes the hash of every message after it. Only the
    answers, the prompts and tool results since the previous answer, and that system
    prompt are new.
    """
    own: list[_Node] = []
    is_output = True
    for node in chain:
        is_output = is_output and node.hash != sent_hash
        if not is_output and node.role not in ("user", "tool"):
            break
        own.append(node)
    return own + [node for node in chain[len(own) :] if node.role == "system"]


def _decode(payload: object) -> JsonObject | None:
    """The JSON of a part; a part that is all text has none."""
    if payload is None or payload == "":
        return {}
    try:
        value = parse_json(payload) if isinstance(payload, str | bytes) else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
