"""In conversations of people, a question about one of them is answered by that one."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.samples import a_memory

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
CHAT = (
    "John: Maria, Maria, what do you plan for the weekend?",
    "Maria: My plan is a long hike.",
    "John: Maria, is that a plan for this weekend or the next weekend?",
    "Maria: This one, and no work.",
    "John: I will plan the office party, that is my weekend.",
    "Maria: Poor you.",
)


@pytest.mark.parametrize(
    ("query", "speaker"),
    [
        ("What did Maria plan?", "Maria"),
        ("What is John's plan?", "John"),
        # In small letters it may be any word, and two may both be meant.
        ("maria plan weekend", "John"),
        ("Did Maria and John plan the weekend?", "John"),
    ],
)
def test_what_the_one_who_is_named_said_comes_first(
    tmp_path: Path, query: str, speaker: str
) -> None:
    by_words = ("embedder.name=none",)
    with a_memory(tmp_path, settings=by_words, clock=lambda: NOW) as memory:
        for number, text in enumerate(CHAT):
            at = NOW - timedelta(minutes=30 - number)
            memory.record("chat", "user", text, sent_at=at)
        first = memory.search(query, sources=["message"]).hits[0]

    assert first.text.partition(":")[0] == speaker


def test_a_label_that_the_query_has_in_capitals_is_no_speaker(tmp_path: Path) -> None:
    said = ("Plan: buy tea", "We plan to buy tea in the plan shop, Plan B", "Plan: go")
    by_words = ("embedder.name=none",)
    with a_memory(tmp_path, settings=by_words, clock=lambda: NOW) as memory:
        for text in said:
            memory.record("chat", "user", text, sent_at=NOW)
        hits = memory.search("Plan shop", sources=["message"]).hits

    assert {hit.text: hit.part("role") for hit in hits} == dict.fromkeys(said, 1.0)
