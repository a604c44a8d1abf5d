"""Take the pictures of the docs, of the sample conversations: light and dark.

Run it with ``.venv/bin/python -m browser.screenshots`` after ``make browser``.
"""

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.samples import a_memory
from tests.web.server import serve

from backstory.render.statistics_picture import draw_statistics
from browser.conftest import FLAGS, NOTES, NOW, SAMPLES, find_chromium

PICTURES = Path(__file__).parents[1] / "docs" / "images"
PAGES = {
    "page-search": "/?q=council+export",
    "page-settings": "/settings",
    "page-agents": "/agents",
    "page-conversation": "/session/claude-code/3c71e0d8-02b6-4c3e-8f19-7be5a4d0c922",
}
WIDTH, HEIGHT = 960, 600


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        settings = ("embedder.name=none",)
        with a_memory(
            Path(folder), home=SAMPLES, settings=settings, clock=lambda: NOW
        ) as memory:
            memory.index()
            memory.notebook.change_memory(lambda _: NOTES)
            drawn = draw_statistics(memory.stats(), by="conversations", home=SAMPLES)
            (PICTURES / "stats.svg").write_text(drawn, encoding="utf-8")
            with serve(memory, SAMPLES) as page, sync_playwright() as driver:
                (cookie,) = page.browser.cookies.jar
                browser = driver.chromium.launch(
                    executable_path=find_chromium(), args=FLAGS
                )
                for scheme in ("light", "dark"):
                    tab = browser.new_context(
                        base_url=page.url,
                        viewport={"width": WIDTH, "height": HEIGHT},
                        color_scheme=scheme,
                        extra_http_headers={"Cookie": f"{cookie.name}={cookie.value}"},
                    ).new_page()
                    for name, path in PAGES.items():
                        tab.goto(path)
                        tab.screenshot(path=PICTURES / f"{name}-{scheme}.png")
                browser.close()


if __name__ == "__main__":
    main()
