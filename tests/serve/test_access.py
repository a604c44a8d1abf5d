"""Who is let in: whoever has a token, to what the token is for, and nobody else."""

import httpx
import pytest

from backstory.errors import StoreUnreachable
from tests.serve.team import HOST, Team

pytestmark = pytest.mark.xdist_group("serve")

OPEN = ["/health", "/ready", "/sign-in"]
CLOSED = [
    "/", "/sessions", "/session/python/s-anna", "/memory", "/logs", "/prompt",
    "/forget", "/api/search?q=apricot", "/api/sessions", "/api/sessions/python/s-anna",
    "/api/memory", "/api/logs", "/api/context?prompt=x", "/api/forgettings",
    "/api/openapi.json", "/mcp", "/metrics", "/no/such/place", "/api/no",
]  # fmt: skip
WRONG_TOKENS = [
    "x", "ANNA-READS", "anna-read", "anna-readss", "../anna", "anna-reads,bo-reads",
    "é" * 10, "x" * 6_000, "anna-reads bo-reads", "%61nna-reads", "bst_" + "A" * 43,
]  # fmt: skip


@pytest.mark.parametrize("path", CLOSED)
def test_without_a_token_nothing_is_answered(team: Team, path: str) -> None:
    answer = team.get(path)

    assert (answer.status_code, answer.headers["www-authenticate"]) == (
        401,
        'Bearer realm="backstory"',
    )
    assert "apricot" not in answer.text


# How a program that is not a browser may be refused: token, method, path, headers.
REFUSED = [
    *((None, "GET", path, {}) for path in CLOSED),
    ("figures", "GET", "/", {}),
    ("anna-reads", "GET", "/metrics", {}),
    ("anna-reads", "GET", "/no/such/place", {}),
    ("anna-reads", "GET", "/session/python/none", {}),
    ("anna-reads", "GET", "/static/none", {}),
    ("anna-reads", "GET", "/mcp", {}),
    ("anna-reads", "POST", "/forget", {}),
    ("anna-writes", "POST", "/", {}),
    ("anna-reads", "GET", "/", {"Host": "evil.example"}),
    ("anna-reads", "GET", "/", {"Origin": "https://evil.example"}),
    (None, "PUT", "/sign-in", {}),
]


