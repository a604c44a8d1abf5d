"""Where agent programs keep their files, on every platform."""

from pathlib import Path

import pytest

from backstory.errors import UnknownName
from backstory.ingest.hosts import HOSTS, get_host
from backstory.ingest.hosts.base import Folder, Host, Pattern
from backstory.ingest.hosts.find import iter_in_projects, iter_sources
from backstory.ingest.importers import get_format
from backstory.system.files import describe
from backstory.system.machine import Machine
from backstory.values.history import Problem, Source
from tests.grid import cases

HOME = Path("/home/dev")


def locate(*places: str, platform: str = "linux", **environ: str) -> Path | None:
    return Folder(places, ()).locate(Machine(platform, HOME, environ))


# -- places ---


@cases(
    ("place", "expected"),
    [
        pytest.param("~/.agent", HOME / ".agent", id="below the home folder"),
        pytest.param("~", HOME, id="the home folder"),
        pytest.param("/opt/agent", Path("/opt/agent"), id="an absolute path"),
        pytest.param("${DATA}/agent", Path("/data/agent"), id="a variable"),
        pytest.param("${TILDE}/x", HOME / "own/x", id="a variable with a tilde"),
        pytest.param("${MISSING}/agent", None, id="a variable that is not set"),
        pytest.param("${EMPTY}/agent", None, id="a variable that is empty"),
        pytest.param("${DATA}/${MISSING}", None, id="one of two variables not set"),
        pytest.param("linux:~/a", HOME / "a", id="on this platform"),
        pytest.param("win32:~/a", None, id="on another platform"),
        pytest.param("C:/agent", Path("C:/agent"), id="a drive is no platform"),
    ],
)
def test_a_place_is_worked_out_from_the_machine(
    place: str, expected: Path | None
) -> None:
    found = locate(place, DATA="/data", TILDE="~/own", EMPTY="")

    assert found == expected


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        pytest.param("linux", {}, HOME / ".config/agent", id="Linux"),
        pytest.param("linux", {"XDG": "/x"}, Path("/x/agent"), id="Linux, moved"),
        pytest.param("darwin", {}, HOME / "Library/agent", id="macOS"),
        pytest.param("win32", {"APPDATA": "C:/A"}, Path("C:/A/agent"), id="Windows"),
        pytest.param("freebsd", {}, None, id="nowhere"),
    ],
)
def test_the_first_place_that_applies_is_taken(
    platform: str, environ: dict[str, str], expected: Path | None
) -> None:
    found = locate(
        "linux:${XDG}/agent",
        "linux:~/.config/agent",
        "darwin:~/Library/agent",
        "win32:${APPDATA}/agent",
        platform=platform,
        **environ,
    )

    assert found == expected


# -- finding ---

AGENT = Host(
    "agent",
    "Agent",
    folders=(
        Folder(("~/.agent",), (Pattern("*.jsonl", "lines"), Pattern("*/*.db", "db"))),
        Folder(("${NOT_SET}",), (Pattern("*", "lines"),)),
        Folder(("~/.not-there",), (Pattern("*", "lines"),)),
    ),
    in_projects=(Pattern(".agent.md", "notes"),),
)


