"""Calls of our own tools and commands are known; nothing else is taken for one."""

import pytest

from backstory.text.own_calls import is_own_tool_call
from tests.grid import cases


@pytest.mark.parametrize(
    "name",
    [
        "mcp__backstory__search_history",
        "backstory-memory_search",
        "mcp__backstory__read_session",
        "backstory.get_conversation_item",
        "backstory/save_memory",
        "Backstory:Update_Memory",
    ],
)
def test_a_tool_of_ours_is_recall_under_every_host_s_name_for_it(name: str) -> None:
    assert is_own_tool_call(name)


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "Bash",
        "search_history",
        "search_conversation_history",
        "mcp__memory__search_history",
        "mybackstory.search_history",
    ],
)
def test_another_tool_is_no_recall(name: str | None) -> None:
    assert not is_own_tool_call(name)


@cases(
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
        pytest.param('{"commands":["cd x","backstory search y"]}', id="several"),
        pytest.param('{"command":"C:\\\\bin\\\\backstory.exe search x"}', id="Windows"),
        pytest.param("backstory memory show", id="the long-term memory"),
        pytest.param("backstory memory add 'likes tea'", id="what it says is noted"),
        pytest.param("backstory logs yesterday", id="a daily log"),
        pytest.param("backstory search x 2>&1 | head -20", id="filtered"),
        pytest.param("A=1 uv run backstory search x", id="with a variable"),
        pytest.param("for q in a b; do backstory search $q; done", id="in a loop"),
        pytest.param('echo "== x"; backstory search x', id="with a heading"),
        pytest.param('["bash","-lc","cd x && backstory search y"]', id="a shell's"),
        pytest.param("set -e; export A=1; backstory logs", id="after settings"),
        pytest.param("source .venv/bin/activate && backstory logs", id="activated"),
        pytest.param('cd "$(git root)" && backstory search x', id="in a folder"),
        pytest.param("backstory show x | sed -n '1,40p'", id="some lines"),
        pytest.param("backstory show x | sed -E 's/\\s+$/!/g'", id="replaced"),
        pytest.param("backstory show x | grep -in -A 3 'a b'", id="matching lines"),
        pytest.param("backstory logs | cut -d ' ' -f2 | sort -u", id="two filters"),
        pytest.param("backstory search x --json | jq -r '.hits[]'", id="of its JSON"),
    ],
)
def test_our_command_in_a_shell_is_recall(command: str) -> None:
    assert is_own_tool_call("Bash", command)


@cases(
    "command",
    [
        pytest.param("backstory index", id="a command that recalls nothing"),
        pytest.param("backstory memory --json", id="figures of the notes"),
        pytest.param("mybackstory search x", id="a name that ends like ours"),
        pytest.param("backstory-search x", id="a name that begins like ours"),
        pytest.param("cat backstory/searching.py", id="a path"),
        pytest.param("rg search backstory", id="another order"),
        pytest.param("backstory showcase", id="a longer word"),
        pytest.param("grep -r 'backstory search' docs", id="what a search is for"),
        pytest.param('rg "backstory show" | head', id="the same, filtered"),
        pytest.param("cat notes.txt; backstory search x", id="beside another command"),
        pytest.param("backstory search x && cat notes.txt", id="before another"),
        pytest.param("cat notes.txt | backstory search x", id="behind another"),
        pytest.param("echo $(cat notes.txt); backstory search x", id="in an echo"),
        pytest.param("git commit -m 'fix backstory search'", id="in a message"),
        pytest.param("backstory search 'x", id="a quotation that does not end"),
        pytest.param('{"content":"backstory search x"}', id="not a command"),
        pytest.param(". ./deploy.sh; backstory search x", id="after a script"),
        pytest.param("source ci.sh && backstory show x | head", id="sourced"),
        pytest.param("env; backstory search x", id="after env"),
        pytest.param("env A=1; backstory search x", id="after env with a variable"),
        pytest.param("set; backstory search x", id="after set"),
        pytest.param("set -o; backstory search x", id="after a list of options"),
        pytest.param("export; backstory logs", id="after export"),
        pytest.param("export -p; backstory logs", id="after a list of variables"),
        pytest.param('A="$(make)"; echo "$A"; backstory logs', id="a variable's"),
        pytest.param('for x in "$(make)"; do echo $x; done; backstory logs', id="loop"),
        pytest.param('["bash","ci.sh","backstory search x"]', id="a script's argument"),
        pytest.param("backstory search x | cat - deploy.log", id="with a file"),
        pytest.param("backstory search x | head < deploy.log", id="fed from a file"),
        pytest.param("backstory search x | grep -r zulu /etc", id="with a folder"),
        pytest.param("backstory search x | grep -r zulu", id="with all that is here"),
        pytest.param("backstory search x | grep -f a b", id="with a file of patterns"),
        pytest.param("backstory search x | awk 'BEGIN{system(\"make\")}'", id="awk"),
        pytest.param("backstory search x | sed '1e make'", id="sed that runs"),
        pytest.param("backstory search x | sed 's/a/make/e'", id="sed s///e"),
        pytest.param("backstory search x | sed 's/\\//p/e'", id="sed s/\\//p/e"),
        pytest.param("backstory search x | sed '1r deploy.log'", id="sed that reads"),
        pytest.param("backstory search x | jq -n env", id="jq that prints variables"),
        pytest.param("backstory search x | sort --files0-from=a", id="a long option"),
        pytest.param('backstory search x | grep "$(make)"', id="in a pattern"),
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
