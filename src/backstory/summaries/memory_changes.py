"""Make the changes that a model proposes to the long-term memory, if they are sound.

Each proposal is checked, and an answer that would lose most of what the model was shown
is refused as a whole. The model sees masks in place of secrets: whatever it rewrites
keeps the secrets themselves, and a change that would lose one is not made.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

from backstory.errors import BadQuery, FactAmbiguous, FactNotFound
from backstory.notes.facts import (
    DEFAULT_TOPIC,
    MAX_FACT_CHARS,
    Fact,
    add_fact,
    list_facts,
    remove_fact,
    remove_repeats,
    replace_fact,
)
from backstory.notes.masked_facts import find_known
from backstory.summaries.answer import BadAnswer, tidy_line
from backstory.summaries.who_said import SaidOnDay, has_new_words
from backstory.text.redaction import MASKED, mask_secrets
from backstory.text.unmask import keeps_secrets, restore_secrets
from backstory.text.words import STOP_WORDS, word_set
from backstory.values.notes import FactOrigin
from backstory.values.reports import Curation
from backstory.values.structs import Struct, field

logger = logging.getLogger(__name__)

# A fact is added only if it came up on at least this many days.
DAYS_NEEDED = 2
_MAX_CHANGES = 50
# No answer may remove more than this share of the facts.
_MOST_LOST = 0.5
# A corrected fact must keep this share of the old one's words.
_KEPT_SHARE = 0.3
# A fact is redundant if another one contains this share of its words.
_REDUNDANT_SHARE = 0.6
# Every fact is about the user, so this word says nothing.
_SAY_LITTLE = STOP_WORDS | {"user"}


# Any: a model's JSON can hold anything anywhere; it is checked on reading.
def apply_answer(
    memory: str,
    answer: Mapping[str, Any],
    said: Mapping[date, SaidOnDay],
    *,
    seen: Sequence[Fact] | None = None,
    is_removed: Callable[[str], bool] = lambda fact: False,
) -> tuple[str, Curation]:
    """The memory with the changes of an answer; those that cannot be made are skipped.

    ``said`` is what the user said on the days of the logs, which must include anything
    new in a fact. ``seen`` are the facts that the model was shown, if not all;
    ``is_removed`` tells whether a person removed a fact. Raises ``BadAnswer`` for an
    answer of a different shape, or one that would remove most of these facts.
    """
    if not answer.keys() & {"remove", "replace", "add"}:
        raise BadAnswer("it has none of the lists that were asked for")
    # Exact repeats need no model's judgement.
    memory, repeated = remove_repeats(memory)
    before = list_facts(memory) if seen is None else seen
    draft = _Draft(memory, said, saw_all=seen is None, is_removed=is_removed)
    replaced = _parse_dicts(answer, "replace")
    removed = [_find_fact(each, before) for each in _parse_list(answer, "remove")]
    changed = [*removed, *(_find_fact(each.get("old"), before) for each in replaced)]
    known = " ".join(filter(None, changed))
    for each in replaced:
        old, new = _find_fact(each.get("old"), before), _parse_words(each.get("new"))
        if old is not None and new:
            shown = [fact.text for fact in before if fact.text != old]
            draft.replace(old, new, shown, known)
    for fact in removed:
        if fact is not None and _is_redundant(fact, draft.memory):
            draft.remove(fact)
    days = {day.isoformat(): day for day in said}
    for each in _parse_dicts(answer, "add"):
        fact = tidy_line(each.get("fact"))
        named = _parse_list(each, "days")
        on_days = {days[day] for day in named if isinstance(day, str) and day in days}
        if fact and len(on_days) >= DAYS_NEEDED:
            topic = tidy_line(each.get("topic")) or DEFAULT_TOPIC
            draft.add(fact, topic=topic, on_days=sorted(on_days))
    _check_losses(before, draft)
    return draft.memory, Curation(
        removed=(*repeated, *draft.removed),
        replaced=tuple(draft.replaced),
        added=tuple(draft.added),
        origins=draft.origins,
    )


class _Draft(Struct):
    """The memory as it is being changed, and the changes that could be made."""

    memory: str
    said: Mapping[date, SaidOnDay]
    saw_all: bool
    is_removed: Callable[[str], bool]
    removed: list[str] = field(default_factory=list)
    replaced: list[tuple[str, str]] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    # Where the new words of facts come from.
    origins: dict[str, tuple[FactOrigin, ...]] = field(default_factory=dict)

    def replace(self, old: str, new: str, others: Sequence[str], known: str) -> None:
        """Reword a fact; ``others`` are the other facts that the model was shown.

        ``known`` has the words of all facts that the model changes.
        """
        restored = restore_secrets(new, old, others)
        if restored is None or restored == old or self.is_removed(restored):
            return
        words = restored
        told = self._find_new_words(words, known)
        if told is None:
            logger.info("a change was skipped: the user did not say so")
            return
        if self._try(lambda: replace_fact(self.memory, old, words), without=old):
            self.replaced.append((old, words))
            self.origins[words] = told

    def _find_new_words(self, words: str, known: str) -> tuple[FactOrigin, ...] | None:
        """The origins of the words that no known fact has; None if nobody said them.

        The known facts were checked when they were written.
        """
        if not has_new_words(words, known):
            return ()
        for day in sorted(self.said, reverse=True):
            if found := self.said[day].find(words, known):
                return found
        return None

    def remove(self, fact: str) -> None:
        if self._try(lambda: remove_fact(self.memory, fact), without=fact):
            self.removed.append(fact)

    def add(self, fact: str, *, topic: str, on_days: Sequence[date]) -> None:
        if MASKED in fact or find_known(self.memory, fact):
            # With a mask in place of what matters, a fact says nothing.
            return
        if self.is_removed(fact):
            return
        told = [self.said[day].find(fact) for day in on_days]
        if sum(map(bool, told)) < DAYS_NEEDED:
            logger.info("a fact was skipped: the user did not say so")
            return
        # A fact that the model was not shown may say the same in other words.
        if not self.saw_all and _is_redundant(fact, self.memory):
            return
        if self._try(lambda: add_fact(self.memory, topic, fact)):
            self.added.append(fact)
            self.origins[fact] = tuple(each for found in told for each in found)

    def _try(self, change: Callable[[], str], *, without: str = "") -> bool:
        """Make a change, unless it would lose a secret of the fact ``without``."""
        try:
            changed = change()
        except (FactNotFound, FactAmbiguous, BadQuery) as exc:
            logger.info("a change was skipped: %s", exc)
            return False
        if not keeps_secrets(without, changed):
            logger.info("a change was skipped: it would lose a secret")
            return False
        self.memory = changed
        return True


def _check_losses(before: Sequence[Fact], draft: _Draft) -> None:
    """Raise ``BadAnswer`` for changes that would remove most of the facts."""
    # A fact that is replaced by entirely different words is lost, too.
    lost = len(draft.removed)
    lost += sum(not _keeps_words(old, new) for old, new in draft.replaced)
    if lost > _MOST_LOST * len(before):
        raise BadAnswer(f"it would remove {lost} of {len(before)} facts")
    shorter = sum(len(old) for old, _ in draft.replaced) + sum(map(len, draft.removed))
    longer = sum(len(new) for _, new in draft.replaced)
    whole = sum(len(each.text) for each in before)
    if shorter - longer > _MOST_LOST * whole:
        raise BadAnswer("it would remove most of the text of the facts")


def _find_fact(value: object, facts: Iterable[Fact]) -> str | None:
    """The fact that a model quotes word for word, as it was given to the model.

    None also if several facts differ only in their secrets.
    """
    named = {each.text for each in facts if mask_secrets(each.text) == value}
    return named.pop() if len(named) == 1 else None


def _is_redundant(fact: str, memory: str) -> bool:
    """Whether another fact contains most of this fact's words."""
    others = [each.text for each in list_facts(memory)]
    with suppress(ValueError):
        others.remove(fact)
    return any(_keeps_words(fact, other, _REDUNDANT_SHARE) for other in others)


def _keeps_words(old: str, new: str, share: float = _KEPT_SHARE) -> bool:
    words = word_set(old) - _SAY_LITTLE
    return len(words & word_set(new)) >= share * len(words)


def _parse_words(value: object) -> str:
    """New words for a fact; none if too long, as cutting would lose the end."""
    if not isinstance(value, str) or len(value) > MAX_FACT_CHARS:
        return ""
    return tidy_line(value, max_chars=MAX_FACT_CHARS)


def _parse_list(answer: Mapping[str, Any], name: str) -> list[Any]:
    value = answer.get(name) or []
    if not isinstance(value, list):
        raise BadAnswer(f"'{name}' is not a list")
    return value[:_MAX_CHANGES]


def _parse_dicts(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [each for each in _parse_list(answer, name) if isinstance(each, dict)]
