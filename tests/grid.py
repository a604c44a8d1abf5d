"""Many cases in one test, which tries them all and lists those that fail.

For cases that take next to no time: as a test of its own, each takes some milliseconds
more, in every process that shares the tests.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")
Check = Callable[..., None]


def in_one_test(argument: str, cases: Mapping[str, Case]) -> Callable[[Check], Check]:
    """Call a test with each of the cases, which have names, as that argument."""
    named = [(name, {argument: case}) for name, case in cases.items()]
    return lambda check: _try_all(check, [argument], named)


def cases(
    arguments: str | Sequence[str],
    values: Iterable[Any],
    *,
    ids: Sequence[str] | Callable[[Any], object] | None = None,
) -> Callable[[Check], Check]:
    """The same for what ``pytest.mark.parametrize`` takes."""
    names = [arguments] if isinstance(arguments, str) else list(arguments)
    named = []
    for number, value in enumerate(values):
        is_param = hasattr(value, "values") and hasattr(value, "marks")
        given = value.values if is_param else [value] if len(names) == 1 else value
        if is_param and value.id:
            name = value.id
        elif ids is None:
            name = ", ".join(map(repr, given))
        else:
            name = str(ids(given[0]) if callable(ids) else ids[number])
        named.append((name, dict(zip(names, given, strict=True))))
    return lambda check: _try_all(check, names, named)


def _try_all(
    check: Check, arguments: Sequence[str], named: Sequence[tuple[str, dict[str, Any]]]
) -> Check:
    def check_all(**given: object) -> None:
        failures = []
        for name, case in named:
            try:
                check(**given, **case)
            except (Exception, pytest.fail.Exception) as exc:
                failures.append(f"{name}: {type(exc).__name__}: {exc}")
        if failures:
            head = f"{len(failures)} of {len(named)} cases fail:"
            pytest.fail("\n\n".join([head, *failures]), pytrace=False)

    # What pytest gives to the test: all but the case.
    signature = inspect.signature(check)
    others = [
        each for each in signature.parameters.values() if each.name not in arguments
    ]
    check_all.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
    check_all.__doc__ = check.__doc__
    return check_all
