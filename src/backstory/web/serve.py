"""Run the page until it is told to end."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.assembly import keep_memory_low
from backstory.hooks.server import HookServer
from backstory.hooks.upkeep import Upkeep
from backstory.system.loopback import ADDRESS, listen, port_of, serve_until_ended
from backstory.web.app import build_app

if TYPE_CHECKING:
    from backstory.memory import Memory


def serve_page(
    memory: "Memory", port: int, *, user_home: Path, tell: Callable[[str], None]
) -> None:
    """Answer a browser's requests; ``tell`` is given the link to open."""
    listener = listen(port)
    app = build_app(memory, user_home=user_home, port=port_of(listener))
    # So that a browser that is opened now is answered as soon as we are ready.
    listener.listen()
    tell(f"http://{ADDRESS}:{port_of(listener)}{app.opening}")
    keep_memory_low()
    upkeep = Upkeep(memory, HookServer(memory))
    upkeep.start()
    try:
        serve_until_ended(app, listener)
    finally:
        upkeep.close()
