"""Language models behind a server.

A subclass builds the request and reads the answer; what can go wrong in between is
handled by ``Server``. If a server rejects an optional part of a request, it is asked
again without that part, now and from then on.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from backstory.errors import PromptTooLong
from backstory.providers.http import (
    Client,
    Clock,
    Declined,
    Json,
    Patience,
    Server,
    TooLarge,
)
from backstory.providers.llms.base import (
    THOUGHT_TOKENS,
    Answer,
    LlmOptions,
    LlmRow,
)
from backstory.providers.llms.calls import (
    REFUSED_HINT,
    UNAVAILABLE_HINT,
    Call,
    Reply,
    check_fits,
    to_answer,
    to_call,
)

_MAX_TRIES = 4
_MAX_WAIT_S = 60
_MAX_ANSWER_BYTES = 16_000_000


class HttpLlm(ABC):
    """What all models behind a server have in common."""

    def __init__(
        self, row: LlmRow, options: LlmOptions, clock: Clock | None = None
    ) -> None:
        self._name = row.name
        self._model = options.model or row.default_model
        self._key = options.key.strip()
        self._context_tokens = options.context_tokens or row.context_tokens
        # Names of request parts that the server rejected.
        self._rejected: frozenset[str] = frozenset()
        # One try may use up all the time, so a call that times out is not paid for
        # twice.
        self._patience = Patience(_MAX_TRIES, _MAX_WAIT_S, options.timeout_s)
        self._server = Server(
            Client(
                "language model",
                row.name,
                "llm",
                default_url=row.default_url,
                needs_key=bool(row.key_variables),
                refused_hint=REFUSED_HINT,
                unavailable_hint=UNAVAILABLE_HINT,
            ),
            url=options.url,
            key=self._key,
            headers=self._headers(),
            timeout_s=options.timeout_s,
            clock=clock,
            max_answer_bytes=_MAX_ANSWER_BYTES,
        )

    # -- the server's protocol ---------------------------------------------------------

    @abstractmethod
    def _request(self, call: Call) -> tuple[str, Json]:
        """The path below the base address, and the body to send there.

        Without the parts in ``self._rejected``.
        """

    @abstractmethod
    def _reply(self, answer: Json) -> Reply:
        """What is in an answer.

        May raise ``KeyError``, ``TypeError``, ``IndexError``, ``AttributeError`` or
        ``ValueError`` on any other answer.
        """

    def _headers(self) -> dict[str, str]:
        return {}

    def _optional_parts(self, body: Json) -> Iterable[str]:
        """Optional parts of the body, by the names that servers use for them."""
        return ()

    # -- the model ---------------------------------------------------------------------

    @property
    def title(self) -> str:
        return f"{self._name} {self._model}"

    @property
    def context_tokens(self) -> int:
        return self._context_tokens

    def complete(
        self,
        *,
        system: str,
        prompt: str,
        max_output_tokens: int,
        wants_json: bool = False,
    ) -> Answer:
        call = to_call(
            system, prompt, max_output_tokens=max_output_tokens, wants_json=wants_json
        )
        check_fits(call, self._context_tokens, self._server.shown)
        try:
            answer = self._ask(call)
        except TooLarge as exc:
            raise PromptTooLong(str(exc)) from exc
        try:
            reply = self._reply(answer)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as exc:
            raise self._server.unavailable("gave an answer without a text") from exc
        return to_answer(call, reply, self._server.shown)

    def check(self) -> None:
        """Do nothing: only asking a provider tells whether it answers."""
        return

    def close(self) -> None:
        self._server.close()

    def _ask(self, call: Call) -> Json:
        while True:
            path, body = self._request(call)
            try:
                return self._server.ask(path, body, self._patience)
            except Declined as exc:
                said = exc.said.lower()
                named = {name for name in self._optional_parts(body) if name in said}
                if not named - self._rejected:
                    raise
                self._rejected |= named

    def _limit_with_thoughts(self, call: Call) -> int:
        """The output limit for a model that always thinks."""
        room = self._context_tokens - call.most_input_tokens - call.max_output_tokens
        return call.max_output_tokens + min(THOUGHT_TOKENS, room)
