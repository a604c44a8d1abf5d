"""What Backstory gave an agent is not read back from the agent program's transcript."""

from pathlib import Path

import pytest

from tests.builders import SESSION, append
from tests.live_transcripts import Log, each_program
from tests.samples import a_memory

# As programs have been seen to call a tool of a server.
NAMES = (
    "mcp__backstory__search_history",
    "mcp_backstory_search_history",
    "backstory-search_history",
    "mcp__plugin_backstory_backstory__search_history",
)


@each_program
@pytest.mark.parametrize("name", NAMES)
def test_neither_what_hooks_add_nor_what_our_tools_return_is_kept(
    tmp_path: Path, home: Path, log: Log, name: str
) -> None:
    append(
        log.file(home, SESSION),
        log.start(SESSION),
        log.prompt("Where did we eat?", "1"),
        log.call(name, "c1", query="eat"),
        log.result(name, "c1", "RECALLED: at the Sakura"),
        log.call("shell", "c2", command="ls"),
        log.result("shell", "c2", "menu.txt"),
        log.answer("At the Sakura.", "2"),
    )

    with a_memory(tmp_path, home=home, settings=("embedder.name=none",)) as memory:
        memory.index()
        (session,) = memory.sessions()
        kept = [message.text for message in memory.messages(session)]

    assert [text for text in kept if "RECALLED" in text or "MEMCTX" in text] == []
    assert {"Where did we eat?", "menu.txt", "At the Sakura."} <= set(kept)
