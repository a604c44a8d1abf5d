"""Whatever a file says, it is the same after installing and uninstalling."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st

from backstory.errors import InstallRefused
from backstory.install.apply import Installation
from backstory.install.edits import (
    Default,
    EditRefused,
    HookEntry,
    JsonEdit,
    ServerEntry,
    TomlEdit,
)
from backstory.install.merge import undo_change
from backstory.install.record import InstallRecord
from tests.text.test_jsonc import OBJECTS, written

SERVER = {"command": "/bin/backstory", "args": ["mcp"]}
HOOK = {"hooks": [{"type": "command", "command": "/bin/backstory-hook prompt"}]}
PARTS = (
    Default("version", 1),
    ServerEntry(("a", "backstory"), SERVER),
    HookEntry(("b", "Start"), HOOK),
    HookEntry(("b", "End"), HOOK),
)
# What others change in between: a person, or the program itself.
CHANGES: dict[str, Callable[[str], str]] = {
    "nothing": lambda text: text,
    "a comment on top": lambda text: "// mine\n" + text,
    "a last line": lambda text: text + "\n",
    "both": lambda text: "/* mine */\n" + text + "\n// end\n",
}


def there_and_back(
    edit: Callable[[Path], JsonEdit | TomlEdit],
    text: str,
    change: Callable[[str], str] = str,
) -> tuple[str, str]:
    """The text in between, and at the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "settings")
        path.write_bytes(text.encode())
        installation = Installation(InstallRecord(Path(folder, "ours")), {})
        installation.install([edit(path)])
        between = path.read_bytes().decode()
        path.write_bytes(change(between).encode())
        installation.uninstall([edit(path)])
        assert sorted(Path(folder).iterdir()) == [path]
        return between, path.read_bytes().decode()


@given(st.data(), OBJECTS, st.sampled_from(sorted(CHANGES)))
def test_json_with_comments_is_the_same_afterwards(
    data: st.DataObject, value: dict[str, object], changed: str
) -> None:
    holders = (value.get("a", {}), value.get("b", {}))
    assume(all(isinstance(each, dict) for each in holders))
    text = data.draw(written(value))
    change = CHANGES[changed]

    between, after = there_and_back(lambda path: JsonEdit(path, PARTS), text, change)

    assert between != text
    assert after == change(text)


TOML_LINES = st.lists(
    st.sampled_from(
        [
            "# a comment",
            "",
            "[mcp_servers.docs]",
            "[[hooks]]",
            "[projects.'/x']",
            'k{} = "v"',
            "t{} = '''\n[mcp_servers.backstory]\n'''",
            "l{} = [\n  1, # one\n]",
        ]
    ),
    max_size=6,
)


def can_be_edited(edit: TomlEdit, text: str) -> bool:
    """Whether it is TOML at all: a table may be there twice."""
    try:
        edit.add(text)
    except EditRefused:
        return False
    return True


@given(TOML_LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_toml_is_the_same_afterwards(
    lines: list[str], newline: str, has_mark: bool, has_end: bool
) -> None:
    numbered = [line.format(number) for number, line in enumerate(lines)]
    text = "\n".join([*numbered, ""] if has_end else numbered).replace("\n", newline)
    text = ("\ufeff" if has_mark else "") + text
    edit = TomlEdit(Path("x"), ("mcp_servers", "backstory"), SERVER)
    assume(can_be_edited(edit, text))

    between, after = there_and_back(
        lambda path: TomlEdit(path, edit.table, SERVER), text
    )

    assert between != text
    assert after == text


@given(TOML_LINES)
def test_without_a_record_our_table_goes_from_toml_or_it_is_refused(
    lines: list[str],
) -> None:
    text = "\n".join(line.format(number) for number, line in enumerate(lines))
    edit = TomlEdit(Path("x"), ("mcp_servers", "backstory"), SERVER)
    assume(can_be_edited(edit, text))

    try:
        left = edit.strip(edit.add(text))
    except EditRefused as exc:
        left = text
        assert "cannot be removed" in str(exc)  # noqa: PT017 (it may not be raised)

    assert edit.read(left) == edit.read(text)


@given(*[st.lists(st.sampled_from("abcd\n"), max_size=12).map("".join)] * 3)
def test_undoing_never_loses_what_others_wrote(
    before: str, after: str, current: str
) -> None:
    assert undo_change(before, after, after) == before
    assert undo_change(before, before, current) == current
    undone = undo_change(before, after, current)
    assert undone is None or isinstance(undone, str)


def test_a_file_that_others_change_at_the_same_time_is_not_overwritten(
    tmp_path: Path,
) -> None:
    path = tmp_path / "settings"
    path.write_text("{}")

    class Late(JsonEdit):
        def add(self, text: str | None) -> str:
            made = JsonEdit.add(self, text)
            path.write_text('{"theirs": 1}')
            return made

    installation = Installation(InstallRecord(tmp_path / "ours"), {})
    reason = ""
    try:
        installation.install([Late(path, PARTS)])
    except InstallRefused as exc:
        reason = str(exc)

    assert reason == f"{path}: another program has just changed it"
    assert path.read_text() == '{"theirs": 1}'


def test_a_line_end_behind_a_file_on_one_line_changes_nothing_else() -> None:
    after = there_and_back(
        lambda path: JsonEdit(path, PARTS), "{ }", CHANGES["a last line"]
    )[1]

    assert after == "{ }\n"
