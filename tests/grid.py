"""Many cases in one test, which tries them all and lists those that fail."""

import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

Case = TypeVar("Case")


def in_one_test(
    argument: str, cases: Mapping[str, Case]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test with each of the cases, which have names, as that argument."""

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        def check_all(**given: object) -> None:
            failures = []
            for name, case in cases.items():
                try:
                    check(**given, **{argument: case})
                except Exception as exc:
                    failures.append(f"{name}: {type(exc).__name__}: {exc}")
            if failures:
                head = f"{len(failures)} of {len(cases)} cases fail:"
                pytest.fail("\n\n".join([head, *failures]), pytrace=False)

        # What pytest gives to the test: all but the case.
        signature = inspect.signature(check)
        others = [
            each for each in signature.parameters.values() if each.name != argument
        ]
        check_all.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        check_all.__doc__ = check.__doc__
        return check_all

    return decorate