def write(*files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")


def test_the_files_of_a_host_are_found_in_its_folders_and_in_projects(
    tmp_path: Path,
) -> None:
    lines, database = tmp_path / ".agent/a.jsonl", tmp_path / ".agent/x/b.db"
    notes = tmp_path / "project/.agent.md"
    write(lines, database, notes, tmp_path / ".agent/c.txt")

    projects = [str(tmp_path / "project"), str(tmp_path / "gone"), "a\0b"]

    found = [
        *iter_sources(AGENT, Machine("linux", tmp_path, {})),
        *iter_in_projects(AGENT, projects),
    ]

    assert found == [
        Source("agent", "lines", describe(lines)),
        Source("agent", "db", describe(database)),
        Source("agent", "notes", describe(notes)),
    ]


def test_a_link_out_of_a_host_s_folder_is_a_problem(tmp_path: Path) -> None:
    folder = tmp_path / ".agent"
    write(tmp_path / "out.jsonl", folder / "a.txt")
    (folder / "a.jsonl").symlink_to(tmp_path / "out.jsonl")

    found = list(iter_sources(AGENT, Machine("linux", tmp_path, {})))

    assert found == [
        Problem(f"a symbolic link that leads out of {folder}", path=f"{folder}/a.jsonl")
    ]


# -- the table ---


@cases("host", HOSTS, ids=lambda host: host.name)
@cases("platform", ["linux", "darwin", "win32"])
def test_every_host_has_absolute_places_and_known_formats(
    host: Host, platform: str
) -> None:
    machine = Machine(platform, HOME, {"APPDATA": "/appdata"})

    places = [folder.locate(machine) for folder in host.folders]
    patterns = [*host.in_projects, *(p for f in host.folders for p in f.patterns)]

    assert [place for place in places if place and not place.is_absolute()] == []
    assert [get_format(pattern.format).name for pattern in patterns] == [
        pattern.format for pattern in patterns
    ]


CLINE = "User/globalStorage/saoudrizwan.claude-dev"
CHATS = "User/workspaceStorage"
WINDOWS = {"APPDATA": "/roaming", "LOCALAPPDATA": "/local"}


@cases(
    ("host", "platform", "environ", "expected"),
    [
        ("cline", "linux", {}, f"{HOME}/.config/Code/{CLINE}"),
        ("cline", "linux", {}, f"{HOME}/.config/Cursor/{CLINE}"),
        ("cline", "linux", {}, f"{HOME}/.vscode-server/data/{CLINE}"),
        ("cline", "linux", {"XDG_CONFIG_HOME": "/x"}, f"/x/VSCodium/{CLINE}"),
        ("cline", "darwin", {}, f"{HOME}/Library/Application Support/Code/{CLINE}"),
        ("cline", "win32", WINDOWS, f"/roaming/Code - Insiders/{CLINE}"),
        ("cline", "linux", {}, f"{HOME}/.cline/data"),
        ("cline", "linux", {"CLINE_DIR": "/c"}, "/c/data"),
        ("vscode", "darwin", {}, f"{HOME}/Library/Application Support/Code/{CHATS}"),
        ("vscode", "win32", WINDOWS, f"/roaming/Windsurf/{CHATS}"),
        ("goose", "darwin", {}, f"{HOME}/.local/share/goose/sessions"),
        ("goose", "win32", WINDOWS, "/roaming/Block/goose/data/sessions"),
        ("goose", "linux", {"GOOSE_PATH_ROOT": "/g"}, "/g/data/sessions"),
        ("zed", "linux", {}, f"{HOME}/.local/share/zed"),
        ("zed", "linux", {}, f"{HOME}/.var/app/dev.zed.Zed/data/zed"),
        ("zed", "darwin", {}, f"{HOME}/Library/Application Support/Zed"),
        ("zed", "win32", WINDOWS, "/local/Zed"),
        ("qwen-code", "linux", {"QWEN_HOME": "/q"}, "/q"),
        ("continue", "win32", WINDOWS, f"{HOME}/.continue"),
        ("amp", "darwin", {}, f"{HOME}/.local/share/amp"),
    ],
)
def test_a_program_s_own_places_are_known_on_every_platform(
    host: str, platform: str, environ: dict[str, str], expected: str
) -> None:
    machine = Machine(platform, HOME, environ)

    places = [folder.locate(machine) for folder in get_host(host).folders]

    assert Path(expected) in places


def test_the_first_part_of_a_name_is_enough_if_it_is_clear() -> None:
    assert (get_host("gemini").name, get_host("Copilot").name) == (
        "gemini-cli",
        "copilot-cli",
    )
    with pytest.raises(UnknownName, match="'claude' may be several") as raised:
        get_host("claude")
    assert raised.value.hint == "say which: claude-code, claude-ai"


def test_an_unknown_host_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownName) as raised:
        get_host("claude-cod")

    assert (str(raised.value), raised.value.hint) == (
        "no agent program is called 'claude-cod'",
        "did you mean 'claude-code'?",
    )


@pytest.mark.parametrize(
    ("host", "environ", "names"),
    [
        (
            "rockbot",
            {"AgentProfile__BasePath": ""},
            [
                "conversation-log/turns.jsonl.bak",
                "conversation-log/turns.jsonl.10",
                "conversation-log/turns.jsonl.2",
                "conversation-log/turns.jsonl.1",
                "conversation-log/turns-old.jsonl",
                "conversation-log/turns.jsonl",
            ],
        ),
        (
            "squidbot",
            {},
            [
                ".squidbot/history-copy.jsonl",
                ".squidbot/history.10.jsonl",
                ".squidbot/history.2.jsonl",
                ".squidbot/history.1.jsonl",
                ".squidbot/history.jsonl",
            ],
        ),
    ],
    ids=["rockbot", "squidbot"],
)
def test_a_log_that_was_moved_aside_is_read_oldest_first(
    tmp_path: Path, host: str, environ: dict[str, str], names: list[str]
) -> None:
    write(*(tmp_path / name for name in names))
    environ = {name: str(tmp_path) for name in environ}

    found = iter_sources(get_host(host), Machine("linux", tmp_path, environ))

    assert [
        str(source.file.path.relative_to(tmp_path))
        for source in found
        if isinstance(source, Source)
    ] == names
