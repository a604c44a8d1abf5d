"""What earlier readings recorded about the sources they read."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from backstory.ingest.intake import Rules
from backstory.store.base.history import SourceKey, SourceState
from backstory.values.history import FoundFile


class KnownSources:
    """The sources that were read before, and how far.

    A state counts only while the same sessions would be left out: if the settings
    exclude less than before, the source counts as changed.
    """

    def __init__(self, states: Mapping[SourceKey, SourceState], rules: Rules) -> None:
        self._states = states
        self._rules = rules
        self._by_file_id = {
            state.file_id: state for state in states.values() if state.file_id
        }

    def find(self, key: SourceKey) -> SourceState | None:
        return self._states.get(key)

    def is_up_to_date(self, key: SourceKey, signature: str) -> bool:
        """Whether a source was read to its end and has not changed since."""
        state = self._states.get(key)
        return (
            state is not None
            and state.signature == signature
            and self.excludes_the_same(state)
        )

    def excludes_the_same(self, state: SourceState) -> bool:
        """Whether what was left out then would be left out now."""
        return state.excluded_by in ("", self._rules.fingerprint)

    def find_moved(self, file: FoundFile) -> SourceState | None:
        """The state of the same file under a former name that is gone."""
        state = self._by_file_id.get(file.file_id)
        return None if state is None or Path(state.key.path).exists() else state

    def iter_parts(self, path: Path) -> Iterator[SourceState]:
        """The conversations of a database that have been read."""
        for key, state in self._states.items():
            if key.path == str(path) and key.part:
                yield state
