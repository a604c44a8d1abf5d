"""The parts that move a memory, push it to a server, and receive what others push."""

from typing import TYPE_CHECKING

from backstory.assembly.searching import SearchingParts
from backstory.errors import BadQuery
from backstory.values.lazy import lazy_property
from backstory.values.reports import OnCount

if TYPE_CHECKING:
    from backstory.push.receive import PushReceiver
    from backstory.push.send import Pusher
    from backstory.values.moving import MoveReport
    from backstory.values.pushes import PushReceipt, PushReport


class SharingParts(SearchingParts):
    """The parts that bring a home to other places."""

    def move_to(
        self,
        target: "SharingParts",
        *,
        on_count: OnCount | None,
        on_taken: OnCount | None,
    ) -> "MoveReport":
        """Copy everything to another place, and index it there."""
        # Few uses of a memory move anything.
        from backstory.moving import Mover

        if (self.home, self.database) == (target.home, target.database):
            raise BadQuery(
                "the memory is already there",
                hint="store.url says where it is moved from: 'backstory settings unset "
                "store.url' for the files of the home",
            )
        mover = Mover(self.stores, target.stores)
        report = mover.move(self.maintainer.list_models(), on_count=on_count)
        if target.maintainer.is_behind():
            target.maintainer.rebuild(on_taken=on_taken)
        return report

    @lazy_property
    def pusher(self) -> "Pusher":
        # Few homes send anything.
        from backstory.push.send import Pusher
        from backstory.text.redaction import mask_secrets

        masks = self.settings.flag("push.mask_secrets")
        return Pusher(
            self.home,
            self.history,
            is_excluded=self.rules.exclude,
            excluded_hosts=self.excluded_hosts,
            mask=mask_secrets if masks else str,
        )

    def push(self, url: str | None, on_count: OnCount | None) -> "PushReport":
        """Send what is new in the history to a server."""
        remote = self.open_remote(url)
        try:
            return self.pusher.push(remote, on_count)
        finally:
            remote.close()

    @lazy_property
    def push_receiver(self) -> "PushReceiver":
        # Only servers need it.
        from backstory.push.receive import PushReceiver

        return PushReceiver(
            self.history,
            self.rules,
            excluded_hosts=self.excluded_hosts,
            clock=self.clock,
            forget=lambda parts, reason: self.forgetter.forget_unasked(parts, reason),
        )

    def receive_push(self, batch: bytes) -> "PushReceipt":
        """Store what was pushed, and have it indexed in the background."""
        receipt = self.push_receiver.receive(batch)
        in_background = self.settings.flag("embedder.in_background")
        if in_background and self.start_worker and receipt.new_messages:
            self.start_worker()
        return receipt
