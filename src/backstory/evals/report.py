"""Scores as tables for people; scores and answers as JSON for programs."""

from collections.abc import Iterator, Sequence

from backstory.evals.ask import Answered, JudgedHit, PromptAnswer
from backstory.evals.metrics import Score, Scores
from backstory.render.format import render_count
from backstory.render.layout import render_columns
from backstory.render.objects import problem_object, to_iso
from backstory.values.history import Problem
from backstory.values.structs import to_builtins

# The head of each column, and the number below it; together they fit 80 columns.
_SEARCH_COLUMNS = {
    "hit@1": "hit_at_1",
    "hit@3": "hit_at_3",
    "hit@10": "hit_at_10",
    "R@5": "recall_at_5",
    "R@10": "recall_at_10",
    "nDCG@10": "gain_at_10",
    "sess@5": "session_at_5",
    "weak": "weak",
}
_NEEDLESS_COLUMNS = {"nothing": "empty", "tokens": "mean_tokens"}
_PROMPT_COLUMNS = {
    "nothing": "empty",
    "text": "text",
    "message": "message",
    "session": "session",
    "precision": "precision",
    "tokens": "mean_tokens",
}


def render_scores(scores: Scores) -> Iterator[str]:
    """A table for each kind of question, and how long answers take."""
    tables: tuple[tuple[str, Sequence[Score], dict[str, str]], ...] = (
        ("Questions with an answer", scores.searches, _SEARCH_COLUMNS),
        ("Questions without an answer", scores.unanswered, {"weak": "weak"}),
        ("Prompts that a memory helps", scores.prompts, _PROMPT_COLUMNS),
        ("Prompts that none helps", scores.needless, _NEEDLESS_COLUMNS),
    )
    for title, rows, columns in tables:
        if rows:
            yield title
            yield from _render_table(rows, columns)
            yield ""
    yield f"{render_count(scores.questions, 'question')}. {_render_times(scores)}"


def _render_table(scores: Sequence[Score], columns: dict[str, str]) -> Iterator[str]:
    rows = [
        [
            f"  {score.part}" if score.part else score.kind,
            f"{score.questions:,}",
            *(_render_number(score, name) for name in columns.values()),
            "",
        ]
        for score in scores
    ]
    # The last column cannot be aligned to the right, so an empty one is added.
    heads = ("kind", "n", *columns, "")
    yield from render_columns(heads, rows, right={*range(1, len(heads))}, width=None)


def _render_number(score: Score, name: str) -> str:
    number: float | None = getattr(score, name)
    if number is None:
        return "-"
    return f"{number:,.0f}" if name == "mean_tokens" else f"{number:.3f}"


def _render_times(scores: Scores) -> str:
    times = {
        "A search": scores.median_search_ms,
        "A prompt's context": scores.median_context_ms,
    }
    said = [f"{what} takes {took:.0f} ms." for what, took in times.items() if took]
    return " ".join(said)


# -- JSON ---


def scores_object(
    name: str, scores: Scores, problems: Sequence[Problem] = ()
) -> dict[str, object]:
    return {
        "set": name,
        "questions": scores.questions,
        "searches": [_score_object(each) for each in scores.searches],
        "unanswered": [_score_object(each) for each in scores.unanswered],
        "prompts": [_score_object(each) for each in scores.prompts],
        "needless": [_score_object(each) for each in scores.needless],
        "median_search_ms": round(scores.median_search_ms, 1),
        "median_context_ms": round(scores.median_context_ms, 1),
        "problems": [problem_object(problem) for problem in problems],
    }


def _score_object(score: Score) -> dict[str, object]:
    return {**to_builtins(score), "part": score.part or None}


def answer_object(answer: Answered) -> dict[str, object]:
    """One question, and everything that was found for it."""
    question = answer.question
    found: dict[str, object] = {
        "id": question.name,
        "kind": question.kind,
        "part": question.part or None,
        "query": question.text,
    }
    match answer:
        case PromptAnswer():
            found |= {"tokens": answer.tokens, "has_text": answer.has_text}
        case _:
            found |= {
                "rank": answer.rank,
                "session_rank": answer.session_rank,
                "is_weak": answer.is_weak,
            }
    return {**found, "hits": [_hit_object(each) for each in answer.hits]}


def _hit_object(judged: JudgedHit) -> dict[str, object]:
    hit = judged.hit
    return {
        "is_right": judged.is_right,
        "message": judged.message,
        "source": hit.source.value,
        "role": hit.role and hit.role.value,
        "score": round(hit.score, 3),
        "strength": hit.strength.value,
        "session": hit.session and hit.session.native_id,
        "position": hit.position,
        "said_at": to_iso(hit.said),
        "excerpt": hit.excerpt,
    }
