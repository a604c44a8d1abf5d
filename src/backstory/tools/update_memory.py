"""update_memory: correct something in MEMORY.md, or remove it."""

from backstory.errors import BadQuery, FactAmbiguous, FactNotFound
from backstory.notes.facts import MAX_FACT_CHARS
from backstory.render.object_schemas import UPDATED_SCHEMA
from backstory.text.private import drop_private
from backstory.text.redaction import mask_secrets
from backstory.tools.base import (
    NOT_FOUND,
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

AMBIGUOUS_MATCH = "ambiguous_match"


def _run(asker: Asker, arguments: Arguments) -> ToolResult:
    old = read_text(arguments, "old_text").strip()
    new = _read_new(arguments)
    if old == new:
        raise BadArgument("Parameters 'old_text' and 'new_text' are the same")
    try:
        put = asker.memory.notebook.update_fact(old, new, origin=asker.origin)
    except FactNotFound as exc:
        return ToolResult(_say_near(exc), error=NOT_FOUND)
    except FactAmbiguous as exc:
        return ToolResult(_say_matches(exc), error=AMBIGUOUS_MATCH)
    except BadQuery as exc:
        raise BadArgument(f"Parameter 'new_text' cannot be used: {exc}") from exc
    shown = mask_secrets(drop_private(put))
    data = {"old_text": old, "new_text": shown}
    if not put:
        return ToolResult(f"Removed from MEMORY.md: {say_value(old)}", data)
    return ToolResult(f"Updated in MEMORY.md: {say_value(shown)}", data)


def _read_new(arguments: Arguments) -> str:
    new = arguments.get("new_text")
    if not isinstance(new, str):
        raise BadArgument(
            "Parameter 'new_text' is required; an empty one removes old_text"
        )
    new = new.strip()
    if len(new) > MAX_FACT_CHARS:
        raise BadArgument(
            f"Parameter 'new_text' must be {MAX_FACT_CHARS} characters or less: "
            f"{len(new)}"
        )
    return new


def _say_near(exc: FactNotFound) -> str:
    said = "The text of 'old_text' was not found in MEMORY.md. Use its exact wording."
    near = ", ".join(f"'{_say_masked(each)}'" for each in exc.near)
    return f"{said} The closest: {near}" if near else said


def _say_matches(exc: FactAmbiguous) -> str:
    some = ", ".join(f"'{_say_masked(each)}'" for each in exc.matches)
    return (
        f"The text of 'old_text' matches {exc.count} places in MEMORY.md, such as "
        f"{some}. Give more of the text around the one you mean."
    )


def _say_masked(fact: str) -> str:
    return say_value(mask_secrets(drop_private(fact)))


UPDATE_MEMORY = ToolRow(
    "update_memory",
    "Correct long-term memory",
    "Correct or remove an entry of long-term memory (MEMORY.md). Use this when "
    "something saved there is outdated, wrong or no longer wanted, instead of saving a "
    "second entry that contradicts it. Give the text exactly as it is there and the "
    "text to replace it with; an empty new_text removes it.",
    {
        "type": "object",
        "properties": {
            "old_text": {
                "type": "string",
                "description": "The text exactly as it is in MEMORY.md: a whole entry, "
                "or words that occur in one place only.",
            },
            "new_text": {
                "type": "string",
                "maxLength": MAX_FACT_CHARS,
                "description": "The text to replace it with. An empty string "
                "removes old_text.",
            },
        },
        "required": ["old_text", "new_text"],
        "additionalProperties": False,
    },
    UPDATED_SCHEMA,
    _run,
    failure=SAVE_ERROR,
    changes=Changes.REPLACES,
)
