"""Who may see the page: a browser with the link, on this machine, and no other page."""

import re
import signal
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from backstory.web.templating import static_folder
from tests.processes import PATIENCE_S
from tests.samples import a_memory
from tests.shell import BACKSTORY, Shell
from tests.web.server import Page, read_page, serve

# One server answers all tests.
pytestmark = pytest.mark.xdist_group("web-access")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("web")
    with (
        a_memory(folder, home=folder, settings=("embedder.name=none",)) as memory,
        serve(memory, folder) as served,
    ):
        yield served


def ask(page: Page, path: str = "/", **headers: str) -> tuple[int, str]:
    """The status and heading that a browser without a cookie gets."""
    answer = httpx.get(page.url + path, headers={"Accept": "text/html", **headers})
    return answer.status_code, heading_of(answer)


def heading_of(answer: httpx.Response) -> str:
    found = re.search("<h1[^>]*>(.*?)</h1>", answer.text)
    return found[1] if found else ""


NO_ACCESS = (401, "This browser has no access")
ELSEWHERE = (403, "This request came from another page")
OTHER_NAME = (421, "The page is not served under this name")


def test_the_link_is_exchanged_once_for_a_cookie_that_pages_cannot_read(
    page: Page,
) -> None:
    # The page's own browser has used it already.
    assert ask(page, page.opening.removeprefix(page.url)) == NO_ACCESS
    again = page.get(page.opening)
    assert (again.status_code, again.headers["location"]) == (303, "/")
    name, _, rest = again.headers["set-cookie"].partition("=")
    assert name == f"backstory-{page.url.rpartition(':')[2]}"
    assert rest.split("; ")[1:] == ["HttpOnly", "Path=/", "SameSite=strict"]
    assert page.get("/").status_code == 200


def test_a_program_is_refused_in_words_for_programs(page: Page) -> None:
    answer = httpx.get(page.url)

    assert (answer.status_code, answer.headers["content-type"]) == (
        401,
        "application/json",
    )
    assert answer.json()["error"]["message"] == "This browser has no access"


def test_nobody_else_gets_in(page: Page) -> None:
    (cookie,) = page.browser.cookies.jar
    ours = f"{cookie.name}={cookie.value}"
    host = page.url.removeprefix("http://")
    answers = {
        "no cookie": ask(page),
        "no cookie, any address": ask(page, "/session/a/b"),
        "another token": ask(page, "/?token=x"),
        "a token that is not ASCII": ask(page, "/?token=%C3%A9"),
        "another cookie": ask(page, Cookie=f"{cookie.name}=x"),
        "the cookie of another port": ask(page, Cookie=f"backstory-1={cookie.value}"),
        "a rebound name": ask(page, Cookie=ours, Host="evil.example"),
        "another port": ask(page, Cookie=ours, Host="127.0.0.1:1"),
        "a page elsewhere": ask(page, Cookie=ours, Origin="https://evil.example"),
        "a page in a file": ask(page, Cookie=ours, Origin="null"),
        "a page on another port": ask(page, Cookie=ours, Origin="http://127.0.0.1:1"),
    }
    let_in = {
        "the cookie": ask(page, Cookie=ours),
        "after an odd cookie": ask(page, Cookie=f'a="b; {ours}'),
        "by its other name": ask(
            page, Cookie=ours, Host=host.replace("127.0.0.1", "localhost")
        ),
        "from itself": ask(page, Cookie=ours, Origin=page.url),
    }

    assert answers == {
        "no cookie": NO_ACCESS,
        "no cookie, any address": NO_ACCESS,
        "another token": NO_ACCESS,
        "a token that is not ASCII": NO_ACCESS,
        "another cookie": NO_ACCESS,
        "the cookie of another port": NO_ACCESS,
        "a rebound name": OTHER_NAME,
        "another port": OTHER_NAME,
        "a page elsewhere": ELSEWHERE,
        "a page in a file": ELSEWHERE,
        "a page on another port": ELSEWHERE,
    }
    assert set(let_in.values()) == {(200, "Search your memory")}


def test_a_request_that_could_change_something_must_come_from_the_page(
    page: Page,
) -> None:
    def send(**headers: str) -> int:
        return page.browser.post("/", headers=headers).status_code

    answers = {
        "from nowhere": send(),
        "from elsewhere": send(Origin="https://evil.example"),
        "from a page on another port": send(
            **{"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"}
        ),
        "from a frame without a name": send(
            **{"Origin": "null", "Sec-Fetch-Site": "cross-site"}
        ),
        "typed into the address bar": send(**{"Sec-Fetch-Site": "none"}),
        "from the page": send(Origin=page.url),
        "from a form of the page": send(
            **{"Origin": "null", "Sec-Fetch-Site": "same-origin"}
        ),
    }

    # This address takes no such requests, which is only said to those who may ask.
    assert answers == {
        "from nowhere": 403,
        "from elsewhere": 403,
        "from a page on another port": 403,
        "from a frame without a name": 403,
        "typed into the address bar": 403,
        "from the page": 405,
        "from a form of the page": 405,
    }


def test_every_answer_forbids_to_load_keep_or_frame_anything(page: Page) -> None:
    paths = (
        "/",
        f"{static_folder()}/style.css",
        "/nothing",
        "/session/a/b",
        "/?scope=x&q=y",
    )

    answers = {path: page.get(path) for path in paths}

    statuses = {path: answer.status_code for path, answer in answers.items()}
    assert list(statuses.values()) == [200, 200, 404, 404, 400]
    for answer in (*answers.values(), httpx.get(page.url)):
        sent = answer.headers
        assert sent["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
            "connect-src 'self'; form-action 'self'; base-uri 'none'; "
            "frame-ancestors 'none'"
        )
        is_file = answer.url.path.startswith("/static/")
        assert ("no-store" in sent["cache-control"]) is not is_file
        assert sent["x-content-type-options"] == "nosniff"
        assert sent["referrer-policy"] == "no-referrer"
        assert sent["x-frame-options"] == "DENY"


def test_files_beside_the_static_ones_are_not_served(page: Page) -> None:
    paths = tuple(
        f"{static_folder()}/{name}"
        for name in ("../app.py", "%2e%2e/app.py", "..%2fapp.py")
    )

    assert {page.get(path).status_code for path in paths} == {404}


def test_an_error_says_what_happened_and_what_to_do(page: Page) -> None:
    unknown = read_page(page.get("/session/claude-code/none").text)

    assert "no session has the id 'claude-code/none'" in unknown.text


def test_the_command_prints_a_link_that_works_and_ends_with_ctrl_c(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = tmp_path_factory.mktemp("web-command")
    shell = Shell(home, home / "kept")
    with subprocess.Popen(
        [*BACKSTORY, "web", "--no-open", "--port", "0"],
        env={**shell.environ, "BACKSTORY_EMBEDDER_NAME": "none"},
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        link = said.removeprefix("Your memory is at ").strip()
        first = httpx.get(link, follow_redirects=True)
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=PATIENCE_S)

    assert (first.status_code, str(first.url)[-1]) == (200, "/")
    assert "No conversation has been read yet" in first.text
    assert (process.returncode, complaints) == (130, "Press Ctrl-C to end.\n")
