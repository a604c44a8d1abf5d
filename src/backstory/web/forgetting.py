"""The page that forgets a conversation: what would go, and the receipt of what went."""

from pathlib import Path
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from backstory.render.people.forgetting import render_preview, render_receipt
from backstory.web.forms import read_form
from backstory.web.templating import Templates

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory


class ForgetPage:
    """Answers with the preview and the receipt of the command ``forget``."""

    def __init__(self, memory: "Memory", templates: Templates, user_home: Path) -> None:
        self._memory = memory
        self._templates = templates
        self._user_home = user_home

    def show_preview(self, request: "Request") -> "Response":
        session = self._memory.session(request.query_params.get("session", ""))
        # Entries of the logs and facts are named in any case, and go only if asked to.
        name = f"{session.host}/{session.native_id}"
        report = self._memory.forget(name, dry_run=True)
        lines = render_preview(
            report,
            names=self._memory.short_ids([each.session for each in report.sessions]),
            home=self._user_home,
            width=None,
            is_dry_run=False,
        )
        values = {
            "session": session,
            "name": name,
            "has_notes": bool(report.log_entries or report.facts),
            "text": "\n".join(lines),
        }
        return self._templates.render("forget.html", values)

    async def forget(self, request: "Request") -> "Response":
        form = await read_form(request)
        return await run_in_threadpool(self._forget, form)

    def _forget(self, form: dict[str, str]) -> "Response":
        session = self._memory.session(form.get("session", ""))
        report = self._memory.forget(
            f"{session.host}/{session.native_id}", with_notes="notes" in form
        )
        values = {"text": "\n".join(render_receipt(report))}
        return self._templates.render("forgotten.html", values)
