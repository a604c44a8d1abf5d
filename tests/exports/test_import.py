"""Importing: what is new is added once, whatever the export is like."""

import hashlib
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from backstory import ImportReport, Memory, Problem, SourceUnreadable
from backstory.values.structs import replace
from tests.exports.homes import (
    DAY,
    NOON,
    conversations_of,
    data_file,
    fill,
    held_by,
    texts_of,
)
from tests.samples import a_memory
from tests.shell import Shell


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An export of the memory that is tested most."""
    with a_memory(tmp_path / "one") as memory:
        fill(memory)
        memory.export(tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Memory]:
    """Another memory, which is empty."""
    with a_memory(tmp_path / "two") as memory:
        yield memory


def seal(out: Path) -> None:
    """Write the hashes of the files as they are now, as whoever made them would."""
    file = out / "manifest.json"
    manifest = orjson.loads(file.read_bytes())
    for each in out.rglob("*"):
        name = each.relative_to(out).as_posix()
        if each.is_file() and name != "manifest.json":
            raw = each.read_bytes()
            sha256 = hashlib.sha256(raw).hexdigest()
            manifest["files"][name] = {"bytes": len(raw), "sha256": sha256}
    file.write_bytes(orjson.dumps(manifest))


def change_manifest(out: Path, **fields: object) -> None:
    file = out / "manifest.json"
    file.write_bytes(orjson.dumps(orjson.loads(file.read_bytes()) | fields))


# -- what is new ----------------------------------------------------------------------


def test_everything_is_new_in_an_empty_home_and_nothing_the_second_time(
    out: Path, two: Memory
) -> None:
    first = two.import_export(out)
    held = held_by(two)
    second = two.import_export(out)

    assert first == ImportReport(
        out,
        sessions=3,
        changed_sessions=3,
        new_sessions=3,
        new_messages=4,
        memory_blocks=1,
        log_blocks=1,
        logs=1,
    )
    assert second == ImportReport(out, sessions=3, known_messages=4)
    assert held_by(two) == held
    assert two._parts.history.verify() == []


def test_a_dry_run_tells_the_same_and_changes_nothing(out: Path, two: Memory) -> None:
    before = held_by(two)

    preview = two.import_export(out, dry_run=True)

    assert held_by(two) == before
    done = two.import_export(out)
    assert preview == replace(done, is_dry_run=True)


def test_what_is_here_stays_and_what_is_missing_is_added(
    out: Path, two: Memory
) -> None:
    two.record("trip", "user", "Said here", message="m1", title="Ours", sent_at=NOON)
    two.record("trip", "user", "Only here", message="m9", sent_at=NOON)
    two.notebook.add_fact("Has a saw", "Tools")
    two.notebook.append_log(DAY, "- Sawed", "log-9")

    report = two.import_export(out)

    assert (report.new_messages, report.known_messages) == (3, 1)
    assert (report.changed_sessions, report.new_sessions) == (3, 2)
    assert [m.text for m in two.messages("trip")] == [
        "Said here",
        "Only here",
        "Below the stairs.",
    ]
    assert two.session("trip").title == "Ours"
    assert two.notebook.read_memory() == (
        "# Long-term Memory\n\n## Tools\n- Has a saw\n- Has a ladder\n"
    )
    log = two.notebook.read_log(DAY) or ""
    assert ("- Sawed" in log, "- Looked for the ladder" in log) == (True, True)


@pytest.mark.parametrize(
    ("only", "sessions", "memory"),
    [("conversations", 3, ""), ("notes", 0, "# Long-term Memory")],
)
def test_only_conversations_or_only_notes_can_be_imported(
    out: Path, two: Memory, only: str, sessions: int, memory: str
) -> None:
    report = two.import_export(out, only=only)

    assert report.is_change
    assert (len(two.sessions()), two.notebook.read_memory()[:18]) == (sessions, memory)


def test_what_is_imported_is_found(out: Path, two: Memory) -> None:
    two.import_export(out)

    hits = two.search("where is the ladder").hits

    assert any("Where did we put the ladder?" in hit.text for hit in hits)


def test_a_fact_of_ones_own_does_not_become_one_of_an_agent(
    out: Path, two: Memory
) -> None:
    two.notebook.add_fact("Has a ladder", "Tools")

    two.import_export(out)

    assert two.notebook.read_origins() == {}


# -- what must not return -------------------------------------------------------------


def test_what_was_forgotten_here_does_not_return_unless_it_is_undone(
    out: Path, two: Memory
) -> None:
    two.import_export(out)
    session = two.forget("paint").forgetting
    message = two.forget("trip", messages="m2").forgetting
    fact = two.forget(fact="Has a ladder").forgetting

    again = two.import_export(out)

    assert texts_of(two) == ["Look for it.", "Where did we put the ladder?"]
    assert (again.forgotten_messages, again.known_messages) == (2, 2)
    assert not again.is_change
    assert "ladder" not in two.notebook.read_memory()
    assert two.import_export(out, dry_run=True).forgotten_messages == 2

    for each in filter(None, (session, message, fact)):
        two.undo_forget(each.forgetting_id)
    undone = two.import_export(out)
    assert (undone.new_messages, undone.memory_blocks) == (2, 1)
    assert len(texts_of(two)) == 4


def test_what_turned_out_to_be_private_here_stays_hidden(
    out: Path, two: Memory
) -> None:
    data = data_file(out, "the-ladder")
    data.write_bytes(
        data.read_bytes().replace(b"Below", b"<private>Below the</private>")
    )
    seal(out)

    two.import_export(out)

    assert "[private] the stairs." in texts_of(two)


def test_what_the_settings_exclude_is_left_out(out: Path, tmp_path: Path) -> None:
    settings = ("exclude.folders=/home/dev/barn",)
    with a_memory(tmp_path / "two", settings=settings) as two:
        report = two.import_export(out)

        assert report.excluded_sessions == 1
        assert texts_of(two) == ["Look for it.", "The fence is green."]


# -- what is not as it was exported ---------------------------------------------------


def _change(out: Path) -> str:
    file = out / "notes/MEMORY.md"
    file.write_bytes(file.read_bytes() + b"- one more\n")
    return "notes/MEMORY.md: changed since it was exported"


def _cut_off(out: Path) -> str:
    file = data_file(out, "the-ladder")
    file.write_bytes(file.read_bytes()[:-10])
    return f"{file.relative_to(out)}: changed since it was exported"


def _remove(out: Path) -> str:
    file = out / f"notes/daily/{DAY}.md"
    file.unlink()
    return f"notes/daily/{DAY}.md: missing"


def _link(out: Path) -> str:
    file = data_file(out, "fence")
    secret = out.parent / "secret"
    shutil.move(file, secret)
    file.symlink_to(secret)
    return f"{file.relative_to(out)}: missing"


def _pipe(out: Path) -> str:
    file = data_file(out, "fence")
    file.unlink()
    os.mkfifo(file)
    return f"{file.relative_to(out)}: missing"


@pytest.mark.parametrize(
    "damage", [_change, _cut_off, _remove, _link, _pipe], ids=lambda each: each.__name__
)
def test_a_damaged_export_is_refused_whole_or_imported_but_for_that(
    out: Path, two: Memory, damage: Callable[[Path], str]
) -> None:
    what = damage(out)

    with pytest.raises(SourceUnreadable) as refused:
        two.import_export(out)
    assert str(refused.value) == f"{out}: not as it was exported: {what}"
    assert (two.sessions(), two.notebook.read_memory()) == ([], "")

    report = two.import_export(out, skip_damaged=True)
    assert [str(each) for each in report.damaged] == [what]
    assert report.is_change


def test_files_that_are_not_part_of_it_are_named_and_not_read(
    out: Path, two: Memory
) -> None:
    data = data_file(out, "fence")
    extra = data.with_name("2026-02-20-forged-0000000000.backstory.jsonl")
    extra.write_bytes(data.read_bytes().replace(b'"paint"', b'"forged"'))
    (data.parent / ".DS_Store").write_text("x")

    report = two.import_export(out)

    assert report.extra == (extra.relative_to(out).as_posix(),)
    assert len(two.sessions()) == 3


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (
            {"version": 2},
            "version 2 of the export format; this Backstory reads",
        ),
        ({"format": "other"}, "not the manifest of a Backstory export"),
        ({"complete": False}, "the export was interrupted and is not complete"),
        ({"files": []}, "not as an export writes it"),
        ({"files": {"x": {"bytes": -1, "sha256": "a"}}}, "not as an export writes it"),
        ({"conversations": [1]}, "not as an export writes it"),
    ],
    ids=str,
)
def test_what_is_no_export_is_refused(
    out: Path, two: Memory, fields: dict[str, object], why: str
) -> None:
    change_manifest(out, **fields)

    with pytest.raises(SourceUnreadable, match=why):
        two.import_export(out, skip_damaged=True)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{" * 100_000, b"\xff\xfe", b"null"])
def test_a_manifest_of_garbage_is_refused(out: Path, two: Memory, raw: bytes) -> None:
    (out / "manifest.json").write_bytes(raw)

    with pytest.raises(SourceUnreadable, match=r"manifest\.json: not"):
        two.import_export(out)


# -- hostile exports ------------------------------------------------------------------


def test_a_bad_line_is_reported_with_its_place_and_skipped(
    out: Path, two: Memory
) -> None:
    data = data_file(out, "the-ladder")
    head, first, last = data.read_bytes().splitlines()
    bad = [
        b"not JSON",
        b"[1]",
        first.replace(b'"user"', b'"root"'),
        first.replace(b'"trip"', b'"paint"'),
        b'{"x": 1}',
    ]
    data.write_bytes(b"\n".join([head, *bad, first, last]))
    seal(out)

    report = two.import_export(out)

    assert [(each.line, each.path) for each in report.problems] == [
        (number, str(data)) for number in range(2, 7)
    ]
    assert report.problems[3] == Problem("a message of another session", 5, str(data))
    assert report.new_messages == 4
    assert len(texts_of(two)) == 4


@pytest.mark.parametrize(
    "head",
    [
        b"{}",
        b'{"backstory": 1, "session": "x"}',
        b'{"backstory": 1, "host": "", "session": "x"}',
        b'{"backstory": 1, "host": "h"}',
        b'{"backstory": 1, "host": ["h"], "session": "x"}',
    ],
)
def test_without_a_line_about_its_session_a_file_says_nothing(
    out: Path, two: Memory, head: bytes
) -> None:
    data = data_file(out, "fence")
    _, *lines = data.read_bytes().splitlines()
    data.write_bytes(b"\n".join([head, *lines]))
    seal(out)

    report = two.import_export(out)

    (*_, problem) = report.problems
    assert problem == Problem("the first line is not about a session", 1, str(data))
    assert len(two.sessions()) == 2


def test_names_in_an_export_lead_nowhere(
    out: Path, two: Memory, tmp_path: Path
) -> None:
    victim = tmp_path / "victim.md"
    victim.write_text("mine")
    raw = victim.read_bytes()
    entry = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    manifest = orjson.loads((out / "manifest.json").read_bytes())
    names = ["../victim.md", str(victim), "notes/daily/../../../victim.md"]
    change_manifest(out, files=manifest["files"] | dict.fromkeys(names, entry))
    data = data_file(out, "fence")
    odd = data.read_bytes().replace(b'"paint"', b'"../../../victim.md"')
    data.write_bytes(odd)
    seal(out)

    with pytest.raises(SourceUnreadable, match="missing"):
        two.import_export(out)
    report = two.import_export(out, skip_damaged=True)

    assert [each.path for each in report.damaged] == names
    assert victim.read_text() == "mine"
    assert two.session("../../../victim.md").host == "other"


def _write_zip(out: Path, *, entries: dict[str, bytes], **more: int) -> Path:
    file = out.with_suffix(".zip")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for each in sorted(out.rglob("*")):
            if each.is_file():
                made.write(each, each.relative_to(out))
        for name, raw in entries.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = more.get("attributes", 0)
            made.writestr(info, raw)
    return file


@pytest.mark.parametrize(
    ("entries", "attributes", "why"),
    [
        ({"notes/x": b"/etc/passwd"}, 0o120777 << 16, "a link or a special file"),
        ({"notes/bomb": bytes(20_000_000)}, 0, "packed too densely"),
    ],
    ids=["link", "bomb"],
)
def test_a_hostile_zip_file_is_refused(
    out: Path, two: Memory, entries: dict[str, bytes], attributes: int, why: str
) -> None:
    file = _write_zip(out, entries=entries, attributes=attributes)

    with pytest.raises(SourceUnreadable, match=why):
        two.import_export(file, skip_damaged=True)

    assert two.sessions() == []


def test_nothing_of_a_zip_file_is_unpacked(
    out: Path, two: Memory, tmp_path: Path
) -> None:
    names = ["../out-of-it.txt", "/out-of-it.txt"]
    file = _write_zip(out, entries=dict.fromkeys(names, b"x"))

    report = two.import_export(file)

    assert report.extra == ("../out-of-it.txt", "/out-of-it.txt")
    assert [*tmp_path.rglob("out-of-it.txt")] == []
    assert len(two.sessions()) == 3


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no", b"text"])
def test_what_is_no_zip_file_is_refused(
    two: Memory, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "a.zip"
    file.write_bytes(content)

    with pytest.raises(SourceUnreadable) as raised:
        two.import_export(file)
    assert "'backstory index --path' any other" in raised.value.hint
    with pytest.raises(SourceUnreadable, match="No such file"):
        two.import_export(tmp_path / "nothing")
    with pytest.raises(SourceUnreadable, match=r"it has no manifest\.json"):
        two.import_export(tmp_path)


def test_indexing_an_export_says_how_to_read_it(out: Path, two: Memory) -> None:
    data = data_file(out, "fence")

    report = two.index(path=data)

    assert report.problems == (
        Problem(
            "part of an export; 'backstory import' reads the whole of it", 1, str(data)
        ),
    )
    assert two.sessions() == []


# -- the command ----------------------------------------------------------------------


def test_the_command_says_what_is_new(out: Path, home: Path, tmp_path: Path) -> None:
    shell = Shell(home, tmp_path / "kept")

    preview = shell.out("import", str(out), "--dry-run")
    first = shell.out("import", str(out))
    second = shell.out("import", str(out))

    new = (
        "4 messages of 3 sessions, 1 entry for MEMORY.md and 1 entry for 1 daily log.\n"
    )
    assert preview == f"Would import {new}"
    assert first == f"Imported {new}"
    assert second == (
        "There is nothing new in it; nothing was changed.\n"
        "4 messages were here already.\n"
    )
    assert orjson.loads(shell.out("import", str(out), "--json")) == {
        "path": str(out),
        "dry_run": False,
        "sessions": 3,
        "changed_sessions": 0,
        "new_sessions": 0,
        "new_messages": 0,
        "known_messages": 4,
        "forgotten_messages": 0,
        "excluded_sessions": 0,
        "memory_blocks": 0,
        "log_blocks": 0,
        "logs": 0,
        "damaged": [],
        "extra": [],
        "problems": [],
    }


def test_the_exit_code_says_that_something_was_left_out(
    out: Path, home: Path, tmp_path: Path
) -> None:
    shell = Shell(home, tmp_path / "kept")
    what = _change(out)

    refused = shell.run("import", str(out))
    skipped = shell.run("import", str(out), "--skip-damaged")

    assert (refused.returncode, skipped.returncode) == (30, 3)
    assert refused.stderr == (
        f"backstory: {out}: not as it was exported: {what}\n"
        "  hint: export again, or import the other files with --skip-damaged\n"
    )
    assert skipped.stdout == (
        "Imported 4 messages of 3 sessions and 1 entry for 1 daily log.\n"
        "Left out, as they are not as they were exported: "
        "notes/MEMORY.md (changed since it was exported).\n"
    )


def test_subagents_keep_their_parents(out: Path, two: Memory) -> None:
    two.import_export(out)

    parents = {s.native_id: s.parent_id for s, _ in conversations_of(two)}
    assert parents == {"trip": None, "trip/helper": "trip", "paint": None}
