"""The page of the settings: what each does, its value, and a way to change it."""

import threading
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from backstory.errors import BackstoryError
from backstory.render.format import render_path
from backstory.render.people.reports import render_excluded, render_value
from backstory.settings import (
    Chosen,
    Setting,
    Value,
    add_to_setting,
    change_setting,
    unset_setting,
)
from backstory.system.files import replace_file
from backstory.system.machine import Machine, absolute, find_user_file
from backstory.values.reports import KeptExcluded
from backstory.values.structs import FrozenStruct
from backstory.web.forms import read_form
from backstory.web.templating import Templates

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from backstory.memory import Memory

EXCLUDED_FOLDERS = "exclude.folders"
# Two tabs may change the same file, so the second waits until the first is done.
_changing = threading.Lock()


class ShownSetting(FrozenStruct):
    """A setting with its value as a person types it, and where the value comes from.

    ``is_own``: the user's own file has it. ``overridden_by`` is what takes precedence
    over that file, if anything does.
    """

    setting: Setting
    typed: str
    default: str
    origin: str
    is_own: bool
    overridden_by: str

    @property
    def anchor(self) -> str:
        return self.setting.name.replace(".", "-")


class OwnSettings:
    """The user's own file of settings, to change.

    After a change, ``on_changed`` opens the memory again. A change with which the
    memory cannot be opened is undone.
    """

    def __init__(self, machine: Machine, on_changed: Callable[[], None]) -> None:
        self._machine = machine
        self._on_changed = on_changed

    @property
    def path(self) -> Path:
        return find_user_file(self._machine)

    def set(self, name: str, value: str) -> None:
        self._apply(lambda: change_setting(self._machine, name, value))

    def unset(self, name: str) -> None:
        self._apply(lambda: unset_setting(self._machine, name))

    def exclude(self, folder: str) -> None:
        self._apply(lambda: add_to_setting(self._machine, EXCLUDED_FOLDERS, folder))

    def _apply(self, change: Callable[[], object]) -> None:
        """Change the user's own file; undo it if the memory cannot be opened then."""
        with _changing:
            user_file = self.path
            before = user_file.read_bytes() if user_file.exists() else None
            change()
            try:
                self._on_changed()
            except BackstoryError:
                _put_back(user_file, before)
                raise


def _put_back(user_file: Path, before: bytes | None) -> None:
    if before is None:
        user_file.unlink()
    else:
        replace_file(user_file, before, instead_of=user_file.read_bytes())


class SettingsPage:
    """Answers with all settings, and changes them in the user's own file."""

    def __init__(
        self,
        memory: "Memory",
        templates: Templates,
        machine: Machine,
        own: OwnSettings,
    ) -> None:
        self._memory = memory
        self._templates = templates
        self._machine = machine
        self._own = own

    def show(self, request: "Request") -> "Response":
        return self._render(changed=request.query_params.get("changed", ""))

    async def change(self, request: "Request") -> "Response":
        form = await read_form(request)
        return await run_in_threadpool(self._change, request.path_params["name"], form)

    def _change(self, name: str, form: dict[str, str]) -> "Response":
        try:
            if form.get("do") == "unset":
                self._own.unset(name)
            else:
                self._own.set(name, form.get("value", ""))
        except BackstoryError as exc:
            # Such as a number that is too large, which the person can correct right
            # here.
            return self._render(problem=exc, wrong=name, typed=form.get("value"))
        anchor = name.replace(".", "-")
        return RedirectResponse(
            f"/settings?{urlencode({'changed': name})}#{anchor}", status_code=303
        )

    def _render(
        self,
        *,
        changed: str = "",
        problem: BackstoryError | None = None,
        wrong: str = "",
        typed: str | None = None,
    ) -> "Response":
        user_file = self._own.path
        shown = [self._show(each, user_file) for each in self._memory.settings]
        values = {
            "groups": group_by_topic(shown),
            "user_file": str(user_file),
            "changed": next((s for s in shown if s.setting.name == changed), None),
            "excluded": list_excluded(self._memory.excluded()),
            "problem": problem,
            "wrong": wrong if any(s.setting.name == wrong for s in shown) else "",
            "wrong_value": typed,
        }
        status = 200 if problem is None else 400
        return self._templates.render("settings.html", values, status)

    def _show(self, chosen: Chosen, user_file: Path) -> ShownSetting:
        row = chosen.setting
        is_own = chosen.origin == str(user_file)
        is_default = chosen.origin == "default"
        return ShownSetting(
            setting=row,
            typed="" if chosen.is_key else to_typed(chosen.value),
            default=render_value(row.default),
            origin=render_path(chosen.origin, self._machine.home),
            is_own=is_own,
            overridden_by="" if is_own or is_default else chosen.origin,
        )

    # -- exclude a folder ---

    def show_exclusion(self, request: "Request") -> "Response":
        folder = request.query_params.get("folder", "").strip()
        values = {"folder": folder, "kept": self._count_in(folder) if folder else None}
        return self._templates.render("exclude.html", values)

    def _count_in(self, folder: str) -> tuple[int, int] | None:
        """The numbers of sessions and messages in a folder; None if there are none."""
        path = absolute(folder, self._machine)
        inside = [
            each
            for each in self._memory.sessions()
            if each.project and Path(each.project).is_relative_to(path)
        ]
        if not inside:
            return None
        return len(inside), sum(each.message_count for each in inside)

    async def exclude(self, request: "Request") -> "Response":
        form = await read_form(request)
        return await run_in_threadpool(self._exclude, form.get("folder", "").strip())

    def _exclude(self, folder: str) -> "Response":
        if not folder:
            return RedirectResponse("/settings/exclude", status_code=303)
        self._own.exclude(folder)
        anchor = EXCLUDED_FOLDERS.replace(".", "-")
        query = urlencode({"changed": EXCLUDED_FOLDERS})
        return RedirectResponse(f"/settings?{query}#{anchor}", status_code=303)


def to_typed(value: Value) -> str:
    """A value as a person types it; items of a list are separated by commas."""
    return ", ".join(value) if isinstance(value, tuple) else render_value(value)


def group_by_topic(
    settings: Iterable[ShownSetting],
) -> list[tuple[str, list[ShownSetting]]]:
    """Settings below the first word of their names."""
    topics = groupby(settings, key=lambda each: each.setting.name.partition(".")[0])
    return [(topic, list(each)) for topic, each in topics]


def list_excluded(kept: Iterable[KeptExcluded]) -> list[tuple[str, str]]:
    """What is kept although it is excluded, in words, and where it can be forgotten."""
    return [
        (line, "/forget?" + urlencode({each.option.lstrip("-"): each.name}))
        for each in kept
        for line in render_excluded([each])
    ]
