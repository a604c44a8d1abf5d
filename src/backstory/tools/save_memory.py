"""save_memory: put a fact into MEMORY.md, to be known in every later conversation."""

from backstory.errors import BadQuery
from backstory.notes.facts import (
    DEFAULT_TOPIC,
    MAX_FACT_CHARS,
    TOPICS,
    Fact,
    check_fact,
    folded_name,
    list_topics,
    split_facts,
)
from backstory.notes.masked_facts import find_known
from backstory.render.object_schemas import SAVED_SCHEMA
from backstory.text.redaction import mask_secrets
from backstory.tools.base import (
    EMPTY,
    SAVE_ERROR,
    Arguments,
    Asker,
    BadArgument,
    Changes,
    ToolResult,
    ToolRow,
    read_text,
    say_value,
)

DUPLICATE = "duplicate"

# The categories, and the heading for each.
CATEGORIES = {
    "profile": "User Profile",
    "preferences": "Preferences",
    "interests": "Interests",
    "workflow": "Workflow",
    "projects": "Projects",
    "notes": "Notes",
}


def _run(asker: Asker, arguments: Arguments) -> ToolResult:
    content = read_text(arguments, "content").strip()
    if len(content) > MAX_FACT_CHARS:
        raise BadArgument(
            f"Parameter 'content' must be {MAX_FACT_CHARS} characters or less: "
            f"{len(content)}"
        )
    notebook = asker.memory.notebook
    topic = _read_topic(arguments, notebook.read_memory())
    saved: list[dict[str, str]] = []
    known: list[str] = []
    for fact in _read_facts(content):
        chosen = topic or fact.topic or DEFAULT_TOPIC
        text = notebook.add_fact(fact.text, chosen, origin=asker.origin)
        if text is None:
            said = find_known(notebook.read_memory(), mask_secrets(fact.text))
            known.append(mask_secrets(said or fact.text))
        else:
            saved.append({"topic": chosen, "text": text})
    return _answer(saved, known)


def _read_facts(content: str) -> list[Fact]:
    facts = split_facts(content)
    try:
        for fact in facts:
            check_fact(fact.text)
    except BadQuery as exc:
        # The text has characters, but no visible ones.
        raise BadArgument(EMPTY.format(name="content")) from exc
    return facts


def _answer(saved: list[dict[str, str]], known: list[str]) -> ToolResult:
    already = [f"MEMORY.md already says: '{say_value(text)}'" for text in known]
    if not saved:
        advice = "Use update_memory to change what it says."
        return ToolResult("\n".join([*already, advice]), error=DUPLICATE)
    lines = [
        f"Saved to MEMORY.md under '{say_value(each['topic'])}': "
        f"{say_value(each['text'])}"
        for each in saved
    ]
    return ToolResult(
        "\n".join([*lines, *already]), {"saved": saved, "known_already": known}
    )


def _read_topic(arguments: Arguments, text: str) -> str | None:
    """The heading for a category, which may also be the name of an existing heading."""
    value = arguments.get("category")
    if value is None or value == "":
        return None
    own = [name for name in list_topics(text) if name not in TOPICS]
    names = {**CATEGORIES, **{name: name for name in (*TOPICS, *own)}}
    if isinstance(value, str):
        for name, topic in names.items():
            if folded_name(name) == folded_name(value):
                return topic
    known = ", ".join([*CATEGORIES, *map(say_value, own)])
    raise BadArgument(f"Invalid category '{say_value(value)}'. Must be one of: {known}")


SAVE_MEMORY = ToolRow(
    "save_memory",
    "Save to long-term memory",
    "Save information to long-term memory (MEMORY.md), which is given to you in every "
    "future conversation. Use this when the user asks you to remember something, or "
    "when you learn a lasting fact about them, their preferences, their work or a "
    "project. Do not save what is temporary (the task at hand, today's settings), what "
    "you only guess, secrets, or what the memory already says: to correct an entry, "
    "use update_memory.",
    {
        "type": "object",
        "properties": {
            "content": {
                "type": "string",
                "maxLength": MAX_FACT_CHARS,
                "description": "The fact to remember, in one or two sentences that can "
                "be understood on their own. Several facts as a Markdown list are "
                "saved one by one. Max 5,000 characters.",
            },
            "category": {
                "type": "string",
                "default": "notes",
                "description": "The section to put it in. One of: profile, "
                "preferences, interests, workflow, projects, notes (default); or the "
                "name of another section that the memory has.",
            },
        },
        "required": ["content"],
        "additionalProperties": False,
    },
    SAVED_SCHEMA,
    _run,
    failure=SAVE_ERROR,
    changes=Changes.ADDS,
)
