"""An export: what is in its folder, and how it is brought up to date."""

import hashlib
import os
import re
import stat
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from backstory import (
    BadQuery,
    ExportReport,
    Memory,
    StoreUnwritable,
    UnknownName,
)
from tests.exports.homes import DAY, NOON, data_file, files_in, fill
from tests.samples import a_memory
from tests.shell import Shell

KEY = "sk-ant-api03-" + "a1B2" * 20


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Memory]:
    with a_memory(tmp_path) as memory:
        fill(memory)
        yield memory


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def exported(out: Path) -> list[str]:
    """The conversations in an export, by their ids."""
    manifest = orjson.loads((out / "manifest.json").read_bytes())
    return sorted(each["session"] for each in manifest["conversations"])


# -- what is in it --------------------------------------------------------------------


def test_the_folder_has_conversations_to_read_and_the_notes(
    filled: Memory, out: Path
) -> None:
    report = filled.export(out)

    (markdown,) = out.glob("conversations/2026-02/2026-02-20-the-ladder-*.md")
    assert data_file(out, "the-ladder").stem.startswith(markdown.stem)
    assert markdown.read_text().split("\n\n", 2)[2] == (
        "What was said is quoted with `>` or in a code block. Long output of tools is "
        "cut; the `.jsonl` file beside this one has all of it.\n"
        "\n"
        "## User · 2026-02-20 12:00 UTC\n"
        "\n"
        "> Where did we put the ladder?\n"
        "\n"
        "### Assistant · 12:00\n"
        "\n"
        "> Below the stairs.\n"
    )
    assert (out / "notes/MEMORY.md").read_text() == filled.notebook.read_memory()
    assert (out / f"notes/daily/{DAY}.md").read_text() == filled.notebook.read_log(DAY)
    assert report == ExportReport(
        out,
        sessions=3,
        messages=4,
        has_memory=True,
        daily_logs=1,
        written=11,
        size_bytes=report.size_bytes,
    )


