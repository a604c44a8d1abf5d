"""The application: which page answers which address, and what errors look like."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from backstory.errors import BackstoryError, BadQuery, UnknownName
from backstory.system.machine import Machine
from backstory.web.access import Guard
from backstory.web.agents import Agents, AgentsPage
from backstory.web.api import (
    OPERATIONS,
    PREFIX,
    Served,
    build_route,
    render_refusal,
)
from backstory.web.commands import CommandsPage, ListCommands
from backstory.web.conversation import ConversationPage
from backstory.web.doctor import Doctor, DoctorPage
from backstory.web.exports import ExportsPage
from backstory.web.forgetting import ForgetPage
from backstory.web.jobs import Jobs
from backstory.web.notes import NotesPages
from backstory.web.offers import Offers
from backstory.web.openapi import show_document
from backstory.web.search import SearchPage
from backstory.web.sessions import SessionsPage
from backstory.web.settings import OwnSettings, SettingsPage
from backstory.web.site import Closable, Site
from backstory.web.status import StatusPage
from backstory.web.templating import HERE, Templates, static_folder
from backstory.web.work import CHECK_PAGE, start_work

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ExceptionHandler, Scope

    from backstory.memory import Memory

# The folder of a person who has none on the machine: no path begins with it.
NOWHERE = Path("/dev/null/nowhere")
_LINK = "Open the link that 'backstory web' prints when it starts. It works once."
_REFUSALS = {
    401: ("This browser has no access", _LINK),
    403: ("This request came from another page", "Only this page itself may ask."),
    404: ("There is nothing at this address", "Try searching for it."),
    405: ("This address does not take such requests", "Go back and try again."),
    413: ("This is too much text", "Save it in several parts."),
    421: ("The page is not served under this name", _LINK),
}


class NoUpkeep:
    """Does nothing: whoever opened the memory takes care of it."""

    def close(self) -> None:
        pass


def build_app(
    memory: "Memory",
    *,
    machine: Machine,
    port: int,
    jobs: Jobs,
    reopen: "Callable[[], Memory]",
    list_commands: ListCommands,
    start_upkeep: "Callable[[Memory], Closable]" = lambda _: NoUpkeep(),
) -> Guard:
    """The application that answers a browser's requests for a memory.

    ``reopen`` opens the same memory again, with the settings of that moment.
    """
    templates = Templates(user_home=machine.home)
    errors = ErrorPages(templates)

    def build_pages(memory: "Memory", on_changed: Callable[[], None]) -> Starlette:
        return Starlette(
            routes=[
                *iter_routes(memory, machine, templates, jobs, on_changed),
                Route("/commands", CommandsPage(list_commands, templates).show),
            ],
            exception_handlers=errors.by_kind,
        )

    site = Site(
        memory,
        jobs,
        build_pages=build_pages,
        reopen=reopen,
        start_upkeep=start_upkeep,
    )
    return Guard(site, port=port, refuse=errors.refuse)


def iter_routes(
    memory: "Memory",
    machine: Machine,
    templates: Templates,
    jobs: Jobs,
    on_changed: Callable[[], None],
) -> Iterator[BaseRoute]:
    """Which page answers which address; ``on_changed`` follows a changed setting."""
    search = SearchPage(memory, templates, jobs)
    yield Route("/", search.show)
    sessions = SessionsPage(memory, templates)
    yield Route("/sessions", sessions.show)
    conversation = ConversationPage(memory, templates)
    yield Route("/session/{host}/{name:path}", conversation.show)
    notes = NotesPages(memory, templates)
    yield Route("/memory", notes.show_memory)
    yield Route("/memory/edit", notes.edit_memory)
    yield Route("/memory/edit", notes.save_memory, methods=["POST"])
    yield Route("/logs", notes.list_logs)
    yield Route("/logs/{day}", notes.show_log)
    yield Route("/prompt", notes.show_prompt)
    forgetting = ForgetPage(memory, templates, machine.home)
    yield Route("/forget", forgetting.show_preview)
    yield Route("/forget", forgetting.forget, methods=["POST"])
    yield Route("/forget/undo", forgetting.undo, methods=["POST"])
    exports = ExportsPage(memory, templates, jobs, machine)
    yield Route("/export", exports.show)
    yield Route("/export", exports.start_export, methods=["POST"])
    yield Route("/import", exports.start_import, methods=["POST"])
    status = StatusPage(memory, templates, jobs, machine.home)
    yield Route("/status", status.show)
    yield Route("/status/stop", status.stop, methods=["POST"])
    yield Route("/status/{work}", status.start, methods=["POST"])
    yield Route(CHECK_PAGE, status.show_check)
    agents = Agents(memory, machine)
    agents_page = AgentsPage(agents, templates, jobs)
    yield Route("/agents", agents_page.show)
    yield Route("/agents/{name}", agents_page.show_preview)
    yield Route("/agents/{name}", agents_page.change, methods=["POST"])
    doctor = Doctor(memory, machine)
    doctor_page = DoctorPage(doctor, templates, jobs)
    yield Route("/doctor", doctor_page.show)
    yield Route("/doctor", doctor_page.start, methods=["POST"])
    own = OwnSettings(machine, on_changed)
    settings = SettingsPage(memory, templates, machine, own)
    yield Route("/settings", settings.show)
    yield Route("/settings/exclude", settings.show_exclusion)
    yield Route("/settings/exclude", settings.exclude, methods=["POST"])
    yield Route("/settings/{name}", settings.change, methods=["POST"])
    served = Served(
        memory,
        jobs,
        own,
        agents,
        doctor,
        start=lambda name: start_work(jobs, name, memory, machine.home),
    )
    for operation in OPERATIONS:
        yield build_route(operation, served)
    yield Route(f"{PREFIX}/openapi.json", show_document)
    yield Mount(static_folder(), StaticFiles(directory=HERE / "static"))


def iter_shared_routes(
    memory: "Memory", templates: Templates, offers: Offers
) -> Iterator[BaseRoute]:
    """The routes for people elsewhere: those that are not about the serving machine."""
    # No job can be started there.
    jobs = Jobs()
    yield Route("/", SearchPage(memory, templates, jobs, offers).show)
    yield Route("/sessions", SessionsPage(memory, templates).show)
    conversation = ConversationPage(memory, templates, offers)
    yield Route("/session/{host}/{name:path}", conversation.show)
    notes = NotesPages(memory, templates)
    yield Route("/memory", notes.show_memory)
    yield Route("/logs", notes.list_logs)
    yield Route("/logs/{day}", notes.show_log)
    yield Route("/prompt", notes.show_prompt)
    if offers.may_change:
        yield Route("/memory/edit", notes.edit_memory)
        yield Route("/memory/edit", notes.save_memory, methods=["POST"])
        forgetting = ForgetPage(memory, templates, NOWHERE)
        yield Route("/forget", forgetting.show_preview)
        yield Route("/forget", forgetting.forget, methods=["POST"])
        yield Route("/forget/undo", forgetting.undo, methods=["POST"])
    served = Served(memory, jobs, None, None, None, start=_start_nothing, offers=offers)
    for operation in OPERATIONS:
        if operation.is_offered(offers):
            yield build_route(operation, served)


def _start_nothing(name: str) -> None:
    raise UnknownName(f"there is no work called '{name:.100}'")


class ErrorPages:
    """A page for each way in which a request can fail; for programs, a JSON object."""

    def __init__(
        self,
        templates: Templates,
        unexpected: str = "The terminal that runs 'backstory web' shows what happened.",
    ) -> None:
        self._templates = templates
        self._unexpected = unexpected

    @property
    def by_kind(self) -> "dict[type[Exception], ExceptionHandler]":
        """The handler of each kind of error."""
        return {
            HTTPException: self.show_refused,
            BackstoryError: self.show_known,
            Exception: self.show_unexpected,
        }

    def refuse(self, status: int, scope: "Scope") -> "Response":
        message, hint = _REFUSALS.get(status, ("This request was refused", ""))
        return self.explain(status, message, hint, scope)

    async def show_refused(self, request: "Request", exc: Exception) -> "Response":
        status = exc.status_code if isinstance(exc, HTTPException) else 500
        return self.refuse(status, request.scope)

    async def show_known(self, request: "Request", exc: Exception) -> "Response":
        status = 500
        if isinstance(exc, UnknownName | BadQuery):
            status = 404 if isinstance(exc, UnknownName) else 400
        hint = exc.hint if isinstance(exc, BackstoryError) else ""
        return self.explain(status, str(exc), hint or "", request.scope)

    async def show_unexpected(self, request: "Request", exc: Exception) -> "Response":
        # What happened is in the log of the server; it is raised again for that.
        message = "Something went wrong"
        return self.explain(500, message, self._unexpected, request.scope)

    def explain(
        self, status: int, message: str, hint: str, scope: "Scope"
    ) -> "Response":
        """A page for a browser that asked for one; a JSON object for anything else."""
        if not asks_for_page(scope):
            return render_refusal(status, message, hint)
        values = {"status": status, "message": message, "hint": hint}
        return self._templates.render("error.html", values, status)


def asks_for_page(scope: "Scope") -> bool:
    """Whether a request comes from a browser in which somebody opens a page."""
    accepted = Headers(scope=scope).get("accept", "")
    return "text/html" in accepted and not scope["path"].startswith(PREFIX)
