"""Every error raised on purpose: one tree, each with an exit code and a hint.

::

    BackstoryError                10
      ConfigError                 11   a setting is unknown, malformed, not allowed
      UnknownName                 12   no source, format or session of that name
      BadQuery                    14   a tool was called with what it cannot use
      StoreProblem                20   anything wrong with a database of ours as a whole
        StoreLocked               22   another process is writing, and went on too long
        StoreDamaged              23   the file is not a sound database
        StoreTooNew               24   written by a newer version
        StoreFull                 25   no room left on the disk
        StoreUnwritable           26   the folder or file may not be written
      SourceUnreadable            30   a whole source could not be opened
      ProviderError               40   an embedder failed
        ProviderRefused           41   it will fail again: key, quota, model, size
        ProviderUnavailable       42   it may work later: no answer, overload

A message names the thing and the reason; ``hint`` says the next step.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar


class BackstoryError(Exception):
    """Something Backstory could not do, said in words meant for a person."""

    exit_code: ClassVar[int] = 10
    hint: str = ""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        if hint is not None:
            self.hint = hint


class ConfigError(BackstoryError):
    """A setting is unknown, malformed, or not allowed where it stands."""

    exit_code = 11
    hint = (
        "run 'backstory settings' to see every setting and where its value comes from"
    )


class UnknownName(BackstoryError):
    """No source, format or session has that name."""

    exit_code = 12


class BadQuery(BackstoryError):
    """A tool was called with an argument that it cannot use."""

    exit_code = 14


def nearest_hint(name: str, names: Iterable[str]) -> str:
    """The hint for a name that is unknown: those it may stand for, or all there are."""
    known = {each.lower(): each for each in names}
    typed = name.lower()
    begun = [each for each in known if typed and each.startswith(typed)]
    meant = begun[:3] or difflib.get_close_matches(typed, known, n=1, cutoff=0.5)
    if meant:
        return "did you mean " + " or ".join(f"'{known[each]}'" for each in meant) + "?"
    return "the names are: " + ", ".join(known.values())


class StoreProblem(BackstoryError):
    """Something is wrong with a database of ours as a whole; ``path`` is its file."""

    exit_code = 20

    def __init__(
        self, message: str, *, hint: str | None = None, path: Path | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path


class StoreLocked(StoreProblem):
    """Another process is writing, and did not finish in time."""

    exit_code = 22
    hint = "wait for the other process to finish, then run the command again"


class StoreDamaged(StoreProblem):
    """The file is not a sound database."""

    exit_code = 23
    hint = "restore the file from a backup, or move it away to start an empty one"


class StoreTooNew(StoreProblem):
    """The database was written by a newer version of Backstory."""

    exit_code = 24
    hint = "upgrade this Backstory: pip install --upgrade backstory"


class StoreFull(StoreProblem):
    """There is no room left on the disk; what was committed before is safe."""

    exit_code = 25
    hint = "free some space, then run the command again; it goes on where it stopped"


class StoreUnwritable(StoreProblem):
    """The folder or the file may not be written."""

    exit_code = 26
    hint = "check the permissions, or choose another folder with BACKSTORY_HOME"


class SourceUnreadable(BackstoryError):
    """A whole source could not be opened."""

    exit_code = 30


class ProviderError(BackstoryError):
    """An embedder could not do its work."""

    exit_code = 40


class ProviderRefused(ProviderError):
    """The embedder will refuse again: the key, the quota, the model or the size."""

    exit_code = 41
    hint = "check the embedder's settings: 'backstory settings' shows them"


class ProviderUnavailable(ProviderError):
    """The embedder did not answer as it should; it may the next time."""

    exit_code = 42
    hint = "searches go by words alone until it answers; nothing is lost"
