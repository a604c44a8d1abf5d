"""Scores as a picture: a bar chart in SVG, readable on a light and on a dark page."""

from collections.abc import Iterator, Sequence

from backstory.evals.metrics import (
    NeedlessScore,
    PromptScore,
    Scores,
    SearchScore,
    UnansweredScore,
)
from backstory.render.format import render_count
from backstory.render.svg import STYLE, draw_text, to_xml
from backstory.text.cut import one_line
from backstory.values.structs import FrozenStruct

_WIDTH = 800
_MARGIN = 24
_TOP = 76
# Where the bars begin, and how long one for 1.0 is.
_LEFT = 230
_SCALE = 400
_BAR = 12
_GAP = 3
_GROUP_GAP = 14
_MAX_NAME_CHARS = 28


class _Bar(FrozenStruct):
    colour: str
    share: float
    note: str = ""


class _Group(FrozenStruct):
    name: str
    questions: int
    bars: tuple[_Bar, ...]

    @property
    def height(self) -> int:
        return max(2, len(self.bars)) * (_BAR + _GAP) + _GROUP_GAP


def draw_scores(title: str, scores: Scores) -> str:
    """The scores of each kind as an SVG document."""
    groups = [
        *map(_search_group, scores.searches),
        *map(_unanswered_group, scores.unanswered),
        *map(_prompt_group, scores.prompts),
        *map(_needless_group, scores.needless),
    ]
    bottom = _TOP + sum(group.height for group in groups)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 36}" '
        f'width="{_WIDTH}" height="{bottom + 36}" role="img">',
        f"  <title>{to_xml(title)}</title>",
        f"  <style>{STYLE}  </style>",
        f'  <rect class="page" width="{_WIDTH}" height="{bottom + 36}"/>',
        draw_text(_MARGIN, 32, title, "title"),
        *_draw_legend(bool(scores.searches)),
        *_draw_grid(bottom),
        *_draw_groups(groups),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _search_group(score: SearchScore) -> _Group:
    shares = (score.hit_at_1, score.hit_at_3, score.hit_at_10)
    bars = tuple(_Bar(f"c{at}", share) for at, share in enumerate(shares))
    return _Group(_name(score.kind, score.part), score.questions, bars)


def _unanswered_group(score: UnansweredScore) -> _Group:
    bars = (_Bar("c3", score.weak, "weak"),)
    return _Group(_name(score.kind, score.part), score.questions, bars)


def _prompt_group(score: PromptScore) -> _Group:
    bars = (
        _Bar("c3", score.text, "wanted text given"),
        _Bar("c3", score.precision, "precision"),
    )
    return _Group(_name(score.kind, score.part), score.questions, bars)


def _needless_group(score: NeedlessScore) -> _Group:
    bars = (_Bar("c3", score.empty, "nothing given"),)
    return _Group(_name(score.kind, score.part), score.questions, bars)


def _name(kind: str, part: str) -> str:
    return f"{kind}, {part}" if part else kind


def _draw_legend(has_searches: bool) -> Iterator[str]:
    if not has_searches:
        return
    for at, name in enumerate(("hit@1", "hit@3", "hit@10")):
        x = _LEFT + at * 90
        yield f'  <rect class="c{at}" x="{x}" y="46" width="12" height="12" rx="2"/>'
        yield draw_text(x + 18, 57, name, "faint")


def _draw_grid(bottom: int) -> Iterator[str]:
    for quarter in range(5):
        x = _LEFT + _SCALE * quarter // 4
        yield (
            f'  <line class="grid" x1="{x}" y1="{_TOP - 8}" x2="{x}" y2="{bottom}"/>'
        )
        yield draw_text(x, bottom + 18, f"{quarter / 4:.2f}", "faint", anchor="middle")


def _draw_groups(groups: Sequence[_Group]) -> Iterator[str]:
    y = _TOP
    for group in groups:
        name = one_line(group.name, _MAX_NAME_CHARS)
        yield draw_text(_LEFT - 12, y + 11, name, anchor="end")
        count = render_count(group.questions, "question")
        yield draw_text(_LEFT - 12, y + 27, count, "faint", anchor="end")
        for at, bar in enumerate(group.bars):
            yield from _draw_bar(bar, y + at * (_BAR + _GAP))
        y += group.height


def _draw_bar(bar: _Bar, y: int) -> Iterator[str]:
    # A bar without a length would not show that something was measured.
    length = max(1.0, bar.share * _SCALE)
    yield (
        f'  <rect class="{bar.colour}" x="{_LEFT}" y="{y}" width="{length:.1f}" '
        f'height="{_BAR}" rx="2"/>'
    )
    label = f"{bar.share:.2f} {bar.note}".rstrip()
    yield draw_text(_LEFT + round(length) + 6, y + 10, label, "faint")
