"""Run the official MCP Inspector and conformance suite against our server.

The Inspector is an independent client, over stdio and HTTP. The suite checks what any
server must do, in each version of the protocol; it only speaks HTTP, and without a
token. Scenarios that call tools of the suite's own test server are left out.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from backstory.system.loopback import ADDRESS, listen
from e2e.node import install_node, install_packages
from e2e.token_proxy import TokenProxy

REPOSITORY = Path(__file__).parents[1]
BACKSTORY = Path(sys.executable).with_name("backstory")
PREFIX = REPOSITORY / "build/conformance"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
# The latest version that is not an alpha does not know the protocol of 2026-07-28.
SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
TIMEOUT_S = 180
PORT = 18_769

FACT = "The staging database listens on port 64537."
SCENARIOS = (
    "server-initialize",
    "server-session-lifecycle",
    "server-stateless",
    "ping",
    "tools-list",
    "resources-list",
    "sep-2164-resource-not-found",
    "prompts-list",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
)

# What the Inspector is asked to do, its exit code, and a part of what it prints.
Request = tuple[tuple[str, ...], int, str]
_CALL = ("--method", "tools/call", "--tool-name")
_STAGING = ("search_history", "--tool-arg", "query=staging port")
_GET_PROMPT = ("--method", "prompts/get", "--prompt-name")
REQUESTS: Mapping[str, Request] = {
    "lists tools, and finds their schemas portable": (
        ("--method", "tools/list", "--strict"),
        0,
        '"search_history"',
    ),
    "lists resources": (("--method", "resources/list"), 0, "backstory://memory"),
    "lists templates of resources": (
        ("--method", "resources/templates/list"),
        0,
        "backstory://session/{id}",
    ),
    "lists prompts": (("--method", "prompts/list"), 0, '"recall"'),
    "saves a fact": (
        (*_CALL, "save_memory", "--tool-arg", f"content={FACT}"),
        0,
        '"isError": false',
    ),
    "finds it": (
        (*_CALL, *_STAGING),
        0,
        "64537",
    ),
    "is told what is wrong with a call": (
        (*_CALL, "search_history", "--tool-arg", "max_results=3"),
        5,
        "Parameter 'query' is required",
    ),
    "reads a resource": (
        ("--method", "resources/read", "--uri", "backstory://memory"),
        0,
        "64537",
    ),
    "is told that a resource is not there": (
        ("--method", "resources/read", "--uri", "backstory://session/none"),
        1,
        "No session has the id 'none'",
    ),
    "gets a prompt": (
        (*_GET_PROMPT, "recall", "--prompt-args", "topic=staging port"),
        0,
        "64537",
    ),
    "calls a tool 200 times, 10 at once": (
        (*_CALL, *_STAGING, "--load", "--load-requests", "200"),
        0,
        '"ok": 200,',
    ),
}


def main() -> int:
    """Print which promises held; return 0 if all did."""
    path = install_node(PREFIX)
    install_packages(PREFIX, [INSPECTOR, SUITE], path=path)
    held = []
    with tempfile.TemporaryDirectory(prefix="e2e-conformance-") as folder:
        tried = _Tried(Path(folder), path)
        with tried.http() as (url, token):
            header = ("--header", f"Authorization: Bearer {token}")
            held += _report("Inspector, stdio", tried.inspect(str(BACKSTORY), "mcp"))
            held += _report("Inspector, HTTP", tried.inspect(url, *header))
            with TokenProxy(PORT, token) as proxy:
                held += _report("conformance suite", tried.run_suite(proxy.url))
    return 0 if all(held) else 1


def _report(name: str, results: Iterator[tuple[str, str]]) -> list[bool]:
    print(f"\n{name}")
    held = []
    for promise, said in results:
        print(f"  {promise:46} {said}", flush=True)
        held.append(said.startswith("yes"))
    return held


class _Tried:
    """Our server in a home of its own, tried by the Inspector and the suite."""

    def __init__(self, folder: Path, path: str) -> None:
        folder.chmod(0o700)
        self._folder = folder
        self._environ = {
            "PATH": path,
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(folder),
            "BACKSTORY_HOME": str(folder / "backstory"),
            "LANG": "C.UTF-8",
        }

    @contextmanager
    def http(self) -> Iterator[tuple[str, str]]:
        """Serve over HTTP; yields the URL and the token."""
        listen(PORT).close()  # raises an error if the port is taken
        words = [str(BACKSTORY), "mcp", "--http", "--port", str(PORT)]
        with subprocess.Popen(
            words, env=self._environ, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            process.stderr.readline()
            token = process.stderr.readline().removeprefix("Token: ").strip()
            try:
                yield f"http://{ADDRESS}:{PORT}/mcp", token
            finally:
                process.terminate()

    def inspect(self, *target: str) -> Iterator[tuple[str, str]]:
        for promise, (words, code, part) in REQUESTS.items():
            done = self._run("mcp-inspector", ["--cli", *target, *words])
            said = done.stdout + done.stderr
            has_warned = "--strict" in words and "Warning" in done.stderr
            if done.returncode == code and part in said and not has_warned:
                yield promise, "yes"
            else:
                yield promise, f"no: exit {done.returncode}, {said[-300:]}"

    def run_suite(self, url: str) -> Iterator[tuple[str, str]]:
        for scenario in SCENARIOS:
            folder = self._folder / scenario
            words = ["server", "--url", url, "--scenario", scenario]
            self._run("conformance", [*words, "--output-dir", str(folder)])
            found = [
                check
                for path in folder.rglob("checks.json")
                for check in json.loads(path.read_text(encoding="utf-8"))
            ]
            yield scenario, _sum_up(found)

    def _run(
        self, program: str, words: Sequence[str]
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(PREFIX / "node_modules/.bin" / program), *words],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


def _sum_up(checks: Sequence[dict[str, object]]) -> str:
    """Whether all checks passed that do not need the suite's own tools."""
    counted: Counter[str] = Counter()
    failed = []
    for check in checks:
        details = check.get("details")
        is_untestable = isinstance(details, dict) and details.get("untestable")
        status = "not testable" if is_untestable else str(check["status"]).lower()
        counted[status] += 1
        if status == "failure":
            failed.append(f"{check['id']}: {check.get('errorMessage')}")
    said = ", ".join(f"{count} {status}" for status, count in counted.items())
    if failed or not checks:
        return f"no: {said or 'nothing was checked'}; {'; '.join(failed)}"
    return f"yes: {said}"


if __name__ == "__main__":
    raise SystemExit(main())
