"""LoCoMo: chats of two people over many months (github.com/snap-research/locomo)."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import orjson

from backstory.evals.questions import Case, Question, Turn, Wanted
from backstory.text.json_values import JsonObject
from backstory.values.hits import HitSource

# The numbers of the categories; the last has questions without an answer.
_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
_ADVERSARIAL = 5
_TURN = re.compile(r"D[0-9]+:[0-9]+")


def read_locomo(files: Iterable[Path]) -> Iterator[Case]:
    for file in files:
        for sample in orjson.loads(file.read_bytes()):
            turns = tuple(_iter_turns(sample["conversation"]))
            yield Case(
                f"locomo {sample['sample_id']}",
                turns,
                tuple(_iter_questions(sample, {turn.name: turn for turn in turns})),
                turns[-1].sent_at,
            )


def _iter_turns(talk: JsonObject) -> Iterator[Turn]:
    number = 1
    while f"session_{number}" in talk:
        day = talk[f"session_{number}_date_time"]
        sent_at = datetime.strptime(day, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in talk[f"session_{number}"]:
            # Both are users, so the text says who speaks.
            text = f"{turn['speaker']}: {turn['text']}"
            if turn.get("blip_caption"):
                text += f" [shares {turn['blip_caption']}]"
            yield Turn(turn["dia_id"], f"D{number}", "user", text, sent_at)
        number += 1


def _iter_questions(sample: JsonObject, turns: dict[str, Turn]) -> Iterator[Question]:
    for number, row in enumerate(sample["qa"], 1):
        name = f"{sample['sample_id']} {number}"
        named = _TURN.findall(" ".join(row.get("evidence", [])))
        evidence = [turns[each] for each in dict.fromkeys(named) if each in turns]
        if row["category"] == _ADVERSARIAL:
            kind, wanted = "adversarial", Wanted()
        elif evidence:
            kind = _KINDS[row["category"]]
            wanted = Wanted(
                messages=tuple(turn.name for turn in evidence),
                sessions=tuple({turn.session: None for turn in evidence}),
            )
        else:
            continue
        yield Question(
            name, row["question"], kind, wanted, sources=(HitSource.MESSAGE,)
        )
