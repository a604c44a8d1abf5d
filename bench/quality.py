"""How well the shipped search finds the evidence of public question sets.

``python -m bench.quality SET DATA``, where DATA is the folder of the sets; they are not
part of the project because of their licences. ``--all`` measures every set in DATA.
Each conversation has its own memory, and is also asked questions about another one.
"""

import argparse
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from backstory.memory import Memory
from backstory.values.hits import SearchResult
from bench.history import open_memory

# Sessions are ordered by their best hit; this is how many hits are looked at.
_SESSION_HITS = 50
_STRAY_QUESTIONS = 20


@dataclass(frozen=True)
class Turn:
    """Something that was said: by whom, what, when, and the set's own name for it.

    The name begins with the session's name and a colon.
    """

    name: str
    session: str
    role: str
    text: str
    sent_at: datetime


@dataclass(frozen=True)
class Question:
    """A question and the names of the turns that answer it, if any do."""

    text: str
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True)
class Conversation:
    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    asked_at: datetime


@dataclass(frozen=True)
class Answer:
    """What a search found: the first ten turns, the sessions in order, and whether
    nothing answers well."""

    turns: Sequence[str]
    sessions: Sequence[str]
    is_weak: bool


@dataclass
class Score:
    """Sums over the questions with an answer, and over those without one."""

    answerable: int = 0
    recall_at_5: float = 0.0
    recall_at_10: float = 0.0
    gain_at_10: float = 0.0
    session_at_3: float = 0.0
    session_at_5: float = 0.0
    session_at_10: float = 0.0
    judged_weak: int = 0
    unanswerable: int = 0
    abstained: int = 0
    stray: int = 0
    stray_abstained: int = 0

    def add(self, question: Question, answer: Answer) -> None:
        if not question.evidence:
            self.unanswerable += 1
            self.abstained += answer.is_weak
            return
        wanted, found = question.evidence, answer.turns
        self.answerable += 1
        self.judged_weak += answer.is_weak
        self.recall_at_5 += len(wanted & set(found[:5])) / len(wanted)
        self.recall_at_10 += len(wanted & set(found[:10])) / len(wanted)
        gain = sum(
            1 / math.log2(place + 2)
            for place, name in enumerate(found[:10])
            if name in wanted
        )
        best = sum(1 / math.log2(place + 2) for place in range(min(10, len(wanted))))
        self.gain_at_10 += gain / best
        named = {_session_of(name) for name in wanted}
        self.session_at_3 += bool(named & set(answer.sessions[:3]))
        self.session_at_5 += bool(named & set(answer.sessions[:5]))
        self.session_at_10 += bool(named & set(answer.sessions[:10]))

    def add_stray(self, answer: Answer) -> None:
        """Count a question that belongs to another conversation."""
        self.stray += 1
        self.stray_abstained += answer.is_weak

    def render(self) -> str:
        n = max(1, self.answerable)
        return (
            f"R@5 {self.recall_at_5 / n:.3f}  R@10 {self.recall_at_10 / n:.3f}  "
            f"nDCG@10 {self.gain_at_10 / n:.3f}  "
            f"session (any) R@3 {self.session_at_3 / n:.3f}  "
            f"R@5 {self.session_at_5 / n:.3f}  R@10 {self.session_at_10 / n:.3f}  "
            f"judged weak: answerable {self.judged_weak / n:.3f}  "
            f"unanswerable {self.abstained / max(1, self.unanswerable):.3f}  "
            f"stray {self.stray_abstained / max(1, self.stray):.3f} "
            f"({self.answerable} + {self.unanswerable} + {self.stray} questions)"
        )


def _session_of(name: str) -> str:
    return name.rpartition(":")[0]


# -- the sets ---


def read_locomo(data: Path) -> Iterator[Conversation]:
    """Chats of two people; their names are part of the messages."""
    for sample in orjson.loads((data / "locomo" / "locomo10-dev.json").read_bytes()):
        talk = sample["conversation"]
        turns = []
        number = 1
        while f"session_{number}" in talk:
            day = talk[f"session_{number}_date_time"]
            sent_at = datetime.strptime(day, "%I:%M %p on %d %B, %Y").replace(
                tzinfo=UTC
            )
            for turn in talk[f"session_{number}"]:
                text = f"{turn['speaker']}: {turn['text']}"
                if turn.get("blip_caption"):
                    text += f" [shares {turn['blip_caption']}]"
                turns.append(Turn(turn["dia_id"], f"D{number}", "user", text, sent_at))
            number += 1
        known = {turn.name for turn in turns}
        questions = []
        for qa in sample["qa"]:
            named = re.findall(r"D\d+:\d+", " ".join(qa.get("evidence", [])))
            evidence = frozenset(name for name in named if name in known)
            if qa["category"] == 5:
                questions.append(Question(qa["question"], frozenset(), "adversarial"))
            elif evidence:
                questions.append(
                    Question(qa["question"], evidence, str(qa["category"]))
                )
        yield Conversation(
            sample["sample_id"], tuple(turns), tuple(questions), turns[-1].sent_at
        )


