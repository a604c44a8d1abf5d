"""The search indexes there are: a new one is one more row here."""

from collections.abc import Callable

import pytest

from backstory.store.base.index import SearchIndex
from tests.index_builders import an_index

OpenIndex = Callable[..., SearchIndex]

# Each opens the index of that name in a folder, and its cache of vectors.
INDEXES: dict[str, OpenIndex] = {"sqlite": an_index}
each_index = pytest.mark.parametrize("make", INDEXES.values(), ids=list(INDEXES))
