"""Which hits are worth putting into a prompt."""

from pathlib import Path

import pytest

from backstory.search.worth import choose_worthy
from backstory.values.history import Message, Role
from backstory.values.hits import Hit, HitSource, ScorePart, Strength
from backstory.values.structs import replace
from tests.grid import cases

SHOP = Path("/home/ada/shop")
TEXT = (
    "We moved invoices to PostgreSQL because SQLite could not take the nightly import "
    "while accountants were writing; backups run hourly."
)


def a_hit(
    *,
    cosine: float = 0.5,
    passage: float = 0.0,
    rarity: float = 1.0,
    agentic: float = 1.0,
    project: str | None = str(SHOP),
) -> Hit:
    parts = (
        ScorePart("cosine", cosine),
        ScorePart("passage", passage),
        ScorePart("rarity", rarity),
        ScorePart("agentic", agentic),
    )
    return Hit(
        HitSource.MESSAGE,
        0.4,
        Strength.FAIR,
        TEXT,
        TEXT,
        role=Role.ASSISTANT,
        project=project,
        parts=parts,
    )


@cases(
    ("hit", "is_worth_it"),
    [
        (a_hit(), True),
        (a_hit(project=str(SHOP / "web")), True),
        (a_hit(project=None), True),
        # Near, but with no rare words; rare words, but far.
        (a_hit(rarity=0.1), False),
        (a_hit(cosine=0.55, rarity=0.5), False),
        (a_hit(cosine=0.65, rarity=0.5), True),
        (a_hit(cosine=0.2), False),
        # A long message is far as a whole, and near by one of its passages.
        (a_hit(cosine=0.28, passage=0.6), True),
        (a_hit(cosine=0.28, passage=0.35), False),
        # Another project needs stronger evidence.
        (a_hit(project="/home/ada/garden"), False),
        (a_hit(project="/home/ada/garden", cosine=0.7), True),
        # Without a vector, only rare words of the same project count.
        (a_hit(cosine=0.0, rarity=1.2), True),
        (a_hit(cosine=0.0, rarity=1.0), False),
        (a_hit(cosine=0.0, rarity=1.2, project="/home/ada/garden"), False),
        # An order or a step says nothing; an answer in a chat or a note may be short.
        (replace(a_hit(), text="Now let me run the tests of the import"), False),
        (replace(a_hit(), text="Commit the import", role=Role.USER), False),
        (replace(a_hit(agentic=0.0), text="The key is in drawer 20"), True),
        (replace(a_hit(agentic=0.0), text="Invoices: PostgreSQL", role=None), True),
        (replace(a_hit(), role=Role.TOOL_RESULT), False),
    ],
)
def test_a_hit_is_worth_it_if_it_is_near_and_shares_rare_words(
    hit: Hit, is_worth_it: bool
) -> None:
    assert choose_worthy([hit], SHOP) == ([hit] if is_worth_it else [])


@pytest.mark.parametrize(
    ("role", "project", "is_worth_it"),
    [
        (Role.USER, str(SHOP), True),
        # How an order was carried out elsewhere helps nobody here.
        (Role.USER, "/home/ada/garden", False),
        # And a step says no more because of what it came to.
        (Role.ASSISTANT, str(SHOP), False),
    ],
)
def test_an_answer_counts_with_a_short_question_of_the_same_project(
    role: Role, project: str, is_worth_it: bool
) -> None:
    asked = replace(
        a_hit(cosine=0.9, project=project),
        text="Where are the invoices of customers stored?",
        role=role,
        reply=Message(7, 1, "7", 2, Role.ASSISTANT, TEXT),
    )

    assert choose_worthy([asked], SHOP) == ([asked] if is_worth_it else [])


def test_the_best_come_first_and_much_worse_ones_are_left_out() -> None:
    best, good, poor = a_hit(cosine=0.6), a_hit(cosine=0.5), a_hit(cosine=0.38)

    assert choose_worthy([poor, good, best], SHOP) == [best, good]
    assert choose_worthy([poor], SHOP) == [poor]


def test_what_a_search_ranks_high_helps_as_much_as_what_is_near_by_itself() -> None:
    near = a_hit(cosine=0.8)
    first = replace(a_hit(cosine=0.4), score=0.6)
    third = replace(a_hit(cosine=0.6), score=0.5)
    poor = replace(a_hit(cosine=0.4), score=0.3)

    assert choose_worthy([first, third, near, poor], SHOP) == [near, first, third]


def on_day(hit: Hit) -> Hit:
    return replace(hit, parts=(*hit.parts, ScorePart("day", 1.0)))


def test_on_a_day_that_the_prompt_asks_for_whatever_answers_is_wanted() -> None:
    said = on_day(a_hit(cosine=0.1, rarity=0.1))
    weak = replace(said, strength=Strength.WEAK)

    assert choose_worthy([a_hit(), said, weak], SHOP, asks_for_days=True) == [said]


def test_on_a_day_that_the_prompt_only_names_less_is_enough() -> None:
    near = on_day(a_hit(cosine=0.3, rarity=0.45))
    strong = replace(on_day(a_hit(cosine=0.2, rarity=0.3)), strength=Strength.STRONG)
    # "The tests fail since Monday": much of that day is about tests.
    common = on_day(a_hit(cosine=0.4, rarity=0.3))
    far = on_day(a_hit(cosine=0.1, rarity=0.7))
    alone = a_hit(cosine=0.0, rarity=0.3)
    half, third = (
        replace(on_day(alone), parts=(*on_day(alone).parts, ScorePart("coverage", it)))
        for it in (0.5, 0.35)
    )
    days = [near, strong, common, far, half, third]

    assert choose_worthy(days, SHOP) == [near, strong, half]
    assert choose_worthy([a_hit(cosine=0.3, rarity=0.45), common], SHOP) == []
    assert choose_worthy([common, a_hit()], SHOP) == [a_hit()]


def test_on_a_named_day_too_thanks_and_other_projects_are_left_out() -> None:
    thanks = on_day(replace(a_hit(), text="thanks!", role=Role.USER))
    elsewhere = on_day(a_hit(project="/home/ada/garden"))

    assert choose_worthy([thanks, elsewhere], SHOP, asks_for_days=True) == []


def test_where_no_project_is_known_all_projects_count_alike() -> None:
    hits = [a_hit(), a_hit(project="/home/ada/garden")]

    assert choose_worthy(hits, None) == hits