def read_beam(data: Path) -> Iterator[Conversation]:
    """Long chats with an assistant; a message's name is its number in the chat."""
    folders = sorted(
        (data / "beam" / "100K").iterdir(), key=lambda each: int(each.name)
    )
    for folder in folders:
        chat = orjson.loads((folder / "chat.json").read_bytes())
        turns = tuple(_beam_turns(chat))
        names = {int(turn.name.rpartition(":")[2]): turn.name for turn in turns}
        asked = orjson.loads(
            (folder / "probing_questions" / "probing_questions.json").read_bytes()
        )
        questions = []
        for category, rows in asked.items():
            for row in rows:
                numbers = _numbers(row.get("source_chat_ids"))
                evidence = frozenset(names[each] for each in numbers if each in names)
                if evidence or category == "abstention":
                    questions.append(Question(row["question"], evidence, category))
        yield Conversation(
            f"beam {folder.name}", turns, tuple(questions), turns[-1].sent_at
        )


def _beam_turns(chat: Iterable[dict[str, Any]]) -> Iterator[Turn]:
    # Only some messages have a date; those after them are from the same day.
    day = datetime(2024, 1, 1, 9, tzinfo=UTC)
    for batch in chat:
        session = f"B{batch['batch_number']}"
        for message in (each for turn in batch["turns"] for each in turn):
            if anchor := message.get("time_anchor") or batch.get("time_anchor"):
                day = datetime.strptime(anchor, "%B-%d-%Y").replace(hour=9, tzinfo=UTC)
            yield Turn(
                f"{session}:{message['id']}",
                session,
                message["role"],
                re.sub(r"\s*->->[\s\S]*$", "", message["content"]),
                day + timedelta(seconds=message["id"]),
            )


def _numbers(nested: object) -> set[int]:
    """All numbers in nested lists and dictionaries."""
    if isinstance(nested, int):
        return {nested}
    if isinstance(nested, dict):
        nested = list(nested.values())
    if isinstance(nested, list):
        return set().union(*map(_numbers, nested))
    return set()


def read_memorybank(data: Path) -> Iterator[Conversation]:
    """Chats of people with a companion over several days; a session is a day.

    Only questions that name a day can be checked: every turn of that day is evidence.
    """
    for language in ("cn", "en"):
        folder = data / "memorybank"
        people = orjson.loads((folder / f"memory_bank_{language}.json").read_bytes())
        asked: dict[str, list[str]] = {}
        lines = (folder / f"probing_questions_{language}.jsonl").read_bytes()
        for line in filter(None, map(bytes.strip, lines.splitlines())):
            asked |= orjson.loads(line)
        for name, person in people.items():
            turns = tuple(_memorybank_turns(person["history"]))
            questions = []
            for text in asked.get(name, []):
                day = _named_day(text)
                evidence = frozenset(turn.name for turn in turns if turn.session == day)
                if evidence:
                    questions.append(Question(text, evidence, language))
            yield Conversation(
                f"{language} {name}",
                turns,
                tuple(questions),
                max(turn.sent_at for turn in turns) + timedelta(days=1),
            )


def _memorybank_turns(history: dict[str, list[dict[str, str]]]) -> Iterator[Turn]:
    for day, talk in history.items():
        morning = datetime.fromisoformat(day).replace(hour=9, tzinfo=UTC)
        for number, turn in enumerate(talk):
            for role, text in (
                ("user", turn.get("query", "")),
                ("assistant", turn.get("response", "")),
            ):
                sent_at = morning + timedelta(minutes=number)
                yield Turn(f"{day}:{number}-{role}", day, role, text, sent_at)


_MONTHS = {"April": 4, "May": 5, "Apr": 4}
_NAMED_DAY = re.compile(
    r"(?P<month>[45])月(?P<day>[0-9]{1,2})[日号]"
    r"|(?P<name>April|Apr|May) (?P<of>[0-9]{1,2})(?:st|nd|rd|th)?"
)


def _named_day(text: str) -> str | None:
    """The day of 2023 that a question names; None if it names none or several."""
    days = {
        f"2023-{int(each['month'] or _MONTHS[each['name']]):02}"
        f"-{int(each['day'] or each['of']):02}"
        for each in _NAMED_DAY.finditer(text)
    }
    return days.pop() if len(days) == 1 else None


