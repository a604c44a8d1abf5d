"""Every tenant's history is what a file of its own would be, whatever others do.

The same random operations go to one database with several tenants, and to a SQLite file
for each of them. If a tenant ever saw a row, a count or a change of another one, it
would differ from its file.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from backstory.store.base.history import (
    Batch,
    Change,
    ForgottenPart,
    HistoryStore,
    KeptMessage,
    SessionFilter,
    SourceKey,
    SourceState,
)
from backstory.store.postgres.database import Database
from backstory.store.postgres.history import PostgresHistory
from backstory.store.sqlite.history import SqliteHistory
from backstory.text.words import fold
from backstory.values.history import (
    Message,
    MessageTitle,
    NewMessage,
    Problem,
    Role,
    Session,
    SessionFacts,
    SessionKind,
)
from backstory.values.moments import Moment
from tests.chance import examples
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.postgres

NOW = datetime(2026, 2, 20, 12, 0, tzinfo=UTC)
TENANTS = 3
HOSTS = ["host", "a"]
SESSIONS = ["s1", "s1/agent", "abcdefgh-1234-1", "abcdefgh-1234-2", "\0\1", "x" * 5_000]
MESSAGES = ["m1", "m1/1", "m2", "m3", "m4", "ü" * 3_000]
TEXTS = [
    "",
    "one",
    "Two words",
    "a\0b\1c\2",
    "\1\1",
    "ẞtraße " * 300,
    "\x1b[1mbold\x1b[0m",
]

# -- what is done ---------------------------------------------------------------------

moments = st.none() | st.builds(
    lambda minute, offset: Moment(NOW + timedelta(minutes=minute), offset),
    st.integers(-5, 20),
    st.sampled_from([None, 60, 1440]),
)
kept = st.builds(
    lambda session, native_id, role, text, sent, line, tool: KeptMessage(
        NewMessage(session, native_id, role, text, tool, tool and "c1", sent),
        full_bytes=line and len(text) + line,
        line=line,
    ),
    st.sampled_from(SESSIONS),
    st.sampled_from(MESSAGES),
    st.sampled_from(list(Role)),
    st.sampled_from(TEXTS),
    moments,
    st.none() | st.integers(1, 9),
    st.none() | st.sampled_from(["grep", "ls"]),
)
facts = st.builds(
    SessionFacts,
    st.sampled_from(SESSIONS),
    title=st.none() | st.sampled_from(["", "Given", "Two words…"]),
    project=st.none() | st.sampled_from(["/p", "/p/q", "C:\\p"]),
    git_branch=st.none() | st.just("main"),
    parent_id=st.none() | st.just("s1"),
    started=moments,
    last_active=moments,
    kind=st.none() | st.sampled_from(list(SessionKind)),
    saved=moments,
)
sources = st.builds(
    lambda path, part, memo: SourceState(
        SourceKey(path, part), "host", "format", f"signed {memo}", memo={"at": memo}
    ),
    st.sampled_from(["/a.jsonl", "/b.zip", "/" + "y" * 4_000]),
    st.sampled_from(["", "entry"]),
    st.integers(0, 3),
)
some_sessions = st.lists(st.sampled_from(SESSIONS), max_size=2)
named = st.lists(
    st.tuples(st.sampled_from(SESSIONS), st.sampled_from(MESSAGES)), max_size=2
)
batches = st.builds(
    Batch,
    host=st.sampled_from(HOSTS),
    read_from=st.none() | st.sampled_from(["/a.jsonl", "/b.zip"]),
    facts=st.lists(facts, max_size=2),
    messages=st.lists(kept, max_size=6),
    titles=st.lists(
        st.builds(MessageTitle, st.sampled_from(MESSAGES), st.sampled_from("TU")),
        max_size=2,
    ),
    problems=st.lists(
        st.builds(
            Problem,
            st.sampled_from(["bad", "a\0b"]),
            st.none() | st.integers(1, 9),
            st.sampled_from(["/a.jsonl", "/b.zip"]),
        ),
        max_size=2,
    ),
    emptied=st.just([]) | some_sessions,
    hidden=named,
    logged=named,
    progress=st.none() | sources,
    after_line=st.none() | st.integers(0, 5),
    replaces=st.booleans(),
    reread=st.none() | st.builds(set),
    is_companion=st.sampled_from([False, False, True]),
)

# Each does something to a store, and returns what the store said, without numbers.
Operation = Callable[[HistoryStore], object]


def write(batch: Batch) -> Operation:
    def run(store: HistoryStore) -> object:
        # Each store fills a set of its own.
        reread = None if batch.reread is None else set[int]()
        own = Batch(
            **{name: getattr(batch, name) for name in Batch.__struct_fields__}
            | {"reread": reread}
        )
        written = store.write(own, now=NOW)
        return (
            written.made_sessions,
            written.new_messages,
            written.changed_messages,
            written.problems,
        )

    return run


def forget(name: str, positions: Sequence[int] | None, is_lasting: bool) -> Operation:
    def run(store: HistoryStore) -> object:
        parts = []
        for session in sorted(store.find_sessions(name), key=lambda each: each.host):
            said = store.iter_messages(session.session_id)
            chosen = [m.message_id for m in said if m.position in (positions or ())]
            parts.append(
                ForgottenPart(
                    session.session_id,
                    None if positions is None else tuple(chosen),
                    is_lasting,
                )
            )
        return store.forget(parts, now=NOW + timedelta(minutes=5), facts=1)

    return run


def undo(number: int) -> Operation:
    return lambda store: store.undo_forgetting(number)


def replace_loose(problems: Sequence[Problem]) -> Operation:
    return lambda store: store.replace_loose_problems(problems, now=NOW)


def fail(text: str) -> Operation:
    """Write something that cannot be stored, after something that can."""

    def run(store: HistoryStore) -> object:
        broken = KeptMessage(NewMessage("s1", "m9", Role.USER, object()))  # type: ignore[arg-type]
        good = KeptMessage(NewMessage("s1", "m8", Role.USER, text))
        try:
            store.write(Batch("host", messages=[good, broken]), now=NOW)
        except Exception as exc:
            return type(exc)
        return None

    return run


operations = st.one_of(
    st.builds(write, batches),
    st.builds(write, batches),
    st.builds(write, batches),
    st.builds(
        forget,
        st.sampled_from(SESSIONS),
        st.none() | st.lists(st.integers(0, 4), max_size=3),
        st.booleans(),
    ),
    st.builds(undo, st.integers(1, 3)),
    st.builds(
        replace_loose, st.lists(st.builds(Problem, st.sampled_from("xy")), max_size=2)
    ),
    st.builds(fail, st.sampled_from(TEXTS)),
)

# -- what is seen ---------------------------------------------------------------------


class View:
    """What a store says, without its numbers: they are used again in a file alone."""

    def __init__(self, store: HistoryStore) -> None:
        self.store = store
        self._followed = 0

    def changes(self) -> list[object]:
        """What changed since this was asked last."""
        found = self.store.list_changes(self._followed, 10_000)
        self._followed = self.store.last_change_id()
        emptied = {each.session_id for each in found if each.is_emptying}
        return [self._name(change, emptied) for change in found]

    def _name(self, change: Change, emptied: Collection[int]) -> object:
        sessions = self.store.get_sessions([change.session_id])
        names = [(each.host, each.native_id) for each in sessions.values()]
        if change.last_message_id is None or change.is_emptying:
            return names, change.last_message_id
        if change.session_id in emptied:
            # The numbers may be those of messages that are gone.
            return names, "some"
        numbers = (change.first_message_id or 0, change.last_message_id)
        messages = self.store.get_messages(numbers)
        return names, [messages[number].native_id for number in numbers]

    def everything(self) -> dict[str, Any]:
        store = self.store
        sessions = store.list_sessions(SessionFilter())
        ids = {
            message.message_id: message.native_id
            for each in sessions
            for message in store.iter_messages(each.session_id)
        }
        names = {each.session_id: (each.host, each.native_id) for each in sessions}
        places = [(number, at) for number in names for at in range(6)]
        ranges = [(number, first, first + 2) for number, first in places]

        def show(message: Message | None) -> object:
            if message is None:
                return None
            return (
                names[message.session_id],
                message.native_id,
                message.position,
                message.role,
                message.text,
                message.tool_name,
                message.call_id,
                message.sent,
                message.full_bytes,
            )

        def show_session(each: Session) -> object:
            shown = {
                name: getattr(each, name)
                for name in Session.__struct_fields__
                if name not in ("session_id", "last_logged_message_id")
            }
            return shown | {
                # SQLite's own functions take a NUL for the end of a text.
                "title": each.title.partition("\0")[0],
                "preview": each.preview.partition("\0")[0],
                "logged": ids.get(each.last_logged_message_id or 0),
            }

        filters = {
            "all": SessionFilter(),
            "host": SessionFilter(host="a"),
            "folder": SessionFilter(folder="/p/"),
            "name": SessionFilter(folder_name="q"),
            "since": SessionFilter(active_since=NOW + timedelta(minutes=3)),
            "before": SessionFilter(started_before=NOW + timedelta(minutes=3)),
            "limit": SessionFilter(limit=2),
        }
        asked = [*SESSIONS, "abcdef", "host/s", "a/abcdefgh-1234", "", "%", "x" * 70]
        neighbours = store.find_neighbours(places)
        replies = store.find_replies(places)
        return {
            **{
                f"list {key}": [show_session(s) for s in store.list_sessions(where)]
                for key, where in filters.items()
            },
            "messages": {
                names[number]: [show(m) for m in store.iter_messages(number)]
                for number in names
            },
            "ranges": {
                (names[number], first): [show(m) for m in found]
                for (number, first, _), found in store.get_ranges(ranges).items()
            },
            "near": {
                (names[number], at): (show(before), show(after))
                for (number, at), (before, after) in neighbours.items()
            },
            "replies": {
                (names[number], at): show(found)
                for (number, at), found in replies.items()
            },
            "tools": {
                names[number]: tool
                for (number, _), tool in store.find_tool_names(
                    [(number, "c1") for number in names]
                ).items()
            },
            "turn": {
                names[number]: [ids[each] for each in store.list_latest_turn(number)]
                for number in names
            },
            "found": {
                name: sorted((s.host, s.native_id) for s in store.find_sessions(name))
                for name in asked
            },
            "short": {
                names[number]: name for number, name in store.short_ids(names).items()
            },
            "titles": {
                names[number]: title
                for number, title in store.get_titles(names).items()
            },
            "named": {
                (names[number], name): show(store.find_message(number, name))
                for number in names
                for name in MESSAGES
            },
            "text": {
                text: sorted(
                    repr(show(m))
                    for m in store.find_text(fold(text), limit=99, where=lambda m: True)
                )
                for text in ("two", "\0b", "strasse")
            },
            "counts": (store.count_messages(), store.has_messages()),
            "hosts": store.count_by_host(),
            "quarters": store.count_by_quarter_hour(names),
            "projects": store.list_projects(),
            "project": [store.find_project("host", each) for each in SESSIONS],
            "known": [store.has_session("a", each) for each in SESSIONS],
            "problems": sorted(map(repr, store.list_problems())),
            "sources": store.list_sources(),
            "files": sorted(store.list_read_files()),
            "forgotten": store.list_forgettings(),
            "old": {
                names[part.session_id]: sorted(
                    ids[each] for each in part.message_ids or ()
                )
                for part in store.list_said_before(NOW + timedelta(minutes=4))
            },
            "verified": store.verify(),
        }


# Each step is several statements: to find the smallest failure would take minutes.
@settings(max_examples=examples(40), phases=[Phase.explicit, Phase.generate])
@given(
    steps=st.lists(
        st.tuples(st.integers(0, TENANTS - 1), operations), min_size=1, max_size=12
    )
)
def test_a_tenant_cannot_be_told_from_a_file_of_its_own(
    postgres: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[int, Operation]],
) -> None:
    folder: Path = tmp_path_factory.mktemp("files")
    with closing(Database(postgres.url())) as database:
        tenants = [database.tenant(postgres.create_tenant()) for _ in range(TENANTS)]
        pairs = [
            (View(PostgresHistory(tenant)), View(SqliteHistory(folder / f"{each}.db")))
            for each, tenant in enumerate(tenants)
        ]
        for number, operation in steps:
            there, here = pairs[number]
            assert operation(there.store) == operation(here.store)
            assert there.changes() == here.changes()
        for there, here in pairs:
            seen, expected = there.everything(), here.everything()
            for question, answer in expected.items():
                assert (question, seen[question]) == (question, answer)
            here.store.close()
