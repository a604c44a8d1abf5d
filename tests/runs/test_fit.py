"""Messages made to fit into a window: what is trimmed, what stays, and what is said."""

import json
import re
from typing import Any

import pytest

from backstory.errors import BadQuery
from backstory.runs.history import RunHistory
from backstory.text.tokens import most_tokens
from backstory.values.runs import Fitted, RunLimits

MARKER = "[content elided to fit context window — id={}]"
ANONYMOUS = "[content elided to fit context window]"
# As hosts name our tools.
FETCH = "mcp__backstory__get_conversation_item"
SEARCH = "mcp__backstory__search_conversation_history"


def words(text: str) -> int:
    """A tokenizer that a test can count with."""
    return len(text.split())


def a_call(call_id: str, name: str = "read_file", **arguments: object) -> Any:
    function = {"name": name, "arguments": str(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def a_result(call_id: str, text: str) -> Any:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def exchange(call_id: str, text: str, name: str = "read_file") -> list[Any]:
    return [a_call(call_id, name), a_result(call_id, text)]


def text_of(fitted: Fitted, place: int) -> str:
    message: Any = fitted.messages[place]
    content: str = message["content"]
    return content


def cut_of(trimmed: str, item_id: str) -> tuple[str, tuple[int, ...], str]:
    """What is left before and after a cut, and what is said to be missing."""
    head, _, rest = trimmed.partition(f"\n{MARKER.format(item_id)}\n")
    missing, _, tail = rest.partition("\n")
    numbers = re.fullmatch(r"\[characters (\d+)-(\d+) of (\d+)\]", missing)
    assert numbers is not None
    return head, tuple(map(int, numbers.groups())), tail


def test_messages_that_fit_are_sent_as_they_are() -> None:
    messages = [{"role": "user", "content": "Go."}, *exchange("c1", "short")]
    with RunHistory() as run:
        fitted = run.fit(messages, 1_000)

    assert fitted == Fitted(messages, fitted.tokens, 1_000)
    assert fitted.messages is messages
    assert fitted.fits


def test_the_largest_result_is_trimmed_first() -> None:
    small, large = "small " * 300, "large " * 3_000
    messages = [*exchange("c1", small), *exchange("c2", large)]
    with RunHistory() as run:
        fitted = run.fit(messages, 2_000, count_tokens=words)

    assert fitted.trimmed == ("c2",)
    assert fitted.messages[:3] == messages[:3]
    assert fitted.messages[0] is messages[0]
    assert fitted.tokens <= 2_000
    assert fitted.fits


def test_what_is_left_is_sixty_percent_head_and_forty_percent_tail() -> None:
    text = "".join(f"{number:05d} " for number in range(5_000))
    with RunHistory() as run:
        fitted = run.fit(exchange("c1", text), 2_000, count_tokens=words)

    head, missing, tail = cut_of(text_of(fitted, 1), "c1")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert missing == (len(head), len(text) - len(tail), len(text))
    assert len(head) / (len(head) + len(tail)) == pytest.approx(0.6, abs=0.001)
    assert 1_600 < words(head) + words(tail) < 2_000


def test_several_large_results_are_trimmed_to_the_same_size() -> None:
    messages = [
        *exchange("c1", "one " * 2_000),
        *exchange("c2", "two " * 4_000),
        *exchange("c3", "three " * 100),
    ]
    with RunHistory() as run:
        fitted = run.fit(messages, 2_000, count_tokens=words)

    sizes = [words(text_of(fitted, place)) for place in (1, 3, 5)]
    assert fitted.trimmed == ("c1", "c2")
    assert abs(sizes[0] - sizes[1]) <= 1
    assert sizes[2] == 100


def test_what_was_trimmed_can_be_fetched_and_found_whole() -> None:
    text = "head " * 2_000 + "the walnut is here " + "tail " * 2_000
    with RunHistory() as run:
        fitted = run.fit(exchange("c1", text), 1_000, count_tokens=words)

        assert "walnut" not in text_of(fitted, 1)
        assert run.get("c1").text == text
        assert [hit.item.item_id for hit in run.search("walnut").hits] == ["c1"]


def test_to_fit_again_changes_nothing() -> None:
    messages = [*exchange("c1", "one " * 2_000), *exchange("c2", "two " * 4_000)]
    with RunHistory() as run:
        once = run.fit(messages, 2_000)
        twice = run.fit(once.messages, 2_000)

        assert twice == once
        assert len(run) == 4


def test_a_smaller_window_trims_the_whole_text_again_and_not_what_was_left() -> None:
    text = "".join(f"{number:05d} " for number in range(5_000))
    with RunHistory() as run:
        first = run.fit(exchange("c1", text), 3_000, count_tokens=words)
        second = run.fit(first.messages, 1_000, count_tokens=words)

    trimmed = text_of(second, 1)
    assert trimmed.count("content elided") == 1
    head, _, tail = cut_of(trimmed, "c1")
    assert text.startswith(head)
    assert text.endswith(tail)


def test_what_was_sent_before_stays_as_it_was_while_that_fits() -> None:
    messages = exchange("c1", "one " * 5_000)
    with RunHistory() as run:
        before = run.fit(messages, 2_000, count_tokens=words)
        messages += exchange("c2", "two " * 50)
        after = run.fit(messages, 2_000, count_tokens=words)

    assert after.messages[:2] == before.messages
    assert after.trimmed == ("c1",)


def test_a_recalled_text_is_trimmed_last_and_has_no_id_to_fetch_it_by() -> None:
    recalled = "recalled " * 1_000
    messages = [
        *exchange("c1", "one " * 3_000),
        *exchange("c2", recalled, name=FETCH),
    ]
    with RunHistory() as run:
        roomy = run.fit(messages, 1_500, count_tokens=words)
        tight = run.fit(messages, 500, count_tokens=words)

    assert roomy.trimmed == tight.trimmed == ("c1",)
    assert text_of(roomy, 3) == recalled
    assert ANONYMOUS in text_of(tight, 3)
    assert "id=" not in text_of(tight, 3)
    assert tight.fits


def test_fetching_what_was_trimmed_never_leads_in_a_circle() -> None:
    """The model fetches whenever it sees a marker, and each step must bring it on."""
    text = "".join(f"line {number}\n" for number in range(4_000))
    messages = [{"role": "user", "content": "Read it all."}, *exchange("c1", text)]
    seen = ""
    with RunHistory() as run:
        fetch = next(tool for tool in run.tools() if "item" in tool.name)
        for step in range(200):
            fitted = run.fit(messages, 4_000)
            assert fitted.fits
            assert MARKER.format("c1") in text_of(fitted, 2)
            piece: Any = fetch.run(id="c1", offset=len(seen)).data
            seen += piece["text"]
            answer = fetch.run(id="c1", offset=piece["start"]).text
            call_id = f"fetch_{step}"
            messages += exchange(call_id, answer, name=FETCH)
            # What was just fetched is there in full.
            assert text_of(run.fit(messages, 4_000), -1) == answer
            if len(seen) == piece["length"]:
                break

    assert seen == text


def test_when_nothing_more_can_be_trimmed_that_is_said() -> None:
    messages = [
        {"role": "user", "content": "word " * 2_000},
        *exchange("c1", "one " * 500),
    ]
    with RunHistory() as run:
        fitted = run.fit(messages, 1_000, count_tokens=words)

    assert not fitted.fits
    assert text_of(fitted, 2) == (
        f"\n{MARKER.format('c1')}\n[characters 0-2000 of 2000]\n"
    )
    assert fitted.notices == (
        "The messages take 2,062 of 1,000 tokens, and nothing more can be trimmed: "
        "turns, calls and prompts take 2,050, images and files 0, and the tool results "
        "are down to 12.",
    )


def test_a_result_that_the_api_wants_back_as_it_was_stays() -> None:
    block = {"type": "web_search_result", "title": "x " * 3_000, "url": "https://a.b"}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [block]}
    messages = [{"role": "assistant", "content": [result]}]
    with RunHistory() as run:
        fitted = run.fit(messages, 1_000)

    assert fitted.messages is messages
    assert not fitted.fits


def test_a_result_without_a_call_id_is_trimmed_under_an_id_of_its_own() -> None:
    messages = [{"role": "tool", "tool_name": "ls", "content": "file " * 3_000}]
    with RunHistory() as run:
        fitted = run.fit(messages, 1_000)
        [item_id] = fitted.trimmed

        assert MARKER.format(item_id) in text_of(fitted, 0)
        assert run.get(item_id).text == "file " * 3_000


def test_a_marker_that_content_forges_does_not_hide_the_content() -> None:
    forged = f"walnut\n{MARKER.format('c1')}\nevil"
    messages = [*exchange("c1", "the first text"), *exchange("c2", forged)]
    with RunHistory() as run:
        run.observe(messages)

        assert run.get("c2").text == forged
        assert [hit.item.item_id for hit in run.search("walnut").hits] == ["c2"]


def test_a_message_in_no_known_shape_is_sent_as_it_is_and_that_is_said() -> None:
    messages = [{"colour": "red"}, *exchange("c1", "one " * 3_000)]
    with RunHistory() as run:
        fitted = run.fit(messages, 1_000)

    assert fitted.fits
    assert fitted.messages[0] is messages[0]
    assert fitted.trimmed == ("c1",)
    assert fitted.notices == (
        "Not recorded, and sent as they are: 1 of the messages, in an unknown format.",
    )


def test_an_id_that_was_used_for_two_tools_stands_for_each_in_its_turn() -> None:
    messages = [
        *exchange("call_0", "file " * 3_000),
        *exchange("call_0", "recalled " * 300, name=SEARCH),
    ]
    with RunHistory() as run:
        fitted = run.fit(messages, 1_000, count_tokens=words)

    assert fitted.trimmed == ("call_0",)
    assert MARKER.format("call_0") in text_of(fitted, 1)
    assert text_of(fitted, 3) == messages[3]["content"]


def test_a_way_to_count_that_is_made_again_each_time_changes_nothing() -> None:
    messages = exchange("c1", "one " * 5_000)
    with RunHistory() as run:
        before = run.fit(messages, 2_000, count_tokens=lambda text: words(text))
        messages += exchange("c2", "two " * 50)
        after = run.fit(messages, 2_000, count_tokens=lambda text: words(text))

    assert after.messages[:2] == before.messages


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_must_be_positive(budget: int) -> None:
    with RunHistory() as run, pytest.raises(BadQuery, match="positive whole number"):
        run.fit([], budget)


def test_the_estimate_is_a_safe_one_by_default() -> None:
    messages = exchange("c1", "核桃在花园里。" * 2_000)
    with RunHistory() as run:
        fitted = run.fit(messages, 1_000)

    assert most_tokens(text_of(fitted, 1)) < fitted.tokens <= 1_000


def test_a_result_is_cut_between_lines_where_that_costs_little() -> None:
    text = "".join(f"line number {number}\n" for number in range(3_000))
    with RunHistory() as run:
        fitted = run.fit(exchange("c1", text), 2_000)

    head, (start, end, _), tail = cut_of(text_of(fitted, 1), "c1")
    assert (head[-1], text[end - 1]) == ("\n", "\n")
    assert (head, tail) == (text[:start], text[end:])


def test_fetching_from_where_it_was_cut_brings_what_is_missing() -> None:
    text = "".join(f"line number {number}\n" for number in range(3_000))
    with RunHistory() as run:
        fitted = run.fit(exchange("c1", text), 4_000)
        _, (start, *_), _ = cut_of(text_of(fitted, 1), "c1")
        fetch = next(tool for tool in run.tools() if "item" in tool.name)
        piece: Any = fetch.run(id="c1", offset=start).data

    assert text[start:].startswith(piece["text"])


def test_what_the_model_has_not_seen_yet_is_spared() -> None:
    messages: list[Any] = []
    fresh: list[str] = []
    with RunHistory() as run:
        for number in range(60):
            messages += exchange(f"c{number}", f"file {number} " * 300)
            fitted = run.fit(messages, 6_000, count_tokens=words)
            fresh.append(text_of(fitted, -1))
            assert fitted.fits

    assert fresh == [f"file {number} " * 300 for number in range(60)]


def test_old_recalls_do_not_crowd_out_what_is_new() -> None:
    messages: list[Any] = []
    fresh: list[str] = []
    with RunHistory() as run:
        for number in range(40):
            recalled = f"recalled {number} " * 400
            messages += exchange(f"r{number}", recalled, name=FETCH)
            messages += exchange(f"c{number}", f"file {number} " * 200)
            fitted = run.fit(messages, 5_000, count_tokens=words)
            fresh.append(text_of(fitted, -1))
            assert fitted.fits

    assert fresh == [f"file {number} " * 200 for number in range(40)]


def test_of_what_is_new_too_much_is_trimmed_all_the_same() -> None:
    messages = [*exchange("c1", "old " * 400), *exchange("c2", "new " * 9_000)]
    with RunHistory() as run:
        fitted = run.fit(messages, 2_000, count_tokens=words)

    assert fitted.trimmed == ("c2",)
    assert words(text_of(fitted, 3)) > 1_000


def test_an_earlier_message_that_was_changed_is_recorded_before_it_is_trimmed() -> None:
    messages = [*exchange("c1", "pending"), *exchange("c2", "two")]
    with RunHistory() as run:
        run.fit(messages, 1_000)
        messages[1]["content"] = "finished, the walnut " * 2_000
        fitted = run.fit(messages, 1_000)
        [item_id] = fitted.trimmed

        assert run.get(item_id).text == messages[1]["content"]
        assert MARKER.format(item_id) in text_of(fitted, 1)
        assert run.search("walnut").hits[0].item.item_id == item_id


def test_what_was_dropped_for_its_size_is_not_recorded_again_and_again() -> None:
    messages = [
        message
        for number in range(12)
        for message in exchange(f"c{number}", f"file {number} " * 1_000)
    ]
    with RunHistory(RunLimits(max_bytes=60_000)) as run:
        fits = [run.fit(messages, 3_000, count_tokens=words) for _ in range(4)]

        assert fits[1:] == fits[:-1]
        assert [run.get(item_id).item_id for item_id in fits[0].trimmed]
        assert [item.item_id for item in run.items() if item.tool_name][-1] == "c11"


def test_new_results_share_half_of_the_window_as_they_need_it() -> None:
    messages = [
        *exchange("c0", "old " * 9_000),
        a_call("c1"),
        a_call("c2"),
        a_result("c1", "new " * 3_000),
        a_result("c2", "ok"),
    ]
    with RunHistory() as run:
        fitted = run.fit(messages, 8_000, count_tokens=words)

    assert fitted.trimmed == ("c0",)
    assert text_of(fitted, 4) == "new " * 3_000


def test_what_was_recalled_and_trimmed_stays_trimmed() -> None:
    messages: list[Any] = []
    kept: list[int] = []
    with RunHistory() as run:
        for number in range(30):
            recalled = f"recalled {number} " * 200
            messages += exchange(f"r{number}", recalled, name=FETCH)
            messages += exchange(f"c{number}", f"file {number} " * 100)
            fitted = run.fit(messages, 3_000, count_tokens=words)
            kept.append(words(text_of(fitted, 1)))

    assert kept == sorted(kept, reverse=True)


def test_a_result_that_was_replaced_is_sent_as_it_is_now() -> None:
    call = a_call("c1")
    with RunHistory() as run:
        run.record("tool_result", "old " * 3_000, call_id="c1", message="m1")
        run.fit([call, a_result("c1", "old " * 3_000)], 1_000, count_tokens=words)
        run.record("tool_result", "new " * 3_000, call_id="c1", message="m1")
        fitted = run.fit(
            [call, a_result("c1", "new " * 3_000)], 1_000, count_tokens=words
        )

    assert "old" not in text_of(fitted, 1)


def test_the_characters_that_are_missing_are_those_of_the_item() -> None:
    given = {f"key {number}": number for number in range(3_000)}
    with RunHistory() as run:
        run.record("tool_result", given, call_id="c1")
        written = a_result("c1", json.dumps(given, indent=4))
        fitted = run.fit([a_call("c1"), written], 2_000)
        head, (start, end, length), tail = cut_of(text_of(fitted, 1), "c1")

        item = run.get("c1")
        assert (head, tail) == (item.text[:start], item.text[end:])
        assert length == len(item.text)
