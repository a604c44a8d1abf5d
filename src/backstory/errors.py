"""Every error raised on purpose: one tree, each with an exit code and a hint.

::

    BackstoryError                10
      ConfigError                 11   a setting is unknown or malformed
        NoModel                   11   a language model is needed but not configured
      UnknownName                 12   no program, format, session or folder has it
      MissingExtra                13   an optional package is not installed
      BadQuery                    14   a request that makes no sense
      StoreProblem                20   anything wrong with one of our databases
        StoreLocked               22   another process has been writing for too long
        StoreDamaged              23   the database is damaged
        StoreTooNew               24   written by a newer version
        StoreFull                 25   the disk is full
        StoreUnwritable           26   the folder or file cannot be written
        StoreUnreachable          27   the database server cannot be reached
        StoreIncomplete           28   a copy that 'backstory move' has not completed
      SourceUnreadable            30   a whole source could not be opened
      NotesConflict               31   a note changed on disk since it was read
      FactNotFound                32   no fact matches
      FactAmbiguous               33   more than one fact matches
      InstallRefused              34   an agent program's file cannot be changed
      ProviderError               40   an embedder or a language model failed
        ProviderRefused           41   it will fail again: key, quota, model, size
        ProviderUnavailable       42   it may work later: no answer, overloaded

A message names the thing and the reason; ``hint`` says the next step.
"""

from collections.abc import Iterable

# Type checkers read this as true. Importing it from typing would be slow.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


class BackstoryError(Exception):
    """Something Backstory could not do, explained for a person."""

    exit_code = 10
    hint: str = ""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(_printable(message))
        if hint is not None:
            self.hint = _printable(hint)


def _printable(text: str) -> str:
    """The text without half characters, which a name on a command line may have."""
    return text.encode(errors="replace").decode()


class ConfigError(BackstoryError):
    """A setting is unknown or malformed."""

    exit_code = 11
    hint = (
        "correct it there; 'backstory settings' then shows every setting and where "
        "its value comes from"
    )


class NoModel(ConfigError):
    """A language model is needed, and none is configured."""

    hint = "choose one: backstory settings set llm.name claude (or another)"


class UnknownName(BackstoryError):
    """There is no agent program, format, session or project folder with that name."""

    exit_code = 12


class MissingExtra(BackstoryError):
    """An optional package is needed, and is not installed."""

    exit_code = 13


class BadQuery(BackstoryError):
    """A request that makes no sense, such as an empty query."""

    exit_code = 14


_MAX_NAMES_LISTED = 20
_MAX_SHOWN_CHARS = 80


def nearest_hint(name: str, names: Iterable[str]) -> str:
    """The hint for an unknown name: the nearest names, or all of them."""
    known = {each.lower(): each for each in names}
    typed = name.lower()
    begun = [each for each in known if typed and each.startswith(typed)]
    # Slow to import, and few names are misspelled.
    import difflib

    meant = begun[:3] or difflib.get_close_matches(typed, known, n=1, cutoff=0.5)
    if not begun:
        # Of claude-code and claude-ai, the shorter is not the nearer one.
        parts = {each.partition("-")[0] for each in known}
        match difflib.get_close_matches(typed, {*meant, *parts}, n=1, cutoff=0.8):
            case [part] if part not in known:
                meant = [each for each in known if each.startswith(f"{part}-")][:3]
    if meant:
        return "did you mean " + " or ".join(f"'{known[each]}'" for each in meant) + "?"
    listed = list(known.values())
    more = len(listed) - _MAX_NAMES_LISTED
    some = ", ".join(listed[:_MAX_NAMES_LISTED])
    return f"the names are: {some}" + (f" and {more} more" if more > 0 else "")


def show_value(value: object) -> str:
    """A value that makes no sense, for an error: short, and safe to print."""
    try:
        written = repr(value)
    except Exception:
        # Anybody's __repr__ can fail, and Python's own for a number that is too long.
        return f"a value of type {type(value).__name__}"
    if len(written) > _MAX_SHOWN_CHARS:
        written = written[: _MAX_SHOWN_CHARS - 1] + "…"
    return "".join(each if each.isprintable() else "\ufffd" for each in written)


