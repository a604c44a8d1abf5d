"""The page of the doctor: whether everything works, and how to fix what does not."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from backstory.install.doctor import Finding, examine, examine_models
from backstory.install.setup import Setup
from backstory.options import check_llm, try_embedder
from backstory.system.machine import Machine
from backstory.values.structs import FrozenStruct
from backstory.web.jobs import Jobs
from backstory.web.templating import Templates

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory
    from backstory.values.reports import OnCount

PAGE = "/doctor"
# Where the page itself can apply a fix, by how the fix begins.
_ON_THE_PAGE = {
    "backstory install": "/agents",
    "backstory uninstall": "/agents",
    "backstory index": "/status",
    "backstory rebuild": "/status",
    "backstory status": "/status",
    "backstory settings": "/settings",
}
# Fixes that begin like this can be pasted into a terminal; others are sentences.
_COMMANDS = ("backstory ", "chmod ", "/")


class ShownFinding(FrozenStruct):
    """A finding; ``url`` leads to where the page can apply the fix."""

    finding: Finding
    is_command: bool = False
    url: str | None = None


def show_finding(finding: Finding) -> ShownFinding:
    fix = finding.fix
    urls = (url for start, url in _ON_THE_PAGE.items() if fix.startswith(start))
    return ShownFinding(finding, fix.startswith(_COMMANDS), next(urls, None))


class Doctor:
    """Looks at everything, as the command ``doctor`` does."""

    def __init__(self, memory: "Memory", machine: Machine) -> None:
        self._memory = memory
        self._machine = machine

    def examine(self) -> Iterator[Finding]:
        memory, machine = self._memory, self._machine
        target = Setup.of(machine, memory.home, is_dry_run=True).target
        yield from examine(target, memory.home, lambda: memory, user_home=machine.home)
        yield from examine_models(
            memory.settings.text("embedder.name"),
            lambda: try_embedder(memory.settings, machine),
            lambda: check_llm(memory.settings, machine),
        )


class DoctorPage:
    """Shows what the doctor found the last time, and lets it look again.

    Findings are dropped when the settings change, because they may no longer be true.
    """

    def __init__(self, doctor: Doctor, templates: Templates, jobs: Jobs) -> None:
        self._doctor = doctor
        self._templates = templates
        self._jobs = jobs
        self._found: tuple[Finding, ...] = ()

    def show(self, request: "Request") -> "Response":
        values = {
            "job": self._jobs.find_for(PAGE),
            "findings": [show_finding(each) for each in self._found],
        }
        return self._templates.render("doctor.html", values)

    async def start(self, request: "Request") -> "Response":
        self._jobs.start("Looking at everything", self._examine, page=PAGE)
        return RedirectResponse(f"{PAGE}#job", status_code=303)

    def _examine(self, on_count: "OnCount") -> list[str]:
        self._found = ()
        for finding in self._doctor.examine():
            self._found = (*self._found, finding)
            on_count(len(self._found), 0)
        return []
