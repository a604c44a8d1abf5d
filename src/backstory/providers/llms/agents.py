"""The user's own agent program as a language model, without a key or a server.

It runs in an empty private folder, without Backstory's environment variables and, as
far as its options allow, without tools, hooks or sessions.
"""

import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from backstory.errors import PromptTooLong, ProviderRefused, ProviderUnavailable
from backstory.providers.http import means_size
from backstory.providers.llms.base import Answer, LlmOptions, LlmRow
from backstory.providers.llms.calls import (
    UNAVAILABLE_HINT,
    Call,
    Reply,
    check_fits,
    to_answer,
    to_call,
)
from backstory.providers.llms.programs import (
    Ended,
    TookTooLong,
    WroteTooMuch,
    run_program,
)
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.redaction import mask_secrets

_MAX_OUTPUT_BYTES = 16_000_000
_REFUSED_HINT = "run it once yourself: it may need a login or an update"
_OUR_VARIABLES = "BACKSTORY_"
# Only the user can fix these: log in, pay, or update.
_WILL_FAIL_AGAIN = re.compile(
    r"\b40[0-7]\b|unauthori[sz]ed|api key|log ?in\b|logged in|quota|billing"
    r"|unknown option|unexpected argument|unknown feature|invalid value",
    re.IGNORECASE,
)


class AgentLlm(ABC):
    """What all agent programs have in common."""

    # Variables that the agent program sets for its own use in a session in which
    # Backstory runs.
    session_variables: ClassVar[tuple[str, ...]] = ()

    def __init__(self, row: LlmRow, options: LlmOptions) -> None:
        self._name = row.name
        self._program = row.program
        self._model = options.model or row.default_model
        self._context_tokens = options.context_tokens or row.context_tokens
        self._timeout_s = options.timeout_s
        self._environ = {
            name: value
            for name, value in options.environ.items()
            if not name.startswith(_OUR_VARIABLES)
            and name not in self.session_variables
        }

    # -- the program's command line ----------------------------------------------------

    @abstractmethod
    def _arguments(self, call: Call, folder: Path) -> list[str]:
        """The program's arguments; texts go into files in ``folder``."""

    def _input(self, call: Call) -> str:
        """What the program reads from its standard input."""
        return call.prompt

    def _variables(self, call: Call) -> dict[str, str]:
        """What is added to the program's environment."""
        return {}

    @abstractmethod
    def _reply(self, ended: Ended, folder: Path) -> Reply:
        """What the program answered. Raises the error that ``_failure`` makes."""

    # -- the model ---------------------------------------------------------------------

    @property
    def title(self) -> str:
        return f"{self._name} {self._model}".strip()

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
        check_fits(call, self._context_tokens, self._shown)
        program = self._find_program()
        try:
            reply = self._call(program, call)
        except (TookTooLong, WroteTooMuch, OSError, ValueError) as exc:
            raise ProviderUnavailable(
                f"{self._shown} {self._describe(exc)}", hint=UNAVAILABLE_HINT
            ) from exc
        return to_answer(call, reply, self._shown)

    def check(self) -> None:
        self._find_program()

    def close(self) -> None:
        """Do nothing: nothing is kept open between calls."""
        return

    @property
    def _shown(self) -> str:
        return f"the program '{self._program}'"

    def _find_program(self) -> str:
        program = shutil.which(self._program, path=self._environ.get("PATH", ""))
        if program is None:
            raise ProviderRefused(
                f"{self._shown} is not on the PATH",
                hint="install it, or set llm.name to another model",
            )
        return program

    def _call(self, program: str, call: Call) -> Reply:
        with tempfile.TemporaryDirectory(
            prefix="backstory-", ignore_cleanup_errors=True
        ) as name:
            folder = Path(name)
            ended = run_program(
                [program, *self._arguments(call, folder)],
                text=self._input(call),
                folder=folder,
                environ=self._environ | self._variables(call),
                timeout_s=self._timeout_s,
                max_bytes=_MAX_OUTPUT_BYTES,
            )
            return self._reply(ended, folder)

    def _describe(self, error: Exception) -> str:
        match error:
            case TookTooLong():
                return f"gave no answer within {self._timeout_s:.3g} seconds"
            case WroteTooMuch():
                return f"gave an answer longer than {_MAX_OUTPUT_BYTES:,} bytes"
            case OSError(strerror=str(reason)):
                return f"cannot be run ({reason})"
        return f"cannot be run ({error})"  # such as a NUL in the name of a model

    def _failure(
        self, said: str, *, status: int | None = None
    ) -> ProviderRefused | ProviderUnavailable:
        """The error for a program that gave no answer, judged by what it said."""
        shown = one_line(neutralize(mask_secrets(said)), 200)
        message = f"{self._shown} gave no answer" + (f": {shown}" if shown else "")
        if means_size(said):
            return PromptTooLong(message)
        if _WILL_FAIL_AGAIN.search(said if status is None else str(status)):
            return ProviderRefused(message, hint=_REFUSED_HINT)
        return ProviderUnavailable(message, hint=UNAVAILABLE_HINT)


def reason_line(text: str) -> str:
    """The line that says what went wrong: the first error, or else the last line."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines[-1:] or [""])[0]
