"""A property that is computed when it is first needed, and kept."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy_property(Generic[Value]):  # noqa: N801, used like ``property``
    """Like ``functools.cached_property``, but without a lock.

    Before Python 3.12, ``cached_property`` has one lock for all objects of a class. A
    child that is forked while another thread holds it waits forever. Here, if two
    threads need a value at the same time, both may compute it; one of the two is kept,
    and both get that one.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "lazy_property[Value]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(
        self, instance: object | None, owner: type
    ) -> "lazy_property[Value] | Value":
        if instance is None:
            return self
        kept: Value = instance.__dict__.setdefault(self._name, self._compute(instance))
        return kept
