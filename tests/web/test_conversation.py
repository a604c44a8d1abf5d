"""The page of a conversation: a window of it, tools folded, nothing that can run."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from backstory.memory import Memory
from backstory.web.templating import static_folder
from tests.samples import a_memory
from tests.web.hostile import record_hostile
from tests.web.server import Page, Seen, read_page, serve

# One server answers all tests.
pytestmark = pytest.mark.xdist_group("web-conversation")
NOW = datetime(2026, 2, 25, 12, tzinfo=UTC)
LONG = 200
SUBAGENTS = ("boss", "early", "next", "late")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("web")
    settings = ("embedder.name=none",)
    with a_memory(folder, home=folder, settings=settings, clock=lambda: NOW) as memory:
        record_long(memory)
        record_ids(memory)
        record_hostile(memory)
        record_tools(memory)
        record_subagents(memory)
        record_pasted(memory)
        memory.index()
        with serve(memory, folder) as served:
            yield served


def record_long(memory: Memory) -> None:
    said = [
        {"role": "assistant" if each % 2 else "user", "content": f"number {each:03}"}
        for each in range(LONG)
    ]
    memory.record_messages("long", said, title="A long one")


def record_ids(memory: Memory) -> None:
    """Each message has the number of another one as the id that its program gave."""
    first = LONG + 1
    for number in range(140):
        native_id = str(first + (number + 70) % 140)
        text = f"number {number:03}"
        memory.record("ids", "user", text, message=native_id, title="Ids")
    assert next(memory.messages("ids")).message_id == first


def record_tools(memory: Memory) -> None:
    edit = {"file_path": "/a.py", "old_string": "a\nb\nc", "new_string": "a\nB\nc"}
    memory.record("tools", "user", "Please edit it", title="Tools")
    memory.record("tools", "tool_call", json.dumps(edit), tool_name="Edit", call_id="1")
    memory.record("tools", "tool_result", "It is done", call_id="1")
    memory.record("tools", "assistant", "**Done**: `a.py`\n\n```python\nx = 1\n```")
    memory.record("part", "user", "A part of it", title="The part", parent="tools")


def record_subagents(memory: Memory) -> None:
    """A call, and three subagents with its words: before it, after it, and later."""

    def at(minute: int) -> datetime:
        return datetime(2026, 2, 25, 9, minute, tzinfo=UTC)

    call = json.dumps({"description": "Look for writers", "prompt": "Look!"})
    title = "Look for writers (in files)"
    memory.record("boss", "user", "Look!", title="Boss", sent_at=at(0))
    memory.record("boss", "tool_call", call, tool_name="Task", sent_at=at(4))
    for session, minute in (("early", 0), ("next", 5), ("late", 9)):
        memory.record(
            session, "user", "Look!", title=title, parent="boss", sent_at=at(minute)
        )


def numbers(page: Page, path: str) -> list[str]:
    """Which messages of the long conversation a page shows."""
    seen = read_page(page.get(path, **{"Backstory-Part": "messages"}).text)
    return re.findall(r"number (\d+)", seen.text)


def record_pasted(memory: Memory) -> None:
    code = "```js\nconst a = '<b>';\n```"
    text = "\n".join(("Why\n  so?", code, *(f"line {each}" for each in range(60))))
    memory.record("pasted", "user", text, title="Pasted")


def link_to(seen: Seen, kind: str) -> str:
    (found,) = (link for link in seen.links if f"{kind}=" in link)
    return found


# -- a window ---


def test_a_long_conversation_is_read_window_by_window(page: Page) -> None:
    path = "/session/python/long"
    shown: list[str] = []
    while path:
        seen = page.see(path)
        shown += re.findall(r"number (\d+)", seen.text)
        path = next((link for link in seen.links if "after=" in link), "")

    assert shown == [f"{number:03}" for number in range(LONG)]


def test_a_window_around_a_message_leads_to_what_is_before_and_after(
    page: Page,
) -> None:
    (middle,) = page.memory.messages("long", around=-1, context=0)
    at = middle.message_id - 99
    seen = page.see(f"/session/python/long?at={at}")

    earlier = numbers(page, link_to(seen, "before"))
    here = re.findall(r"number (\d+)", seen.text)
    later = numbers(page, link_to(seen, "after"))
    assert here[len(here) // 2] == "100"
    assert earlier + here + later == [f"{each:03}" for each in range(10, 191)]


def test_numbers_are_not_mixed_up_with_the_ids_that_a_program_gave(page: Page) -> None:
    path, shown = "/session/python/ids", list[str]()
    while path:
        seen = page.see(path)
        shown += re.findall(r"number (\d+)", seen.text)
        path = next((link for link in seen.links if "after=" in link), "")

    assert shown == [f"{number:03}" for number in range(140)]


def test_a_window_begins_at_any_message(page: Page) -> None:
    place = "/session/python/long?nr="

    assert numbers(page, f"{place}150") == [f"{each:03}" for each in range(149, 200)]
    assert numbers(page, f"{place}1")[0] == "000"
    assert numbers(page, f"{place}9999") == ["199"]
    assert numbers(page, f"{place}x")[0] == "000"
    assert "1 – 60 of 200" in page.see("/session/python/long").text


def test_a_long_prompt_keeps_its_text_with_its_code_coloured_and_the_rest_folded(
    page: Page,
) -> None:
    html = page.get("/session/python/pasted").text

    assert '<div class="plain">Why\n  so?</div>' in html
    assert """<span class="s1">'&lt;b&gt;'</span>""" in html
    assert '<summary><span class="more">Show 33 more lines</span>' in html
    folded = html.partition('<details class="rest">')[2].partition("</details>")[0]
    assert re.findall(r"line (\d+)", folded) == [str(each) for each in range(27, 60)]
    (message,) = page.memory.messages("pasted")
    link = f"/session/python/pasted?at={message.message_id}"
    assert '<details class="rest" open>' in page.get(link).text


def test_words_are_found_within_a_conversation(page: Page) -> None:
    seen = page.see("/session/python/long?find=NUMBER+19")

    assert "10 messages with these words" in seen.text
    place = next(link for link in seen.links if "at=" in link and "find=" in link)
    assert "number 190" in page.see(place.partition("#")[0]).text


def test_a_conversation_or_message_that_is_not_there_is_a_page_that_says_so(
    page: Page,
) -> None:
    paths = ("/session/python/none", "/session/python/long?at=0")

    assert [page.get(path).status_code for path in paths] == [404, 404]


# -- tools, edits, subagents ---


def test_an_edit_is_a_diff_and_stands_with_its_answer(page: Page) -> None:
    html = page.get("/session/python/tools").text

    diff = re.search(r'<pre class="diff"[^>]*>(.*?)</pre>', html, re.DOTALL)
    assert diff is not None
    assert re.findall(r'<span class="(\w+)">(.*?)\n', diff[1]) == [
        ("same", " a"),
        ("removed", "-b"),
        ("added", "+B"),
        ("same", " c"),
    ]
    folded = re.findall("<details>(.*?)</details>", html, re.DOTALL)
    assert ["It is done" in each for each in folded] == [True]


def test_code_that_a_tool_is_given_is_coloured(page: Page) -> None:
    call = {"file_path": "/a.py", "content": "import os  # <b>\n"}
    page.memory.record("tools-2", "tool_call", json.dumps(call), tool_name="Write")
    shell = {"command": "if true; then echo '<i>'; fi", "description": "Look"}
    page.memory.record("tools-2", "tool_call", json.dumps(shell), tool_name="Bash")

    html = page.get("/session/python/tools-2").text

    assert '<span class="kn">import</span>' in html
    assert "# &lt;b&gt;" in html
    assert '<span class="k">if</span>' in html
    assert "<i>" not in html


def test_what_the_agent_writes_is_shown_as_markdown(page: Page) -> None:
    html = page.get("/session/python/tools").text

    assert "<strong>Done</strong>: <code>a.py</code>" in html
    assert '<span class="n">x</span>' in html


def test_a_conversation_links_to_its_subagents_and_they_to_it(page: Page) -> None:
    assert "/session/python/part" in page.see("/session/python/tools").links
    assert "/session/python/tools" in page.see("/session/python/part").links


# -- hostile content ---


def test_a_subagent_is_read_within_the_call_that_started_it(page: Page) -> None:
    article = page.get("/session/python/boss").text.rpartition("<article")[2]

    links = re.findall(r'href="(/session/[^"]*)"', article)
    assert links == ["/session/python/next", "/session/python/next"]
    assert "1 message" in article


def test_the_last_messages_are_one_click_away(page: Page) -> None:
    assert "/session/python/long?at=-1#end" in page.see("/session/python/long").links
    assert numbers(page, "/session/python/long?at=-1")[-1] == "199"


@pytest.fixture(scope="module")
def hostile_pages(page: Page) -> list[Seen]:
    """All of the hostile conversation, and searches that find it."""
    paths = ["/", "/?q=alert&n=200", "/?q=alert&group=day", "/?q=evil+example&n=200"]
    seen = [page.see(path) for path in paths]
    path = "/session/python/hostile?find=alert"
    while path:
        seen.append(page.see(path))
        path = next((link for link in seen[-1].links if "after=" in link), "")
    return seen


def test_what_conversations_say_becomes_no_element_and_no_attribute(
    hostile_pages: list[Seen],
) -> None:
    allowed = set(
        """
        a article b blockquote body br button code datalist dd del details dialog div dl
        dt em form h1 h2 h3 head header hr html input kbd label li link main mark meta
        nav ol option p pre progress s script section select span strong summary table
        tbody td th thead title tr ul
        """.split()  # noqa: SIM905
    )
    of_ours = set(
        """
        action aria-current aria-hidden aria-label aria-labelledby aria-live
        autocapitalize autocomplete autofocus charset checked class content data-copy
        data-find data-item data-keys data-message data-more data-nested data-nr
        data-total for hidden href id lang list max method min name open placeholder rel
        role scope selected spellcheck src tabindex title type value
        """.split()  # noqa: SIM905
    )

    assert {name for seen in hostile_pages for name in seen.names} <= allowed
    assert {name for seen in hostile_pages for name in seen.attributes} <= of_ours


def test_pages_with_hostile_content_link_and_load_only_what_is_ours(
    hostile_pages: list[Seen],
) -> None:
    reached = {
        value.partition("?")[0]
        for seen in hostile_pages
        for _, attributes in seen.tags
        for name, value in attributes
        if name in ("href", "src", "action")
    }
    scripts = {
        value
        for seen in hostile_pages
        for tag, attributes in seen.tags
        if tag == "script"
        for name, value in attributes
        if name == "src"
    }

    assert reached <= {
        *("/", "/sessions", "/memory", "/logs", "/prompt", "/status", "/forget"),
        *("/settings", "/settings/exclude", "/export"),
        "#main",
        f"{static_folder()}/icon.svg",
        f"{static_folder()}/style.css",
        *scripts,
        *(
            f"/session/python/{name}"
            for name in (
                "hostile",
                "long",
                "ids",
                "tools",
                "part",
                "tools-2",
                "pasted",
                *SUBAGENTS,
            )
        ),
    }
    names = ("keys", "search", "conversation")
    assert scripts == {f"{static_folder()}/{name}.js" for name in names}


def test_characters_that_reorder_or_hide_text_are_made_visible(
    hostile_pages: list[Seen],
) -> None:
    odd = re.compile("[\x00-\x08\x0e-\x1f\u202a-\u202e\u2066-\u2069\u200e\u200f]")

    assert [seen.text for seen in hostile_pages if odd.search(seen.text)] == []


def test_a_message_of_a_megabyte_is_cut_and_shown_whole_on_request(page: Page) -> None:
    first = next(
        each for each in page.memory.messages("hostile") if len(each.text) > 900_000
    )
    whole = page.get(f"/session/python/hostile?raw={first.message_id}")
    window = page.get(f"/session/python/hostile?at={first.message_id}")

    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.text == first.text
    assert f"raw={first.message_id}" in window.text
    assert len(window.text) < 700_000
