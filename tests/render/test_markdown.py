"""Conversations as Markdown: nothing that was said can pass for anything else."""

import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from backstory.render.people.markdown import render_conversation, to_quote
from backstory.values.history import Message, Role, Session
from backstory.values.structs import replace
from tests.grid import in_one_test

SESSION = Session(
    1, "claude-code", "id", "A title", None, None, None, None, None, 1, "", None
)
MESSAGE = Message(1, 1, "m1", 0, Role.USER, "")
# A renderer that shows HTML, as those of editors do.
PARSER = MarkdownIt("commonmark").enable("table")


def render(session: Session, *messages: Message, title: str = "A title") -> str:
    return "\n".join(render_conversation(session, messages, title=title))


def our_headings(page: str) -> list[str]:
    """The headings outside of quotes, and whatever else is not ours."""
    found, depth = [], 0
    tokens = PARSER.parse(page)
    for number, token in enumerate(tokens):
        depth += (token.type == "blockquote_open") - (token.type == "blockquote_close")
        if token.type == "heading_open" and not depth:
            found.append(f"{token.tag} {tokens[number + 1].content}")
        inline = token.children or []
        if token.type == "html_block" or any(
            child.type in ("html_inline", "image") for child in inline
        ):
            found.append(f"ACTIVE {token.content}")
    return found


FORGED = (
    "## User · 2026-02-20 12:00 UTC",
    "x\n\n## User\n\n> y",
    "</blockquote>\n\n<h2>User</h2>",
    "a <b>c</b> `<i>`",
    "![x](http://example.com/x.png)",
    "![x]\n\n[x]: http://example.com/x.png",
    "```\nnot closed",
    "~~~\n```\n````````",
    "<!-- hidden",
    "<script>alert(1)</script>",
    "Setext\n===",
    "a\r## User\r\n## User\x0b## User\u2028## User\x85## User",
    "- a\n\n  - b\n\n      <div>",
    "| a |\n|---|\n| <b> |",
    "\\<b> \\\\<b> \\\\\\<b>",
    "> > </blockquote>",
    "\t<div>\n    <div>",
    "<a\nhref='x'>",
    "a `\n` <b> `",
    "&lt;b&gt;",
)


@in_one_test("role", {role.value: role for role in Role})
@in_one_test("text", {text: text for text in FORGED})
def test_no_text_can_pass_for_a_heading_or_have_an_effect(
    role: Role, text: str
) -> None:
    odd = replace(MESSAGE, role=role, text=text, tool_name=text)
    session = replace(
        SESSION,
        host=text,
        native_id=text,
        project=text,
        git_branch=text,
        parent_id=text,
    )

    page = render(session, odd, replace(MESSAGE, text="end"), title=text)

    headings = our_headings(page)
    levels = [each[:2] for each in headings]
    assert levels == ["h1", "h2" if role is Role.USER else "h3", "h2"]
    assert headings[2] == "h2 Task"


@given(st.text(alphabet="<>!`[]()\\/ab\n \"'=-#|~:.&;", max_size=40))
def test_prose_has_no_effect_whatever_it_is(text: str) -> None:
    assert our_headings(to_quote(text) or "") == []


def test_code_is_left_as_it_is() -> None:
    text = "Use `Vec<T>`:\n\n```html\n<div>![x](y)</div>\n```\n\n1 < 2 and a<1"

    assert to_quote(text) == "\n".join(
        f"> {line}".rstrip() for line in text.split("\n")
    )


def test_arguments_of_tools_are_shown_with_their_line_ends() -> None:
    call = replace(
        MESSAGE,
        role=Role.TOOL_CALL,
        tool_name="Edit",
        text='{"path": "a.py", "new": "x = 1\\ny = 2", "all": false}',
    )

    page = render(SESSION, call)

    assert page.endswith(
        "### Tool call · `Edit`\n"
        "\n"
        "```\n"
        "path: a.py\n"
        "new:\n"
        "    x = 1\n"
        "    y = 2\n"
        "all: false\n"
        "```"
    )


def test_long_output_of_tools_is_cut_and_prose_is_not() -> None:
    output = replace(MESSAGE, role=Role.TOOL_RESULT, text="x" * 9_000)
    prose = replace(MESSAGE, text="y" * 9_000)

    page = render(SESSION, output, prose)

    assert 1_900 < page.count("x") < 2_100
    assert page.count("y") == 9_000
    assert re.search(r"\[… [\d,]+ characters …\]", page)
