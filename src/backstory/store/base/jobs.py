"""What a queue of jobs promises: work that any number of processes share.

A job is done by one process at a time. Whoever claims it has a lease, and renews it
while it works; if the process is gone, the lease runs out and another one takes over.
Work that was wanted again in the meantime is done once more.
"""

from enum import StrEnum
from typing import Protocol

from backstory.values.structs import FrozenStruct


class JobKind(StrEnum):
    """What is done in the background for a tenant."""

    # Make what was written findable, by words and by meaning.
    INDEX = "index"
    # Write the daily logs that are due, and tidy MEMORY.md once a day.
    LOGS = "logs"


class ClaimedJob(FrozenStruct):
    """A job that this process works on; ``lease`` proves that it is the one.

    ``tries`` counts how often somebody has begun with it, this time included.
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
        """Begin with the job that has been due for longest; None if there is none."""
        ...

    def renew(self, job: ClaimedJob, lease_s: float) -> bool:
        """Keep a job for longer; False if another process has taken it over."""
        ...

    def finish(self, job: ClaimedJob, *, again_s: float | None = None) -> None:
        """It is done; unless it was wanted again, it is gone, or due ``again_s`` later.

        Nothing happens if another process has taken it over.
        """
        ...

    def postpone(self, job: ClaimedJob, wait_s: float) -> None:
        """It failed: let somebody try again later."""
        ...

    def want(self, tenant_id: int, kind: str, *, after_s: float = 0) -> None:
        """Have something done, if it is not to be done anyway."""
        ...
