"""Exports and imports that are killed, run out of room, or run side by side."""

import random
from functools import partial
from pathlib import Path

import orjson
import pytest

from backstory import SourceUnreadable, StoreFull
from tests.chance import seeds
from tests.exports.homes import NOON, files_in, fill, held_by
from tests.processes import end_of, in_child, kill_sometime
from tests.samples import a_memory
from tests.small_disks import make_room, small_disk


def export_once(folder: Path, out: Path) -> None:
    with a_memory(folder) as memory:
        memory.export(out)


def import_once(folder: Path, out: Path) -> None:
    with a_memory(folder) as memory:
        memory.import_export(out)


def is_complete(out: Path) -> bool:
    file = out / "manifest.json"
    return file.exists() and orjson.loads(file.read_bytes())["complete"]


@pytest.mark.parametrize("seed", seeds(1, soaking=10))
def test_a_killed_export_never_passes_for_one_and_the_next_completes_it(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    out = tmp_path / "out"
    with a_memory(tmp_path / "one") as memory:
        fill(memory)
        memory.export(tmp_path / "whole")
    whole = files_in(tmp_path / "whole")

    deaths = 0
    while kill_sometime(
        partial(export_once, tmp_path / "one", out), chance, attempt=deaths
    ):
        deaths += 1
        if is_complete(out):
            # Killed after its last write.
            assert files_in(out) == whole
        elif out.exists():
            with (
                a_memory(tmp_path / "two") as two,
                pytest.raises(SourceUnreadable, match=r"not complete|no manifest"),
            ):
                two.import_export(out, skip_damaged=True)

    assert deaths > 0
    assert files_in(out) == whole


@pytest.mark.parametrize("seed", seeds(1, soaking=10))
def test_an_import_that_is_killed_again_and_again_gives_the_same_as_one(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    with a_memory(tmp_path / "one") as one:
        fill(one)
        for number in range(20):
            one.record("long", "user", f"Message {number}", sent_at=NOON)
        one.export(tmp_path / "out")
    with a_memory(tmp_path / "clean") as clean:
        clean.import_export(tmp_path / "out")
        expected = held_by(clean)

    deaths = 0
    work = partial(import_once, tmp_path / "killed", tmp_path / "out")
    while kill_sometime(work, chance, attempt=deaths):
        deaths += 1

    assert deaths > 0
    with a_memory(tmp_path / "killed") as killed:
        assert held_by(killed) == expected
        assert killed._parts.history.verify() == []


def test_a_full_disk_leaves_no_export_and_the_next_completes_it(
    tmp_path: Path,
) -> None:
    with (
        small_disk(tmp_path / "disk", size="300k") as disk,
        a_memory(tmp_path / "one") as memory,
    ):
        fill(memory)
        chance = random.Random(7)
        for number in range(40):
            memory.record(f"big {number}", "user", chance.randbytes(6_000).hex())

        for name in ("out", "out.zip"):
            with pytest.raises(StoreFull):
                memory.export(disk / name)
        assert not is_complete(disk / "out")
        assert not (disk / "out.zip").exists()

        make_room(disk)
        memory.export(disk / "out")
        memory.export(tmp_path / "whole")
        assert files_in(disk / "out") == files_in(tmp_path / "whole")


def test_two_processes_that_export_to_one_folder_take_turns(tmp_path: Path) -> None:
    with a_memory(tmp_path / "one") as memory:
        fill(memory)
        memory.export(tmp_path / "whole")

    work = partial(export_once, tmp_path / "one", tmp_path / "out")
    children = [in_child(work) for _ in range(3)]

    assert [end_of(child) for child in children] == ["well"] * 3
    assert files_in(tmp_path / "out") == files_in(tmp_path / "whole")


def test_two_processes_that_import_the_same_add_it_once(tmp_path: Path) -> None:
    with a_memory(tmp_path / "one") as one:
        fill(one)
        one.export(tmp_path / "out")
        expected = held_by(one)
    with a_memory(tmp_path / "two"):
        pass

    work = partial(import_once, tmp_path / "two", tmp_path / "out")
    children = [in_child(work) for _ in range(3)]

    assert [end_of(child) for child in children] == ["well"] * 3
    with a_memory(tmp_path / "two") as two:
        assert held_by(two) == expected