@pytest.mark.parametrize(
    ("token", "method", "path", "headers"), REFUSED, ids=lambda each: str(each)
)
def test_who_is_not_a_browser_is_not_refused_with_a_page(
    team: Team, token: str | None, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = team.ask(method, path, token, headers=headers)

    assert answer.status_code in (401, 403, 404, 405, 413, 421)
    if path in ("/mcp", "/metrics"):
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.text.count("\n") == 1
    else:
        assert list(answer.json()) == ["error"]


def test_a_browser_is_refused_with_a_page(team: Team) -> None:
    answer = team.get("/no/such/place", "anna-reads", headers={"Accept": "text/html"})

    assert answer.status_code == 404
    assert "<h1>There is nothing at this address</h1>" in answer.text


@pytest.mark.parametrize("path", OPEN)
def test_what_needs_no_token_tells_nothing(team: Team, path: str) -> None:
    answer = team.get(path)

    assert answer.status_code == 200
    assert not any(word in answer.text for word in ("apricot", "anna", "blueberry"))


def test_a_wrong_token_is_no_token(team: Team) -> None:
    answers = [
        team.get(
            "/api/search?q=apricot",
            headers={"Authorization": f"Bearer {token}".encode("latin-1")},
        )
        for token in WRONG_TOKENS
    ]

    assert {answer.status_code for answer in answers} == {401}


@pytest.mark.parametrize(
    "given", ["Basic YTpi", "Token anna-reads", "anna-reads", "Bearer"]
)
def test_only_a_bearer_token_counts(team: Team, given: str) -> None:
    answer = team.get("/api/sessions", headers={"Authorization": given})

    assert answer.status_code == 401


def test_a_token_sees_what_is_of_its_tenant(team: Team) -> None:
    seen = {
        token: [
            hit["session"]["id"]
            for hit in team.get("/api/search?q=code+word", token).json()["results"]
            if hit["session"]
        ]
        for token in ("anna-reads", "bo-reads")
    }

    assert seen == {"anna-reads": ["s-anna"], "bo-reads": ["s-bo"]}


OTHERS = [
    "/api/sessions/python/s-bo",
    "/session/python/s-bo",
    "/api/sessions/python/s-bo?around=1",
    "/api/sessions/python%2Fs-bo",
    "/api/sessions/python/..%2F..%2Fbo%2Fs-bo",
    "/session/python/s-bo?raw=1",
]


@pytest.mark.parametrize("path", OTHERS)
def test_the_id_of_another_tenants_session_leads_nowhere(team: Team, path: str) -> None:
    answer = team.get(path, "anna-writes")

    assert answer.status_code == 404
    assert "blueberry" not in answer.text


WRITES = [
    ("PUT", "/api/memory"),
    ("POST", "/api/forget"),
    ("DELETE", "/api/forgettings/1"),
    ("POST", "/memory/edit"),
    ("POST", "/forget"),
    ("POST", "/forget/undo"),
    ("POST", "/api/push"),
    ("PATCH", "/api/memory"),
    ("DELETE", "/"),
]


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_a_token_for_reading_writes_nothing(team: Team, method: str, path: str) -> None:
    before = team.get("/api/memory", "anna-reads").json()

    answer = team.ask(method, path, "anna-reads", content=b"{}")

    assert answer.status_code == 403
    assert team.get("/api/memory", "anna-reads").json() == before


def test_the_pages_for_changing_are_not_there_for_whoever_reads(team: Team) -> None:
    assert [
        team.get(path, "anna-reads").status_code for path in ("/memory/edit", "/forget")
    ] == [404, 404]
    assert [
        team.get(path, "anna-writes").status_code
        for path in ("/memory/edit", "/forget")
    ] == [200, 200]


LOCAL = [
    "/settings", "/settings/exclude", "/status", "/agents", "/doctor", "/check",
    "/export", "/commands", "/api/settings", "/api/status", "/api/sources",
    "/api/agents", "/api/job",
]  # fmt: skip


@pytest.mark.parametrize("path", LOCAL)
def test_what_is_about_the_machine_of_the_server_is_not_offered(
    team: Team, path: str
) -> None:
    assert team.get(path, "anna-writes").status_code == 404


def test_no_page_links_to_what_is_not_offered(team: Team) -> None:
    pages = [
        team.get(path, "anna-writes").text
        for path in ("/", "/?q=code", "/sessions", "/session/python/s-anna", "/memory")
    ]

    linked = [path for path in LOCAL for page in pages if f'"{path}' in page]
    assert linked == []
    assert not any("--resume" in page for page in pages)


@pytest.mark.parametrize(
    "path", ["/memory", "/api/memory", "/api/search?q=likes", "/?q=likes"]
)
def test_no_answer_says_where_the_server_keeps_things(team: Team, path: str) -> None:
    answer = team.get(path, "anna-writes")

    assert answer.status_code == 200
    assert str(team.memories["anna"].home) not in answer.text


def test_a_token_for_figures_is_for_nothing_else(team: Team) -> None:
    assert team.get("/metrics", "figures").status_code == 200
    others = [path for path in CLOSED if path != "/metrics"]
    assert {team.get(path, "figures").status_code for path in others} == {403}
    assert team.get("/metrics", "anna-writes").status_code == 403


def test_a_revoked_token_is_refused_at_once(team: Team) -> None:
    kept = team.tokens.grants.pop("bo-reads")
    try:
        answer = team.get("/api/sessions", "bo-reads")
    finally:
        team.tokens.grants["bo-reads"] = kept

    assert answer.status_code == 401


# -- names and origins ---


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (HOST, 200),
        (HOST.upper(), 200),
        (f"{HOST}:8443", 200),
        ("127.0.0.1", 200),
        ("evil.example", 421),
        (f"{HOST}.evil.example", 421),
        (f"evil.example/{HOST}", 421),
        (f"{HOST}@evil.example", 421),
        (f"{HOST}:80:90", 421),
        ("", 421),
        ("[::1]", 421),
    ],
)
def test_only_its_own_names_are_answered(team: Team, host: str, status: int) -> None:
    answer = team.get("/api/sessions", "anna-reads", headers={"Host": host})

    assert answer.status_code == status


def test_health_is_told_by_any_name_as_load_balancers_ask(team: Team) -> None:
    assert team.get("/health", headers={"Host": "10.0.0.7"}).status_code == 200


ORIGINS = ["https://evil.example", "null", "http://127.0.0.1:1", "file://", "x"]


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_page_of_another_site_is_refused_even_with_a_token(
    team: Team, origin: str
) -> None:
    answer = team.get("/api/sessions", "anna-reads", headers={"Origin": origin})

    assert answer.status_code == 403


def test_no_answer_invites_other_sites(team: Team) -> None:
    answers = [
        team.get("/api/sessions", "anna-reads"),
        team.ask(
            "OPTIONS",
            "/mcp",
            headers={
                "Origin": "https://evil.example",
                "Access-Control-Request-Method": "POST",
            },
        ),
    ]

    assert [
        answer.headers.get("access-control-allow-origin") for answer in answers
    ] == [
        None,
        None,
    ]
    assert answers[1].status_code == 403


