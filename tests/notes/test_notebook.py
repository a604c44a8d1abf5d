"""Notes on a real disk: nothing that was saved is lost, however many write or crash."""

import os
import random
import shutil
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from backstory.errors import (
    BadQuery,
    FactAmbiguous,
    FactNotFound,
    NotesConflict,
    SourceUnreadable,
    StoreFull,
    StoreUnwritable,
)
from backstory.memory import Memory
from backstory.notes.beginning import MAX_NOTE_BYTES
from backstory.notes.copies import MAX_BACKUPS
from backstory.notes.facts import list_facts
from backstory.notes.notebook import Notebook, NoteFile, NotesSummary
from backstory.system.files import swap
from tests.chance import examples, seeds
from tests.index_builders import found
from tests.ordinary_user import as_ordinary_user
from tests.processes import comes_true, end_of, in_child, kill_sometime

DAY = date(2026, 2, 28)


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(tmp_path / "home")


def put(notebook: Notebook, raw: bytes, name: str = "MEMORY.md") -> Path:
    """A file that a person wrote."""
    path = notebook.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return path


def facts_in(notebook: Notebook) -> list[str]:
    return [fact.text for fact in list_facts(notebook.read_memory())]


def names_in(notebook: Notebook) -> list[str]:
    return sorted(path.name for path in notebook.folder.iterdir())


# -- reading --------------------------------------------------------------------------


def test_nothing_is_there_at_first_and_looking_makes_nothing(
    notebook: Notebook, tmp_path: Path
) -> None:
    assert notebook.read_memory() == ""
    assert notebook.memory_stamp() == ""
    assert notebook.list_logs() == []
    assert notebook.read_log(DAY) is None
    assert list(notebook.iter_files()) == []
    assert notebook.summary() == NotesSummary(0, 0, 0, None, None, 0, {})
    assert list(tmp_path.iterdir()) == []


def test_files_are_read_as_they_are(notebook: Notebook) -> None:
    put(notebook, b"\xef\xbb\xbf## Notes\r\n- a\r\n## B\n- b\n- c")
    put(notebook, b"one\n", "daily/2026-02-28.md")
    put(notebook, b"two", "daily/2026-02-27.md")
    put(notebook, b"no log", "daily/2026-02-30.md")
    put(notebook, b"not searched", "other.md")

    assert notebook.read_memory() == "\ufeff## Notes\r\n- a\r\n## B\n- b\n- c"
    assert notebook.list_logs() == [date(2026, 2, 27), DAY]
    assert notebook.read_log(DAY) == "one\n"
    assert notebook.summary() == NotesSummary(
        files=3,
        size_bytes=37,
        logs=2,
        first_day=date(2026, 2, 27),
        last_day=DAY,
        memory_lines=5,
        facts={"Notes": 1, "B": 2},
    )
    assert [(file.name, file.raw) for file in notebook.iter_files()] == [
        ("MEMORY.md", b"\xef\xbb\xbf## Notes\r\n- a\r\n## B\n- b\n- c"),
        ("daily/2026-02-27.md", b"two"),
        ("daily/2026-02-28.md", b"one\n"),
    ]
    assert all(isinstance(file, NoteFile) for file in notebook.iter_files())


def test_the_stamp_tells_of_every_change(notebook: Notebook) -> None:
    put(notebook, b"a")
    before = notebook.memory_stamp()

    put(notebook, b"b")

    assert notebook.memory_stamp() not in ("", before)


# -- facts ----------------------------------------------------------------------------


def test_a_fact_is_added_once_and_nobody_else_may_read_it(notebook: Notebook) -> None:
    assert notebook.add_fact(" likes tea ", "Preferences") == "likes tea"
    assert notebook.add_fact("Likes tea.") is None

    assert notebook.memory_path.read_bytes() == (
        b"# Long-term Memory\n\n## Preferences\n- likes tea\n"
    )
    places = (notebook.folder.parent, notebook.folder, notebook.memory_path)
    modes = [stat.S_IMODE(place.stat().st_mode) for place in places]
    assert modes == [0o700, 0o700, 0o600]
    assert names_in(notebook) == ["MEMORY.md"]


def test_a_fact_is_changed_and_forgotten(notebook: Notebook) -> None:
    put(notebook, b"## A\r\n- likes tea\r\n  and jazz\r\n- b")

    assert notebook.update_fact("b", "has cats") == "has cats"
    assert notebook.forget_fact("likes tea") == "likes tea\nand jazz"
    assert notebook.update_fact("cats", "") == ""

    assert notebook.memory_path.read_bytes() == b"## A\r\n- has"


