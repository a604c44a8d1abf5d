"""How values are sent to PostgreSQL and read, where psycopg's own way will not do."""

from typing import Any

import psycopg
from psycopg.abc import Buffer, DumperKey
from psycopg.adapt import AdaptersMap, PyFormat
from psycopg.types.array import BaseListDumper, ListDumper

from backstory.store.postgres.nul_characters import EscapingDumper, RestoringLoader

_BIGINT_ARRAY = psycopg.adapters.types["int8"].array_oid


class _NumbersDumper(ListDumper):
    """Sends a list of whole numbers faster than psycopg does."""

    oid = _BIGINT_ARRAY

    def dump(self, obj: list[Any]) -> Buffer | None:
        return f"{{{','.join(map(str, obj))}}}".encode()


class _ListDumper(ListDumper):
    """Sends other lists as psycopg does."""

    # Any: lists may have whatever has a dumper.
    def get_key(self, obj: list[Any], format: PyFormat) -> DumperKey:
        if _has_only_numbers(obj):
            return (list, int)
        return super().get_key(obj, format)

    def upgrade(self, obj: list[Any], format: PyFormat) -> BaseListDumper:
        if _has_only_numbers(obj):
            return _NumbersDumper(list, self.connection)
        return super().upgrade(obj, format)


def _has_only_numbers(values: list[Any]) -> bool:
    return set(map(type, values)) == {int}


ADAPTERS = AdaptersMap(psycopg.adapters)
ADAPTERS.register_dumper(str, EscapingDumper)
ADAPTERS.register_dumper(list, _ListDumper)
ADAPTERS.register_loader("text", RestoringLoader)
