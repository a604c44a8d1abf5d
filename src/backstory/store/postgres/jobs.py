"""The jobs of a database's tenants."""

from backstory.store.base.jobs import ClaimedJob, JobKind
from backstory.store.postgres.database import Database


class PostgresJobs:
    """The ``JobQueue`` of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, lease_s: float) -> ClaimedJob | None:
        with self._database.connection() as db, db.transaction():
            row = db.execute(
                """
                SELECT tenant_id, tenant, kind, wanted, tries, lease
                  FROM backstory.claim_job(%s)
                """,
                (lease_s,),
            ).fetchone()
        if row is None:
            return None
        tenant_id, tenant, kind, *rest = row
        return ClaimedJob(tenant_id, tenant, JobKind(kind), *rest)

    def renew(self, job: ClaimedJob, lease_s: float) -> bool:
        with self._database.tenant(job.tenant_id).writing_apart() as db:
            renewed = db.execute(
                """
                UPDATE jobs
                   SET lease_until = clock_timestamp() + make_interval(secs => %s)
                 WHERE kind = %s AND lease = %s
                """,
                (lease_s, job.kind.value, job.lease),
            )
            return renewed.rowcount > 0

    def finish(self, job: ClaimedJob, *, again_s: float | None = None) -> None:
        key = (job.kind.value, job.lease)
        with self._database.tenant(job.tenant_id).writing_apart() as db:
            if again_s is None:
                db.execute(
                    "DELETE FROM jobs WHERE kind = %s AND lease = %s AND wanted = %s",
                    (*key, job.wanted),
                )
            db.execute(
                """
                UPDATE jobs
                   SET lease = NULL, lease_until = NULL, tries = 0,
                       not_before = now() + make_interval(
                           secs => CASE wanted WHEN %s THEN %s ELSE 0 END)
                 WHERE kind = %s AND lease = %s
                """,
                (job.wanted, again_s or 0.0, *key),
            )

    def postpone(self, job: ClaimedJob, wait_s: float) -> None:
        with self._database.tenant(job.tenant_id).writing_apart() as db:
            db.execute(
                """
                UPDATE jobs
                   SET lease = NULL, lease_until = NULL,
                       not_before = now() + make_interval(secs => %s)
                 WHERE kind = %s AND lease = %s
                """,
                (wait_s, job.kind.value, job.lease),
            )

    def want(self, tenant_id: int, kind: str, *, after_s: float = 0) -> None:
        with self._database.tenant(tenant_id).writing_apart() as db:
            db.execute(
                """
                INSERT INTO jobs (kind, not_before)
                VALUES (%s, now() + make_interval(secs => %s))
                    ON CONFLICT (tenant_id, kind) DO UPDATE
                   SET wanted = jobs.wanted + 1
                 WHERE jobs.lease IS NOT NULL
                """,
                (kind, after_s),
            )
