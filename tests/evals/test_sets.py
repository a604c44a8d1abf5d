"""The readers of sets of questions, on small files of their formats."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from backstory.errors import BackstoryError, BadQuery, SourceUnreadable, UnknownName
from backstory.evals.questions import Case, Question, Turn, Wanted, add_strays
from backstory.evals.sets import SETS, get_set, read_set
from backstory.values.hits import HitSource

LONGMEMEVAL = Path(__file__).parents[1] / "data" / "evals" / "longmemeval_sample.json"


def read_cases(name: str, data: Path) -> list[Case]:
    """The cases of a set, without questions that belong to others."""
    return list(get_set(name, data).read(sorted(data.glob(get_set(name, data).files))))


def test_a_longmemeval_question_comes_with_its_sessions_and_evidence() -> None:
    first = read_cases("longmemeval", LONGMEMEVAL.parent)[0]

    assert first == Case(
        "longmemeval made_0001",
        (
            _turn("filler_a1_0:0", "user", "How do I keep basil", (5, 20, 2, 21)),
            _turn("filler_a1_0:1", "assistant", "Give it a lamp", (5, 20, 2, 21)),
            _turn("answer_b2_1:0", "user", "I put a leather saddle", (5, 27, 9, 15)),
            _turn("answer_b2_1:1", "assistant", "Grease the rails", (5, 27, 9, 15)),
            _turn("filler_a1_0:2", "user", "Which herbs", (5, 30, 23, 40)),
            _turn("filler_a1_0:3", "assistant", "Mint, parsley", (5, 30, 23, 40)),
        ),
        (
            _question(
                "made_0001",
                "What kind of saddle did I put on the touring bike?",
                "single-session-user",
                Wanted(messages=("answer_b2_1:0",), sessions=("answer_b2_1",)),
            ),
        ),
        datetime(2023, 6, 2, 18, 40, tzinfo=UTC),
    )


def test_without_marked_turns_all_of_the_answering_sessions_are_wanted() -> None:
    second = read_cases("longmemeval", LONGMEMEVAL.parent)[1]

    assert [question.wanted for question in second.questions] == [
        Wanted(
            messages=("answer_c3_1:0", "answer_c3_2:0"),
            sessions=("answer_c3_1", "answer_c3_2"),
        )
    ]


def test_a_longmemeval_question_that_nothing_answers_wants_nothing() -> None:
    third = read_cases("longmemeval", LONGMEMEVAL.parent)[2]

    assert [question.wanted for question in third.questions] == [Wanted()]


def test_locomo_names_who_speaks_and_the_kinds_of_questions(tmp_path: Path) -> None:
    talk = {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a boat."},
            {
                "speaker": "Ben",
                "dia_id": "D1:2",
                "text": "Look!",
                "blip_caption": "a red kayak",
            },
        ],
    }
    asked = [
        {"question": "What?", "evidence": ["D1:1; D1:2", "D9:9"], "category": 1},
        {"question": "Nothing named?", "evidence": [], "category": 4},
        {"question": "Whose plane?", "evidence": ["D1:1"], "category": 5},
    ]
    _write(
        tmp_path / "locomo10.json",
        [{"sample_id": "conv-1", "conversation": talk, "qa": asked}],
    )

    (case,) = read_cases("locomo", tmp_path)

    at = _at(2023, 5, 8, 13, 56)
    assert case == Case(
        "locomo conv-1",
        (
            Turn("D1:1", "D1", "user", "Ann: I bought a boat.", at),
            Turn("D1:2", "D1", "user", "Ben: Look! [shares a red kayak]", at),
        ),
        (
            _question(
                "conv-1 1",
                "What?",
                "multi-hop",
                Wanted(messages=("D1:1", "D1:2"), sessions=("D1",)),
            ),
            _question("conv-1 3", "Whose plane?", "adversarial", Wanted()),
        ),
        at,
    )


def test_beam_messages_lose_their_tail_and_keep_the_day_that_was_named_before(
    tmp_path: Path,
) -> None:
    _write_beam(tmp_path)

    (chat,) = read_cases("beam", tmp_path)

    assert chat.content == (
        Turn("B1:0", "B1", "user", "Where do I start?\nHere", _at(2024, 3, 15, 9, 0)),
        Turn("B1:1", "B1", "assistant", "At the end.", _at(2024, 3, 15, 9, 0, 1)),
    )
    assert chat.questions == (
        _question("beam 100K 7 abstention 1", "Who won?", "abstention", Wanted()),
        _question(
            "beam 100K 7 knowledge_update 1",
            "Where?",
            "knowledge_update",
            Wanted(messages=("B1:0", "B1:1"), sessions=("B1",)),
        ),
    )


def test_memorybank_asks_what_names_a_day_of_the_talk(tmp_path: Path) -> None:
    _write_memorybank(tmp_path)

    (person,) = read_cases("memorybank", tmp_path)

    assert person.questions == (
        _question(
            "memorybank cn 小安 1",
            "5月2日我去了哪里？",
            "cn",
            Wanted(
                messages=("2023-05-02:0-user", "2023-05-02:0-assistant"),
                sessions=("2023-05-02",),
            ),
        ),
    )
    assert person.asked_at == _at(2023, 5, 3, 9, 0)


def test_a_label_becomes_a_question_with_all_that_answers_it(tmp_path: Path) -> None:
    label = {
        "id": "a-1",
        "kind": "literal",
        "query": "E4012",
        "messages": ["m1", "m2"],
        "texts": ["E4012"],
        "sessions": ["s1"],
        "tool_only": True,
        "only_in_thinking": ["m2"],
        "asked_at": "2026-03-04T10:00:00Z",
        "project": "/home/dev/shop",
    }
    _write(tmp_path / "labels.jsonl", label)

    (case,) = read_cases("labelled", tmp_path)

    assert case == Case(
        f"labelled {tmp_path.resolve()}",
        tmp_path.resolve() / "home",
        (
            Question(
                "a-1",
                "E4012",
                "literal",
                Wanted(("m1",), ("E4012",), ("s1",), is_verbatim=True),
                part="only in tools",
                asked_at=_at(2026, 3, 4, 10, 0),
            ),
        ),
    )


def test_strays_are_questions_about_the_next_memory() -> None:
    cases = [
        Case(name, (), tuple(_asked(name, count)), None)
        for name, count in (("a", 45), ("b", 1), ("empty", 0))
    ]

    strays = [
        [question for question in case.questions if question.kind == "stray"]
        for case in add_strays(cases)
    ]

    assert [[question.name for question in asked] for asked in strays] == [
        ["b 0"],
        [],
        [f"a {number}" for number in range(0, 45, 2)],
    ]
    assert [question for asked in strays for question in asked if question.wanted] == []


# -- finding a set ---


def test_a_set_is_known_by_its_files_wherever_they_are(tmp_path: Path) -> None:
    _write_beam(tmp_path / "beam")

    found = [
        get_set(None, place).name
        for place in (tmp_path, tmp_path / "beam", LONGMEMEVAL, LONGMEMEVAL.parent)
    ]

    assert found == ["beam", "beam", "longmemeval", "longmemeval"]


def test_what_is_not_clear_is_refused(tmp_path: Path) -> None:
    _write_beam(tmp_path / "beam")
    _write_memorybank(tmp_path / "memorybank")

    errors = [
        _error(lambda: get_set(None, tmp_path)),
        _error(lambda: get_set(None, tmp_path / "beam" / "100K")),
        _error(lambda: get_set("bean", tmp_path)),
        _error(lambda: read_set(get_set("locomo", tmp_path), tmp_path)),
    ]

    assert errors == [
        (
            BadQuery,
            f"{tmp_path}: several sets are here",
            "name the set: beam, memorybank",
        ),
        (
            BadQuery,
            f"{tmp_path / 'beam' / '100K'}: no known set is here",
            "name the set: beam, labelled, locomo, longmemeval, memorybank",
        ),
        (
            UnknownName,
            "no set of questions is called 'bean'",
            "did you mean 'beam'?",
        ),
        (
            SourceUnreadable,
            f"{tmp_path}: it has no locomo*.json, the files of locomo",
            "download the set, and give the folder that holds it",
        ),
    ]


RUBBISH = (
    b"",
    b"\xff\xfe",
    b"[",
    b"null",
    b"7",
    b"[7]",
    b"{}",
    b"[{}]",
    b'{"kind": 1}',
    b'{"a": {"history": {}}}',
    b'[{"conversation": {}, "qa": []}]',
    b"[" * 100_000,
)


@pytest.mark.parametrize("name", [row.name for row in SETS])
def test_a_file_of_another_shape_is_an_error(name: str, tmp_path: Path) -> None:
    row = get_set(name, tmp_path)
    file = tmp_path / row.files.replace("*", "9")
    file.parent.mkdir(parents=True, exist_ok=True)

    errors = []
    for content in RUBBISH:
        file.write_bytes(content)
        errors.append(_error(lambda: read_set(row, tmp_path))[0])

    assert set(errors) == {SourceUnreadable}


# -- pieces ---


def _asked(name: str, count: int) -> list[Question]:
    return [
        Question(f"{name} {number}", "?", "any", Wanted(texts=("x",)))
        for number in range(count)
    ]


def _error(call: Callable[[], object]) -> tuple[type[Exception], str, str]:
    with pytest.raises(BackstoryError) as caught:
        call()
    return type(caught.value), str(caught.value), caught.value.hint


def _question(name: str, text: str, kind: str, wanted: Wanted) -> Question:
    return Question(name, text, kind, wanted, sources=(HitSource.MESSAGE,))


def _turn(name: str, role: str, begins: str, when: tuple[int, int, int, int]) -> Turn:
    """The turn of the sample whose text begins so."""
    texts = [
        message["content"]
        for row in orjson.loads(LONGMEMEVAL.read_bytes())
        for session in row["haystack_sessions"]
        for message in session
    ]
    text = next(each for each in texts if each.startswith(begins))
    return Turn(name, name.partition(":")[0], role, text, _at(2023, *when))


def _write_beam(folder: Path) -> None:
    said = [
        {
            "role": "user",
            "id": 0,
            "time_anchor": "March-15-2024",
            "content": "Where do I start?\nHere ->-> 1,1",
        },
        {"role": "assistant", "id": 1, "content": "At the end."},
    ]
    _write(
        folder / "100K" / "7" / "chat.json",
        [{"batch_number": 1, "time_anchor": None, "turns": [said]}],
    )
    asked = {
        "abstention": [{"question": "Who won?"}],
        "knowledge_update": [
            {
                "question": "Where?",
                "source_chat_ids": {"original": [0], "updated": [[1, 99]]},
            },
        ],
    }
    _write(folder / "100K/7/probing_questions/probing_questions.json", asked)


def _write_memorybank(folder: Path) -> None:
    talk = [{"query": "我去了博物馆", "response": "好看吗？"}]
    _write(folder / "memory_bank_cn.json", {"小安": {"history": {"2023-05-02": talk}}})
    asked = ["5月2日我去了哪里？", "5月3日呢？", "我喜欢什么？"]
    _write(folder / "probing_questions_cn.jsonl", {"小安": asked})


def _at(year: int, *rest: int) -> datetime:
    month, day, hour, minute, second = (*rest, 0)[:5]
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(content))
