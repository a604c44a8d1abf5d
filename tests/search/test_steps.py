"""What an agent says on its way stands after what answers, however near it is."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from backstory.memory import Memory
from tests.samples import a_memory

# One process fills the memory that all of them ask.
pytestmark = pytest.mark.xdist_group("steps")

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
# What was asked, the steps to it, and what it came to.
TURNS = (
    (
        "Why does the nightly import fail?",
        (
            "Now let's run the tests again:",
            "Let me check the exit code of the import:",
            "Now let me run the tests to see if they pass.",
        ),
        "The import ends with exit code 3 when a supplier's file is empty: "
        "read_supplier() takes the first line for granted. It skips empty files now, "
        "and two tests cover that.",
    ),
    (
        "The checkout is slow since last week, please have a look",
        (
            "Let me look at the logging of the checkout.",
            "Let's run the tests to make sure that nothing is broken:",
            "Now let me run the tests.",
        ),
        "Verbose logging was on in production: every request wrote 40 lines to disk. "
        "I set the level to WARNING in settings/production.py; a checkout takes 120 "
        "milliseconds again.",
    ),
    (
        "CI is red on the release branch",
        (
            "Let me read the workflow of the CI.",
            "Great! Let me run another failing test:",
            "Now run the tests:",
        ),
        "Three tests were failing in CI because the time zone there is UTC: they "
        "compared local dates. They freeze the clock now, and the workflow is green.",
    ),
)
STEPS = frozenset(step for _, steps, _ in TURNS for step in steps)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("steps")
    settings = ("embedder.in_background=false",)
    with a_memory(folder, settings=settings, clock=lambda: NOW) as opened:
        for number, (request, steps, outcome) in enumerate(TURNS):
            said = [("user", request)]
            for step in steps:
                said += [("assistant", step), ("tool_result", "ok")]
            said.append(("assistant", outcome))
            for place, (role, text) in enumerate(said):
                opened.record(
                    f"session {number}",
                    role,
                    text,
                    sent_at=NOW - timedelta(days=3 * number + 1, minutes=-place),
                    project="/home/mia/shop",
                )
        opened.index()
        opened.embed()
        yield opened


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("exit code", TURNS[0][2]),
        ("logging", TURNS[1][2]),
        ("why did the tests fail", TURNS[2][2]),
        ("failing test in CI", TURNS[2][2]),
        ("how was the failing test fixed?", TURNS[2][2]),
    ],
)
def test_the_outcome_of_a_turn_stands_before_the_steps_of_any(
    memory: Memory, query: str, answer: str
) -> None:
    assert memory.search(query).hits[0].text == answer


@pytest.mark.parametrize(
    ("query", "steps_first"),
    [
        ("run the tests", 1),
        # This means just what it says.
        ('"run the tests"', 5),
    ],
)
def test_a_few_plain_words_mean_more_than_the_steps_that_have_them(
    memory: Memory, query: str, steps_first: int
) -> None:
    is_step = [hit.text in STEPS for hit in memory.search(query).hits]

    assert is_step.index(False) == steps_first


def test_many_plain_words_may_mean_a_step(memory: Memory) -> None:
    query = "let me run the tests to see if they pass"

    assert memory.search(query).hits[0].text == f"Now {query}."


def test_what_nobody_talked_about_is_not_answered_by_steps(memory: Memory) -> None:
    found = memory.search("flaky test")

    strong = [hit.text for hit in found.hits if hit.strength != "weak"]
    assert [text for text in strong if text in STEPS] == []
