"""A search of this machine and a server together: ranked as one, each thing once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backstory.memory import Memory
from backstory.search.remote import merge, parse_hits
from backstory.values.hits import Hit, HitSource, ScorePart, Strength
from backstory.values.structs import replace
from tests.push.test_push import a_machine
from tests.serve.team import Team, running_team

pytestmark = pytest.mark.xdist_group("search-remote")


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    folder = tmp_path / "team"
    folder.mkdir()
    with running_team(folder) as running:
        yield running


@pytest.fixture
def laptop(tmp_path: Path, team: Team) -> Iterator[Memory]:
    with a_machine(tmp_path / "laptop", team, "search.remote_seconds=30") as memory:
        yield memory


def found(memory: Memory, query: str, **more: Any) -> list[tuple[str, str]]:
    """What a search of both finds: the server, and the session."""
    result = memory.search(query, remote=True, **more)
    return [(hit.server, hit.session.native_id) for hit in result.hits if hit.session]


def test_what_only_the_server_has_is_found_with_what_is_here(
    laptop: Memory, team: Team
) -> None:
    laptop.record("mine", "user", "the walrus lives in the bathtub")
    team.memories["anna"].record("hers", "user", "a walrus was seen at the harbour")
    team.memories["bo"].record("his", "user", "no walrus of another tenant")
    host = team.url.removeprefix("http://")

    result = laptop.search("walrus", remote=True)

    names = {(hit.server, hit.session.native_id) for hit in result.hits if hit.session}
    assert names == {("", "mine"), (host, "hers")}
    (theirs,) = [hit for hit in result.hits if hit.server]
    assert theirs.path == f"{team.url}/session/python/hers"
    assert theirs.excerpt == "a walrus was seen at the harbour"
    assert [hit.server for hit in laptop.search("walrus").hits] == [""]


def test_what_was_pushed_is_shown_once(laptop: Memory, team: Team) -> None:
    laptop.record("mine", "user", "the walrus lives in the bathtub")
    laptop.push()

    assert found(laptop, "walrus") == [("", "mine")]


def test_the_better_match_comes_first_wherever_it_is(
    laptop: Memory, team: Team
) -> None:
    there = team.memories["anna"]
    for number in range(30):
        for memory in (laptop, there):
            memory.record(f"filler {number}", "user", f"about topic {number} and tea")
    laptop.record("poor", "user", "something about tea and a walrus")
    there.record("good", "user", "the walrus bathtub plumbing was repaired on Monday")

    first = found(laptop, "walrus bathtub plumbing")[0]

    assert first == (team.url.removeprefix("http://"), "good")


def test_filters_hold_on_both_sides(laptop: Memory, team: Team) -> None:
    for memory, name in ((laptop, "mine"), (team.memories["anna"], "hers")):
        memory.record(f"{name} a", "user", "a walrus", project="/work/zoo")
        memory.record(f"{name} b", "user", "a walrus", project="/work/office")

    seen = {name for _, name in found(laptop, "walrus", project="/work/zoo")}

    assert seen == {"mine a", "hers a"}


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_is_returned_than_was_asked_for(
    laptop: Memory, team: Team, limit: int
) -> None:
    for number in range(4):
        laptop.record(f"m{number}", "user", f"walrus {number}")
        team.memories["anna"].record(f"h{number}", "user", f"walrus {number}")

    assert len(laptop.search("walrus", remote=True, limit=limit).hits) == limit


def test_a_server_that_is_gone_is_a_notice(tmp_path: Path, team: Team) -> None:
    with a_machine(tmp_path / "x", team, "push.url=http://127.0.0.1:1") as memory:
        memory.record("mine", "user", "the walrus")
        result = memory.search("walrus", remote=True)

    assert len(result.hits) == 1
    assert result.notices[-1] == (
        "only this machine was searched: the server at 127.0.0.1:1 cannot be reached"
    )


def test_a_server_that_refuses_or_is_not_set_is_a_notice(
    tmp_path: Path, team: Team
) -> None:
    with a_machine(tmp_path / "x", team, token="wrong") as memory:
        memory.record("mine", "user", "the walrus")
        refused = memory.search("walrus", remote=True)
    with a_machine(tmp_path / "x", team, "push.url=") as memory:
        unset = memory.search("walrus", remote=True)

    assert [len(each.hits) for each in (refused, unset)] == [1, 1]
    assert "answered 401" in refused.notices[-1]
    assert "push.url is not set" in unset.notices[-1]


ANSWERS: list[Any] = [
    None, [], "x", {}, {"results": None}, {"results": [1, None, []]},
    {"results": [{"source": "message"}]},
    {"results": [{"source": "x", "strength": "fair", "excerpt": "x", "score": 1}]},
    {"results": [{"source": "message", "strength": "fair", "excerpt": 1, "score": 1}]},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_an_answer_that_makes_no_sense_finds_nothing(number: int) -> None:
    assert parse_hits(ANSWERS[number], "https://x") == []


def a_hit(score: float, **parts: float) -> Hit:
    listed = tuple(ScorePart(name, value) for name, value in parts.items())
    return Hit(HitSource.MESSAGE, score, Strength.FAIR, "x", "x", parts=listed)


def test_the_side_with_the_poorer_best_match_is_scaled_down() -> None:
    ours = [a_hit(1.0, bm25=10, cosine=0.8), a_hit(0.4, bm25=4, cosine=0.4)]
    theirs = [a_hit(1.0, bm25=5, cosine=0.4)]

    assert [round(hit.score, 3) for hit in merge(ours, theirs)] == [1.0, 0.5, 0.4]


def test_what_answers_well_by_itself_comes_first() -> None:
    weak = replace(a_hit(1.0, bm25=10), strength=Strength.WEAK)
    strong = replace(a_hit(0.5, bm25=10), strength=Strength.STRONG)

    assert merge([weak], [strong]) == [strong, weak]


def test_a_side_without_vectors_is_compared_by_its_words() -> None:
    ours = [a_hit(1.0, bm25=10, cosine=0.8)]
    theirs = [a_hit(1.0, bm25=10)]

    assert [hit.score for hit in merge(ours, theirs)] == [1.0, 1.0]
    assert [hit.score for hit in merge([], theirs)] == [1.0]
