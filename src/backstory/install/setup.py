"""Connect agent programs and disconnect them: what commands and the page share."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from backstory.errors import BackstoryError, ConfigError
from backstory.install.apply import Change, Installation
from backstory.install.commands import find_commands
from backstory.install.hosts import HOST_ROWS
from backstory.install.hosts.base import HostRow, Target
from backstory.install.plugins import find_plugin
from backstory.install.record import InstallRecord
from backstory.install.report import HostReport
from backstory.system.machine import Machine
from backstory.values.structs import FrozenStruct, replace


class Setup(FrozenStruct):
    """Where to install, and how."""

    target: Target
    installation: Installation
    home: Path

    @classmethod
    def of(
        cls,
        machine: Machine,
        home: Path,
        *,
        in_project: bool = False,
        is_dry_run: bool = False,
    ) -> "Setup":
        """For this machine, or with ``in_project`` for the current folder alone."""
        project = machine.folder if in_project else None
        if in_project and project is None:
            raise ConfigError("--project: the current folder was deleted")
        made = find_commands(machine, home, python=Path(sys.executable))
        target = Target(machine, made, project)
        record = InstallRecord.of(machine, project)
        return cls(target, Installation(record, machine.environ, is_dry_run), home)

    def list_here(self) -> list[HostRow]:
        """The programs that are on this machine, or were used on it."""
        return [row for row in HOST_ROWS if row.is_here(self.target)]

    def list_projects(self) -> list[Path]:
        """The folders that we are still installed in, apart from this machine."""
        own = {step.path for row in HOST_ROWS for step in row.plan(self.target)}
        projects = (
            folder
            for path in self.installation.record.list_paths()
            if path not in own
            for folder in path.parents
            if self._is_project_file(path, folder)
        )
        return list(dict.fromkeys(projects))

    def _is_project_file(self, path: Path, folder: Path) -> bool:
        target = replace(self.target, project=folder)
        return any(step.path == path for row in HOST_ROWS for step in row.plan(target))

    def install(self, row: HostRow) -> HostReport:
        return self._report(row, self.installation.install)

    def uninstall(self, row: HostRow) -> HostReport:
        return self._report(row, self.installation.uninstall)

    def iter_left_to_do(self, rows: Sequence[HostRow]) -> Iterator[str]:
        """What the user has to do, so that these programs start us."""
        yield from (row.approve for row in rows if row.approve)
        for row in rows:
            plugin = find_plugin(row, self.target)
            if plugin is not None and row.plugins is not None:
                yield (
                    f"{row.title} has our plugin as well, so memories are given twice; "
                    f"remove it with: {row.plugins.remove} {plugin}"
                )
        is_shared = self.target.project and not all(row.is_private for row in rows)
        missing = self.target.find_missing() if is_shared else None
        if missing is not None:
            folder = Path(self.target.commands.backstory[0]).parent
            yield (
                f"'{missing}' is not on your PATH, and the files in this folder name "
                f"it so, for everybody who has a copy of them: add {folder}"
            )

    def _report(
        self, row: HostRow, change: Callable[..., Sequence[Change]]
    ) -> HostReport:
        # One program whose file is broken is no reason to leave out the others.
        try:
            return HostReport(row, change(row.plan(self.target)))
        except BackstoryError as exc:
            return HostReport(row, error=exc)
