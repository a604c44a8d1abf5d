"""The steps of writing a batch that are the same in every database."""

from collections.abc import Iterator, Sequence

from backstory.store.base.history import (
    Batch,
    KeptMessage,
    SourceKey,
    Written,
)
from backstory.values.history import Problem
from backstory.values.structs import replace

# More problems of this kind would say nothing new.
_MAX_GIVEN_TWICE = 100


class BatchSteps:
    """The steps of writing one batch, and what they changed so far."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._progress = batch.progress
        self._made: set[str] = set()
        self._new_messages = 0
        self._changed_messages = 0
        self._problems: list[Problem] = []
        self._last_message_id: int | None = None

    @property
    def written(self) -> Written:
        return Written(
            made_sessions=tuple(sorted(self._made)),
            new_messages=self._new_messages,
            changed_messages=self._changed_messages,
            problems=tuple(self._problems),
            last_message_id=self._last_message_id,
        )

    def _wait_for_session(self) -> None:
        """Have the source read again: it mentions a session that does not exist yet."""
        if self._progress is not None:
            # A source without a signature counts as changed.
            self._progress = replace(self._progress, signature="")

    def _note_given_twice(self, messages: Sequence[KeptMessage]) -> None:
        self._problems += [
            Problem(
                f"the id {each.message.native_id!r} is given twice, with different "
                "contents; both are kept",
                each.line,
                self._batch.read_from or "",
            )
            for each in messages[:_MAX_GIVEN_TWICE]
        ]


def iter_outdated_problems(batch: Batch) -> Iterator[tuple[SourceKey, int]]:
    """The sources whose problems are outdated, each after which line."""
    if batch.moved_from is not None:
        yield batch.moved_from, 0
    if batch.progress is not None and batch.after_line is not None:
        yield batch.progress.key, batch.after_line


def by_session(messages: Sequence[KeptMessage]) -> dict[str, list[KeptMessage]]:
    """Messages by the native ids of their sessions."""
    found: dict[str, list[KeptMessage]] = {}
    for kept in messages:
        found.setdefault(kept.message.session_id, []).append(kept)
    return found