class StoreProblem(BackstoryError):
    """Something is wrong with one of our databases; ``path`` is its file."""

    exit_code = 20

    def __init__(
        self, message: str, *, hint: str | None = None, path: "Path | None" = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path


class StoreLocked(StoreProblem):
    """Another process is writing, and did not finish in time."""

    exit_code = 22
    hint = "wait for the other process to finish, then run the command again"


class StoreDamaged(StoreProblem):
    """The database is damaged, or the file is not a database."""

    exit_code = 23
    hint = (
        "run 'backstory check' to see what is damaged, and 'backstory check --repair' "
        "to save everything that can be read"
    )


class StoreTooNew(StoreProblem):
    """The database was written by a newer version of Backstory."""

    exit_code = 24
    hint = "upgrade this Backstory: pip install --upgrade backstory"


class StoreFull(StoreProblem):
    """The disk is full; what was committed before is safe."""

    exit_code = 25
    hint = "free some space, then run the command again; it resumes where it stopped"


class StoreUnwritable(StoreProblem):
    """The folder or the file cannot be written."""

    exit_code = 26
    hint = "check its permissions; BACKSTORY_HOME chooses where everything is kept"


class StoreUnreachable(StoreProblem):
    """The database server does not answer, or refuses the connection.

    If the connection was lost while something was written, it may have been written or
    not; all of it or nothing. Writing it again does no harm.
    """

    exit_code = 27
    hint = "check that the server is running, and its address in store.url"


class StoreIncomplete(StoreProblem):
    """Only part of a memory is there: ``backstory move`` has not completed the copy."""

    exit_code = 28
    hint = (
        "run the same 'backstory move' again on the machine it is copied from; it "
        "continues where it stopped"
    )


class SourceUnreadable(BackstoryError):
    """A whole source could not be opened."""

    exit_code = 30


class NotesConflict(BackstoryError):
    """A note changed on disk since it was read; nothing was overwritten."""

    exit_code = 31
    hint = "look at the file as it is now, then make the change again"


class FactNotFound(BackstoryError):
    """No fact matches; ``near`` are the nearest ones."""

    exit_code = 32
    hint = "run 'backstory memory show' to see how it is worded"

    def __init__(self, message: str, *, near: Iterable[str] = ()) -> None:
        self.near = tuple(near)
        found = " or ".join(f"'{each}'" for each in self.near)
        super().__init__(message, hint=f"did you mean {found}?" if found else None)


class FactAmbiguous(BackstoryError):
    """More than one fact matches; ``matches`` are some of them."""

    exit_code = 33

    def __init__(self, message: str, *, count: int, matches: Iterable[str]) -> None:
        self.count = count
        self.matches = tuple(matches)
        found = ", ".join(f"'{each}'" for each in self.matches)
        super().__init__(message, hint=f"give more of it; the matches are: {found}")


class InstallRefused(BackstoryError):
    """A file of an agent program cannot be changed safely; it was left as it is."""

    exit_code = 34
    hint = "nothing was changed there; correct it, then run the command again"


class ProviderError(BackstoryError):
    """An embedder or a language model failed."""

    exit_code = 40


class ProviderRefused(ProviderError):
    """The provider refuses the request, and would again: key, quota, model or size."""

    exit_code = 41
    hint = "check its settings: 'backstory settings' shows them"


class ProviderUnavailable(ProviderError):
    """The provider did not answer properly; it may do so the next time."""

    exit_code = 42
    hint = "searches go by words alone until it answers; nothing is lost"
    # Whether it may have processed the request, and charge for it.
    may_have_worked: bool = True


class PromptTooLong(ProviderRefused):
    """The prompt does not fit into the model's context; parts of it may."""

    hint = "set llm.context_tokens to what the model can read in one call"


class BudgetSpent(ProviderRefused):
    """The call could exceed the day's budget; nothing was sent."""

    hint = "it resumes tomorrow; llm.daily_tokens sets the budget"


class UnusableAnswer(ProviderError):
    """The answer was cut off, filtered or empty; another prompt may work."""

    hint = "if it keeps happening, choose another model: set llm.name or llm.model"
