"""Calls of tools, taken apart: what they are about, and what they change in files."""

import json

from backstory.text.tool_calls import parse_call
from tests.grid import cases

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
OF_PATCH = ["*** Begin Patch", "*** Update File: a.py", "@@", "-x = 1", "+x = 2"]
REPLACED = ["-x = 1", "+x = 2"]


@cases(
    ("text", "expected"),
    [
        ({"file_path": "a", "old_string": "x = 1", "new_string": "x = 2"}, REPLACED),
        ({"filePath": "a", "oldString": "x = 1", "newString": "x = 2"}, REPLACED),
        ({"path": "a", "old_str": "x = 1", "new_str": "x = 2"}, REPLACED),
        (
            {"path": "a", "edits": [{"old_text": "x = 1", "new_text": "x = 2"}]},
            REPLACED,
        ),
        ({"path": "a", "oldText": "x = 1", "newText": "x = 2"}, REPLACED),
        ({"file_path": "a", "old_string": "", "new_string": "x = 2\n"}, ["+x = 2"]),
        ({"file_path": "a", "old_string": "x = 1", "new_string": ""}, ["-x = 1"]),
        ({"file_path": "a", "old_string": "\n", "new_string": "x\n"}, ["-", "+x"]),
        ({"file_path": "a", "content": "x = 2\n"}, ["+x = 2"]),
        ({"path": "a", "file_text": "x = 2\n\ny"}, ["+x = 2", "+", "+y"]),
        ({"content": "Not a file."}, []),
        (PATCH, [*OF_PATCH, "*** End Patch"]),
        ({"input": PATCH}, [*OF_PATCH, "*** End Patch"]),
        ({"command": ["apply_patch", PATCH]}, [*OF_PATCH, "*** End Patch"]),
        (
            {"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF"},
            [*OF_PATCH, "*** End Patch", " EOF"],
        ),
        (
            {
                "path": "a",
                "diff": "------- SEARCH\nx = 1\n=======\nx = 2\n+++++++ REPLACE",
            },
            ["------- SEARCH", *REPLACED],
        ),
        (
            {
                "path": "a",
                "diff": "<<<<<<< SEARCH\n:start_line:7\n-------\nx = 1\n=======\n"
                "x = 2\n>>>>>>> REPLACE",
            },
            ["<<<<<<< SEARCH", ":start_line:7", "-------", *REPLACED],
        ),
    ],
)
def test_changes_of_files_are_diffs(text: object, expected: list[str]) -> None:
    call = parse_call(text if isinstance(text, str) else json.dumps(text))

    changes = [line.written for part in call.parts for line in part.changes]
    assert changes == expected


def test_what_is_before_a_patch_stays() -> None:
    call = parse_call(json.dumps({"command": f"cd /srv && apply_patch <<EOF\n{PATCH}"}))

    assert [part.text for part in call.parts] == ["cd /srv && apply_patch <<EOF", ""]
