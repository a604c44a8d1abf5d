"""What a queue of jobs promises: work that any number of processes share.

A job is done by one process at a time. Whoever claims it has a lease, and renews it
while it works; if that process dies, the lease runs out and another one takes over.
Work that was wanted again in the meantime is done once more.
"""

from enum import StrEnum
from typing import Protocol

from backstory.values.structs import FrozenStruct


class JobKind(StrEnum):
    """What is done in the background for a tenant."""

    # Make new messages and notes findable, by words and by meaning.
    INDEX = "index"
    # Write the daily logs that are due, and tidy MEMORY.md once a day.
    LOGS = "logs"


class ClaimedJob(FrozenStruct):
    """A job that this process works on; ``lease`` proves that it is still its own.

    ``tries`` counts how often it was begun, including this time.
    """

    tenant_id: int
    tenant: str
    kind: JobKind
    wanted: int
    tries: int
    lease: bytes


class JobQueue(Protocol):
    """The jobs of all tenants. Safe to use from several threads and processes."""

    def claim(self, lease_s: float) -> ClaimedJob | None:
        """Begin the job that has been due for longest; None if there is none."""
        ...

    def renew(self, job: ClaimedJob, lease_s: float) -> bool:
        """Keep a job for longer; False if another process has taken it over."""
        ...

    def finish(self, job: ClaimedJob, *, again_s: float | None = None) -> None:
        """Mark a job as done; deletes it unless it was wanted again or has ``again_s``.

        ``again_s`` is when to do it next. Nothing happens if another process has taken
        it over.
        """
        ...

    def postpone(self, job: ClaimedJob, wait_s: float) -> None:
        """Mark a job as failed, to be tried again after ``wait_s``."""
        ...

    def want(self, tenant_id: int, kind: str, *, after_s: float = 0) -> None:
        """Ask for a job to be done, or done once more if a process is doing it now."""
        ...
