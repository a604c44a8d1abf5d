"""Run the page until it is told to end."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from backstory.assembly.parts import keep_memory_low
from backstory.hooks.server import HookServer
from backstory.hooks.upkeep import Upkeep
from backstory.system.loopback import ADDRESS, listen, port_of, serve_until_ended
from backstory.system.machine import Machine
from backstory.web.app import build_app
from backstory.web.commands import ListCommands
from backstory.web.jobs import Jobs
from backstory.web.work import READ, start_work

if TYPE_CHECKING:
    from backstory.memory import Memory


def serve_page(
    open_memory: "Callable[[], Memory]",
    port: int,
    *,
    machine: Machine,
    tell: Callable[[str], None],
    list_commands: ListCommands,
) -> None:
    """Answer a browser's requests; ``tell`` is called with the link to open.

    ``open_memory`` is called again whenever somebody changes a setting.
    """
    listener = listen(port)
    # Must be called before threads are started.
    keep_memory_low()
    memory, jobs = open_memory(), Jobs()
    if not memory.sessions(limit=1):
        # Before the first visit, whatever is found is read while the person watches.
        start_work(jobs, READ, memory, machine.home)
    app = build_app(
        memory,
        machine=machine,
        port=port_of(listener),
        jobs=jobs,
        reopen=open_memory,
        start_upkeep=start_upkeep,
        list_commands=list_commands,
    )
    # Listens already, so that a browser that is opened now waits until we are ready.
    listener.listen()
    tell(f"http://{ADDRESS}:{port_of(listener)}{app.opening}")
    try:
        serve_until_ended(app, listener)
    finally:
        app.close()


def start_upkeep(memory: "Memory") -> Upkeep:
    upkeep = Upkeep(memory, HookServer(memory))
    upkeep.start()
    return upkeep
