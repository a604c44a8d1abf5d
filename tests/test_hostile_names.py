"""Ids, names and days from content are never paths: what they name is not touched.

Everything that takes a name is given names that lead out of the home, and every file
that Python opens meanwhile is looked at.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from backstory import BackstoryError, Memory
from tests.builders import a_line, a_tool_result, append, session_file
from tests.hooks.hook_home import Hooks, environ_of
from tests.live_transcripts import Gemini
from tests.samples import a_memory
from tests.shell import Shell

pytestmark = pytest.mark.usefixtures("own_runtime_folder")

# No other test opens a file with this in its name.
TRAP = "zwirbelkrampf"
LONG = "z" * 5_000
NAMES = (
    f"../../../{TRAP}",
    "../" * 40 + f"tmp/{TRAP}",
    f"x/../../{TRAP}",
    f"..\\..\\{TRAP}",
    f"/tmp/{TRAP}",
    f"{TRAP}/../../../../etc/passwd",
    f"{TRAP}\0/etc/passwd",
    f"/etc/passwd\n{TRAP}",
    f"~/{TRAP}",
    f"$HOME/{TRAP}",
    f"con.{TRAP}",
    f"--home=/tmp/{TRAP}",
    f"{TRAP}\ud800",
    f"../*{TRAP}*",
    LONG,
    f"{LONG}/{TRAP}",
    "con",
    "..",
    ".",
    "/",
)
HOOKED = ("session-start", "prompt", "before-compaction", "session-end")
# In Python, a file or folder is reached by one of these.
_EVENTS = frozenset(
    f"os.{name}"
    for name in (
        *("mkdir", "rename", "remove", "rmdir", "link", "symlink", "listdir"),
        *("scandir", "chmod", "truncate"),
    )
) | {"open"}

_watched: list[str] | None = None


def _watch(event: str, given: tuple[Any, ...]) -> None:
    if _watched is not None and event in _EVENTS:
        paths = (each for each in given[:2] if isinstance(each, str | bytes))
        _watched.extend(map(os.fsdecode, paths))


@pytest.fixture(scope="module", autouse=True)
def _hear_of_files() -> None:
    # It cannot be removed, but does nothing after these tests.
    sys.addaudithook(_watch)


@contextmanager
def watched() -> Iterator[list[str]]:
    """The paths that are used meanwhile, by any thread."""
    global _watched
    used: list[str] = []
    _watched = used
    try:
        yield used
    finally:
        _watched = None


@pytest.fixture
def memory(tmp_path: Path, home: Path) -> Iterator[Memory]:
    with a_memory(tmp_path, home=home, settings=("embedder.name=none",)) as memory:
        yield memory


def named(used: list[str]) -> list[str]:
    """The paths that come from a name."""
    return [
        path for path in used if TRAP in path or LONG in path or path == "/etc/passwd"
    ]


def list_files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_files_that_are_used_are_seen(tmp_path: Path) -> None:
    with watched() as used:
        (tmp_path / TRAP).write_text("x")
        list((tmp_path).iterdir())

    assert named(used) == [str(tmp_path / TRAP)]
    assert str(tmp_path) in used


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name[:20]))
def test_no_name_from_content_is_a_path(
    memory: Memory, tmp_path: Path, home: Path, name: str
) -> None:
    write_transcripts(home, name)
    hooks = Hooks(memory.home, environ_of(tmp_path))
    memory.record("s", "user", "Where is it?")
    before = {path for path in list_files(tmp_path) if memory.home not in path.parents}

    with watched() as used:
        memory.index()
        memory.index(path=home / "all.backstory.jsonl")
        use_python(memory, name)
        use_commands(Shell(home, memory.home), name)
        for event in HOOKED:
            hooks.answer(event, "claude-code", a_payload(name))
        memory.work()

    made = {path for path in list_files(tmp_path) if memory.home not in path.parents}
    assert named(used) == []
    assert str(memory.home / "announced") in " ".join(used)
    assert made == before
    assert not [path for path in list_files(memory.home) if len(path.name) > 60]


def write_transcripts(home: Path, name: str) -> None:
    """Conversations in which every id is the name, also of results saved apart."""
    saved = f"<persisted-output>\nOutput too large. Full output saved to: {name}"
    notice = f"{saved}/tool-results/{name}\n"
    # JSON has no halves of characters.
    text = name.replace("\ud800", "\\ud800")
    append(
        session_file(home),
        a_line("One", uuid=text, session=text, cwd=text, parentUuid=text, slug=text),
        a_tool_result(notice.replace("\ud800", ""), uuid="u2", call=text),
    )
    log = Gemini()
    result = (
        "Output too large. Showing first 8,000 and last 32,000 characters. For full "
        f"output see: /x/tool-outputs/session-{text}/{text}\n"
    )
    append(
        log.file(home, "s3"),
        log.start(text),
        log.call("run_shell_command", text, command="cat"),
        log.result("run_shell_command", text, result),
    )
    line: Mapping[str, str] = {
        **dict.fromkeys(("session", "id", "project", "parent", "title", "host"), text),
        **dict.fromkeys(("tool_name", "call_id", "sent_at"), text),
        **{"role": "tool_result", "text": "Two"},
    }
    (home / "all.backstory.jsonl").write_bytes(orjson.dumps(line) + b"\n")


def use_python(memory: Memory, name: str) -> None:
    # Any: the values of a dict have one type for all of its keys.
    about: dict[str, Any] = {"project": name, "title": name, "parent": name}
    tool: dict[str, Any] = {"tool_name": name, "call_id": name}
    uses: tuple[Callable[[], object], ...] = (
        lambda: memory.record(name, "user", "It?", message=name, host=name, **about),
        lambda: memory.record("s", "tool_call", "x", **tool),
        lambda: memory.search("where is it", project=name),
        lambda: memory.search(name),
        lambda: memory.context(name, project=name),
        lambda: memory.session(name),
        lambda: list(memory.messages(name)),
        lambda: memory.live_run(name),
        lambda: memory.notebook.add_fact(name),
        lambda: [
            tool.call({"session": name, "query": name, "text": name, "date": name})
            for tool in memory.tools()
        ],
        lambda: memory.forget(name),
        lambda: memory.forget("s", messages=[name]),
        lambda: memory.forget(project=name),
        lambda: memory.forget(host=name),
        lambda: memory.forget(before=name),
        lambda: memory.forget(fact=name),
    )
    for use in uses:
        # It may be refused.
        with suppress(BackstoryError, TypeError):
            use()


def use_commands(shell: Shell, name: str) -> None:
    word = name.replace("\0", "").replace("\ud800", "")
    for command in (
        ("show", "--", word),
        ("search", "--project", word, "it"),
        ("forget", "--yes", "--", word),
        ("forget", "--yes", "--host", word),
        ("forget", "--yes", "--before", word),
        ("call", "read_session", orjson.dumps({"session": word}).decode()),
    ):
        shell.run("--set", "embedder.name=none", *command)


def a_payload(name: str) -> dict[str, str]:
    keys = ("session_id", "cwd", "prompt", "source", "reason", "trigger", "prompt_id")
    return dict.fromkeys(keys, name)
