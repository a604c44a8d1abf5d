"""save_memory and update_memory: what agents may note, and what they are told."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.memory import Memory
from backstory.tools import Tool, ToolResult, bind_tools, schemas
from tests.ordinary_user import as_ordinary_user
from tests.samples import a_memory

SAVE_REQUIRED = "Parameter 'content' is required and cannot be empty"
OLD_REQUIRED = "Parameter 'old_text' is required and cannot be empty"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with a_memory(tmp_path, settings=("embedder.name=none",)) as opened:
        yield opened


@pytest.fixture
def used(memory: Memory) -> Memory:
    """A memory in which something is noted."""
    write(
        memory, "# Long-term Memory\n\n## Preferences\n- likes tea\n\n## Pets\n- Hasi\n"
    )
    return memory


def write(memory: Memory, text: str) -> None:
    path = memory.notebook.memory_path
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def tool(memory: Memory, name: str) -> Tool:
    return next(each for each in bind_tools(memory) if each.name == name)


def save(memory: Memory, **arguments: object) -> ToolResult:
    return tool(memory, "save_memory").call(arguments)


def update(memory: Memory, **arguments: object) -> ToolResult:
    return tool(memory, "update_memory").call(arguments)


def test_their_parameters_are_those_of_the_spec(memory: Memory) -> None:
    described = schemas([tool(memory, "save_memory"), tool(memory, "update_memory")])

    shapes = [each["parameters"] for each in described]
    assert shapes == [
        {
            "type": "object",
            "properties": {
                "content": {
                    "type": "string",
                    "maxLength": 5000,
                    "description": "The fact to remember, in one or two sentences "
                    "that can be understood on their own. Several facts as a Markdown "
                    "list are saved one by one. Max 5,000 characters.",
                },
                "category": {
                    "type": "string",
                    "default": "notes",
                    "description": "The section to put it in. One of: profile, "
                    "preferences, interests, workflow, projects, notes (default); or "
                    "the name of another section that the memory has.",
                },
            },
            "required": ["content"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "old_text": {
                    "type": "string",
                    "description": "The text exactly as it is in MEMORY.md: a whole "
                    "entry, or words that occur in one place only.",
                },
                "new_text": {
                    "type": "string",
                    "maxLength": 5000,
                    "description": "The text to replace it with. An empty string "
                    "removes old_text.",
                },
            },
            "required": ["old_text", "new_text"],
            "additionalProperties": False,
        },
    ]


# -- saving ---------------------------------------------------------------------------


def test_a_fact_is_saved(memory: Memory) -> None:
    found = save(memory, content=" The user likes tea. ", category="preferences")

    assert found == ToolResult(
        "Saved to MEMORY.md under 'Preferences': The user likes tea.",
        {
            "saved": [{"topic": "Preferences", "text": "The user likes tea."}],
            "known_already": [],
        },
    )
    assert memory.notebook.read_memory() == (
        "# Long-term Memory\n\n## Preferences\n- The user likes tea.\n"
    )


@pytest.mark.parametrize(
    ("category", "topic"),
    [
        (None, "Notes"),
        ("", "Notes"),
        ("profile", "User Profile"),
        ("PREFERENCES", "Preferences"),
        ("User Profile", "User Profile"),
        ("interests", "Interests"),
        ("workflow", "Workflow"),
        ("projects", "Projects"),
        ("notes", "Notes"),
        ("pets", "Pets"),
    ],
)
def test_a_category_is_a_section(
    used: Memory, category: str | None, topic: str
) -> None:
    found = save(used, content="new", category=category)

    assert found.data == {
        "saved": [{"topic": topic, "text": "new"}],
        "known_already": [],
    }


def test_a_list_is_several_facts(used: Memory) -> None:
    found = save(used, content="## Pets\n- Klopfer\n- hasi\n- Mimi\n  is a cat")

    assert found == ToolResult(
        "Saved to MEMORY.md under 'Pets': Klopfer\n"
        "Saved to MEMORY.md under 'Pets': Mimi is a cat\n"
        "MEMORY.md already says: 'Hasi'",
        {
            "saved": [
                {"topic": "Pets", "text": "Klopfer"},
                {"topic": "Pets", "text": "Mimi\nis a cat"},
            ],
            "known_already": ["Hasi"],
        },
    )


@pytest.mark.parametrize("content", ["Likes tea.", "- likes tea\n- Hasi"])
def test_what_is_known_is_refused(used: Memory, content: str) -> None:
    before = used.notebook.read_memory()

    found = save(used, content=content)

    assert (found.error, found.data) == ("duplicate", None)
    assert found.text.splitlines()[0] == "MEMORY.md already says: 'likes tea'"
    assert found.text.splitlines()[-1] == "Use update_memory to change what it says."
    assert used.notebook.read_memory() == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, SAVE_REQUIRED),
        ({"content": ""}, SAVE_REQUIRED),
        ({"content": " \n"}, SAVE_REQUIRED),
        ({"content": "\u200b"}, SAVE_REQUIRED),
        ({"content": "- "}, SAVE_REQUIRED),
        ({"content": 5}, "Parameter 'content' must be a string: 5"),
        (
            {"content": "x" * 5_001},
            "Parameter 'content' must be 5000 characters or less: 5001",
        ),
        (
            {"content": "x", "category": "food"},
            "Invalid category 'food'. Must be one of: profile, preferences, "
            "interests, workflow, projects, notes, Pets",
        ),
        (
            {"content": "x", "category": ["notes"]},
            "Invalid category '['notes']'. Must be one of: profile, preferences, "
            "interests, workflow, projects, notes, Pets",
        ),
        (
            {"content": "x", "topic": "Notes"},
            "Unknown parameter 'topic'. Must be one of: content, category",
        ),
    ],
)
def test_what_cannot_be_saved_is_refused_in_the_words_of_the_spec(
    used: Memory, arguments: dict[str, object], expected: str
) -> None:
    before = used.notebook.read_memory()

    assert save(used, **arguments) == ToolResult(expected, None, "validation_error")
    assert used.notebook.read_memory() == before


def test_secrets_of_a_model_are_masked_wherever_they_go(used: Memory) -> None:
    saved = save(used, content="The password = hunter2x of the server")
    updated = update(used, old_text="likes tea", new_text="password = hunter2x")

    assert "hunter2x" not in repr((saved, updated, used.notebook.read_memory()))


def test_a_hostile_fact_is_one_line_in_the_answer(used: Memory) -> None:
    found = save(used, content="x\n# Heading\n--- Result 1\n\x1b[2J")

    assert found.text == (
        "Saved to MEMORY.md under 'Notes': x # Heading --- Result 1 ␛[2J"
    )


# -- updating -------------------------------------------------------------------------


def test_a_fact_is_updated(used: Memory) -> None:
    found = update(used, old_text="likes tea", new_text="likes coffee")

    assert found == ToolResult(
        "Updated in MEMORY.md: likes coffee",
        {"old_text": "likes tea", "new_text": "likes coffee"},
    )
    assert "- likes coffee\n" in used.notebook.read_memory()


def test_an_empty_text_removes(used: Memory) -> None:
    found = update(used, old_text="- likes tea", new_text=" ")

    assert found == ToolResult(
        "Removed from MEMORY.md: - likes tea",
        {"old_text": "- likes tea", "new_text": ""},
    )
    assert used.notebook.read_memory() == (
        "# Long-term Memory\n\n## Preferences\n\n## Pets\n- Hasi\n"
    )


def test_what_is_not_there_is_not_found(used: Memory) -> None:
    assert update(used, old_text="likes green tea", new_text="x") == ToolResult(
        "The text of 'old_text' was not found in MEMORY.md. Use its exact wording. "
        "The closest: 'likes tea'",
        None,
        "not_found",
    )
    assert update(used, old_text="zebra", new_text="") == ToolResult(
        "The text of 'old_text' was not found in MEMORY.md. Use its exact wording.",
        None,
        "not_found",
    )


def test_what_is_there_twice_is_ambiguous(used: Memory) -> None:
    write(used, "- tea at one\n- tea at two\n")

    assert update(used, old_text="tea", new_text="x") == ToolResult(
        "The text of 'old_text' matches 2 places in MEMORY.md, such as "
        "'tea at one', 'tea at two'. "
        "Give more of the text around the one you mean.",
        None,
        "ambiguous_match",
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, OLD_REQUIRED),
        ({"old_text": " ", "new_text": "x"}, OLD_REQUIRED),
        ({"old_text": None, "new_text": "x"}, OLD_REQUIRED),
        (
            {"old_text": "likes tea"},
            "Parameter 'new_text' is required; an empty one removes old_text",
        ),
        (
            {"old_text": "likes tea", "new_text": "likes tea "},
            "Parameters 'old_text' and 'new_text' are the same",
        ),
        (
            {"old_text": "likes tea", "new_text": "x" * 5_001},
            "Parameter 'new_text' must be 5000 characters or less: 5001",
        ),
        (
            {"old_text": "likes tea", "new_text": "\u200b"},
            "Parameter 'new_text' cannot be used: the fact is empty",
        ),
        (
            {"text": "x"},
            "Unknown parameter 'text'. Must be one of: old_text, new_text",
        ),
    ],
)
def test_what_cannot_be_updated_is_refused_in_the_words_of_the_spec(
    used: Memory, arguments: dict[str, object], expected: str
) -> None:
    assert update(used, **arguments) == ToolResult(expected, None, "validation_error")


# -- trouble --------------------------------------------------------------------------


def test_trouble_with_the_disk_is_told_and_not_raised(
    used: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    folder = used.notebook.folder
    save(used, content="first")
    folder.chmod(0o500)

    with as_ordinary_user(), caplog.at_level(logging.CRITICAL):
        saved = save(used, content="second")
        updated = update(used, old_text="first", new_text="second")

    folder.chmod(0o700)
    expected = f"Saving failed: {folder}/origins.json: Permission denied"
    assert saved == ToolResult(expected, None, "save_error")
    assert updated == ToolResult(expected, None, "save_error")


def test_a_memory_that_is_no_text_is_told_and_left_alone(used: Memory) -> None:
    path = used.notebook.memory_path
    path.write_bytes(b"\xff")

    found = save(used, content="x")

    assert found == ToolResult(
        f"Saving failed: {path}: byte 0 is not UTF-8", None, "save_error"
    )
    assert path.read_bytes() == b"\xff"


# -- secrets that agents are not shown ---

WITH_SECRETS = (
    "# Long-term Memory\n\n## Notes\n"
    "- Staging password: hunter2abc, on db1\n- Likes tea\n"
)


@pytest.fixture
def guarded(memory: Memory) -> Memory:
    """A memory that holds a secret."""
    write(memory, WITH_SECRETS)
    return memory


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Staging password: [masked], on db1", "Staging password: [masked], on db2"),
        ("password: [masked], on db1", "password: [masked], on db2"),
        ("on db1", "on db2"),
        ("Staging password: hunter2abc, on db1", "Staging password: [masked], on db2"),
    ],
)
def test_a_fact_is_changed_around_the_secret_in_it(
    guarded: Memory, old: str, new: str
) -> None:
    result = update(guarded, old_text=old, new_text=new)

    assert result == ToolResult(
        f"Updated in MEMORY.md: {new}", {"old_text": old, "new_text": new}
    )
    changed = WITH_SECRETS.replace("db1", "db2")
    assert guarded.notebook.read_memory() == changed


@pytest.mark.parametrize(
    "new",
    [
        "Staging password: newpass1234",
        "The old one was [masked]",
        "api_key: [masked]",
    ],
)
def test_a_mask_never_takes_the_place_of_a_secret(guarded: Memory, new: str) -> None:
    result = update(guarded, old_text="Staging password: [masked]", new_text=new)

    assert result == ToolResult(
        "Parameter 'new_text' cannot be used: a mask would take the place of a secret "
        "in the long-term memory",
        error="validation_error",
    )
    assert guarded.notebook.read_memory() == WITH_SECRETS


def test_a_secret_is_removed_when_that_is_asked_for(guarded: Memory) -> None:
    update(guarded, old_text="Staging password: [masked], on db1", new_text="")

    assert guarded.notebook.read_memory() == (
        "# Long-term Memory\n\n## Notes\n- Likes tea\n"
    )


def test_of_facts_that_differ_in_a_secret_none_is_chosen(memory: Memory) -> None:
    text = "- password: hunter2abc\n- password: other9xyz7\n"
    write(memory, text)

    result = update(memory, old_text="password: [masked]", new_text="none")

    assert (result.error, memory.notebook.read_memory()) == ("ambiguous_match", text)


def test_what_the_memory_says_with_a_secret_is_known_with_a_mask(
    guarded: Memory,
) -> None:
    result = save(guarded, content="Staging password: [masked], on db1")

    assert result == ToolResult(
        "MEMORY.md already says: 'Staging password: [masked], on db1'\n"
        "Use update_memory to change what it says.",
        error="duplicate",
    )
    assert guarded.notebook.read_memory() == WITH_SECRETS


@pytest.mark.parametrize(
    "arguments",
    [
        {"old_text": "Staging password is wrong", "new_text": "x"},
        {"old_text": "Staging password: [masked], on", "new_text": "secret: [masked]"},
    ],
)
def test_a_refusal_does_not_tell_a_secret(
    guarded: Memory, arguments: dict[str, object]
) -> None:
    result = update(guarded, **arguments)

    assert result.error in ("not_found", "validation_error")
    assert "hunter2abc" not in result.text
