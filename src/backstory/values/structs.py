"""FrozenStruct, the kind of values that packages exchange; Struct, which may change.

They are like dataclasses with slots. But for each dataclass, the standard library
compiles six functions when its module is imported, which was a third of the time that a
command takes to start.
"""

from typing import dataclass_transform

from msgspec import Struct, field, to_builtins
from msgspec.structs import fields, replace

__all__ = ["FrozenStruct", "Struct", "field", "fields", "replace", "to_builtins"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class FrozenStruct(Struct, frozen=True):
    """A value that never changes; compared, hashed and shown by its fields."""
