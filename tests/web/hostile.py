"""A conversation that tries to run, load or fake something in the page."""

import json

from backstory.memory import Memory

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=https://evil.example/a.png onerror=alert(1)>",
    "<svg onload=alert(1)><use href='https://evil.example/x#y'/></svg>",
    "[click](javascript:alert(1)) ![a](https://evil.example/b.png)",
    "<https://evil.example> [a]\n\n[a]: https://evil.example",
    "<style>body{background:url(https://evil.example)}</style>",
    "<a href=\"javascript:alert(1)\" style='x'>x</a><iframe src=//evil.example>",
    '"><script>alert(1)</script><p class="hit" onclick=\'alert(1)\'>',
    "</textarea></pre></details></section><form action=//evil.example><button>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example><link rel=stylesheet href=//evil.example>",
    "```html\n<script>alert(1)</script>\n```",
    '```js" onmouseover="alert(1)\ncode\n```',
    "{{ 7 * 7 }} {% raw %} ${7*7} &lt;script&gt;",
    "right\u202eto left\u2066\u200e \x00\x1b[31m \ud800".encode(
        "utf-8", "surrogatepass"
    ).decode("utf-8", "replace"),
    "x" * 1_000_000,
    "*" * 15_000,
    "[" * 15_000,
    "> " * 5_000,
    "`" * 15_000,
    "|a|\n|-|\n" + "|b|\n" * 4_000,
)
ROLES = ("user", "assistant", "tool_call", "tool_result", "system", "summary", "error")


def record_hostile(memory: Memory) -> None:
    for text in HOSTILE:
        # To be quick, what is only long is said by one.
        for role in ROLES if len(text) < 10_000 else ("assistant",):
            memory.record(
                "hostile",
                role,
                text,
                tool_name=text[:40] if role.startswith("tool") else None,
                title="</title><script>alert(1)</script>",
                project="/work/<img src=x onerror=alert(1)>",
            )
    arguments = {"command": HOSTILE[0], "old_string": HOSTILE[1], "new_string": "b"}
    memory.record("hostile", "tool_call", json.dumps(arguments), tool_name="Edit")
