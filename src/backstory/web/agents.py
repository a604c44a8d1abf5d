"""The pages that connect agent programs: what would change, and what was changed.

Nothing is changed, and no agent program is run, before a person has seen and confirmed
the preview.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from backstory.errors import BadQuery
from backstory.install.doctor import Finding, Mark, examine_host
from backstory.install.hosts import HOST_ROWS, get_host_row
from backstory.install.hosts.base import HostRow
from backstory.install.report import (
    HostReport,
    host_object,
    render_host,
    render_kept,
    render_next,
    suggest_first,
)
from backstory.install.setup import Setup
from backstory.system.machine import Machine
from backstory.values.structs import FrozenStruct
from backstory.web.forms import read_form
from backstory.web.jobs import Jobs
from backstory.web.templating import Templates
from backstory.web.work import read_agents

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory
    from backstory.values.reports import OnCount

PAGE = "/agents"
INSTALL = "install"
UNINSTALL = "uninstall"
# What the commands say about a program whose files stay as they are.
_UNCHANGED = {INSTALL: "already installed", UNINSTALL: "not installed"}
_NOT_HERE = Finding(Mark.NOTE, "", "not on this machine")


class Agent(FrozenStruct):
    """An agent program, and what the doctor says about it."""

    row: HostRow
    finding: Finding

    @property
    def is_connected(self) -> bool:
        return self.finding.mark is Mark.OK

    @property
    def is_broken(self) -> bool:
        return self.finding.mark is Mark.PROBLEM

    @property
    def is_here(self) -> bool:
        return self.finding is not _NOT_HERE


class Agents:
    """The agent programs on this machine, to connect and disconnect."""

    def __init__(self, memory: "Memory", machine: Machine) -> None:
        self._memory = memory
        self._machine = machine

    def list_all(self) -> list[Agent]:
        """Every program that can be connected; those on this machine come first."""
        target = self._set_up(is_dry_run=True).target
        found = [
            Agent(row, examine_host(row, target, self._machine.home) or _NOT_HERE)
            for row in HOST_ROWS
        ]
        return sorted(found, key=lambda each: not each.is_here)

    def change(self, name: str, do: str, *, is_dry_run: bool) -> HostReport:
        """Connect or disconnect a program, or report what that would change."""
        if do not in _UNCHANGED:
            raise BadQuery(f"'{do:.100}' is neither install nor uninstall")
        setup, row = self._set_up(is_dry_run=is_dry_run), get_host_row(name)
        return setup.install(row) if do == INSTALL else setup.uninstall(row)

    def render(self, report: HostReport, do: str, *, is_dry_run: bool) -> Iterator[str]:
        """What changes, in the words of the commands."""
        return render_host(
            report,
            home=self._machine.home,
            unchanged=_UNCHANGED[do],
            is_dry_run=is_dry_run,
        )

    def work(self, name: str, do: str, on_count: "OnCount") -> Iterator[str]:
        """Do it as the command does; yields the lines that it prints."""
        report = self.change(name, do, is_dry_run=False)
        yield from self.render(report, do, is_dry_run=False)
        if report.error is not None:
            return
        setup = self._set_up(is_dry_run=True)
        yield ""
        if do == UNINSTALL:
            yield render_kept(setup.home, self._machine.home)
            return
        yield from read_agents(self._memory, self._machine.home, on_count)
        left = setup.iter_left_to_do([report.row])
        yield from render_next(left, suggest_first(self._memory, [report.row]))

    def _set_up(self, *, is_dry_run: bool) -> Setup:
        return Setup.of(self._machine, self._memory.home, is_dry_run=is_dry_run)


def agent_object(agent: Agent) -> dict[str, object]:
    """An agent program as JSON."""
    return {
        "host": agent.row.name,
        "title": agent.row.title,
        "is_here": agent.is_here,
        "mark": agent.finding.mark,
        "text": agent.finding.text,
        "fix": agent.finding.fix,
    }


def change_object(report: HostReport, *, is_dry_run: bool) -> dict[str, object]:
    """What was changed, as JSON. Raises the error that prevented it."""
    if report.error is not None:
        raise report.error
    return host_object(report, is_dry_run=is_dry_run)


class AgentsPage:
    """Answers with the list, a preview, and the receipt of ``install``."""

    def __init__(self, agents: Agents, templates: Templates, jobs: Jobs) -> None:
        self._agents = agents
        self._templates = templates
        self._jobs = jobs

    def show(self, request: "Request") -> "Response":
        values = {"agents": self._agents.list_all(), "job": self._jobs.find_for(PAGE)}
        return self._templates.render("agents.html", values)

    def show_preview(self, request: "Request") -> "Response":
        row = get_host_row(request.path_params["name"])
        do = request.query_params.get("do", INSTALL)
        report = self._agents.change(row.name, do, is_dry_run=True)
        lines = list(self._agents.render(report, do, is_dry_run=True))
        values = {
            "row": row,
            "do": do,
            "is_install": do == INSTALL,
            "lines": lines[1:],
            "has_changes": bool(report.changes),
            "busy": self._jobs.running,
        }
        status = 200 if report.error is None else 400
        return self._templates.render("agent.html", values, status)

    async def change(self, request: "Request") -> "Response":
        name = request.path_params["name"]
        form = await read_form(request)
        return await run_in_threadpool(self._start, name, form.get("do", ""))

    def _start(self, name: str, do: str) -> "Response":
        row = get_host_row(name)
        if do not in _UNCHANGED:
            raise BadQuery(f"'{do:.100}' is neither install nor uninstall")
        verb = "Connecting" if do == INSTALL else "Disconnecting"
        is_started = self._jobs.start(
            f"{verb} {row.title}",
            lambda on_count: self._agents.work(row.name, do, on_count),
            page=PAGE,
        )
        # If another job is running, the preview says so.
        place = f"{PAGE}#job" if is_started else f"{PAGE}/{row.name}?do={do}"
        return RedirectResponse(place, status_code=303)
