"""What the answers to questions come to."""

from math import log2
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from backstory.evals.ask import JudgedHit, PromptAnswer, SearchAnswer
from backstory.evals.metrics import (
    NeedlessScore,
    PromptScore,
    Scores,
    SearchScore,
    UnansweredScore,
    score_answers,
)
from backstory.evals.questions import Case, Question, Wanted, shuffle_labels
from backstory.values.hits import Hit, HitSource, Strength
from backstory.values.structs import replace, to_builtins

HIT = Hit(HitSource.MESSAGE, 0.5, Strength.FAIR, "text", "text")
WANTED = Wanted(messages=("a", "b"), sessions=("s",))
# Both of them, first and second.
BEST_GAIN = 1 + 1 / log2(3)


def a_hit(message: str | None = None, *, reply: bool = False) -> JudgedHit:
    """A hit: right if it is a wanted message."""
    is_right = message is not None
    return JudgedHit(HIT, is_right, is_right or reply, is_right, message)


def an_answer(
    *hits: JudgedHit,
    kind: str = "words",
    part: str = "",
    wanted: Wanted = WANTED,
    weak: bool = False,
    session: int | None = None,
    took_s: float = 0.01,
) -> SearchAnswer:
    question = Question("q", "?", kind, wanted, part)
    return SearchAnswer(question, hits, weak, session, took_s)


def a_prompt_answer(
    *hits: JudgedHit, wanted: Wanted = WANTED, text: bool = False, tokens: int = 0
) -> PromptAnswer:
    question = Question("p", "?", "prompt", wanted, is_prompt=True)
    return PromptAnswer(question, hits, tokens, not tokens, text, 0.03)


def test_scores_are_shares_of_the_questions_and_of_what_they_want() -> None:
    wrong = a_hit()

    scores = score_answers(
        [
            an_answer(wrong, a_hit("a"), session=2),
            an_answer(a_hit("b"), wrong, a_hit("a"), session=1),
            an_answer(wrong, a_hit(reply=True), weak=True, part="rare"),
            an_answer(*[wrong] * 9, a_hit("a"), kind="other", session=5),
        ]
    )

    words = SearchScore(
        "words",
        "",
        3,
        hit_at_1=1 / 3,
        hit_at_3=2 / 3,
        hit_at_10=2 / 3,
        reciprocal_rank=(1 / 2 + 1) / 3,
        recall_at_5=(1 / 2 + 1) / 3,
        recall_at_10=(1 / 2 + 1) / 3,
        gain_at_10=((1 / log2(3)) / BEST_GAIN + (1 + 1 / log2(4)) / BEST_GAIN) / 3,
        session_at_3=2 / 3,
        session_at_5=2 / 3,
        session_at_10=2 / 3,
        reply_at_3=1.0,
        weak=1 / 3,
    )
    rare = replace(
        SearchScore("words", "rare", 1, *[0.0] * 12), reply_at_3=1.0, weak=1.0
    )
    other = SearchScore(
        "other",
        "",
        1,
        hit_at_1=0.0,
        hit_at_3=0.0,
        hit_at_10=1.0,
        reciprocal_rank=0.1,
        recall_at_5=0.0,
        recall_at_10=0.5,
        gain_at_10=(1 / log2(11)) / BEST_GAIN,
        session_at_3=0.0,
        session_at_5=1.0,
        session_at_10=1.0,
        reply_at_3=0.0,
        weak=0.0,
    )
    assert [_rounded(score) for score in scores.searches[:3]] == [
        _rounded(score) for score in (words, rare, other)
    ]
    assert (scores.searches[3].kind, scores.searches[3].questions) == ("all", 4)
    assert scores.questions == 4


def test_what_nothing_answers_should_be_weak_and_prompts_without_help_empty() -> None:
    nothing = Wanted()

    scores = score_answers(
        [
            an_answer(a_hit(), wanted=nothing, weak=True, took_s=0.02),
            an_answer(a_hit(), wanted=nothing, took_s=0.02),
            a_prompt_answer(
                a_hit("a"), a_hit(reply=True), a_hit(), text=True, tokens=100
            ),
            a_prompt_answer(a_hit(), tokens=50),
            a_prompt_answer(wanted=nothing),
            a_prompt_answer(a_hit(), wanted=nothing, tokens=30),
        ]
    )

    assert scores == Scores(
        questions=6,
        unanswered=(UnansweredScore("words", "", 2, 0.5),),
        prompts=(
            PromptScore(
                "prompt",
                "",
                2,
                empty=0.0,
                text=0.5,
                message=0.5,
                session=0.5,
                precision=0.5,
                mean_tokens=75.0,
            ),
        ),
        needless=(NeedlessScore("prompt", "", 2, empty=0.5, mean_tokens=15.0),),
        median_search_ms=20.0,
        median_context_ms=30.0,
    )


def test_without_sessions_to_find_there_is_no_share_of_them() -> None:
    (score,) = score_answers([an_answer(wanted=Wanted(texts=("x",)))]).searches

    assert (score.session_at_3, score.session_at_5, score.session_at_10) == (None,) * 3


def test_nothing_asked_is_no_score() -> None:
    assert score_answers([]) == Scores()


hits = st.lists(
    st.sampled_from([a_hit(), a_hit("a"), a_hit("b"), a_hit(reply=True)]), max_size=10
)


@given(st.lists(hits, min_size=1, max_size=8))
def test_shares_lie_between_none_and_all_and_grow_with_what_is_looked_at(
    found: list[list[JudgedHit]],
) -> None:
    (score,) = score_answers([an_answer(*each) for each in found]).searches

    shares = [each for each in to_builtins(score).values() if isinstance(each, float)]
    assert [share for share in shares if not 0 <= share <= 1] == []
    assert score.hit_at_1 <= score.hit_at_3 <= score.hit_at_10
    assert score.recall_at_5 <= score.recall_at_10 <= score.hit_at_10
    assert score.hit_at_1 <= score.reciprocal_rank <= score.hit_at_10
    assert score.hit_at_3 <= score.reply_at_3


@given(st.lists(hits, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_the_questions_does_not_matter(
    found: list[list[JudgedHit]], chance: Random
) -> None:
    answers = [an_answer(*each) for each in found]
    others = chance.sample(answers, len(answers))

    (score,), (other,) = (score_answers(each).searches for each in (answers, others))

    assert _rounded(score) == _rounded(other)


@given(st.integers(2, 30), st.integers())
def test_shuffled_labels_are_all_those_of_other_questions(
    count: int, seed: int
) -> None:
    questions = [
        Question(str(n), "?", "any", Wanted(messages=(str(n),))) for n in range(count)
    ]
    nothing = Question("none", "?", "any")

    (case,) = shuffle_labels([Case("c", (), (*questions, nothing))], seed)

    *shuffled, last = case.questions
    assert last == nothing
    assert sorted(each.wanted.messages for each in shuffled) == sorted(
        each.wanted.messages for each in questions
    )
    assert [each for each in shuffled if each.wanted.messages == (each.name,)] == []


def _rounded(score: SearchScore) -> SearchScore:
    rounded = {
        name: round(value, 5)
        for name, value in to_builtins(score).items()
        if isinstance(value, float)
    }
    return replace(score, **rounded)
