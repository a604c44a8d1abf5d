"""The keys that stand for ids that were forgotten and must never be stored again.

They are salted hashes: enough to recognize what was forgotten when a source is read
again, but not to tell what it was.
"""

from collections.abc import Iterable, Iterator, Mapping

from backstory.store.base.history import Batch, KeptMessage
from backstory.store.base.message_ids import id_by_content, record_of
from backstory.values.history import SessionFacts
from backstory.values.moments import Moment
from backstory.values.structs import FrozenStruct, replace

SALT_BYTES = 16
KEY_BYTES = 16
_SESSION, _MESSAGE, _TITLE = "session", "message", "title"


class ForgottenKeys(FrozenStruct):
    """Makes the keys for the ids of one host."""

    salt: bytes
    host: str

    def of_session(self, native_id: str) -> bytes:
        return self._hash(_SESSION, native_id)

    def of_message(self, session: str, native_id: str) -> bytes:
        return self._hash(_MESSAGE, session, native_id)

    def of_title(self, message: str) -> bytes:
        """The key of a title that names a message; the title's session is unknown."""
        return self._hash(_TITLE, record_of(message))

    def of_titles(self, messages: Iterable[str]) -> list[bytes]:
        """The keys of titles for these messages; a program may still write one."""
        return list(dict.fromkeys(map(self.of_title, messages)))

    def of_batch(self, batch: Batch) -> Iterator[bytes]:
        """The keys of everything in a batch that may have been forgotten."""
        ids = {each.message.session_id for each in batch.messages}
        ids.update(facts.native_id for facts in batch.facts)
        yield from map(self.of_session, ids.union(batch.emptied))
        for kept in batch.messages:
            yield from self._of_kept(kept)
        for titled in batch.titles:
            yield self.of_title(titled.message_id)

    def leave_out(self, batch: Batch, known: Mapping[bytes, int | None]) -> Batch:
        """The batch without anything that has one of these keys.

        The key of a session may have a time: then only what was said before it is left
        out. With None, all of the session is.
        """
        messages = [
            each for each in batch.messages if not self._is_forgotten(each, known)
        ]
        said = {each.message.session_id for each in messages}
        return replace(
            batch,
            messages=messages,
            facts=[
                facts
                if self.of_session(facts.native_id) not in known
                else SessionFacts(facts.native_id, project=facts.project)
                for facts in batch.facts
                if self.of_session(facts.native_id) not in known
                or facts.native_id in said
            ],
            titles=[
                each
                for each in batch.titles
                if self.of_title(each.message_id) not in known
            ],
            emptied=[
                each for each in batch.emptied if self.of_session(each) not in known
            ],
        )

    def _is_forgotten(
        self, kept: KeptMessage, known: Mapping[bytes, int | None]
    ) -> bool:
        session = self.of_session(kept.message.session_id)
        if session in known and _is_before(kept.message.sent, known[session]):
            return True
        return any(key in known for key in self._of_kept(kept))

    def _of_kept(self, kept: KeptMessage) -> tuple[bytes, bytes]:
        """A message's keys: by its id, and by its content if the id was given twice."""
        message = kept.message
        return (
            self.of_message(message.session_id, message.native_id),
            self.of_message(message.session_id, id_by_content(message)),
        )

    def _hash(self, *parts: str) -> bytes:
        # It loads OpenSSL, and most commands need no hash.
        from hashlib import blake2b

        digest = blake2b(key=self.salt, digest_size=KEY_BYTES)
        for part in (self.host, *parts):
            encoded = part.encode("utf-8", errors="surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big"))
            digest.update(encoded)
        return digest.digest()


def _is_before(sent: Moment | None, before_at: int | None) -> bool:
    return before_at is None or sent is None or sent.to_microseconds() < before_at
