"""Who counts the tokens of a run: its caller, if it can, for every maximum."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory import BadQuery, Memory, RunHistory, RunLimits, most_tokens
from backstory.search.prompt_context import build_context

Count = Callable[[str], int]
LOG = "".join(f"{number:08x}: 9f86 d081 884c 7d65 walnut\n" for number in range(4_000))


def words(text: str) -> int:
    return len(text.split())


def call(run: RunHistory, name: str, **arguments: object) -> str:
    tool = next(tool for tool in run.tools() if tool.name == name)
    return tool.run(**arguments).text


def answers(run: RunHistory) -> list[str]:
    """What the tools answer about a long log."""
    run.record("tool_call", {"path": "log"}, tool_name="read", call_id="c1")
    run.record("tool_result", LOG, call_id="c1")
    return [
        call(run, "search_conversation_history", query="walnut", max_results=20),
        call(run, "get_conversation_item", id="c1"),
        call(run, "get_conversation_item", id="c1", offset=70_001),
    ]


@pytest.mark.parametrize("count", [most_tokens, len, words])
def test_answers_take_what_they_may_as_the_caller_counts(count: Count) -> None:
    with RunHistory(RunLimits(answer_tokens=1_000), count_tokens=count) as run:
        found, page, later = map(count, answers(run))

    assert found <= 1_000
    # A page is cut between lines, so up to a fifth may be left over.
    assert 700 <= page <= 1_000
    assert 700 <= later <= 1_000


def test_answers_are_counted_as_the_last_window_was() -> None:
    with RunHistory(RunLimits(answer_tokens=1_000)) as run:
        run.fit([{"role": "user", "content": "Go on."}], 100_000, count_tokens=words)

        assert all(most_tokens(page) > 1_000 for page in answers(run)[1:])


def test_the_counter_of_a_run_is_that_of_its_windows() -> None:
    messages = [{"role": "user", "content": "one two three four five six seven"}]
    with RunHistory(count_tokens=words) as run, RunHistory() as other:
        fitted = run.fit(messages, 1_000)

        assert fitted.tokens == other.fit(messages, 1_000, count_tokens=words).tokens
        assert fitted.tokens < other.fit(messages, 1_000).tokens


def test_a_counter_that_fails_fails_alone() -> None:
    def fails(text: str) -> int:
        raise OSError("no tokenizer")

    with RunHistory() as run:
        with pytest.raises(OSError, match="no tokenizer"):
            run.fit([{"role": "user", "content": "walnut"}], 100, count_tokens=fails)

        found = call(run, "search_conversation_history", query="walnut")

    assert "> walnut" in found


@pytest.mark.parametrize(
    "answer", [None, 2.5, -1, True, "9"], ids=["none", "half", "less", "bool", "text"]
)
def test_an_answer_that_is_no_number_of_tokens_is_refused(answer: object) -> None:
    def count(text: str) -> int:
        return answer  # type: ignore[return-value]

    with RunHistory(count_tokens=count) as run:
        run.record("user", "walnut")

        with pytest.raises(BadQuery, match="the answer of count_tokens is"):
            run.fit([{"role": "user", "content": "walnut"}], 100)
        assert call(run, "search_conversation_history", query="walnut").startswith(
            "Search failed: the answer of count_tokens is"
        )


@pytest.mark.parametrize("no_function", [5, "most_tokens", {}])
def test_what_is_not_a_function_cannot_count(
    no_function: object, tmp_path: Path
) -> None:
    with pytest.raises(BadQuery, match="not a function"):
        RunHistory(count_tokens=no_function)  # type: ignore[arg-type]
    with pytest.raises(BadQuery, match="not a function"):
        Memory.open(tmp_path, count_tokens=no_function)  # type: ignore[arg-type]
    with RunHistory() as run:
        with pytest.raises(BadQuery, match="not a function"):
            run.fit([], 100, count_tokens=no_function)  # type: ignore[arg-type]
        with pytest.raises(BadQuery, match="not a function"):
            run.wrap(print, count_tokens=no_function)  # type: ignore[arg-type]


# -- a memory -------------------------------------------------------------------------


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    facts = "".join(f"- fact number {number} of many\n" for number in range(150))
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "MEMORY.md").write_text(facts, encoding="utf-8")
    settings = ("embedder.name=none", "run.answer_tokens=1000")
    with Memory.open(tmp_path, settings=settings, count_tokens=words) as made:
        yield made


def test_the_counter_of_a_memory_is_that_of_its_context(memory: Memory) -> None:
    context = memory.context("Tell me all.", max_tokens=300)

    assert context.tokens == words(context.text)
    assert 290 <= context.tokens <= 300


def test_the_counter_of_a_memory_is_that_of_its_runs(
    memory: Memory, tmp_path: Path
) -> None:
    transcript = tmp_path / "later.jsonl"
    with memory.new_run() as run, memory.live_run(transcript=transcript) as live:
        assert all(most_tokens(page) > 1_000 for page in answers(run)[1:])
        assert run.count_tokens("a b c") == live.count_tokens("a b c") == 3


@given(
    st.integers(-10, 400),
    st.sampled_from([most_tokens, len, words, lambda text: 7 * len(text) // 3]),
)
def test_no_context_costs_more_than_it_may_as_the_caller_counts(
    max_tokens: int, count: Count
) -> None:
    memory = "## A\n- one\n\n## B\n- two, " + "x " * 30 + "\n- 三十三\n```\ncode\n```\n"

    context = build_context(memory, [], max_tokens=max_tokens, count_tokens=count)

    assert context.tokens == (count(context.text) if context.text else 0)
    assert context.tokens <= max(0, max_tokens)