def test_the_manifest_has_the_hash_of_every_file(filled: Memory, out: Path) -> None:
    filled.export(out)

    files = files_in(out)
    manifest = orjson.loads(files.pop("manifest.json"))
    assert (manifest["format"], manifest["version"], manifest["complete"]) == (
        "backstory-export",
        1,
        True,
    )
    assert (manifest["sessions"], manifest["messages"]) == (3, 4)
    assert manifest["files"] == {
        name: {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
        for name, raw in files.items()
    }


def test_the_list_has_the_newest_day_first_and_each_day_by_name(
    tmp_path: Path, out: Path
) -> None:
    with a_memory(tmp_path) as memory:
        for title, sent_at in [
            ("Bolts", NOON),
            ("Apples", NOON),
            ("Old", NOON - timedelta(days=60)),
            ("New", NOON + timedelta(days=1)),
        ]:
            memory.record(title, "user", title, sent_at=sent_at)
        memory.export(out)

    listed = re.findall(r"^- \[(.*?)\]", (out / "README.md").read_text(), re.MULTILINE)
    assert listed == ["New", "Apples", "Bolts", "Old"]


def test_only_its_owner_may_read_it(filled: Memory, out: Path) -> None:
    before = os.umask(0)
    try:
        filled.export(out)
        filled.export(out.with_suffix(".zip"))
    finally:
        os.umask(before)

    modes = {
        (each.is_dir(), stat.S_IMODE(each.stat().st_mode))
        for each in [out, *out.rglob("*"), out.with_suffix(".zip")]
    }
    assert modes == {(True, 0o700), (False, 0o600)}


@pytest.mark.parametrize(
    ("what", "sessions", "has_notes"),
    [
        ({}, ["paint", "trip", "trip/helper"], True),
        ({"only": "conversations"}, ["paint", "trip", "trip/helper"], False),
        ({"only": "notes"}, [], True),
        ({"sessions": "trip"}, ["trip", "trip/helper"], False),
        ({"sessions": ["other/paint"]}, ["paint"], False),
        ({"host": "other"}, ["paint"], False),
        ({"project": "barn"}, ["trip"], False),
        ({"since": "2026-02-20", "until": "2026-02-20"}, None, False),
    ],
    ids=str,
)
def test_what_is_exported_can_be_chosen(
    filled: Memory,
    out: Path,
    what: dict[str, str],
    sessions: list[str] | None,
    has_notes: bool,
) -> None:
    filled.export(out, **what)  # type: ignore[arg-type]

    assert exported(out) == (sessions if sessions is not None else exported(out))
    assert (out / "notes").exists() == has_notes


@pytest.mark.parametrize(
    "what", [{"since": "2026-02-21"}, {"until": "2026-02-19"}], ids=str
)
def test_without_anything_to_export_nothing_is_written(
    filled: Memory, out: Path, what: dict[str, str]
) -> None:
    assert filled.export(out, **what).is_empty  # type: ignore[arg-type]
    assert not out.exists()


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ({"sessions": "nowhere"}, UnknownName),
        ({"host": "nobody"}, UnknownName),
        ({"sessions": "trip", "host": "other"}, BadQuery),
        ({"only": "notes", "host": "other"}, BadQuery),
        ({"only": "facts"}, BadQuery),
        ({"since": "2026-02-20", "until": "2026-02-19"}, BadQuery),
    ],
    ids=str,
)
def test_what_there_is_not_is_refused_before_anything_is_written(
    filled: Memory, out: Path, what: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        filled.export(out, **what)  # type: ignore[arg-type]

    assert not out.exists()


def test_secrets_are_kept_for_oneself_and_masked_for_others(
    filled: Memory, out: Path
) -> None:
    secret = f"the key is {KEY}, <private>hush</private>"
    filled.record("key", "user", f"The key is {KEY}", title=f"A key {KEY}")
    filled.notebook.change_memory(lambda text: f"{text}\n- {secret}\n")

    filled.export(out)
    filled.export(out.with_name("shared"), mask_secrets=True)

    assert KEY in repr(files_in(out))
    shared = repr(files_in(out.with_name("shared")))
    assert (KEY in shared, "hush" in shared, KEY[-12:] in shared) == (False,) * 3


# -- bringing it up to date -----------------------------------------------------------


def test_exporting_again_writes_only_what_changed(filled: Memory, out: Path) -> None:
    filled.export(out)
    before = {each: each.stat().st_ino for each in out.rglob("*") if each.is_file()}
    filled.record("paint", "user", "Twice.", host="other", sent_at=NOON, message="p2")

    report = filled.export(out)

    changed = {
        each.name for each, inode in before.items() if each.stat().st_ino != inode
    }
    paint = data_file(out, "fence").name
    assert changed == {
        paint,
        paint.replace(".backstory.jsonl", ".md"),
        "README.md",
        "manifest.json",
    }
    assert (report.written, report.unchanged, report.deleted) == (3, 8, 0)


def test_an_unchanged_export_stays_as_it_is_byte_for_byte(
    filled: Memory, out: Path
) -> None:
    filled.export(out)
    before = files_in(out)

    report = filled.export(out)

    assert report.written == 0
    assert files_in(out) == before


def test_a_conversation_with_another_title_has_its_old_files_replaced(
    filled: Memory, out: Path
) -> None:
    filled.export(out)
    filled.record("trip", "user", "More", title="A new title", message="m3")

    filled.export(out)

    assert list(out.glob("conversations/*/*the-ladder*")) == []
    assert len(list(out.glob("conversations/*/*a-new-title*"))) == 2


def test_what_is_not_exported_again_stays_unless_it_is_to_be_deleted(
    filled: Memory, out: Path
) -> None:
    filled.export(out)
    filled.forget("trip")

    kept = filled.export(out)
    assert exported(out) == ["paint", "trip", "trip/helper"]
    assert kept.kept_sessions == 2

    mirrored = filled.export(out, delete=True)
    assert exported(out) == ["paint"]
    assert (mirrored.kept_sessions, mirrored.deleted) == (0, 4)
    assert len(files_in(out)) == 8


def test_parts_can_be_added_one_by_one(filled: Memory, out: Path) -> None:
    filled.export(out, "trip")
    filled.export(out, host="other")
    filled.export(out, only="notes")
    filled.export(out.with_name("whole"))

    assert files_in(out) == files_in(out.with_name("whole"))


def test_a_file_in_the_place_of_the_folder_is_refused(
    filled: Memory, tmp_path: Path
) -> None:
    file = tmp_path / "thesis.txt"
    file.write_text("mine")

    with pytest.raises(StoreUnwritable) as raised:
        filled.export(file, force=True)

    assert (str(raised.value), raised.value.hint) == (
        f"{file}: a file, not a folder",
        "choose a folder, or a name that ends in .zip",
    )
    assert file.read_text() == "mine"


def test_files_of_others_are_never_overwritten(filled: Memory, out: Path) -> None:
    out.mkdir()
    (out / "thesis.txt").write_text("mine")

    with pytest.raises(StoreUnwritable, match="other files in it"):
        filled.export(out)
    with pytest.raises(StoreUnwritable, match="other files in it"):
        filled.export(out, force=True)

    assert files_in(out) == {"thesis.txt": b"mine"}


def test_a_folder_of_git_can_have_an_export(filled: Memory, out: Path) -> None:
    (out / ".git").mkdir(parents=True)
    (out / ".git/config").write_text("mine")
    (out / ".gitattributes").write_text("mine")

    filled.export(out)
    (out / "TODO.txt").write_text("mine")
    filled.export(out, delete=True)

    files = files_in(out)
    own = (".git/config", ".gitattributes", "TODO.txt")
    assert [files[name] for name in own] == [b"mine"] * 3


def test_what_somebody_changed_is_only_overwritten_by_force(
    filled: Memory, out: Path
) -> None:
    filled.export(out)
    sound = files_in(out)
    (out / "notes/MEMORY.md").write_text("my own words")

    with pytest.raises(StoreUnwritable, match=r"changed since.*: notes/MEMORY\.md"):
        filled.export(out)
    assert (out / "notes/MEMORY.md").read_text() == "my own words"

    filled.export(out, force=True)
    assert files_in(out) == sound


def test_what_somebody_deleted_is_written_again(filled: Memory, out: Path) -> None:
    filled.export(out)
    sound = files_in(out)
    data_file(out, "the-ladder").unlink()

    filled.export(out)

    assert files_in(out) == sound


def test_nothing_is_written_or_deleted_where_a_foreign_manifest_says(
    filled: Memory, out: Path, tmp_path: Path
) -> None:
    filled.export(out)
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    manifest = orjson.loads((out / "manifest.json").read_bytes())
    entry = {"bytes": 4, "sha256": hashlib.sha256(b"mine").hexdigest()}
    for name in ("../victim.txt", str(victim), "notes/../../victim.txt"):
        manifest["files"][name] = entry
    (out / "manifest.json").write_bytes(orjson.dumps(manifest))

    filled.export(out, delete=True, force=True)

    assert victim.read_text() == "mine"


@pytest.mark.parametrize("name", ["notes", "conversations", "notes/MEMORY.md"])
def test_no_link_leads_an_export_elsewhere(
    filled: Memory, out: Path, tmp_path: Path, name: str
) -> None:
    filled.export(out)
    elsewhere = tmp_path / "elsewhere"
    (out / name).rename(elsewhere)
    (out / name).symlink_to(elsewhere)

    with pytest.raises(StoreUnwritable, match="a link"):
        filled.export(out, force=True)


def test_masked_and_whole_exports_are_not_mixed(filled: Memory, out: Path) -> None:
    filled.export(out, mask_secrets=True)
    before = files_in(out)

    with pytest.raises(StoreUnwritable, match="the secrets in this export are masked"):
        filled.export(out)

    assert files_in(out) == before


def test_a_zip_file_is_only_replaced_by_force(filled: Memory, tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    file.write_text("mine")

    with pytest.raises(StoreUnwritable, match="this file exists already"):
        filled.export(file)
    assert file.read_text() == "mine"

    filled.export(file, force=True)
    assert "manifest.json" in zipfile.ZipFile(file).namelist()


def test_a_stopped_export_does_not_pass_for_one(
    filled: Memory, out: Path, tmp_path: Path
) -> None:
    class Stopped(BaseException):
        pass

    def stop(done: int, total: int) -> None:
        if done == 1:
            raise Stopped

    with pytest.raises(Stopped):
        filled.export(out, on_count=stop)
    with pytest.raises(Stopped):
        filled.export(tmp_path / "a.zip", on_count=stop)

    manifest = orjson.loads((out / "manifest.json").read_bytes())
    assert manifest["complete"] is False
    assert list(tmp_path.glob("*.zip")) + list(tmp_path.glob(".*")) == []
    filled.export(out)
    filled.export(tmp_path / "whole")
    assert files_in(out) == files_in(tmp_path / "whole")


# -- the command ----------------------------------------------------------------------


def test_the_command_says_what_was_exported(
    filled: Memory, tmp_path: Path, home: Path
) -> None:
    shell = Shell(home, filled.home)

    first = shell.out("export", str(home / "out"))
    again = shell.out("export", str(home / "out"), "trip")
    masked = shell.out("export", str(home / "a.zip"), "trip", "--mask-secrets")

    size = sum(map(len, files_in(home / "out").values()))
    manifest = (home / "out/manifest.json").stat().st_size
    assert first == (
        "Exported 4 messages of 3 sessions, MEMORY.md and 1 daily log to ~/out "
        f"({(size - manifest) / 1000:.1f} KB).\n"
        "Secrets in it are not masked; to share it, export with --mask-secrets.\n"
    )
    assert again.split("\n")[1:3] == [
        "Files: 0 written, 6 unchanged.",
        "1 session of earlier exports stayed there; --delete removes them.",
    ]
    assert masked.split("\n")[1] == (
        "Secrets that were recognized are masked; read it before you share it."
    )


def test_the_command_says_that_there_is_nothing(tmp_path: Path, home: Path) -> None:
    shell = Shell(home, tmp_path / "empty")

    done = shell.run("export", str(tmp_path / "out"))

    assert (done.returncode, done.stdout) == (
        1,
        "There is nothing to export; nothing was written.\n",
    )
