"""Connect agent programs on the page, examine them, and look for damage."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from backstory.cli.app import COMMANDS
from tests.builders import a_line, append, session_file
from tests.install.programs import install_claude
from tests.processes import comes_true
from tests.samples import a_memory
from tests.web.server import Page, read_page, serve

SETTINGS = ("embedder.name=none",)


@pytest.fixture
def page(tmp_path: Path, home: Path) -> Iterator[Page]:
    with (
        a_memory(tmp_path, home=home, settings=SETTINGS) as memory,
        serve(memory, home) as served,
    ):
        yield served


def job_of(page: Page) -> str:
    return page.get("/status", **{"Backstory-Part": "job"}).text


def outcome(page: Page) -> str:
    """What the work that was started came to, when it is over."""
    assert comes_true(lambda: "data-running" not in job_of(page))
    return read_page(job_of(page)).text


def test_an_agent_is_connected_after_a_preview_and_disconnected_again(
    page: Page, home: Path
) -> None:
    settings = home / ".cursor/mcp.json"
    settings.parent.mkdir()
    settings.write_text('{"mcpServers": {}}')

    before = page.see("/agents").text
    preview = page.see("/agents/cursor?do=install").text
    untouched = settings.read_text()
    started = page.save("/agents/cursor", do="install")
    connected = outcome(page)
    after = page.see("/agents").text
    servers = json.loads(settings.read_text())["mcpServers"]
    goes = page.see("/agents/cursor?do=uninstall").text
    page.save("/agents/cursor", do="uninstall")

    assert "Cursor on this machine, but not connected" in before
    assert "would change: ~/.cursor/mcp.json" in preview
    assert '+ "backstory"' in preview
    assert untouched == '{"mcpServers": {}}'
    assert (started.status_code, started.headers["location"]) == (303, "/agents#job")
    assert "Connecting Cursor" in connected
    assert "changed: ~/.cursor/mcp.json (backup: " in connected
    assert "Found nothing to read" in connected
    assert "Try it:" in connected
    assert "Cursor connected" in after
    assert list(servers) == ["backstory"]
    assert "would change: ~/.cursor/mcp.json" in goes
    assert "Your history and notes are still in" in outcome(page)
    assert settings.read_text() == '{"mcpServers": {}}'


def test_the_program_of_an_agent_runs_only_when_a_person_says_so(
    tmp_path: Path, home: Path
) -> None:
    path = install_claude(tmp_path / "bin")
    state = home / ".claude.json"
    with (
        a_memory(tmp_path, home=home, settings=SETTINGS) as memory,
        serve(memory, home, PATH=path, HOME=str(home)) as page,
    ):
        listed = page.see("/agents").text
        preview = page.see("/agents/claude-code?do=install").text
        elsewhere = page.browser.post(
            "/agents/claude-code",
            data={"do": "install"},
            headers={"Origin": "https://evil.example"},
        )
        stranger = httpx.post(f"{page.url}/agents/claude-code", data={"do": "install"})
        is_untouched = not state.exists()
        page.save("/agents/claude-code", do="install")
        connected = outcome(page)

    assert "Claude Code on this machine, but not connected" in listed
    assert "would run: claude mcp add-json -s user backstory" in preview
    assert (elsewhere.status_code, stranger.status_code) == (403, 403)
    assert is_untouched
    assert "ran: claude mcp add-json -s user backstory" in connected
    assert list(json.loads(state.read_text())["mcpServers"]) == ["backstory"]


def test_what_is_read_while_connecting_is_told_and_suggested(
    page: Page, home: Path
) -> None:
    append(session_file(home), a_line("Where is the ladder?", uuid="u1"))

    page.save("/agents/cursor", do="install")

    said = outcome(page)
    assert "1 new session, 1 new message" in said
    assert "or search yourself: backstory search 'Where is the ladder?'" in said


def test_a_file_that_cannot_be_edited_is_refused_in_the_preview(
    page: Page, home: Path
) -> None:
    settings = home / ".cursor/mcp.json"
    settings.parent.mkdir()
    settings.write_text("not json")

    preview = page.get("/agents/cursor?do=install")
    listed = page.see("/agents").text

    assert preview.status_code == 400
    assert "error: " in read_page(preview.text).text
    assert "Connect it" not in preview.text
    assert "Cursor" in listed
    assert page.get("/agents/nothing?do=install").status_code == 404
    assert page.get("/agents/cursor?do=x").status_code == 400
    assert page.save("/agents/cursor", do="x").status_code == 400


def test_an_api_client_connects_and_is_told_what_would_change(
    page: Page, home: Path
) -> None:
    own = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}

    def ask(**body: object) -> httpx.Response:
        return page.browser.post("/api/agents/cursor", json=body, headers=own)

    told, done = ask(do="install").json(), ask(do="install", dry_run=False).json()
    (cursor,) = [
        each for each in page.get("/api/agents").json() if each["host"] == "cursor"
    ]

    path = str(home / ".cursor/mcp.json")
    assert (told["dry_run"], told["changes"][0]["path"]) == (True, path)
    assert (done["dry_run"], done["changes"][0]["path"]) == (False, path)
    assert (cursor["mark"], cursor["text"]) == ("ok", "connected")
    assert ask(do="x").json()["error"]["code"] == "BadQuery"


def test_the_doctor_tells_what_it_finds_with_its_fixes(page: Page) -> None:
    assert "Examine" in page.see("/doctor").text

    started = page.save("/doctor")
    assert comes_true(lambda: "data-running" not in job_of(page))
    seen = page.see("/doctor")

    assert (started.status_code, started.headers["location"]) == (303, "/doctor#job")
    assert (
        "agent programs note none that Backstory knows is on this machine" in seen.text
    )
    assert "history note nothing was read yet backstory index" in seen.text
    assert "embedder note none: searches go by words alone" in seen.text
    copied = [dict(attributes).get("data-copy") for _, attributes in seen.tags]
    assert "backstory settings unset embedder.name" in copied
    assert {"/agents", "/status", "/settings"} <= set(seen.links)


def test_damage_is_looked_for_and_repaired_as_the_commands_do_it(page: Page) -> None:
    page.memory.record("talk", "user", "Where is the ladder?")
    said = {}
    for name in ("check", "check-deep", "repair", "salvage"):
        started = page.save(f"/status/{name}")
        assert started.headers["location"] == "/check#job"
        said[name] = outcome(page)

    assert "history.db: sound" in said["check"]
    assert "history.db: sound" in said["check-deep"]
    assert "history.db: sound" in said["repair"]
    assert "The index has no message that the history lacks." in said["salvage"]
    assert "The index has no message" in page.see("/check").text
    # What came of it is shown where it was asked for.
    assert "The index has no message" not in page.see("/status").text


def test_a_damaged_history_is_repaired_while_it_is_open(page: Page) -> None:
    for number in range(300):
        page.memory.record("talk", "user", f"Shelf {number} has {'books ' * 20}")
    page.memory.rebuild()
    history = page.memory.home / "history.db"
    raw = history.read_bytes()
    at = raw.index(b"Shelf 150 has") // 4096 * 4096
    with history.open("r+b") as file:
        file.seek(at)
        file.write(bytes(4096))

    page.save("/status/check")
    damaged = outcome(page)
    page.save("/status/repair")
    repaired = outcome(page)

    assert "history.db: damaged" in damaged
    assert "The damaged file is kept as" in repaired
    assert "history.db: sound" in repaired
    assert "Shelf 0 has" in page.see("/session/python/talk").text


def test_every_command_is_named_with_its_sentence(page: Page) -> None:
    seen = page.see("/commands")

    copied = [dict(attributes).get("data-copy", "") for _, attributes in seen.tags]
    named = {line.split()[1] for line in copied if line}
    assert named == set(COMMANDS) - {"web"}
    assert "Measure how well searches find what is wanted." in seen.text
    assert {"/agents", "/doctor", "/check", "/export"} <= set(seen.links)
