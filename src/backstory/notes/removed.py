"""What a person removed from the notes: a record beside them, which contains no text.

A fact is identified by a salted hash of its words, an entry of a daily log by one of
its marker. The record also has the hashes of the facts that were in MEMORY.md when
Backstory last wrote it: facts that have disappeared since were removed in an editor.
"""

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b

from backstory.errors import BadQuery, FactAmbiguous, FactNotFound, NotesConflict
from backstory.notes.duplicates import normalize_fact
from backstory.notes.facts import iter_statements_of, remove_fact, remove_repeats
from backstory.notes.places import REMOVED_NAME, NotesPlace
from backstory.text.redaction import mask_secrets
from backstory.values.structs import FrozenStruct, field, replace

_SALT_BYTES = 16
_KEY_BYTES = 16
_VERSION = 1


class Removed(FrozenStruct):
    """What was removed; ``facts`` are keys, each with the number of its forgetting."""

    salt: bytes = field(default_factory=lambda: secrets.token_bytes(_SALT_BYTES))
    known: frozenset[str] = frozenset()
    facts: Mapping[str, int | None] = field(default_factory=dict)
    entries: frozenset[str] = frozenset()

    def has_fact(self, fact: str) -> bool:
        """Whether a person removed this, in these words or almost the same."""
        return self._key_of_fact(fact) in self.facts

    def has_entry(self, marker: str) -> bool:
        """Whether the entry with this marker was removed from a daily log."""
        return self._hash("entry", marker) in self.entries

    # -- what happened ---

    def seen_in(self, text: str) -> "Removed":
        """With what was removed in an editor, given the text of MEMORY.md now.

        A fact that is in the text again was added by hand, and no longer counts.
        """
        return self._without_present(self._keys_of(text))

    def before_change(self, before: str, after: str, *, by_person: bool) -> "Removed":
        """What to record before a change is made, so that no crash can lose it."""
        was, now = self._keys_of(before), self._keys_of(after)
        found = self._without_present(was)
        gone = dict.fromkeys(was - now if by_person else ())
        facts = {key: held for key, held in found.facts.items() if key not in now}
        return replace(found, known=was & now, facts={**facts, **gone})

    def after_change(self, after: str) -> "Removed":
        return replace(self, known=self._keys_of(after))

    def with_fact(self, fact: str, forgetting: int | None) -> "Removed":
        """With a fact that was removed, perhaps only from a copy."""
        return replace(self, facts={**self.facts, self._key_of_fact(fact): forgetting})

    def with_entries(self, markers: Iterable[str]) -> "Removed":
        keys = {self._hash("entry", marker) for marker in markers}
        return replace(self, entries=self.entries | keys)

    def without_forgetting(self, forgetting: int) -> "Removed":
        """Without what was removed by one forgetting, so that it may return."""
        facts = {key: held for key, held in self.facts.items() if held != forgetting}
        return replace(self, facts=facts)

    def _without_present(self, present: frozenset[str]) -> "Removed":
        gone = dict.fromkeys(self.known - present)
        facts = {
            key: forgetting
            for key, forgetting in {**gone, **self.facts}.items()
            if key not in present
        }
        return replace(self, facts=facts)

    # -- keys ---

    def _keys_of(self, text: str) -> frozenset[str]:
        return frozenset(map(self._key_of_fact, iter_statements_of(text)))

    def _key_of_fact(self, fact: str) -> str:
        # What a model writes is masked, so everything is compared masked.
        said = normalize_fact(mask_secrets(fact))
        return self._hash("fact", *said.telling, "", *said.numbers, "", *said.symbols)

    def _hash(self, *parts: str) -> str:
        digest = blake2b(key=self.salt, digest_size=_KEY_BYTES)
        for part in parts:
            encoded = part.encode("utf-8", errors="surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big"))
            digest.update(encoded)
        return digest.hexdigest()


def leave_out_removed(text: str, removed: Removed) -> str:
    """Another MEMORY.md without the facts that were removed from ours."""
    if not any(map(removed.has_fact, iter_statements_of(text))):
        return text
    text, _ = remove_repeats(text)
    for fact in filter(removed.has_fact, list(iter_statements_of(text))):
        # Part of a fact that is already gone, or one that holds the file together.
        with suppress(FactNotFound, FactAmbiguous, BadQuery):
            text = remove_fact(text, fact)
    return text


# -- the record -----------------------------------------------------------------------


class RemovedRecord(FrozenStruct):
    """The record, wherever it is kept; it is changed under the lock of the notes."""

    place: NotesPlace

    def read(self) -> Removed:
        return parse_removed(self.place.read(REMOVED_NAME).raw)

    def change(self, change: Callable[[Removed], Removed]) -> None:
        """Raises ``StoreFull``, ``StoreUnwritable`` or ``NotesConflict``."""
        seen = self.place.read(REMOVED_NAME)
        held = parse_removed(seen.raw)
        changed = change(held)
        if changed != held and not seen.replace(write_removed(changed)):
            path = self.place.path(REMOVED_NAME)
            raise NotesConflict(f"{path}: somebody else keeps saving it")


def parse_removed(raw: bytes | None) -> Removed:
    """What the record says; empty if there is no readable record."""
    with suppress(ValueError, RecursionError, TypeError, KeyError, AttributeError):
        held = json.loads(raw or b"")
        return Removed(
            bytes.fromhex(held["salt"]),
            frozenset(map(str, held["known"])),
            {
                str(key): forgetting if type(forgetting) is int else None
                for key, forgetting in held["facts"].items()
            },
            frozenset(map(str, held["entries"])),
        )
    return Removed()


def write_removed(removed: Removed) -> bytes:
    held = {
        "version": _VERSION,
        "salt": removed.salt.hex(),
        "known": sorted(removed.known),
        "facts": dict(sorted(removed.facts.items())),
        "entries": sorted(removed.entries),
    }
    return f"{json.dumps(held, indent=1)}\n".encode()
