"""The connections of a process to one database, and transactions of its tenants.

A statement can only run in a transaction that is bound to a tenant, and the binding
ends with the transaction: a connection that waits to be used again belongs to nobody.
Nothing is set for longer than a transaction, so a pooler such as PgBouncer may stand in
between. This guards against our own mistakes: who has the role's password can bind a
transaction to any tenant.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from backstory.errors import (
    StoreDamaged,
    StoreLocked,
    StoreProblem,
    StoreUnwritable,
)
from backstory.store.base.copies import COPYING, check_complete
from backstory.store.base.index import BY_MEANING, BY_TEXT
from backstory.store.postgres.connecting import (
    PREPARE_HINT,
    SETTING,
    Connection,
    DatabaseServer,
)
from backstory.store.postgres.migrate import (
    check_encoding,
    check_not_too_new,
    check_not_too_old,
    find_version,
)
from backstory.system.fork_safety import close_before_fork, reset_in_child

# How long to wait for other writers of the same tenant.
WAIT_S = 30.0
# A process that was suspended in the middle of a transaction must not lock out others.
_MAX_PAUSE = "60s"
_CANCEL_TIMEOUT_S = 2.0
_TO_WRITE: LiteralString = "READ WRITE"
# All its statements see one state, whatever others commit meanwhile.
_TO_READ: LiteralString = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# Sent as one message. A table is never read whole, as it has the rows of all tenants:
# the planner would do so while it is small, and keep the plan. Compiling a statement
# takes longer than running it.
_BEGIN: LiteralString = """
    BEGIN {};
    SELECT set_config('backstory.tenant', {}, true),
           set_config('search_path', 'backstory, pg_temp', true),
           set_config('enable_seqscan', 'off', true),
           set_config('jit', 'off', true),
           set_config('lock_timeout', {}, true),
           set_config('idle_in_transaction_session_timeout', {}, true);
