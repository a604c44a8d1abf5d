"""The page, served on a free port by a thread of the test's own process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import httpx
import uvicorn

from backstory.cli.web import list_commands
from backstory.memory import Memory
from backstory.system.loopback import listen, port_of
from backstory.system.machine import CONFIG_VARIABLE, Machine
from backstory.web.app import build_app
from backstory.web.jobs import Jobs
from tests.processes import comes_true
from tests.samples import a_memory


@dataclass(frozen=True)
class Page:
    """A page that is served, the link that lets a browser in, and one that is in."""

    memory: Memory
    url: str
    opening: str
    browser: httpx.Client

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.browser.get(path, headers=headers)

    def see(self, path: str, **headers: str) -> "Seen":
        """What a page shows, which must be well."""
        answer = self.get(path, **headers)
        assert answer.status_code == 200, answer.text
        return read_page(answer.text)

    def save(self, path: str, /, **fields: str) -> httpx.Response:
        """Send a form, as a browser does from a page of ours."""
        headers = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
        return self.browser.post(path, data=fields, headers=headers)


@contextmanager
def serve(memory: Memory, user_home: Path, **environ: str) -> Iterator[Page]:
    listener = listen(0)
    port = port_of(listener)
    folder = memory.home.parent
    config = {CONFIG_VARIABLE: str(folder / "config.toml"), **environ}

    def reopen() -> Memory:
        return a_memory(folder, home=user_home, settings=("embedder.name=none",))

    machine = Machine("linux", user_home, config)
    app = build_app(
        memory,
        machine=machine,
        port=port,
        jobs=Jobs(),
        reopen=reopen,
        list_commands=list_commands,
    )
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    url = f"http://127.0.0.1:{port}"
    try:
        assert comes_true(lambda: server.started)
        with httpx.Client(base_url=url) as browser:
            opening = url + app.opening
            browser.get(opening)
            yield Page(memory, url, opening, browser)
    finally:
        server.should_exit = True
        thread.join()
        app.close()


# -- what a page shows ---


@dataclass(frozen=True)
class Seen:
    """The text of a page, its elements with their attributes, and where it links to."""

    text: str
    tags: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]

    @property
    def links(self) -> list[str]:
        return [
            value
            for tag, attributes in self.tags
            if tag == "a"
            for name, value in attributes
            if name == "href"
        ]

    @property
    def names(self) -> set[str]:
        return {tag for tag, _ in self.tags}

    @property
    def attributes(self) -> set[str]:
        return {name for _, attributes in self.tags for name, _ in attributes}


def read_page(html: str) -> Seen:
    reader = _Reader()
    reader.feed(html)
    text = " ".join("".join(reader.texts).split())
    return Seen(text, tuple(reader.tags))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[tuple[str, tuple[tuple[str, str], ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple((name, value or "") for name, value in attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
