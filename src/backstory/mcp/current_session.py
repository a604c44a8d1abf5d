"""Find the session of the agent program that a server is called from, and its run.

A server is started by the agent program, in the folder that the person works in. The
program's hooks record its session; without them, it is the one whose transcript was
last written in that folder since the server started.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from backstory.errors import BadQuery
from backstory.hooks.live_sessions import LiveSession

if TYPE_CHECKING:
    from backstory.memory import Memory
    from backstory.runs.live import LiveRun

# How long a session that was found counts as the current one: looking at all
# transcripts takes some time, and a person may switch sessions within one program.
_TRUSTED_S = 5.0
# The runs kept open: usually one.
_MAX_RUNS = 4
_UNKNOWN = "this server does not know which session you are in"
_UNKNOWN_HINT = "give its id as 'session', if you know it"


class CurrentSession:
    """Finds the session that a server is called from. Safe to use from threads.

    ``host`` is the agent program, if known; ``find_noted`` returns what its hooks have
    noted. Without ``started_at``, which a server for several programs does not have,
    no transcript is looked for.
    """

    def __init__(
        self,
        memory: "Memory",
        *,
        host: str | None = None,
        started_at: datetime | None = None,
        find_noted: Callable[[], LiveSession | None] = lambda: None,
    ) -> None:
        self._memory = memory
        self._host = host
        self._started_at = started_at
        self._find_noted = find_noted
        self._lock = threading.Lock()
        self._found: LiveSession | None = None
        self._looked_at = -_TRUSTED_S
        self._runs: OrderedDict[LiveSession, LiveRun] = OrderedDict()

    def find(self) -> LiveSession | None:
        """The current session; None if it is not known."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked_at >= _TRUSTED_S:
                self._found = self._find_noted() or self._find_newest()
                self._looked_at = now
            return self._found

    def _find_newest(self) -> LiveSession | None:
        if self._started_at is None:
            return None
        newest = self._memory.find_live_session(host=self._host, since=self._started_at)
        if newest is None:
            return None
        session_id, path = newest
        return LiveSession(self._host or "", session_id, str(path), "")

    def get_run(self, name: str | None) -> "LiveRun":
        """The run of the current session, or of the one that the caller names.

        Raises ``BackstoryError`` if it is not known or cannot be read.
        """
        if name is None:
            session = self.find()
        else:
            session = LiveSession(self._host or "", name, "", "")
        if session is None:
            raise BadQuery(_UNKNOWN, hint=_UNKNOWN_HINT)
        with self._lock:
            run = self._runs.get(session) or self._memory.live_run(
                session.session_id,
                transcript=session.transcript or None,
                host=session.host or None,
            )
            self._runs[session] = run
            self._runs.move_to_end(session)
            # One that is dropped may still be searched by another call.
            if len(self._runs) > _MAX_RUNS:
                self._runs.popitem(last=False)
            return run
