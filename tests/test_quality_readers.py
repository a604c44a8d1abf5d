"""The readers of public question sets in bench/quality.py, on small files."""

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from bench.quality import (
    Answer,
    Conversation,
    Question,
    Score,
    Turn,
    read_beam,
    read_longmemeval,
    read_memorybank,
)

SAMPLE = Path(__file__).parent / "data" / "quality" / "longmemeval-sample.json"


@pytest.fixture
def questions(tmp_path: Path) -> list[Conversation]:
    """The sample of LongMemEval, laid out as its files are."""
    (tmp_path / "longmemeval").mkdir()
    (tmp_path / "longmemeval" / "sample.json").write_bytes(SAMPLE.read_bytes())
    return list(read_longmemeval(tmp_path))


def test_a_longmemeval_question_comes_with_its_sessions_and_evidence(
    questions: list[Conversation],
) -> None:
    first = questions[0]

    assert first == Conversation(
        "made_0001",
        (
            _turn("filler_a1_0:0", "user", "How do I keep basil", (5, 20, 2, 21)),
            _turn("filler_a1_0:1", "assistant", "Give it a lamp", (5, 20, 2, 21)),
            _turn("answer_b2_1:0", "user", "I put a leather saddle", (5, 27, 9, 15)),
            _turn("answer_b2_1:1", "assistant", "Grease the rails", (5, 27, 9, 15)),
            _turn("filler_a1_0:2", "user", "Which herbs", (5, 30, 23, 40)),
            _turn("filler_a1_0:3", "assistant", "Mint, parsley", (5, 30, 23, 40)),
        ),
        (
            Question(
                "What kind of saddle did I put on the touring bike?",
                frozenset({"answer_b2_1:0"}),
                "single-session-user",
            ),
        ),
        datetime(2023, 6, 2, 18, 40, tzinfo=UTC),
    )


def test_without_marked_turns_all_of_the_answering_sessions_are_evidence(
    questions: list[Conversation],
) -> None:
    asked = questions[1].questions

    assert [question.evidence for question in asked] == [
        {"answer_c3_1:0", "answer_c3_2:0"}
    ]


def test_a_question_that_nothing_answers_has_no_evidence(
    questions: list[Conversation],
) -> None:
    asked = questions[2].questions

    assert [question.evidence for question in asked] == [frozenset()]


def test_beam_messages_lose_their_tail_and_keep_the_day_that_was_named_before(
    tmp_path: Path,
) -> None:
    _write(
        tmp_path / "beam" / "100K" / "7" / "chat.json",
        [
            {
                "batch_number": 1,
                "time_anchor": None,
                "turns": [
                    [
                        {
                            "role": "user",
                            "id": 0,
                            "time_anchor": "March-15-2024",
                            "content": "Where do I start?\nHere ->-> 1,1",
                        },
                        {"role": "assistant", "id": 1, "content": "At the end."},
                    ]
                ],
            }
        ],
    )
    _write(
        tmp_path / "beam/100K/7/probing_questions/probing_questions.json",
        {
            "abstention": [{"question": "Who won?"}],
            "knowledge_update": [
                {
                    "question": "Where?",
                    "source_chat_ids": {"original": [0], "updated": [[1, 99]]},
                },
            ],
        },
    )

    (chat,) = read_beam(tmp_path)

    assert chat.turns == (
        Turn("B1:0", "B1", "user", "Where do I start?\nHere", _at(2024, 3, 15, 9, 0)),
        Turn("B1:1", "B1", "assistant", "At the end.", _at(2024, 3, 15, 9, 0, 1)),
    )
    assert chat.questions == (
        Question("Who won?", frozenset(), "abstention"),
        Question("Where?", frozenset({"B1:0", "B1:1"}), "knowledge_update"),
    )


def test_memorybank_asks_what_names_a_day_of_the_talk(tmp_path: Path) -> None:
    talk = [{"query": "我去了博物馆", "response": "好看吗？"}]
    folder = tmp_path / "memorybank"
    _write(folder / "memory_bank_cn.json", {"小安": {"history": {"2023-05-02": talk}}})
    _write(folder / "memory_bank_en.json", {})
    asked = ["5月2日我去了哪里？", "5月3日呢？", "我喜欢什么？"]
    _write(folder / "probing_questions_cn.jsonl", {"小安": asked})
    _write(folder / "probing_questions_en.jsonl", {})

    (person,) = read_memorybank(tmp_path)

    assert person.questions == (
        Question(
            "5月2日我去了哪里？",
            frozenset({"2023-05-02:0-user", "2023-05-02:0-assistant"}),
            "cn",
        ),
    )
    assert person.asked_at == _at(2023, 5, 3, 9, 0)


def test_scores_are_shares_of_the_evidence() -> None:
    score = Score()
    question = Question("?", frozenset({"a:1", "b:9"}), "any")

    score.add(question, Answer(["c:1", "a:1"], ["c", "a", "b"], is_weak=False))
    score.add(Question("?", frozenset(), "none"), Answer([], [], is_weak=True))
    score.add_stray(Answer(["c:1"], ["c"], is_weak=False))

    assert score.render() == (
        "R@5 0.500  R@10 0.500  nDCG@10 0.387  "
        "session (any) R@3 1.000  R@5 1.000  R@10 1.000  "
        "judged weak: answerable 0.000  unanswerable 1.000  stray 0.000 "
        "(1 + 1 + 1 questions)"
    )


# -- pieces ---


def _turn(name: str, role: str, begins: str, when: tuple[int, int, int, int]) -> Turn:
    """The turn of the sample whose text begins so."""
    texts = [
        message["content"]
        for row in orjson.loads(SAMPLE.read_bytes())
        for session in row["haystack_sessions"]
        for message in session
    ]
    text = next(each for each in texts if each.startswith(begins))
    return Turn(name, name.partition(":")[0], role, text, _at(2023, *when))


def _at(year: int, *rest: int) -> datetime:
    month, day, hour, minute, second = (*rest, 0)[:5]
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(content))