def read_longmemeval(data: Path) -> Iterator[Conversation]:
    """Questions, each with its own sessions to answer it from.

    The format is that of the public files: github.com/xiaowu0162/LongMemEval, 2025.
    """
    for file in sorted((data / "longmemeval").glob("*.json")):
        for row in orjson.loads(file.read_bytes()):
            turns: list[Turn] = []
            evidence: set[str] = set()
            for session, began, talk in zip(
                row["haystack_session_ids"],
                row["haystack_dates"],
                row["haystack_sessions"],
                strict=True,
            ):
                sent_at = _longmemeval_time(began)
                # A filler session may occur twice; the numbers of its turns continue.
                said = sum(turn.session == session for turn in turns)
                for number, message in enumerate(talk, said):
                    name = f"{session}:{number}"
                    turns.append(
                        Turn(
                            name, session, message["role"], message["content"], sent_at
                        )
                    )
                    if message.get("has_answer"):
                        evidence.add(name)
            if not evidence:
                wanted = set(row["answer_session_ids"])
                evidence = {turn.name for turn in turns if turn.session in wanted}
            # These questions have no answer; the sessions only look as if they had one.
            if row["question_id"].endswith("_abs"):
                evidence = set()
            yield Conversation(
                row["question_id"],
                tuple(turns),
                (Question(row["question"], frozenset(evidence), row["question_type"]),),
                _longmemeval_time(row["question_date"]),
            )


def _longmemeval_time(written: str) -> datetime:
    """Parse a time such as ``2023/05/20 (Sat) 02:21``."""
    return datetime.strptime(written, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)


READERS: dict[str, Callable[[Path], Iterator[Conversation]]] = {
    "locomo": read_locomo,
    "beam": read_beam,
    "memorybank": read_memorybank,
    "longmemeval": read_longmemeval,
}


# -- asking ---


def fill(memory: Memory, conversation: Conversation) -> dict[int, str]:
    """Record a conversation; returns the set's names for its messages."""
    names = {}
    for turn in conversation.turns:
        number = memory.record(
            turn.session, turn.role, turn.text, sent_at=turn.sent_at, message=turn.name
        )
        assert number is not None
        names[number] = turn.name
    memory.embed()
    return names


def ask(memory: Memory, names: dict[int, str], question: Question) -> Answer:
    """Search twice: for ten hits, and for enough hits to order the sessions."""
    first = memory.search(question.text, sources=["message"], limit=10)
    more = memory.search(question.text, sources=["message"], limit=_SESSION_HITS)
    sessions = dict.fromkeys(map(_session_of, _named(more, names)))
    return Answer(_named(first, names), list(sessions), first.is_weak)


def _named(result: SearchResult, names: dict[int, str]) -> list[str]:
    return [names[hit.message_id] for hit in result.hits if hit.message_id]


def measure(
    set_name: str, data: Path, embedder: str, settings: Sequence[str]
) -> dict[str, Score]:
    """The scores of a set, in total and, if it has several, by language."""
    totals: dict[str, Score] = {}
    conversations = list(READERS[set_name](data))
    strays = [*conversations[1:], *conversations[:1]]
    for conversation, other in zip(conversations, strays, strict=True):
        score = Score()
        total = totals.setdefault(_part_of(set_name, conversation), Score())
        with tempfile.TemporaryDirectory(prefix="backstory-quality-") as folder:
            home = Path(folder)
            asked_at = conversation.asked_at
            with open_memory(
                home / "home",
                home / "kept",
                settings=[f"embedder.name={embedder}", *settings],
                clock=lambda asked_at=asked_at: asked_at,  # type: ignore[misc]
            ) as memory:
                names = fill(memory, conversation)
                for question in conversation.questions:
                    answer = ask(memory, names, question)
                    score.add(question, answer)
                    total.add(question, answer)
                answered = [each for each in other.questions if each.evidence]
                step = max(1, len(answered) // _STRAY_QUESTIONS)
                for question in answered[::step]:
                    answer = ask(memory, names, question)
                    score.add_stray(answer)
                    total.add_stray(answer)
        print(f"{conversation.name:>8}: {score.render()}", flush=True)
    return totals


def _part_of(set_name: str, conversation: Conversation) -> str:
    if set_name != "memorybank":
        return set_name
    return f"{set_name} {conversation.name.partition(' ')[0]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", choices=sorted(READERS), nargs="?")
    parser.add_argument("data", type=Path)
    parser.add_argument("--all", action="store_true", help="measure every set in DATA")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    chosen = parser.parse_args()
    if chosen.all == bool(chosen.set):
        parser.error("give either a set or --all")
    found = [name for name in READERS if (chosen.data / name).is_dir()]
    totals: dict[str, Score] = {}
    for name in found if chosen.all else [chosen.set]:
        totals |= measure(name, chosen.data, chosen.embedder, chosen.settings)
    print()
    for name, total in totals.items():
        print(f"{name}: {total.render()}")


if __name__ == "__main__":
    main()
