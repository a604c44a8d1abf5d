"""What a person has forgotten is gone from every file, and does not come back."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import orjson
import pytest

from backstory import (
    BadQuery,
    Erasure,
    FactNotFound,
    Forgetting,
    ForgottenFact,
    LogEntry,
    Memory,
    Session,
    UnknownName,
)
from backstory.notes.log_markers import marker_start
from backstory.store.base.summaries import Summary
from backstory.store.sqlite.summaries import SqliteSummaryStore
from backstory.values.notes import FactOrigin, Teller
from tests.builders import SESSION, a_line, append, session_file
from tests.index_builders import WordEmbedder, an_indexed_memory, found
from tests.shell import Shell

OTHER = "7e1c1c53-8a57-4f43-9f0e-3c3f6d8f2b22"
DAY = date(2026, 2, 20)


@pytest.fixture
def lived(tmp_path: Path, home: Path) -> Iterator[Memory]:
    """A memory of two sessions, one of which says a word that must go."""
    append(
        session_file(home),
        a_line("Where did we hide the Qzwxv?", uuid="u1"),
        a_line("The Qzwxv is below the stairs.", uuid="u2", role="assistant"),
        a_line("Thank you, bye.", uuid="u3"),
    )
    append(
        session_file(home, OTHER),
        a_line("Paint the fence green.", uuid="u4", session=OTHER),
    )
    memory = an_indexed_memory(tmp_path, embedder=WordEmbedder(), home=home)
    with memory:
        memory.index()
        memory.embed()
        yield memory


def traces(memory: Memory, word: str = "qzwxv") -> list[str]:
    """The files of the home that contain a word, however it is written."""
    return sorted(
        str(file.relative_to(memory.home))
        for file in memory.home.rglob("*")
        if file.is_file() and word.encode() in file.read_bytes().lower()
    )


def titles(memory: Memory) -> list[str]:
    return sorted(session.title or "" for session in memory.sessions())


def test_no_file_has_a_forgotten_session(lived: Memory) -> None:
    assert "history.db" in " ".join(traces(lived))

    report = lived.forget(SESSION[:8])

    assert report.messages == 3
    assert report.erasure is Erasure.DONE
    assert traces(lived) == []
    assert titles(lived) == ["Paint the fence green."]
    assert found(lived, "Qzwxv") == []


def test_a_forgotten_session_does_not_return(lived: Memory, home: Path) -> None:
    lived.forget(SESSION)

    # More is said in it, its file is written again, and the index is made again.
    append(session_file(home), a_line("One more Qzwxv", uuid="u9"))
    lived.index()
    again = session_file(home).read_bytes()
    session_file(home).unlink()
    session_file(home).write_bytes(again)
    lived.index()
    lived.rebuild()
    lived.index(path=session_file(home))

    assert traces(lived) == []
    assert titles(lived) == ["Paint the fence green."]


def test_a_title_that_its_program_wrote_elsewhere_goes_too(
    lived: Memory, home: Path
) -> None:
    title = {"type": "summary", "summary": "A Qzwxv", "leafUuid": "u3"}
    append(session_file(home), orjson.dumps(title) + b"\n")
    lived.index()
    assert "A Qzwxv" in titles(lived)

    lived.forget(SESSION)
    # Later, another session's file begins with what the last one was about.
    append(session_file(home, OTHER), orjson.dumps(title | {"leafUuid": "u1"}) + b"\n")
    lived.index()

    assert (traces(lived), titles(lived)) == ([], ["Paint the fence green."])


@pytest.mark.parametrize("is_gone_before", [True, False])
def test_the_path_of_a_forgotten_session_goes_with_its_file(
    lived: Memory, home: Path, is_gone_before: bool
) -> None:
    file = session_file(home)
    written = file.read_bytes()
    if is_gone_before:
        file.unlink()
    lived.forget(SESSION)
    if not is_gone_before:
        assert traces(lived, SESSION) == ["history.db"]
        file.unlink()
        lived.index()

    assert traces(lived, SESSION) == []
    file.write_bytes(written)
    lived.index()
    assert (traces(lived), titles(lived)) == ([], ["Paint the fence green."])


def test_it_returns_by_no_other_way(lived: Memory, home: Path, tmp_path: Path) -> None:
    lived.forget(SESSION)

    # The same file elsewhere, on a machine with another home, from a program of one's
    # own, and from what the index may still have.
    copy = tmp_path / "backup" / f"{SESSION}.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(session_file(home).read_bytes())
    lived.index(path=copy)
    moved = session_file(tmp_path / "moved")
    session_file(home).rename(moved)
    lived.index(path=moved)
    host = "claude-code"
    again = lived.record(SESSION, "user", "A Qzwxv", message="u1", host=host)
    lived.rebuild()
    saved = lived.salvage()
    lived.embed()

    assert (again, saved) == (None, None)
    assert traces(lived) == []
    assert titles(lived) == ["Paint the fence green."]


def test_a_summary_that_waits_for_the_notes_goes_with_its_session(
    lived: Memory,
) -> None:
    session = lived.session(SESSION)
    store = SqliteSummaryStore(lived.home / "history.db")
    first, *_, last = [each.message_id for each in lived.messages(SESSION)]
    store.add_summary(
        Summary(session.session_id, DAY, first, last, "marker", "The Qzwxv")
    )
    store.close()

    lived.forget(SESSION)

    assert traces(lived) == []


def test_a_forgotten_message_leaves_the_rest(lived: Memory, home: Path) -> None:
    lived.forget(SESSION, messages=["u2"])
    append(session_file(home), a_line("And the ladder?", uuid="u9"))
    lived.index()

    said = [message.text for message in lived.messages(SESSION)]
    assert said == [
        "Where did we hide the Qzwxv?",
        "Thank you, bye.",
        "And the ladder?",
    ]
    assert traces(lived, "stairs") == []
    assert found(lived, "ladder") == ["And the ladder?"]


def test_a_message_is_forgotten_by_its_number(lived: Memory) -> None:
    (hit,) = lived.search("fence", sources=["message"]).hits
    assert hit.message_id is not None

    lived.forget(messages=[hit.message_id])

    assert traces(lived, "fence") == []
    assert titles(lived) == ["Where did we hide the Qzwxv?"]


@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        pytest.param({"project": "demo"}, [], id="a project"),
        pytest.param({"host": "claude-code"}, [], id="a host"),
        pytest.param({"before": "2026-02-21"}, [], id="days before"),
        pytest.param({"after": date(2026, 2, 19)}, [], id="days after"),
        pytest.param({"before": DAY}, ["kept"], id="not the day itself"),
        pytest.param({"after": DAY}, ["kept"], id="nor on the other side"),
        pytest.param(
            {"host": "claude-code", "after": "2026-02-25"}, ["kept"], id="narrowed"
        ),
    ],
)
def test_conditions_narrow_each_other(
    lived: Memory, conditions: dict[str, str | date], left: list[str]
) -> None:
    lived.forget(**conditions)  # type: ignore[arg-type]

    assert bool(titles(lived)) == bool(left)


def test_what_is_said_after_a_project_was_forgotten_is_read(
    lived: Memory, home: Path
) -> None:
    lived.forget(project="demo")

    append(
        session_file(home, OTHER),
        a_line(
            "And the gate blue.", uuid="u8", session=OTHER, at="2029-01-01T10:00:00Z"
        ),
    )
    lived.index()

    assert titles(lived) == ["And the gate blue."]
    assert traces(lived, "fence") == []


def test_a_session_of_a_loop_can_be_used_again(lived: Memory) -> None:
    lived.record("loop", "user", "The Qzwxv again")
    lived.forget("loop")

    assert lived.record("loop", "user", "A new day") is not None
    assert sorted(found(lived, "Qzwxv", sources=["message"])) == [
        "The Qzwxv is below the stairs.",
        "Where did we hide the Qzwxv?",
    ]


def test_subagents_go_with_their_session(lived: Memory) -> None:
    lived.record("chief", "user", "Ask around")
    lived.record("helper", "user", "Asking", parent="chief")

    report = lived.forget("chief")

    assert [each.session.native_id for each in report.sessions] == ["chief", "helper"]


def test_a_session_of_another_program_with_such_an_id_stays(lived: Memory) -> None:
    lived.record("chief", "user", "Ask around")
    lived.record("chief/helper", "user", "Asking", host="elsewhere")

    report = lived.forget("python/chief")

    assert [each.session.host for each in report.sessions] == ["python"]


@pytest.mark.parametrize("day", [date.min, date.max])
def test_the_first_and_the_last_day_there_are_can_be_named(
    lived: Memory, day: date
) -> None:
    for condition in ({"before": day}, {"after": day}):
        lived.forget(**condition, dry_run=True)  # type: ignore[arg-type]


def test_a_dry_run_tells_and_changes_nothing(lived: Memory) -> None:
    before = titles(lived)

    report = lived.forget(SESSION, dry_run=True)

    assert (report.messages, report.forgetting) == (3, None)
    assert titles(lived) == before
    assert lived.forgettings() == []


def test_it_can_be_read_again_when_that_is_wanted(lived: Memory) -> None:
    report = lived.forget(SESSION)
    assert isinstance(report.forgetting, Forgetting)

    undone = lived.undo_forget(report.forgetting.forgetting_id)
    lived.index()

    assert undone == report.forgetting
    assert "The Qzwxv is below the stairs." in found(lived, "Qzwxv")


@pytest.mark.parametrize(
    ("names", "more"),
    [
        pytest.param(["nobody"], {}, id="a session"),
        pytest.param([], {"messages": [999]}, id="a number"),
        pytest.param([SESSION], {"messages": ["u4"]}, id="a message elsewhere"),
        pytest.param([], {"project": "nowhere"}, id="a project"),
        pytest.param([], {"host": "nothing"}, id="a host"),
    ],
)
def test_what_is_not_there_cannot_be_forgotten(
    lived: Memory, names: list[str], more: dict[str, object]
) -> None:
    with pytest.raises(UnknownName):
        lived.forget(names, **more)  # type: ignore[arg-type]


def test_everything_at_once_has_to_be_meant(lived: Memory) -> None:
    with pytest.raises(BadQuery, match="not clear what to forget"):
        lived.forget()
    with pytest.raises(BadQuery, match="the period is empty"):
        lived.forget(before="2026-01-01", after="2026-02-01")


@pytest.mark.parametrize(
    "named", [{"sessions": SESSION}, {"messages": 1}], ids=["session", "message"]
)
@pytest.mark.parametrize(
    "condition",
    [
        {"project": "demo"},
        {"host": "claude-code"},
        {"before": "2020-01-01"},
        {"after": "2020-01-01"},
    ],
    ids=str,
)
def test_a_condition_beside_a_name_is_refused_rather_than_ignored(
    lived: Memory, named: dict[str, object], condition: dict[str, object]
) -> None:
    kept = lived.sessions()
    with pytest.raises(BadQuery, match="cannot be narrowed"):
        lived.forget(**named, **condition)  # type: ignore[arg-type]
    assert lived.sessions() == kept


def test_what_a_killed_rebuild_left_goes_too(lived: Memory) -> None:
    for name in (
        *("new-index.db", "new-index.db-wal", "new-index-12ab.text"),
        "index-34cd.text",
    ):
        (lived.home / name).write_bytes(b"the qzwxv")

    lived.forget(SESSION)

    assert traces(lived) == []


def test_copies_that_a_person_made_are_named(lived: Memory) -> None:
    made = [lived.home / name for name in ("history.db.bak", "index-old.db")]
    for path in made:
        path.write_bytes(b"the qzwxv")

    assert lived.forget(SESSION, dry_run=True).copies == tuple(made)
    assert lived.forget(SESSION).copies == tuple(made)
    assert traces(lived) == ["history.db.bak", "index-old.db"]


# -- notes ---


def write_log(memory: Memory, session: Session) -> None:
    memory.notebook.append_log(
        DAY, "## The hiding place\n- The Qzwxv is below", f"{marker_start(session)}1"
    )
    memory.notebook.append_log(DAY, "## The fence\n- It is green", "another.1")


def test_log_entries_about_it_are_named_and_stay(lived: Memory) -> None:
    write_log(lived, lived.session(SESSION))

    report = lived.forget(SESSION)

    assert report.log_entries == (LogEntry(DAY, "The hiding place"),)
    assert "memory/daily/2026-02-20.md" in traces(lived)
    assert not any(each.startswith("history") for each in traces(lived))


def test_log_entries_about_it_go_on_request(lived: Memory) -> None:
    write_log(lived, lived.session(SESSION))

    lived.forget(SESSION, with_notes=True)

    assert traces(lived) == []
    assert lived.notebook.read_log(DAY) == (
        "# Daily Log - 2026-02-20\n\n<!-- backstory: another.1 -->\n"
        "## The fence\n- It is green\n"
    )


def test_a_log_with_nothing_else_goes_whole(lived: Memory) -> None:
    session = lived.session(SESSION)
    lived.notebook.append_log(DAY, "The Qzwxv", f"{marker_start(session)}1")

    lived.forget(SESSION, with_notes=True)

    assert lived.notebook.list_logs() == []


def note_facts(memory: Memory) -> None:
    """Facts of the session, of the other one, of both, and of the person."""
    sessions = [memory.session(name) for name in (SESSION, OTHER)]
    told = [
        FactOrigin(Teller.USER, each.host, each.native_id, DAY, (number,))
        for number, each in enumerate(sessions, start=1)
    ]
    notebook = memory.notebook
    notebook.add_fact("Hid the Qzwxv", origin=told[0])
    notebook.add_fact("Has a green fence", origin=told[1])
    notebook.add_fact("Owns a house", origin=told[0])
    text = notebook.read_memory()
    notebook.replace_memory(text + "\n", text, origins={"Owns a house": told})
    notebook.add_fact("Is called Anna")


def test_facts_noted_from_it_are_named_and_stay(lived: Memory) -> None:
    note_facts(lived)

    report = lived.forget(SESSION)

    assert report.facts == (ForgottenFact("Hid the Qzwxv"),)
    assert report.forgetting is not None
    assert report.forgetting.facts == 0
    assert "Hid the Qzwxv" in lived.notebook.read_memory()
    # Where it came from was forgotten.
    assert traces(lived, SESSION) == ["history.db"]  # the path of its file
    assert {
        fact: [each.session for each in origins]
        for fact, origins in lived.notebook.read_origins().items()
    } == {"Has a green fence": [OTHER], "Owns a house": [OTHER]}


def test_facts_noted_from_it_go_on_request(lived: Memory) -> None:
    note_facts(lived)

    report = lived.forget(SESSION, with_notes=True)

    assert traces(lived) == []
    assert report.forgetting is not None
    assert report.forgetting.facts == 1
    facts = [line for line in lived.notebook.read_memory().splitlines() if "- " in line]
    assert facts == ["- Has a green fence", "- Owns a house", "- Is called Anna"]
    assert lived.notebook.was_removed("Hid the Qzwxv")
    lived.undo_forget(report.forgetting.forgetting_id)
    assert not lived.notebook.was_removed("Hid the Qzwxv")


def test_a_fact_goes_with_the_message_it_was_noted_from(lived: Memory) -> None:
    session = lived.session(SESSION)
    numbers = [message.message_id for message in lived.messages(SESSION)]
    for fact, number in zip(("Asks", "Answers"), numbers, strict=False):
        origin = FactOrigin(Teller.USER, session.host, SESSION, DAY, (number,))
        lived.notebook.add_fact(fact, origin=origin)

    report = lived.forget(messages=numbers[1], with_notes=True)

    assert report.facts == (ForgottenFact("Answers"),)
    assert "Asks" in lived.notebook.read_memory()


def test_a_forgotten_fact_is_gone_from_backups_and_copies(lived: Memory) -> None:
    notebook = lived.notebook
    notebook.add_fact("The Qzwxv is below the stairs.")
    notebook.add_fact("The fence is green.")
    text = notebook.read_memory()
    notebook.replace_memory(text + "\n", text, keep_backup=True)
    notebook.write_aside(text, "MEMORY-edited.md")
    for name in ("MEMORY.md.bak", "MEMORY.md~"):
        (notebook.folder / name).write_text(text, encoding="utf-8")
    lived.search("fence")

    notebook.forget_fact("below the stairs")
    lived.search("fence")
    lived.index()

    in_notes = [each for each in traces(lived) if each.startswith("memory")]
    assert in_notes == []
    assert len(traces(lived, "the fence is green")) >= 3


def test_a_fact_is_forgotten_everywhere_and_has_a_receipt(lived: Memory) -> None:
    notebook = lived.notebook
    lived.forget(SESSION)
    notebook.add_fact("The Qzwxv is below the stairs.")
    notebook.add_fact("The fence is green.")
    text = notebook.read_memory()
    notebook.replace_memory(text + "\n", text, keep_backup=True)
    notebook.write_aside(text, "MEMORY-edited.md")
    lived.index()
    lived.embed()
    assert {"index.db", "history.db"} <= {each.split("-")[0] for each in traces(lived)}

    preview = lived.forget(fact="below the stairs", dry_run=True)
    assert preview.facts == (ForgottenFact("The Qzwxv is below the stairs.", 2),)
    assert preview.forgetting is None
    receipt = lived.forget(fact="below the stairs")

    assert traces(lived) == []
    assert traces(lived, "stairs") == []
    assert receipt.facts == preview.facts
    assert receipt.forgetting == lived.forgettings()[-1]
    assert (receipt.forgetting.messages, receipt.forgetting.facts) == (0, 1)
    assert found(lived, "fence")


def test_a_fact_that_only_a_backup_has_is_forgotten_too(lived: Memory) -> None:
    notebook = lived.notebook
    notebook.add_fact("The Qzwxv is below the stairs.")
    notebook.add_fact("The fence is green.")
    text = notebook.read_memory()
    without = text.replace("- The Qzwxv is below the stairs.\n", "")
    notebook.replace_memory(without, text, keep_backup=True)

    report = lived.forget(fact="below the stairs")

    assert report.facts == (ForgottenFact("The Qzwxv is below the stairs.", 1),)
    assert [each for each in traces(lived) if each.startswith("memory")] == []


@pytest.mark.parametrize(
    "more",
    [
        {"sessions": SESSION},
        {"messages": 1},
        {"project": "demo"},
        {"host": "claude-code"},
        {"before": DAY},
        {"after": DAY},
        {"with_notes": True},
    ],
    ids=lambda more: next(iter(more)),
)
def test_a_fact_stands_alone(lived: Memory, more: dict[str, object]) -> None:
    lived.notebook.add_fact("The fence is green.")
    before = lived.notebook.read_memory(), titles(lived)

    with pytest.raises(BadQuery, match="cannot be combined"):
        lived.forget(fact="green", **more)  # type: ignore[arg-type]

    assert (lived.notebook.read_memory(), titles(lived)) == before


def test_a_fact_that_is_not_there_cannot_be_forgotten(lived: Memory) -> None:
    with pytest.raises(FactNotFound):
        lived.forget(fact="red")
    assert lived.forgettings() == []


# -- the command ---


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> Shell:
    append(session_file(home), a_line("Where is the Qzwxv?", uuid="u1"))
    made = Shell(home, tmp_path / "kept", now=datetime(2026, 3, 1, 12, tzinfo=UTC))
    made.run("--set", "embedder.name=none", "index")
    return made


def test_the_command_shows_what_it_deletes_and_gives_a_receipt(shell: Shell) -> None:
    done = shell.run("--set", "embedder.name=none", "forget", SESSION[:8], "--yes")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "This deletes 1 message of 1 session:\n"
        "  2026-02-20 14:32  5d0c1c53  claude-code  1 message  Where is the Qzwxv?\n"
        "Forgotten: 1 message of 1 session.\n"
        "It is left out when its files are read again; "
        "'backstory forget --undo 1' allows it.\n"
    )


def test_the_command_asks_first(shell: Shell) -> None:
    done = shell.run("forget", SESSION, typed="y\n")

    assert done.returncode == 2
    assert "Pass --yes" in done.stderr
    assert shell.out("forget", "--list") == "Nothing was forgotten.\n"


def test_the_command_says_that_nothing_was_deleted(shell: Shell) -> None:
    said = shell.on_terminal("forget", SESSION, typed="n\n", exit_code=130)

    assert said.endswith("Delete it for good? [y/N]: Nothing was deleted.\r\n")
    assert shell.out("forget", "--list") == "Nothing was forgotten.\n"


def test_the_receipt_as_json(shell: Shell) -> None:
    done = shell.run("forget", SESSION, "--yes", "--json")

    assert orjson.loads(done.stdout) == {
        "sessions": [
            {
                "host": "claude-code",
                "id": SESSION,
                "title": "Where is the Qzwxv?",
                "messages": 1,
                "whole": True,
            }
        ],
        "messages": 1,
        "log_entries": [],
        "facts": [],
        "with_notes": False,
        "copies": [],
        "erasure": "done",
        "forgetting": {
            "number": 1,
            "forgotten_at": "2026-03-01T12:00:00+00:00",
            "sessions": 1,
            "messages": 1,
            "hosts": ["claude-code"],
            "facts": 0,
            "reason": "asked for",
        },
    }


@pytest.mark.parametrize("command", ["forget", "sessions"])
def test_an_empty_folder_is_not_the_current_one(shell: Shell, command: str) -> None:
    done = shell.run(command, "--project", "")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("Error: The folder is empty.\n")


def test_the_command_lists_and_undoes(shell: Shell) -> None:
    shell.run("forget", SESSION, "--yes")

    assert shell.out("forget", "--list") == (
        "NUMBER  FORGOTTEN         SESSIONS  MESSAGES  FACTS  WHY        HOSTS\n"
        "     1  2026-03-01 12:00         1         1      0  asked for  claude-code\n"
    )
    shell.out("forget", "--undo", "1")
    assert "1 new session" in shell.out("index")


def test_nothing_that_matches_is_not_an_error_but_a_word(shell: Shell) -> None:
    done = shell.run("forget", "--before", "2020-01-01")

    assert done.returncode == 1
    assert done.stdout == "Nothing matches, so nothing is forgotten.\n"


def test_the_command_forgets_a_fact(shell: Shell) -> None:
    shell.out("memory", "add", "Likes tea")

    assert shell.out("forget", "--fact", "tea", "--yes") == (
        "This deletes 1 fact of MEMORY.md:\n"
        "  │ Likes tea\n"
        "Forgotten: 1 fact.\n"
        "No language model notes it again unless you add it yourself, or allow it with "
        "'backstory forget --undo 1'.\n"
    )
    assert shell.out("forget", "--list") == (
        "NUMBER  FORGOTTEN         SESSIONS  MESSAGES  FACTS  WHY        HOSTS\n"
        "     1  2026-03-01 12:00         0         0      1  asked for\n"
    )
    assert shell.out("forget", "--undo", "1") == "A language model may note it again.\n"


@pytest.mark.parametrize("option", [("--list",), ("--undo", "1")], ids=str)
@pytest.mark.parametrize(
    "named", [(SESSION,), ("--host", "codex"), ("--fact", "x"), ("--dry-run",)], ids=str
)
def test_listing_and_undoing_stand_alone(
    shell: Shell, option: tuple[str, ...], named: tuple[str, ...]
) -> None:
    done = shell.run("forget", *named, *option)

    assert done.returncode == 2
    assert "stand alone" in done.stderr


def test_most_of_what_is_kept_is_not_deleted_without_a_warning(
    shell: Shell, home: Path
) -> None:
    append(
        session_file(home, OTHER),
        a_line("Paint the fence green.", uuid="u4", session=OTHER),
    )
    shell.out("index")

    everything = shell.run("forget", "--project", "/", "--dry-run")
    one = shell.run("forget", SESSION, "--dry-run")

    warning = "WARNING: this is everything that is kept (2 messages)."
    assert everything.stdout.splitlines()[-1] == warning
    assert "WARNING" not in one.stdout
