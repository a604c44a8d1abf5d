"""How every page looks: at desktop and phone width, light and dark, for everybody.

The screenshots are kept in ``build/screenshots``, to look at.
"""

from typing import Literal

import pytest

from browser.conftest import DESKTOP, PHONE, SCREENSHOTS, OpenWindow

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="run 'make browser'"
)
PAGES = {
    "home": "/",
    "search": "/?q=council+export",
    "search-by-day": "/?q=loans&group=day",
    "nothing": "/?q=zebra",
    "conversation": "/session/claude-code/3c71e0d8-02b6-4c3e-8f19-7be5a4d0c922",
    "edit-as-diff": "/session/python/edit",
    "pasted": "/session/python/pasted",
    "in-the-middle": "/session/python/long?nr=700",
    "find": "/session/python/long?find=number+7",
    "hostile": "/session/python/hostile",
    "sessions": "/sessions",
    "day": "/sessions?since=2026-02-25&until=2026-02-25",
    "status": "/status",
    "agents": "/agents",
    "agent": "/agents/claude-code?do=install",
    "doctor": "/doctor",
    "check": "/check",
    "commands": "/commands",
    "forget": "/forget?session=python%2Fedit",
    "forget-what": "/forget",
    "settings": "/settings",
    "exports": "/export",
    "exclude": "/settings/exclude?folder=/home/dev",
    "memory": "/memory",
    "editor": "/memory/edit",
    "logs": "/logs",
    "log": "/logs/2026-02-25",
    "prompt": "/prompt?prompt=what+did+we+decide+about+the+council+export",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_page_fits_its_window_and_is_accessible(
    open_window: OpenWindow, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    tab = open_window(size, scheme).tab
    # In the dark, nothing but the colours is different.
    rules = {"runOnly": ["color-contrast"]} if scheme == "dark" else None
    wide, serious = [], {}
    for name, path in PAGES.items():
        tab.goto(path)
        if name == "in-the-middle":
            tab.get_by_text("700 of 1,500").wait_for()
        if name == "edit-as-diff":
            tab.locator("summary", has_text="Edit").click()
        tab.screenshot(path=SCREENSHOTS / f"{name}-{size[0]}-{scheme}.png")
        if tab.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(name)
        serious[name] = [
            f"{each['id']}: {each['nodes'][0]['html'][:80]}"
            for each in axe.Axe().run(tab, options=rules).response["violations"]
            if each["impact"] in ("serious", "critical")
        ]

    assert wide == []
    assert {name: found for name, found in serious.items() if found} == {}