"""
_RESULTS_OF_BEGIN = 2
_IS_COPYING = sql.SQL("SELECT 1 FROM journal_state WHERE name = {}").format(COPYING)
_NOTHING_ELSE = sql.SQL("SELECT NULL WHERE false")


class Database:
    """Connections that all threads of a process share, up to a number.

    They are opened when they are needed. None crosses a fork: they are closed before
    it, and a child does not touch those that could not be closed. psycopg's own pool
    connects in threads of its own, which do not survive a fork, and lets a caller wait
    without saying why it cannot connect.
    """

    # Of each database; a server for many people sets it higher.
    max_connections = 10

    def __init__(
        self,
        url: str,
        *,
        max_connections: int | None = None,
        named_by: str = SETTING,
    ) -> None:
        self.server = DatabaseServer(url, named_by=named_by)
        self._max_connections = max_connections or self.max_connections
        self._abandoned: list[object] = []
        self._reset()
        reset_in_child(self)
        close_before_fork(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._turns = _Turns(self._max_connections)
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._is_checked = False

    def reset_after_fork(self) -> None:
        """Start fresh in a forked child, without closing the parent's connections."""
        # Kept alive: closing them here would end the parent's sessions.
        self._abandoned += [*self._idle, *self._busy]
        self._reset()

    def tenant(self, tenant_id: int) -> "Tenant":
        """The rows of one tenant. Whether there is such a tenant is not checked."""
        return Tenant(self, lambda: tenant_id)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection that no other thread uses, outside any transaction.

        It sees no row of any tenant; for what concerns whole tables.
        """
        with self.server.translated():
            db = self._take_alive()
            try:
                yield db
            finally:
                self._give_back(db)

    def _take_alive(self) -> Connection:
        while True:
            db, is_new = self._take(WAIT_S)
            try:
                db.autocommit = False
                db.execute("SELECT 1")
                db.rollback()
                return db
            except BaseException as exc:
                self._give_back_failed(db, exc, is_new=is_new)

    def _give_back_failed(
        self, db: Connection, exc: BaseException, *, is_new: bool
    ) -> None:
        """Raise the error again, unless the connection was lost while it was idle."""
        is_lost = isinstance(exc, psycopg.OperationalError) and db.closed
        self._give_back(db)
        if is_new or not is_lost:
            raise exc
        # After a restart of the server, all others are lost as well.
        self.close()

    def _take(self, wait_s: float) -> tuple[Connection, bool]:
        """A connection that nobody uses, and whether it is new."""
        if not self._turns.take(wait_s):
            raise StoreLocked(
                f"{self.server.name}: all {self._max_connections} connections of this "
                "process are in use"
            )
        try:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            db = idle or self._connect()
        except BaseException:
            self._turns.give_back()
            raise
        with self._lock:
            self._busy.add(db)
        return db, idle is None

    def _take_spare(self) -> tuple[Connection, bool] | None:
        """Like ``_take``, without waiting; None unless most connections are free.

        A second connection for one search must not delay others that need their first.
        """
        with self._lock:
            busy = len(self._busy)
        return None if 2 * busy >= self._max_connections else self._take(0)

    def _connect(self) -> Connection:
        db = self.server.connect()
        try:
            if not self._is_checked:
                _check(db, self.server)
                self._is_checked = True
        except BaseException:
            db.close()
            raise
        return db

    def _give_back(self, db: Connection) -> None:
        if not db.closed and db.info.transaction_status != TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                db.rollback()
        is_usable = (
            not db.closed and db.info.transaction_status == TransactionStatus.IDLE
        )
        with self._lock:
            self._busy.discard(db)
            if is_usable:
                self._idle.append(db)
        if not is_usable:
            db.close()
        self._turns.give_back()

    def interrupt_all(self) -> None:
        """Stop the statements that all threads are running."""
        with self._lock:
            busy = list(self._busy)
        for db in busy:
            with suppress(psycopg.Error):
                db.cancel_safe(timeout=_CANCEL_TIMEOUT_S)

    def close(self) -> None:
        """Close the connections that nobody uses; used again, new ones are opened."""
        with self._lock:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()


class _Turns:
    """Counts how many connections are left; who has waited longest gets the next one.

    With a semaphore, a thread that gives one back and asks again at once is faster than
    those that wait, some of which then wait for long.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._left = count
        # One lock for each thread that waits, released when it is its turn.
        self._waiting: deque[threading.Lock] = deque()

    def take(self, wait_s: float) -> bool:
        """Wait for a turn; False if the time is up before."""
        with self._lock:
            if self._left:
                self._left -= 1
                return True
            if not wait_s:
                return False
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        try:
            if turn.acquire(timeout=wait_s):
                return True
        except BaseException:
            # Ctrl-C, for example.
            if self._leave(turn):
                self.give_back()
            raise
        return self._leave(turn)

    def _leave(self, turn: threading.Lock) -> bool:
        """Stop waiting; returns whether its turn has come in the meantime."""
        with self._lock, suppress(ValueError):
            self._waiting.remove(turn)
            return False
        return True

    def give_back(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._left += 1


class View:
    """One state of the database, as long as a thread reads it; ``values`` are of it."""

    def __init__(self) -> None:
        self.db: Connection | None = None
        self.values: dict[str, object] = {}
        # The connection for its first transaction, and whether that is a new one.
        self.reserved: tuple[Connection, bool] | None = None

    @property
    def is_usable(self) -> bool:
        if self.db is None or self.db.closed:
            return False
        return self.db.info.transaction_status == TransactionStatus.INTRANS

    def move(self) -> "View":
        """Move the transaction into another view; this one starts a new one."""
        moved = View()
        moved.db, moved.values = self.db, self.values
        self.db, self.values = None, {}
        return moved


class Tenant:
    """One tenant of a database: the only way to its rows.

    ``find_id`` is asked for its number once, before the first transaction. Rows of a
    copy that is not complete are only for the move that ``completes`` it; for others,
    every transaction raises ``StoreIncomplete``.
    """

    def __init__(
        self, database: Database, find_id: Callable[[], int], *, completes: bool = False
    ) -> None:
        self.database = database
        self._find_id = find_id
        self._completes = completes
        self._tenant_id: int | None = None
        self._views = threading.local()

    @property
    def tenant_id(self) -> int:
        # Not under a lock: two threads find the same.
        if self._tenant_id is None:
            self._tenant_id = self._find_id()
        return self._tenant_id

    def completing(self) -> "Tenant":
        """The same tenant, for the move that completes a copy there."""
        return Tenant(self.database, lambda: self.tenant_id, completes=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that can only read, and sees one state of the database."""
        with self.reading_first(_NOTHING_ELSE) as (db, _):
            yield db

    @contextmanager
    def reading_first(
        self, statement: sql.Composable
    ) -> Iterator[tuple[Connection, TupleRow | None]]:
        """The same, and the row that a statement returns, which costs no extra message.

        The row is None if there is none, or the transaction had begun before.
        """
        view = self.view
        if view is None:
            with self._transaction(statement, is_writing=False, wait_s=WAIT_S) as begun:
                yield begun
            return
        with self.database.server.translated():
            row = None
            # After an error, a transaction can only be ended.
            if not view.is_usable:
                taken, view.reserved = view.reserved, None
                self._end(view)
                view.db, row = self._begin(
                    statement, is_writing=False, wait_s=WAIT_S, taken=taken
                )
            assert view.db is not None
            yield view.db, row

    @property
    def view(self) -> "View | None":
        """The view that this thread has, if any."""
        found: View | None = getattr(self._views, "current", None)
        return found

    @contextmanager
    def one_view(self) -> Iterator[None]:
        """Have all that this thread reads in the block share one transaction.

        It begins with the first of it. That takes a third of the time that a
        transaction for each would take. What the thread itself writes meanwhile is not
        seen.
        """
        if self.view is not None:
            yield
            return
        view = self._views.current = View()
        try:
            yield
        finally:
            self._views.current = None
            self._end(view)

    @contextmanager
    def shared_view(self) -> Iterator["TenantView"]:
        """Lend this thread's view to the threads that it waits for in the block.

        A search then needs fewer transactions, as its threads share one. It has its
        connection before they begin: if they waited for one, they could fill the pool
        of threads, and keep those from beginning whose searches have connections.
        """
        mine = self.view
        view = View() if mine is None else mine.move()
        if not view.is_usable:
            self._end(view)
            with self.database.server.translated():
                view.reserved = self.database._take(WAIT_S)
        lent = TenantView(self, view)
        try:
            yield lent
        finally:
            view = lent.take_back()
            if mine is None:
                self._end(view)
            else:
                # This thread has read nothing itself: it was waiting.
                mine.db, mine.values = view.db, view.values

    @contextmanager
    def _reading_in(self, view: View) -> Iterator[None]:
        """Have this thread read in a view, which the caller has to end."""
        self._views.current = view
        try:
            yield
        finally:
            self._views.current = None

    def _reserve(self) -> View | None:
        """A view with a connection of its own; None if too many are in use."""
        view = View()
        try:
            with self.database.server.translated():
                view.reserved = self.database._take_spare()
        except StoreProblem:
            return None  # the next one that needs a connection reports it
        return None if view.reserved is None else view

    def _end(self, view: View) -> None:
        if view.reserved is not None:
            (db, _), view.reserved = view.reserved, None
            self.database._give_back(db)
        if view.db is not None:
            db, view.db = view.db, None
            view.values.clear()
            self.database._give_back(db)

    @contextmanager
    def writing(
        self, *, wait_s: float = WAIT_S, is_durable: bool = True
    ) -> Iterator[Connection]:
        """A transaction that writes: all of the block is committed, or none of it.

        It waits for other writers of the tenant, and raises ``StoreLocked`` if they
        take longer than ``wait_s``. Without ``is_durable``, a crash of the server may
        undo it, together with later ones.
        """
        with self.writing_apart(wait_s=wait_s, is_durable=is_durable) as db:
            # Before anything else, so that writers of a tenant take turns.
            if not db.execute("SELECT 1 FROM counters FOR UPDATE").fetchone():
                raise StoreProblem(
                    f"{self.database.server.name}: there is no tenant {self.tenant_id}"
                )
            # Another one may have begun to copy while this waited.
            self._check_complete(db.execute(_IS_COPYING).fetchone())
            yield db

    @contextmanager
    def writing_apart(
        self, *, wait_s: float = WAIT_S, is_durable: bool = True
    ) -> Iterator[Connection]:
        """The same, without waiting for other writers of the tenant.

        Whoever uses it locks what it changes, and takes no numbers of ``counters``.
        """
        with self._transaction(_NOTHING_ELSE, is_writing=True, wait_s=wait_s) as (
            db,
            _,
        ):
            if not is_durable:
                db.execute("SET LOCAL synchronous_commit TO off")
            yield db

    @contextmanager
    def _transaction(
        self, statement: sql.Composable, *, is_writing: bool, wait_s: float
    ) -> Iterator[tuple[Connection, TupleRow | None]]:
        with self.database.server.translated():
            db, row = self._begin(statement, is_writing=is_writing, wait_s=wait_s)
            try:
                yield db, row
                db.commit()
            finally:
                self.database._give_back(db)

    def _begin(
        self,
        statement: sql.Composable,
        *,
        is_writing: bool,
        wait_s: float,
        taken: tuple[Connection, bool] | None = None,
    ) -> tuple[Connection, TupleRow | None]:
        """A connection in a transaction that is bound to the tenant, and a row of it.

        A connection that was lost while nobody used it is replaced. The first may be
        ``taken`` already.
        """
        tenant_id = self.tenant_id
        while True:
            db, is_new = taken or self.database._take(wait_s)
            taken = None
            try:
                # So that it sends no BEGIN of its own, which would be another message.
                if not db.autocommit:
                    db.autocommit = True
                begin = sql.SQL(_BEGIN).format(
                    sql.SQL(_TO_WRITE if is_writing else _TO_READ),
                    str(tenant_id),
                    f"{max(1, math.ceil(wait_s * 1000))}ms",
                    _MAX_PAUSE,
                )
                first = sql.SQL("{};{}").format(_IS_COPYING, statement)
                cursor = db.execute(begin + first)
                # The statements of the beginning have a result each.
                for _ in range(_RESULTS_OF_BEGIN):
                    cursor.nextset()
                self._check_complete(cursor.fetchone())
                cursor.nextset()
                return db, cursor.fetchone()
            except BaseException as exc:
                self.database._give_back_failed(db, exc, is_new=is_new)

    def _check_complete(self, copying: TupleRow | None) -> None:
        is_refused = copying is not None and not self._completes
        check_complete(is_refused, self.database.server.name)


class TenantView:
    """A view of a tenant that threads use in turn, until it is taken back."""

    # The server reads for one thread while the other one computes.
    beside = frozenset({BY_TEXT, BY_MEANING})

    def __init__(self, tenant: Tenant, view: View) -> None:
        self._tenant = tenant
        self._changed = threading.Condition()
        self._free: View | None = view
        self._is_back = False

    @contextmanager
    def using(self) -> Iterator[None]:
        # The search has a connection, so it must not wait for another one: all others
        # may be held by searches that wait, too.
        view = self._take() or self._tenant._reserve() or self._wait()
        try:
            with self._tenant._reading_in(view):
                yield
        finally:
            if not self._put_back(view):
                self._tenant._end(view)

    @contextmanager
    def using_spare(self) -> Iterator[bool]:
        view = self._tenant._reserve()
        if view is None:
            yield False
            return
        try:
            with self._tenant._reading_in(view):
                yield True
        finally:
            self._tenant._end(view)

    def take_back(self) -> View:
        """The view, or a new one if another thread is late; for its first owner."""
        with self._changed:
            self._is_back = True
            self._changed.notify_all()
        return self._take() or View()

    def _take(self) -> View | None:
        """The view, unless another thread uses it."""
        with self._changed:
            view, self._free = self._free, None
        return view

    def _wait(self) -> View:
        """The view, when the thread that uses it is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._free is not None or self._is_back)
            view, self._free = self._free, None
        if view is None:
            raise StoreLocked("whoever lent the view waits no longer")
        return view

    def _put_back(self, view: View) -> bool:
        """Whether it can be used again; if not, the caller has to end it."""
        with self._changed:
            is_wanted = self._free is None and not self._is_back
            if is_wanted:
                self._free = view
                self._changed.notify()
        return is_wanted


def take_numbers(db: Connection, counter: str, count: int) -> int:
    """The first of some consecutive numbers that the tenant has not used yet.

    ``counter`` is a column of ``counters``; for a transaction that writes.
    """
    row = db.execute(
        sql.SQL("UPDATE counters SET {0} = {0} + %s RETURNING {0}").format(
            sql.Identifier(counter)
        ),
        (count,),
    ).fetchone()
    assert row is not None
    last: int = row[0]
    return last - count + 1


# -- what must hold before a database is used -----------------------------------------


def _check(db: Connection, server: DatabaseServer) -> None:
    """Refuse a database that is not ready, and a role that row security cannot bind."""
    check_encoding(db, server)
    row = db.execute(
        """
        SELECT COUNT(*) FILTER (WHERE relname = 'migrations') = 0,
               (SELECT bool_or(rolsuper OR rolbypassrls) FROM pg_roles
                 WHERE rolname IN (current_user, session_user)),
               COALESCE(bool_or(pg_has_role(relowner, 'USAGE')), false),
               COALESCE(bool_or(NOT (relrowsecurity AND relforcerowsecurity)), false)
          FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
         WHERE nspname = 'backstory' AND relkind IN ('r', 'p')
        """
    ).fetchone()
    assert row is not None
    is_missing, bypasses, is_owner, is_open = row
    if bypasses or is_owner:
        raise StoreUnwritable(
            f"{server.name}: the role '{db.info.user}' would see the rows of all "
            "tenants",
            hint=f"{server.named_by} must name a role that is not a superuser, has no "
            "BYPASSRLS, and does not own the tables",
        )
    if is_missing:
        raise StoreProblem(
            f"{server.name}: it has no tables of Backstory",
            hint=PREPARE_HINT,
        )
    if is_open:
        raise StoreDamaged(
            f"{server.name}: a table is not protected by row-level security",
            hint="whoever owns its tables has to turn it on again",
        )
    version, oldest_code = find_version(db)
    check_not_too_new(version, oldest_code)
    check_not_too_old(version)
    db.rollback()
