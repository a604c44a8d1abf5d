"""Transcripts of agents with questions and prompts that were labelled by hand.

``home`` is a person's home folder as agent programs fill it; ``labels.jsonl`` has one
question per line, with the native ids of the records that answer it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson

from backstory.evals.questions import Case, Question, Wanted
from backstory.text.json_values import JsonObject
from backstory.values.moments import parse_moment

_VERBATIM = "literal"
_PROMPTS = "prompts"


def read_labelled(files: Iterable[Path]) -> Iterator[Case]:
    for file in files:
        lines = file.read_bytes().split(b"\n")
        questions = [_to_question(orjson.loads(line)) for line in lines if line.strip()]
        folder = file.parent.resolve()
        yield Case(f"labelled {folder}", folder / "home", tuple(questions))


def _to_question(label: JsonObject) -> Question:
    kind = label["kind"]
    asked = parse_moment(label.get("asked_at"))
    # What was only thought is not kept, so it cannot be found.
    thought = label.get("only_in_thinking", ())
    return Question(
        label["id"],
        label["query"],
        kind,
        Wanted(
            messages=tuple(each for each in label["messages"] if each not in thought),
            texts=tuple(label["texts"]),
            sessions=tuple(label["sessions"]),
            is_verbatim=kind == _VERBATIM,
        ),
        part=_part(label),
        asked_at=asked.at if asked else None,
        project=label.get("cwd"),
        is_prompt=kind.startswith(_PROMPTS),
    )


def _part(label: JsonObject) -> str:
    match label.get("tool_only"):
        case True:
            return "only in tools"
        case False:
            return "said too"
        case _:
            return ""
