"""What one machine has is on the server after a push: all of it, once, and no more."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backstory.errors import ConfigError, ProviderRefused, ProviderUnavailable
from backstory.memory import Memory
from backstory.push import send
from backstory.push.batches import MAX_RAW_BYTES, parse_batch, write_batch
from backstory.system.zstd import compress
from tests.processes import kill_sometime
from tests.samples import a_memory
from tests.serve.team import Team, running_team

TOKEN = "env:TEAM_TOKEN"


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    folder = tmp_path / "team"
    folder.mkdir()
    with running_team(folder) as running:
        yield running


def a_machine(
    folder: Path, team: Team, *settings: str, token: str = "anna-writes"
) -> Memory:
    """The memory of somebody's own machine, which pushes to the server."""
    folder.mkdir(exist_ok=True)
    given = (f"push.url={team.url}", f"push.token={TOKEN}", "embedder.name=none")
    return a_memory(folder, environ={"TEAM_TOKEN": token}, settings=(*given, *settings))


@pytest.fixture
def laptop(tmp_path: Path, team: Team) -> Iterator[Memory]:
    with a_machine(tmp_path / "laptop", team) as memory:
        yield memory


def contents(memory: Memory) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that was said, by session."""
    return {
        f"{session.host}/{session.native_id} {session.title} {session.project}": [
            (each.native_id, each.role, each.text, each.tool_name, each.sent)
            for each in memory.messages(session)
        ]
        for session in memory.sessions()
    }


def say_much(memory: Memory, sessions: int = 5, messages: int = 40) -> None:
    for number in range(sessions):
        memory.record_messages(
            f"session {number}",
            [
                {
                    "role": "user" if at % 2 else "assistant",
                    "content": f"{number}.{at} né",
                }
                for at in range(messages)
            ],
            project=f"/home/anna/project{number}",
            title=f"Number {number}",
        )


def test_everything_arrives_and_can_be_found(laptop: Memory, team: Team) -> None:
    say_much(laptop)
    laptop.record("tools", "tool_call", '{"a": 1}', tool_name="Bash", call_id="c1")

    report = laptop.push()

    assert (report.sessions, report.messages, report.new_messages) == (6, 201, 201)
    assert contents(team.memories["anna"]) == contents(laptop)
    assert contents(team.memories["bo"]) == {}
    found = team.get("/api/search?q=3.17", "anna-reads").json()["results"]
    assert found[0]["session"]["id"] == "session 3"


def test_what_was_pushed_is_not_sent_again(laptop: Memory, team: Team) -> None:
    say_much(laptop)
    laptop.push()
    again = laptop.push()
    laptop.record("session 1", "user", "one more thing")
    more = laptop.push()

    assert again.is_empty
    assert (more.sessions, more.messages, more.new_messages) == (1, 1, 1)
    assert contents(team.memories["anna"]) == contents(laptop)


def test_a_message_that_has_changed_replaces_the_old_one(
    laptop: Memory, team: Team
) -> None:
    laptop.record("s", "user", "first version", message="m1")
    laptop.push()
    laptop.record("s", "user", "second version", message="m1", title="Renamed")
    laptop.push()

    assert contents(team.memories["anna"]) == contents(laptop)


def test_pushing_from_the_start_again_doubles_nothing(
    laptop: Memory, team: Team
) -> None:
    say_much(laptop)
    laptop.push()
    (laptop.home / send.STATE_NAME).unlink()

    again = laptop.push()

    assert (again.messages, again.new_messages) == (200, 0)
    assert contents(team.memories["anna"]) == contents(laptop)


def test_another_tenant_is_sent_everything(tmp_path: Path, team: Team) -> None:
    with a_machine(tmp_path / "laptop", team) as memory:
        say_much(memory)
        memory.push()
    with a_machine(tmp_path / "laptop", team, token="bo-writes") as memory:
        report = memory.push()

        assert (report.messages, report.new_messages) == (200, 200)
        assert contents(team.memories["bo"]) == contents(memory)
    assert b"bo-writes" not in (memory.home / send.STATE_NAME).read_bytes()


def test_a_history_that_was_restored_from_a_backup_is_sent_again(
    tmp_path: Path, team: Team
) -> None:
    folder = tmp_path / "laptop"
    with a_machine(folder, team) as memory:
        memory.record("s", "user", "before the backup")
        memory.push()
    shutil.copytree(folder, tmp_path / "backup")
    with a_machine(folder, team) as memory:
        memory.record("s", "user", "lost with the disk")
        memory.push()
        state = (memory.home / send.STATE_NAME).read_bytes()
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    with a_machine(folder, team) as memory:
        memory.record("s", "user", "after the restore")
        (memory.home / send.STATE_NAME).write_bytes(state)
        memory.push()

    said = [each.text for each in team.memories["anna"].messages("s")]
    assert sorted(said) == [
        "after the restore",
        "before the backup",
        "lost with the disk",
    ]


def test_a_push_that_is_killed_anywhere_loses_and_doubles_nothing(
    tmp_path: Path, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small steps, so that it is killed between many of them.
    monkeypatch.setattr(send, "_WINDOW_MESSAGES", 30)
    monkeypatch.setattr(send, "GOOD_RAW_BYTES", 2_000)
    with a_machine(tmp_path / "laptop", team) as memory:
        say_much(memory, sessions=6, messages=50)
        expected = contents(memory)
    chance = random.Random(5)

    def push() -> None:
        with a_machine(tmp_path / "laptop", team) as memory:
            memory.push()

    attempt = 0
    while kill_sometime(push, chance, attempt=attempt):
        attempt += 1

    assert attempt > 3
    assert contents(team.memories["anna"]) == expected


# -- what is not sent ---


def test_excluded_folders_and_programs_are_not_sent(tmp_path: Path, team: Team) -> None:
    folder = tmp_path / "laptop"
    with a_machine(folder, team) as memory:
        memory.record("open", "user", "for all", project="/work/open")
        memory.record("secret", "user", "not for all", project="/work/secret/sub")
        memory.record("other", "user", "of another program", host="codex")
    rules = ("exclude.folders=/work/secret", "exclude.hosts=codex")
    with a_machine(folder, team, *rules) as memory:
        report = memory.push()

    assert (report.sessions, report.excluded) == (1, 2)
    assert [each.native_id for each in team.memories["anna"].sessions()] == ["open"]


def test_private_passages_and_secrets_stay_at_home(laptop: Memory, team: Team) -> None:
    key = "sk-" + "a1" * 20
    laptop.record("s", "user", f"the key is {key} <private>my diary</private> ok")
    laptop.push()

    (message,) = team.memories["anna"].messages("s")
    assert "diary" not in message.text
    assert key not in message.text
    assert [key in each.text for each in laptop.messages("s")] == [True]


def test_where_a_machine_has_its_files_is_not_sent(laptop: Memory, team: Team) -> None:
    laptop.record("s", "user", "hello")
    laptop.push()

    (session,) = team.memories["anna"].sessions()
    assert session.read_from is not None
    assert session.read_from.startswith("push:")


# -- forgetting ---


def test_what_is_forgotten_here_is_forgotten_there(laptop: Memory, team: Team) -> None:
    say_much(laptop, sessions=2, messages=4)
    laptop.push()
    laptop.forget("session 0")
    report = laptop.push()

    assert report.forgotten == 1
    there = team.memories["anna"]
    assert [each.native_id for each in there.sessions()] == ["session 1"]
    assert len(there.forgettings()) == 1


def test_a_forgotten_message_is_forgotten_there(laptop: Memory, team: Team) -> None:
    say_much(laptop, sessions=1, messages=6)
    laptop.push()
    second = list(laptop.messages("session 0"))[1]
    laptop.forget(messages=second.message_id)
    laptop.push()

    assert contents(team.memories["anna"]) == contents(laptop)


def test_what_was_forgotten_before_it_was_ever_pushed_is_never_sent(
    laptop: Memory, team: Team
) -> None:
    say_much(laptop, sessions=2, messages=4)
    laptop.forget("session 0")
    laptop.push()

    there = team.memories["anna"]
    assert [each.native_id for each in there.sessions()] == ["session 1"]
    assert there.forgettings() == []


def test_what_was_forgotten_there_does_not_return(laptop: Memory, team: Team) -> None:
    say_much(laptop, sessions=2, messages=4)
    laptop.push()
    team.memories["anna"].forget("session 0")
    (laptop.home / send.STATE_NAME).unlink()
    laptop.push()

    kept = [each.native_id for each in team.memories["anna"].sessions()]
    assert kept == ["session 1"]


def test_one_machine_does_not_forget_what_another_has_sent_as_well(
    tmp_path: Path, team: Team, laptop: Memory
) -> None:
    with a_machine(tmp_path / "desktop", team) as desktop:
        for memory in (laptop, desktop):
            memory.record("shared", "user", "the same session", message="m1")
            memory.push()
        desktop.forget("shared")
        report = desktop.push()

    assert report.forgotten == 0
    assert contents(team.memories["anna"]) == contents(laptop)


# -- refusals ---


def test_a_token_for_reading_pushes_nothing(tmp_path: Path, team: Team) -> None:
    with a_machine(tmp_path / "laptop", team, token="anna-reads") as memory:
        memory.record("s", "user", "hello")
        with pytest.raises(ProviderRefused, match="This token may only read"):
            memory.push()

    assert team.memories["anna"].sessions() == []


def test_a_wrong_token_is_not_repeated(tmp_path: Path, team: Team) -> None:
    with a_machine(tmp_path / "laptop", team, token="wrong-token") as memory:
        memory.record("s", "user", "hello")
        with pytest.raises(ProviderRefused, match="answered 401") as raised:
            memory.push()

    assert "wrong-token" not in f"{raised.value} {raised.value.hint}"


def test_without_a_token_or_encryption_nothing_is_sent(
    tmp_path: Path, team: Team
) -> None:
    with a_machine(tmp_path / "laptop", team) as memory:
        for url, said in [
            ("http://memory.example.org", "would travel unencrypted"),
            ("memory.example.org", "not an http or https address"),
            ("ftp://127.0.0.1", "not an http or https address"),
        ]:
            with pytest.raises(ConfigError, match=said):
                memory.push(url)
    with (
        a_machine(tmp_path / "laptop", team, "push.token=") as memory,
        pytest.raises(ConfigError, match="there is no token"),
    ):
        memory.push()


def test_a_server_that_is_gone_is_told_and_nothing_is_lost(
    tmp_path: Path, laptop: Memory, team: Team
) -> None:
    laptop.record("s", "user", "hello")
    with pytest.raises(ProviderUnavailable, match="cannot be reached"):
        laptop.push("http://127.0.0.1:1")

    assert laptop.push().new_messages == 1


GOOD = write_batch("abc", [])
HEAD = b'{"push":1,"history":"abc"}\n'
BAD_BATCHES = {
    "nothing": b"",
    "not compressed": b"hello",
    "half of one": GOOD[: len(GOOD) // 2],
    "one without its last byte": GOOD[:-1],
    "no head": compress(b"x\n"),
    "another version": compress(b'{"push":2,"history":"abc"}\n'),
    "no history": compress(b'{"push":1,"history":""}\n'),
    "a path for a history": compress(b'{"push":1,"history":"../../x"}\n'),
    "an unknown part": compress(HEAD + b'{"type":"run","number":1}\n'),
    "a part without a number": compress(HEAD + b'{"type":"forgotten"}\n'),
    "a part that is cut off": compress(
        HEAD + b'{"type":"session","number":1,"size":100}\nx'
    ),
    "a bomb": compress(b"\0" * (MAX_RAW_BYTES + 1)),
}


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_what_is_not_a_batch_is_refused_and_stores_nothing(
    team: Team, name: str
) -> None:
    answer = team.post("/api/push", "anna-writes", content=BAD_BATCHES[name])

    assert answer.status_code == 400
    assert "error" in answer.json()
    assert team.memories["anna"].sessions() == []


ODD_LINES = [
    b"", b"not json\n", b"[]\n", b'{"backstory":1}\n', b"\xff\xfe\n", b"\0\n",
    b'{"backstory":1,"host":"x","session":"s"}\n{"session":"t","role":"user"}\n',
    b'{"backstory":1,"host":"x","session":"s"}\n{"session":"s","role":7,"text":[]}\n',
    b'{"backstory":1,"host":"../x","session":"../../etc","read_from":"/etc/passwd"}\n'
    b'{"session":"../../etc","id":"m","role":"user","text":"odd names"}\n',
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ODD_LINES)))
def test_lines_that_make_no_sense_are_left_out(team: Team, number: int) -> None:
    about = {"type": "session", "number": 1, "size": len(ODD_LINES[number])}
    raw = HEAD + msgspec.json.encode(about) + b"\n" + ODD_LINES[number]

    answer = team.post("/api/push", "anna-writes", content=compress(raw))

    assert answer.status_code == 200
    kept = team.memories["anna"].sessions()
    assert len(kept) == (number == len(ODD_LINES) - 1)


def test_numbers_of_sessions_that_are_not_there_are_ignored(team: Team) -> None:
    raw = (
        HEAD + b'{"type":"forgotten","number":7}\n{"type":"kept","number":8,"ids":[]}\n'
    )

    answer = team.post("/api/push", "anna-writes", content=compress(raw))

    assert answer.json()["forgotten"] == 0


def test_a_batch_is_read_as_it_was_written() -> None:
    assert parse_batch(GOOD).history == "abc"
