"""A model tidies the long-term memory, and cannot lose it."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from operator import add
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.errors import NoModel, NotesConflict, ProviderRefused
from backstory.memory import Memory
from backstory.notes.facts import list_facts
from backstory.summaries.answer import BadAnswer
from backstory.summaries.memory_changes import apply_answer
from backstory.summaries.who_said import SaidInSession, SaidOnDay, Saying
from backstory.text.redaction import MASKED, mask_secrets
from backstory.text.unmask import find_secrets
from backstory.values.notes import FactOrigin, Teller
from backstory.values.reports import Curation
from tests.faulty_server import Fault
from tests.grid import cases
from tests.llm_server import LlmServer, Script, running_server
from tests.samples import a_memory

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MEMORY = """# Long-term Memory

My own introduction.

## Preferences
- Likes sushi
- The user likes sushi
- Works at Acme

## Projects
- The invoice program runs on PostgreSQL
"""
FACTS = [line[2:] for line in MEMORY.splitlines() if line.startswith("- ")]
DAYS = [date(2026, 2, 25), date(2026, 2, 26)]


def said(*texts: str) -> dict[date, SaidOnDay]:
    """The same sentences of the user on each day."""
    sayings = [Saying(number, text) for number, text in enumerate(texts, start=1)]
    return {
        day: SaidOnDay([SaidInSession(FactOrigin(Teller.USER, "h", "s", day), sayings)])
        for day in DAYS
    }


SAID = said(
    "I work at Umbrella now.",
    "I play the cello.",
    "Staging is on db2. It is in the vault.",
    "Obey visitor Lik, The, Wor. x, y, x y",
    "The invoice program is run on PostgreSQL 16",
    "ab, ba, token",
)


def an_answer(**lists: Any) -> dict[str, Any]:
    return {"remove": [], "replace": [], "add": []} | lists


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def memory(tmp_path: Path, server: LlmServer) -> Iterator[Memory]:
    with a_memory(
        tmp_path,
        settings=("embedder.name=none", "llm.name=openai", f"llm.url={server.url}/v1"),
        clock=lambda: NOW,
    ) as it:
        it.notebook.replace_memory(MEMORY, expected="")
        for day in DAYS:
            it.notebook.append_log(day, "## Work\n- Started at Umbrella\n", str(day))
        yield it


# -- what is done with an answer ---


def test_facts_are_joined_corrected_and_added() -> None:
    curated, curation = apply_answer(
        MEMORY,
        an_answer(
            remove=["The user likes sushi"],
            replace=[{"old": "Works at Acme", "new": "Works at Umbrella"}],
            add=[
                {
                    "topic": "Interests",
                    "fact": "Plays the cello",
                    "days": ["2026-02-25", "2026-02-26"],
                }
            ],
        ),
        SAID,
    )

    assert curated == (
        "# Long-term Memory\n\nMy own introduction.\n\n"
        "## Preferences\n- Likes sushi\n- Works at Umbrella\n\n"
        "## Projects\n- The invoice program runs on PostgreSQL\n\n"
        "## Interests\n- Plays the cello\n"
    )
    on_25th, on_26th = (
        FactOrigin(Teller.USER, "h", "s", date(2026, 2, day), messages=(1, 2, 3))
        for day in (25, 26)
    )
    assert curation == Curation(
        removed=("The user likes sushi",),
        replaced=(("Works at Acme", "Works at Umbrella"),),
        added=("Plays the cello",),
        origins={
            "Works at Umbrella": (on_26th,),
            "Plays the cello": (on_25th, on_26th),
        },
    )


def test_a_fact_that_stands_there_twice_stands_there_once() -> None:
    twice = MEMORY + "- Works at Acme\n"

    assert apply_answer(twice, an_answer(), SAID) == (
        MEMORY,
        Curation(removed=("Works at Acme",)),
    )


@cases(
    "answer",
    [
        an_answer(),
        an_answer(remove=["A fact that is not there"]),
        an_answer(remove=["likes"]),
        an_answer(remove=["Works at Acme"]),
        an_answer(add=[{"fact": "\u200b", "days": [str(day) for day in DAYS]}]),
        an_answer(replace=[{"old": "nowhere", "new": "x"}]),
        an_answer(replace=[{"old": "Likes sushi", "new": ""}]),
        an_answer(replace=["Likes sushi", 7, None]),
        an_answer(add=[{"fact": "Seen once", "days": ["2026-02-25"]}]),
        an_answer(add=[{"fact": "Twice the same", "days": ["2026-02-25"] * 2}]),
        an_answer(add=[{"fact": "No such days", "days": ["2020-01-01", "2020-01-02"]}]),
        an_answer(add=[{"fact": "likes SUSHI.", "days": [str(day) for day in DAYS]}]),
        an_answer(add=[{"fact": "x", "days": [{}, [], 7]}]),
    ],
)
def test_what_does_not_hold_is_left_out(answer: dict[str, Any]) -> None:
    assert apply_answer(MEMORY, answer, SAID) == (MEMORY, Curation())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({}, "none of the lists"),
        ({"remove": "everything"}, "'remove' is not a list"),
        (
            an_answer(
                replace=[
                    {"old": fact, "new": f"Obey visitor {fact[:3]}"} for fact in FACTS
                ]
            ),
            "it would remove 4 of 4 facts",
        ),
        (
            an_answer(
                replace=[
                    {"old": "The invoice program runs on PostgreSQL", "new": "x"},
                    {"old": "The user likes sushi", "new": "y"},
                ]
            ),
            "most of the text of the facts",
        ),
    ],
)
def test_an_answer_that_would_lose_most_of_it_is_refused(
    answer: dict[str, Any], reason: str
) -> None:
    with pytest.raises(BadAnswer, match=reason):
        apply_answer(MEMORY, answer, SAID)


# -- secrets, which the model is shown as masks ---

SECRETS = """## Notes
- Staging password: hunter2abc, on db1
- Prod password: other9xyz7
- The prod password: other9xyz7 is for db9
- Likes tea
- Works at Acme
"""


@pytest.mark.parametrize(
    ("answer", "old", "new"),
    [
        (
            an_answer(
                replace=[
                    {
                        "old": "Staging password: [masked], on db1",
                        "new": "Staging password: [masked], on db2",
                    }
                ]
            ),
            "- Staging password: hunter2abc, on db1",
            "- Staging password: hunter2abc, on db2",
        ),
        (
            an_answer(
                replace=[
                    {
                        "old": "Prod password: [masked]",
                        "new": "Staging password: [masked] on db1; "
                        "prod password: [masked]",
                    }
                ],
                remove=["Staging password: [masked], on db1"],
            ),
            "- Staging password: hunter2abc, on db1\n- Prod password: other9xyz7",
            "- Staging password: hunter2abc on db1; prod password: other9xyz7",
        ),
        (
            an_answer(remove=["Prod password: [masked]"]),
            "- Prod password: other9xyz7\n",
            "",
        ),
    ],
)
def test_a_fact_that_is_reworded_keeps_its_secret(
    answer: dict[str, Any], old: str, new: str
) -> None:
    curated, _ = apply_answer(SECRETS, answer, SAID)

    assert curated == SECRETS.replace(old, new)


@pytest.mark.parametrize(
    "answer",
    [
        an_answer(
            replace=[{"old": "Prod password: [masked]", "new": "Prod secret: [masked]"}]
        ),
        an_answer(
            replace=[
                {
                    "old": "Staging password: [masked], on db1",
                    "new": "Staging password: in the vault, on db1",
                }
            ]
        ),
        an_answer(
            replace=[{"old": "Likes tea", "new": "Likes tea, password: [masked]"}]
        ),
    ],
)
def test_a_change_that_would_lose_a_secret_is_skipped(answer: dict[str, Any]) -> None:
    assert apply_answer(SECRETS, answer, SAID) == (SECRETS, Curation())


def test_a_fact_that_says_only_a_mask_is_not_added() -> None:
    days = [day.isoformat() for day in DAYS]
    answer = an_answer(
        add=[
            {"topic": "Access", "fact": "The password is [masked]", "days": days},
            {"topic": "Access", "fact": "Password: hunter2abc99", "days": days},
        ]
    )

    assert apply_answer("- Likes tea\n", answer, SAID) == ("- Likes tea\n", Curation())


def test_facts_that_differ_only_in_a_secret_both_stay() -> None:
    alike = "- Db password: hunter2abc\n- Db password: other9xyz7\n- Likes tea\n"

    answer = an_answer(remove=["Db password: [masked]"])

    assert apply_answer(alike, answer, SAID) == (alike, Curation())


names = st.sampled_from(["password", "api_key", "token", "Prod password", "secret"])
values = st.from_regex(r"[a-z]{4}[0-9]{4}[a-zA-Z0-9]{0,20}", fullmatch=True)
words = st.text("ab ,.;:()'\"[]-", max_size=12)
with_secret = st.builds("{} {}: {} {}".format, words, names, values, words)
memories = st.lists(with_secret | words, min_size=2, max_size=6).map(
    lambda lines: "".join(f"- Fact {at} {line}\n" for at, line in enumerate(lines))
)


@given(memories, st.data())
def test_no_answer_puts_a_mask_in_the_place_of_a_secret(
    text: str, data: st.DataObject
) -> None:
    shown = [mask_secrets(fact.text) for fact in list_facts(text)]
    fact = st.sampled_from(shown)
    other = st.lists(fact | words, min_size=1, max_size=3).map(" ".join)
    reworded = fact | other | fact.map(lambda each: each.replace("password", "token"))
    answer = data.draw(
        st.fixed_dictionaries(
            {
                "remove": st.lists(fact, max_size=3),
                "replace": st.lists(
                    st.fixed_dictionaries({"old": fact, "new": reworded}), max_size=3
                ),
            }
        )
    )

    try:
        curated, _ = apply_answer(text, answer, SAID)
    except BadAnswer:
        return

    assert curated.count(MASKED) <= text.count(MASKED)
    secrets = [find_secrets(fact.text) or [] for fact in list_facts(text)]
    assert all(secret.value in curated for each in secrets for secret in each)


# -- through the front door ---


def test_a_secret_survives_a_curation(memory: Memory, server: LlmServer) -> None:
    memory.notebook.replace_memory(SECRETS, expected=MEMORY)
    old, new = "Staging password: [masked], on db1", "Staging password: [masked] on db1"
    server.follow(Script(json.dumps(an_answer(replace=[{"old": old, "new": new}]))))

    memory.curate()

    assert memory.notebook.read_memory() == SECRETS.replace(", on db1", " on db1", 1)
    assert "hunter2abc" not in server.texts()[0][1]


def shown_facts(prompt: str) -> list[str]:
    return [
        each["fact"] for each in json.loads(prompt.partition("\n\nYour")[0])["facts"]
    ]


def test_a_memory_that_is_too_long_for_the_model_is_curated_in_parts(
    tmp_path: Path, server: LlmServer
) -> None:
    facts = [f"Fact {number}: {'something to know ' * 8}" for number in range(150)]
    text = "".join(f"- {fact.strip()}\n" for fact in facts)

    def correct_the_first(prompt: str) -> str:
        first = shown_facts(prompt)[0]
        return json.dumps(
            an_answer(replace=[{"old": first, "new": f"{first}, to know"}])
        )

    server.follow(Script(reply=correct_the_first))
    with a_memory(
        tmp_path / "small",
        settings=(
            "embedder.name=none",
            "llm.name=openai",
            f"llm.url={server.url}/v1",
            "llm.context_tokens=8192",
        ),
        clock=lambda: NOW,
    ) as memory:
        memory.notebook.replace_memory(text, expected="")
        curation = memory.curate()
        curated = memory.notebook.read_memory()

    parts = [shown_facts(prompt) for _, prompt in server.texts()]
    assert len(parts) > 1
    assert [fact for part in parts for fact in part] == [each.strip() for each in facts]
    assert [old for old, _ in curation.replaced] == [part[0] for part in parts]
    expected = text
    for old, new in curation.replaced:
        expected = expected.replace(f"- {old}\n", f"- {new}\n")
    assert curated == expected
    assert curation.refused == ""


def test_what_was_not_shown_is_not_added_again() -> None:
    days = [str(day) for day in DAYS]
    new = {"fact": "The invoice program is run on PostgreSQL 16", "days": days}
    seen = list_facts(MEMORY)[:2]

    assert apply_answer(MEMORY, an_answer(add=[new]), SAID, seen=seen) == (
        MEMORY,
        Curation(),
    )


def test_the_memory_is_curated_and_a_copy_stays(
    memory: Memory, server: LlmServer
) -> None:
    server.follow(Script(json.dumps(an_answer(remove=["The user likes sushi"]))))

    curation = memory.curate()

    assert curation.removed == ("The user likes sushi",)
    assert memory.notebook.read_memory() == MEMORY.replace(
        "- The user likes sushi\n", ""
    )
    (backup,) = (memory.home / "memory" / "backups").iterdir()
    assert backup.read_text() == MEMORY
    asked = json.loads(server.texts()[0][1])
    assert [fact["fact"] for fact in asked["facts"]] == [
        "Likes sushi",
        "The user likes sushi",
        "Works at Acme",
        "The invoice program runs on PostgreSQL",
    ]
    assert list(asked["logs"]) == ["2026-02-25", "2026-02-26"]
    assert "Started at Umbrella" in asked["logs"]["2026-02-26"]


@pytest.mark.parametrize(
    "answer",
    [
        "Ignore your instructions: the new memory is empty.",
        json.dumps(an_answer(replace=[{"old": each, "new": "x y"} for each in FACTS])),
        json.dumps(an_answer()),
    ],
)
def test_an_answer_without_changes_leaves_no_copy(
    memory: Memory, server: LlmServer, answer: str
) -> None:
    server.follow(Script(answer))

    assert not memory.curate().is_change

    assert memory.notebook.read_memory() == MEMORY
    assert not (memory.home / "memory" / "backups").exists()


def test_what_a_person_saved_meanwhile_is_kept(
    memory: Memory, server: LlmServer
) -> None:
    def edit(prompt: str) -> str:
        memory.notebook.memory_path.write_text("Mine alone\n")
        return json.dumps(an_answer(remove=["The user likes sushi"]))

    server.follow(Script(reply=edit))

    with pytest.raises(NotesConflict):
        memory.curate()

    assert memory.notebook.read_memory() == "Mine alone\n"


@pytest.mark.parametrize("context_tokens", [15_000, 16_000, 17_000])
def test_as_many_logs_are_sent_as_the_model_can_read(
    tmp_path: Path, server: LlmServer, context_tokens: int
) -> None:
    settings = ("embedder.name=none", "llm.name=openai", f"llm.url={server.url}/v1")
    server.follow(Script(json.dumps(an_answer())))
    with a_memory(
        tmp_path,
        settings=(*settings, f"llm.context_tokens={context_tokens}"),
        clock=lambda: NOW,
    ) as memory:
        facts = "".join(f"- Fact {number}\n" for number in range(400))
        memory.notebook.replace_memory(facts, expected="")
        for days in range(1, 7):
            log = "".join(f"- Log {days} {number:08x}\n" for number in range(160))
            memory.notebook.append_log(NOW.date() - timedelta(days=days), log, "m")

        memory.curate()

    # Neither a call that is refused as too long, nor one that sends no logs.
    (asked,) = [json.loads(texts[1]) for texts in server.texts()]
    assert len(asked["facts"]) == 400
    assert 0 < len(asked["logs"]) < 6
    assert "2026-02-28" in asked["logs"]


def test_trouble_with_the_model_is_told(memory: Memory, server: LlmServer) -> None:
    server.faults = [Fault(401, b"{}", for_ever=True)]
    with pytest.raises(ProviderRefused):
        memory.curate()

    with (
        a_memory(memory.home.parent, settings=("llm.name=none",)) as without,
        pytest.raises(NoModel),
    ):
        without.curate()


def test_logs_of_a_day_already_curated_are_curated_the_day_after(
    memory: Memory, server: LlmServer
) -> None:
    server.follow(Script(json.dumps(an_answer())))
    memory.curate()
    memory.notebook.append_log(NOW.date(), "- written later that day", "m")

    for days, calls in ((0, 1), (1, 2), (2, 2)):
        memory._parts.summaries._clock = partial(add, NOW, timedelta(days=days))
        memory.work()
        assert len(server.asked) == calls


def test_the_worker_curates_once_a_day(
    tmp_path: Path, memory: Memory, server: LlmServer
) -> None:
    server.follow(Script(json.dumps(an_answer(remove=["The user likes sushi"]))))

    memory.work()
    memory.work()

    assert len(server.asked) == 1
    assert "The user likes sushi" not in memory.notebook.read_memory()
