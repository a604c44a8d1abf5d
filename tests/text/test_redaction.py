"""What must not be kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.text.redaction import drop_private, is_own_tool_call


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("nothing to hide", "nothing to hide", id="no marks"),
        pytest.param("a <private>b</private> c", "a [private] c", id="one passage"),
        pytest.param("a <PRIVATE>b</Private> c", "a [private] c", id="any case"),
        pytest.param("<private>a\nb</private>", "[private]", id="several lines"),
        pytest.param(
            "<private>a</private> b <private>c</private>",
            "[private] b [private]",
            id="two passages",
        ),
        pytest.param(
            "a<private>b<private>c</private>d</private>e",
            "a[private]e",
            id="a passage in a passage",
        ),
        pytest.param("a <private>b c", "a [private]", id="never closed"),
        pytest.param(
            "a<private>b<private>c</private>d", "a[private]", id="closed once of twice"
        ),
        pytest.param("a </private> b", "a </private> b", id="never opened"),
        pytest.param(
            "a</private>b<private>c", "a</private>b[private]", id="closed, then opened"
        ),
        pytest.param("<privateer>a", "<privateer>a", id="another mark"),
    ],
)
def test_a_private_passage_is_replaced_by_a_mark(text: str, expected: str) -> None:
    assert drop_private(text) == expected


PIECES = st.sampled_from(
    ["<private>", "</private>", "<Private>", "</PRIVATE>", "<", ">"]
)


@given(st.lists(PIECES | st.just("secret"), max_size=12), st.lists(PIECES, max_size=6))
def test_nothing_between_marks_is_left_however_they_nest(
    inside: list[str], after: list[str]
) -> None:
    opened = [piece for piece in inside if piece.lower() != "</private>"]
    text = "kept <private>" + "".join(opened) + "</private>" + "".join(after)

    assert "secret" not in drop_private(text)


@given(st.lists(PIECES | st.text(max_size=3)).map("".join))
def test_what_is_dropped_once_needs_no_dropping_again(text: str) -> None:
    once = drop_private(text)

    assert drop_private(once) == once


@given(st.text())
def test_a_text_without_an_opening_mark_stays_as_it_is(text: str) -> None:
    assert drop_private(text.replace("<", "")) == text.replace("<", "")


@pytest.mark.parametrize(
    "name",
    [
        "search_history",
        "mcp__backstory__search_history",
        "backstory-memory_search",
        "backstory.get_conversation_item",
        "backstory/save_memory",
        "Backstory:Update_Memory",
    ],
)
def test_a_tool_of_ours_is_recall_under_every_host_s_name_for_it(name: str) -> None:
    assert is_own_tool_call(name)


@pytest.mark.parametrize("name", [None, "", "Bash", "research_history", "search_files"])
def test_another_tool_is_no_recall(name: str | None) -> None:
    assert not is_own_tool_call(name)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("backstory search 'the plan'", id="plain"),
        pytest.param("cd /tmp && backstory show 5d0c", id="after another command"),
        pytest.param("~/.local/bin/backstory context", id="with its path"),
        pytest.param("python -m backstory show 5d0c", id="as a module"),
        pytest.param("backstory --home /tmp/x show 5d0c", id="with another home"),
        pytest.param("backstory --home=/tmp/x --set a.b=1 show x", id="with options"),
        pytest.param('{"command":"backstory search x"}', id="in JSON"),
        pytest.param('{"command":"cd x\\nbackstory search y"}', id="on a second line"),
        pytest.param('{"command":["backstory","search","x"]}', id="word by word"),
        pytest.param('{"command":"C:\\\\bin\\\\backstory.exe search x"}', id="Windows"),
        pytest.param("backstory memory show", id="the long-term memory"),
        pytest.param("backstory memory add 'likes tea'", id="what it says is noted"),
        pytest.param("backstory logs yesterday", id="a daily log"),
    ],
)
def test_our_command_in_a_shell_is_recall(command: str) -> None:
    assert is_own_tool_call("Bash", command)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("backstory index", id="a command that recalls nothing"),
        pytest.param("backstory memory --json", id="figures of the notes"),
        pytest.param("mybackstory search x", id="a name that ends like ours"),
        pytest.param("backstory-search x", id="a name that begins like ours"),
        pytest.param("cat backstory/searching.py", id="a path"),
        pytest.param("rg search backstory", id="another order"),
        pytest.param("backstory showcase", id="a longer word"),
    ],
)
def test_another_command_in_a_shell_is_no_recall(command: str) -> None:
    assert not is_own_tool_call("Bash", command)


@pytest.mark.parametrize("name", ["Write", "apply_patch", "str_replace_editor"])
def test_a_command_that_is_written_into_a_file_is_no_recall(name: str) -> None:
    assert not is_own_tool_call(name, '{"content":"To look it up: backstory search x"}')


def test_a_command_full_of_options_is_judged_at_once() -> None:
    # Matched by trying every way to split the equals signs, this took minutes.
    command = "backstory" + " --set ========" * 60

    assert not is_own_tool_call("Bash", command)