# -- browsers ---


def sign_in(team: Team, token: str, **headers: str) -> httpx.Response:
    return team.post("/sign-in", data={"token": token}, headers=headers)


def cookie_of(answer: httpx.Response) -> dict[str, str]:
    return {"Cookie": answer.headers["set-cookie"].split(";")[0]}


def test_a_browser_is_sent_to_the_sign_in_page(team: Team) -> None:
    answer = team.get("/sessions", headers={"Accept": "text/html"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


def test_a_browser_signs_in_with_a_token_and_out_again(team: Team) -> None:
    answer = sign_in(team, "anna-writes")
    cookie = cookie_of(answer)

    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    name, *about = answer.headers["set-cookie"].split("; ")
    assert name.startswith("__Host-backstory=")
    assert "anna-writes" not in name
    assert set(about) == {
        "HttpOnly", "Secure", "SameSite=strict", "Path=/", "Max-Age=43200"
    }  # fmt: skip
    assert "apricot" in team.get("/?q=code", headers=cookie).text
    own = {"Sec-Fetch-Site": "same-origin", "Origin": "null"}
    out = team.post("/sign-out", headers=cookie | own)
    assert out.headers["location"] == "/sign-in"
    assert team.get("/api/sessions", headers=cookie).status_code == 401


@pytest.mark.parametrize("token", ["", "wrong", "figures"])
def test_a_wrong_token_signs_nobody_in(team: Team, token: str) -> None:
    answer = sign_in(team, token)

    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "This token is wrong" in answer.text


def test_what_was_signed_in_with_a_token_ends_with_it(team: Team) -> None:
    cookie = cookie_of(sign_in(team, "bo-writes"))
    kept = team.tokens.grants.pop("bo-writes")
    try:
        assert team.get("/api/sessions", headers=cookie).status_code == 401
    finally:
        team.tokens.grants["bo-writes"] = kept
    # Also if the token should work again.
    assert team.get("/api/sessions", headers=cookie).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {},
    ],
)
def test_no_other_page_can_write_with_the_cookie(
    team: Team, headers: dict[str, str]
) -> None:
    cookie = cookie_of(sign_in(team, "anna-writes"))

    answer = team.post("/forget", data={"host": "python"}, headers=cookie | headers)

    assert answer.status_code == 403
    assert team.get("/api/sessions", "anna-reads").json() != []


def test_no_other_page_can_sign_a_browser_in(team: Team) -> None:
    answer = sign_in(team, "bo-writes", Origin="https://evil.example")

    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_made_up_cookies_let_nobody_in(team: Team) -> None:
    cookies = ["", "x", "anna-reads", "é", "a" * 5000, '"', ";;;", "\\"]

    answers = [
        team.get(
            "/api/sessions", headers={"Cookie": f"__Host-backstory={each}".encode()}
        )
        for each in cookies
    ]

    assert {answer.status_code for answer in answers} == {401}


# -- odd requests ---

ODD_PATHS = [
    "//mcp", "/mcp/", "/MCP", "/api//sessions", "/./api/sessions", "/static/../api",
    "/static/..%2f..%2fserve%2fapp.py", "/static/%2e%2e/app.py", "/%00", "/%E2%80%AE",
    "/api/sessions%00", "/health/../api/sessions", "/" + "a" * 5000, "/..;/metrics",
]  # fmt: skip


@pytest.mark.parametrize("path", ODD_PATHS)
def test_no_path_gets_around_the_token(team: Team, path: str) -> None:
    # httpx would tidy the path up.
    with httpx.Client() as client:
        request = client.build_request("GET", team.url)
        request.url = request.url.copy_with(raw_path=path.encode())
        answer = client.send(request)

    assert answer.status_code in (401, 404)
    assert "apricot" not in answer.text


def test_every_answer_has_the_headers_that_protect_pages(team: Team) -> None:
    for path in ("/health", "/sign-in", "/api/sessions", "/mcp", "/no"):
        headers = team.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert len(headers["x-request-id"]) == 16


def test_a_store_that_cannot_be_reached_tells_nothing_about_itself(team: Team) -> None:
    team.tokens.error = StoreUnreachable("PostgreSQL at db.internal:5432/memory: gone")
    try:
        answers = [
            team.get("/api/sessions", "anna-reads"),
            team.get("/mcp", "anna-reads"),
            sign_in(team, "anna-reads"),
            team.get("/metrics", "figures"),
        ]
        health = team.get("/health")
    finally:
        team.tokens.error = None

    assert [answer.status_code for answer in answers] == [503] * 4
    assert not any("db.internal" in answer.text for answer in answers)
    assert answers[0].headers["retry-after"] == "5"
    assert health.status_code == 200