def test_what_cannot_be_meant_leaves_the_file_alone(notebook: Notebook) -> None:
    path = put(notebook, b"- a\n- b\n- a\n")
    before = path.stat()

    with pytest.raises(FactNotFound):
        notebook.forget_fact("c")
    with pytest.raises(FactAmbiguous):
        notebook.update_fact("a", "x")
    with pytest.raises(BadQuery):
        notebook.add_fact(" ")
    with pytest.raises(BadQuery):
        notebook.update_fact("b", "x" * 5_001)
    with pytest.raises(ZeroDivisionError):
        notebook.change_memory(lambda text: str(1 // 0))

    assert (path.stat(), path.read_bytes()) == (before, b"- a\n- b\n- a\n")


def test_secrets_are_masked_unless_a_person_wants_them(notebook: Notebook) -> None:
    secret = "password = hunter2x"

    assert notebook.add_fact(f"The {secret}") == "The password = [masked]"
    assert notebook.add_fact(f"Really, the {secret}", mask=False) == (
        f"Really, the {secret}"
    )
    notebook.add_fact("Likes tea")
    assert notebook.update_fact("Likes tea", secret) == "password = [masked]"
    notebook.append_log(DAY, f"Set the {secret}", "m")

    assert "hunter2x" not in (notebook.read_log(DAY) or "")


# -- whole texts ----------------------------------------------------------------------


def test_a_text_is_replaced_when_it_is_what_was_read(notebook: Notebook) -> None:
    put(notebook, b"old\r\n")

    notebook.replace_memory("new", "old\r\n")

    assert notebook.read_memory() == "new"
    assert names_in(notebook) == ["MEMORY.md"]


def test_a_text_that_was_changed_meanwhile_is_not_replaced(notebook: Notebook) -> None:
    put(notebook, b"theirs\n")

    with pytest.raises(
        NotesConflict, match=r"MEMORY\.md was changed by someone else in the meantime"
    ):
        notebook.replace_memory("mine", "old\n", keep_backup=True)

    assert notebook.read_memory() == "theirs\n"
    assert names_in(notebook) == ["MEMORY.md"]


def test_a_backup_is_named_after_the_time_of_its_text(notebook: Notebook) -> None:
    path = put(notebook, b"old\r\n")
    os.utime(path, (1_772_282_096, 1_772_282_096))

    notebook.replace_memory("new", "old\r\n", keep_backup=True)

    (backup,) = (notebook.folder / "backups").iterdir()
    assert (backup.name, backup.read_bytes()) == (
        "MEMORY-20260228-123456.md",
        b"old\r\n",
    )
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_the_last_backups_stay(notebook: Notebook) -> None:
    texts = [f"text {number}\n" for number in range(MAX_BACKUPS + 6)]
    put(notebook, texts[0].encode())

    for old, new in pairwise(texts):
        os.utime(notebook.memory_path, (1_772_282_096, 1_772_282_096))
        notebook.replace_memory(new, old, keep_backup=True)

    kept = {file.read_text() for file in (notebook.folder / "backups").iterdir()}
    assert kept == set(texts[5:-1])


def test_a_text_beside_is_kept_and_found_by_nobody(notebook: Notebook) -> None:
    one = notebook.write_aside("mine\r\n", "MEMORY-edited.md")
    two = notebook.write_aside("other", "MEMORY-edited.md")

    assert (one.name, one.read_bytes()) == ("MEMORY-edited-1.md", b"mine\r\n")
    assert (two.name, two.read_bytes()) == ("MEMORY-edited-2.md", b"other")
    assert list(notebook.iter_files()) == []


# -- daily logs -----------------------------------------------------------------------


def test_a_block_is_logged_once(notebook: Notebook) -> None:
    assert notebook.append_log(DAY, "did x", "m1")
    assert not notebook.append_log(DAY, "did x", "m1")
    assert notebook.append_log(DAY, "did y", "m2")

    path = notebook.folder / "daily" / "2026-02-28.md"
    assert path.read_bytes() == (
        b"# Daily Log - 2026-02-28\n\n<!-- backstory: m1 -->\ndid x\n\n---\n\n"
        b"<!-- backstory: m2 -->\ndid y\n"
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_log_that_a_person_edited_grows_at_its_end(notebook: Notebook) -> None:
    mine = "\ufeffmy own\r\n```\r\nopen".encode()
    path = put(notebook, mine, "daily/2026-02-28.md")

    notebook.append_log(DAY, "did x", "m1")

    assert path.read_bytes().startswith(mine + b"\r\n")
    assert path.read_bytes().endswith(b"<!-- backstory: m1 -->\r\ndid x\r\n")


# -- what a person does meanwhile -----------------------------------------------------


def test_a_change_is_made_again_when_somebody_saved_meanwhile(
    notebook: Notebook,
) -> None:
    path = put(notebook, b"- a\n")
    seen: list[str] = []

    def change(text: str) -> str:
        seen.append(text)
        if len(seen) == 1:
            path.write_bytes(b"- a\n- of a person\n")
        return text + "- b\n"

    assert notebook.change_memory(change) == "- a\n- of a person\n- b\n"
    assert seen == ["- a\n", "- a\n- of a person\n"]
    assert path.read_bytes() == b"- a\n- of a person\n- b\n"


def test_a_file_that_appears_or_goes_meanwhile_counts_as_well(
    notebook: Notebook,
) -> None:
    path = notebook.memory_path
    texts: list[str] = []

    def change(text: str) -> str:
        texts.append(text)
        if len(texts) == 1:
            path.write_text("- new\n")
        elif len(texts) == 2:
            path.unlink()
        return text + "- b\n"

    assert notebook.change_memory(change) == "- b\n"
    assert texts == ["", "- new\n", ""]
    assert names_in(notebook) == ["MEMORY.md"]


def test_who_saves_all_the_time_wins(notebook: Notebook) -> None:
    path = put(notebook, b"0")

    def change(text: str) -> str:
        path.write_text(f"{int(text) + 1}")
        return "mine"

    with pytest.raises(NotesConflict, match="somebody else keeps saving it"):
        notebook.change_memory(change)

    assert path.read_text() == "10"
    assert names_in(notebook) == ["MEMORY.md"]


@pytest.mark.parametrize("moment", ["before", "in the midst of it", "after"])
def test_what_is_saved_into_the_file_while_it_is_replaced_is_not_lost(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    path = put(notebook, b"- old\n")
    to_save = [b"- mine\n"]

    def save(descriptor: int) -> None:
        if to_save:
            os.pwrite(descriptor, to_save.pop(), 0)

    def swap_and_save(one: Path, other: Path) -> bool:
        # An editor may have the file open, and write into it when it is replaced.
        opened = os.open(path, os.O_WRONLY)
        if moment == "before":
            save(opened)
        is_done = swap(one, other)
        if moment == "in the midst of it":
            save(opened)
        os.close(opened)
        if moment == "after":
            path.write_bytes(to_save.pop())
        return is_done

    monkeypatch.setattr("backstory.notes.note_versions.swap", swap_and_save)
    notebook.add_fact("a fact")

    assert to_save == []
    assert "- mine" in notebook.read_memory()


def test_what_an_editor_saves_is_never_lost(notebook: Notebook) -> None:
    path = put(notebook, b"")
    is_over = threading.Event()

    def add_facts() -> None:
        number = 0
        while not is_over.is_set():
            # No editor saves as often as this one, so that the fact is refused.
            with suppress(NotesConflict):
                notebook.add_fact(f"fact number {number} of many")
            number += 1

    def is_in_memory(line: str) -> bool:
        return line in notebook.read_memory()

    adding = threading.Thread(target=add_facts)
    adding.start()
    lost = []
    for number in range(examples(30)):
        # Many write beside the file, and rename.
        made = path.with_name("editor.tmp")
        made.write_text(f"## Mine\n- saved {number}\n")
        made.replace(path)
        saved = f"- saved {number}"
        # Whoever is just adding a fact may have swapped the file, and puts it back.
        if not comes_true(partial(is_in_memory, saved)):
            lost.append(number)
    is_over.set()
    adding.join()

    assert lost == []


# -- several processes ----------------------------------------------------------------


def add_many(notebook: Notebook, name: str, count: int) -> None:
    for number in range(count):
        notebook.add_fact(f"{name} says {number}", name)
        notebook.append_log(DAY, f"{name} did {number}", f"{name}-{number}")


def test_two_processes_add_all_their_facts(notebook: Notebook) -> None:
    works = [partial(add_many, notebook, name, 30) for name in ("Ann", "Bob")]
    children = [in_child(work) for work in works]

    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    expected = [f"{name} says {n}" for name in ("Ann", "Bob") for n in range(30)]
    assert sorted(facts_in(notebook)) == sorted(expected)
    assert (notebook.read_log(DAY) or "").count("<!-- backstory: ") == 60
    assert names_in(notebook) == ["MEMORY.md", "daily"]


@pytest.mark.parametrize("seed", seeds(1, soaking=20))
def test_killing_at_any_moment_leaves_whole_files(
    notebook: Notebook, seed: int
) -> None:
    chance = random.Random(seed)
    notebook.add_fact("first of all")
    deaths = 0
    for attempt in range(12):
        work = partial(add_many, notebook, f"Run {attempt}", 40)
        deaths += kill_sometime(work, chance, attempt=attempt)
        text = notebook.read_memory()
        assert text.startswith("# Long-term Memory\n\n## Notes\n- first of all\n")
        assert text.endswith("\n")

    before = facts_in(notebook)
    notebook.add_fact("last of all")
    notebook.append_log(DAY, "last of all", "last")

    assert deaths > 0
    assert sorted(facts_in(notebook)) == sorted([*before, "last of all"])
    runs = [fact for fact in before if fact.startswith("Run 0 ")]
    assert runs == [f"Run 0 says {number}" for number in range(len(runs))]
    left = [*notebook.folder.rglob("*new"), *notebook.folder.rglob(".*")]
    assert left == []


# -- what the disk does ---------------------------------------------------------------


def test_permissions_and_links_within_the_folder_stay(notebook: Notebook) -> None:
    real = put(notebook, b"- a\n", "kept/real.md")
    real.chmod(0o640)
    notebook.memory_path.symlink_to("kept/real.md")

    notebook.add_fact("b")

    assert notebook.memory_path.is_symlink()
    assert real.read_text() == "- a\n\n## Notes\n- b\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(path.name for path in real.parent.iterdir()) == ["real.md"]


def test_a_link_to_a_file_that_is_yet_to_come_is_written_through(
    notebook: Notebook,
) -> None:
    notebook.folder.mkdir(parents=True)
    notebook.memory_path.symlink_to("real.md")

    notebook.add_fact("b")

    assert (notebook.folder / "real.md").is_file()
    assert notebook.memory_path.is_symlink()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_out_of_the_folder_is_refused(
    notebook: Notebook, tmp_path: Path, is_there: bool
) -> None:
    outside = tmp_path / "outside.md"
    if is_there:
        outside.write_text("- secret\n")
    notebook.folder.mkdir(parents=True)
    notebook.memory_path.symlink_to(outside)

    with pytest.raises(SourceUnreadable, match="a symbolic link that leads out of"):
        notebook.add_fact("b")
    with pytest.raises(SourceUnreadable, match="a symbolic link that leads out of"):
        notebook.read_memory()

    assert outside.exists() == is_there


def test_a_whole_folder_may_be_a_link(notebook: Notebook, tmp_path: Path) -> None:
    synced = tmp_path / "synced"
    synced.mkdir()
    notebook.folder.parent.mkdir()
    notebook.folder.symlink_to(synced)

    notebook.add_fact("b")

    assert (synced / "MEMORY.md").is_file()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"ok\n\xff\n", "byte 3 is not UTF-8"),
        (b"x" * (MAX_NOTE_BYTES + 1), "2,000,001 bytes; a note may have at most"),
    ],
    ids=["not UTF-8", "too large"],
)
def test_what_is_no_note_is_not_overwritten(
    notebook: Notebook, raw: bytes, reason: str
) -> None:
    path = put(notebook, raw)
    log = put(notebook, raw, "daily/2026-02-28.md")

    with pytest.raises(SourceUnreadable, match=reason):
        notebook.add_fact("b")
    with pytest.raises(SourceUnreadable, match=reason):
        notebook.append_log(DAY, "b", "m")

    assert (path.read_bytes(), log.read_bytes()) == (raw, raw)


def test_a_note_does_not_grow_too_large(notebook: Notebook) -> None:
    path = put(notebook, b"x" * MAX_NOTE_BYTES)

    with pytest.raises(SourceUnreadable, match="a note may have at most 2,000,000"):
        notebook.add_fact("b")

    assert path.stat().st_size == MAX_NOTE_BYTES
    assert names_in(notebook) == ["MEMORY.md"]


def test_a_folder_or_a_pipe_of_that_name_is_no_note(notebook: Notebook) -> None:
    notebook.memory_path.mkdir(parents=True)
    os.mkfifo(notebook.folder / "pipe")
    with pytest.raises(SourceUnreadable, match=r"MEMORY\.md: not a file"):
        notebook.add_fact("b")

    notebook.memory_path.rmdir()
    notebook.memory_path.symlink_to("pipe")

    with pytest.raises(SourceUnreadable, match=r"MEMORY\.md: not a file"):
        notebook.add_fact("b")


def test_links_in_a_circle_are_said_so(notebook: Notebook) -> None:
    notebook.folder.mkdir(parents=True)
    notebook.memory_path.symlink_to("MEMORY.md")

    with pytest.raises(SourceUnreadable, match=r"MEMORY\.md: Too many levels"):
        notebook.add_fact("b")


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_may_not_be_written_is_said_so(notebook: Notebook, what: str) -> None:
    path = put(notebook, b"- a\n")
    notebook.add_fact("before")
    before = path.read_bytes()
    closed = path.parent if what == "folder" else path
    closed.chmod(0o500)

    with (
        as_ordinary_user(),
        pytest.raises(StoreUnwritable, match=r"MEMORY\.md: Permission denied"),
    ):
        notebook.add_fact("b")

    closed.chmod(0o700)
    assert path.read_bytes() == before
    assert names_in(notebook) == ["MEMORY.md"]


def test_what_may_not_be_read_is_said_so(notebook: Notebook) -> None:
    put(notebook, b"- a\n").chmod(0)

    with (
        as_ordinary_user(),
        pytest.raises(SourceUnreadable, match=r"MEMORY\.md: Permission denied"),
    ):
        notebook.read_memory()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own with hardly any room."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount a disk")
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_said_so_and_nothing_is_lost(small_disk: Path) -> None:
    notebook = Notebook(small_disk)
    notebook.add_fact("first")
    put(notebook, b"- a\n" + b"x" * 50_000, "MEMORY.md")
    before = notebook.memory_path.read_bytes()
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 170_000)

    with pytest.raises(StoreFull, match=r"MEMORY\.md: No space left on device"):
        notebook.add_fact("b")

    assert notebook.memory_path.read_bytes() == before
    assert names_in(notebook) == ["MEMORY.md"]
    filler.unlink()
    assert notebook.add_fact("b") == "b"


def test_what_was_saved_just_before_a_crash_is_put_back(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(notebook, b"- a\n")

    def save_swap_and_die(one: Path, other: Path) -> bool:
        path.write_text("- a\n- mine\n")
        assert swap(one, other)
        os._exit(0)

    def add() -> None:
        monkeypatch.setattr("backstory.notes.note_versions.swap", save_swap_and_die)
        notebook.add_fact("never confirmed")

    assert end_of(in_child(add)) == "well"
    assert path.read_text() == "- a\n\n## Notes\n- never confirmed\n"
    notebook.add_fact("b")

    assert path.read_text() == "- a\n- mine\n\n## Notes\n- b\n"
    assert names_in(notebook) == ["MEMORY.md"]


def test_what_a_crash_left_is_swept_away(notebook: Notebook) -> None:
    put(notebook, b"half", ".MEMORY.md.backstory-new")
    put(notebook, b"mine", ".mine")

    notebook.add_fact("b")

    assert names_in(notebook) == [".mine", "MEMORY.md"]


# -- merging --------------------------------------------------------------------------


def test_other_notes_are_merged(notebook: Notebook) -> None:
    put(notebook, b"## A\n- a\n")
    notebook.append_log(DAY, "x", "m1")

    assert notebook.merge_memory("## A\n- A.\n- b\n") == 1
    assert notebook.merge_log(DAY, "<!-- backstory: m1 -->\nx\n\n---\n\nmine\n") == 1
    assert notebook.merge_log(date(2026, 3, 1), "new\n") == 1

    assert notebook.read_memory() == "## A\n- a\n- b\n"
    assert notebook.list_logs() == [DAY, date(2026, 3, 1)]


# -- and the search -------------------------------------------------------------------


def test_what_is_noted_is_found_at_once_and_what_is_forgotten_is_not(
    memory: Memory,
) -> None:
    memory.index()
    memory.notebook.add_fact("The rabbit is called Klopfer", "Pets")
    memory.notebook.append_log(DAY, "## Atlas\n- chose Postgres", "m1")

    assert found(memory, "rabbit Klopfer") == ["The rabbit is called Klopfer"]
    assert found(memory, "chose Postgres") == ["chose Postgres"]

    path = memory.notebook.memory_path
    path.write_text(path.read_text().replace("Klopfer", "Hasi"))
    assert found(memory, "Hasi") == ["The rabbit is called Hasi"]

    memory.notebook.forget_fact("Hasi")
    assert found(memory, "rabbit") == []
