"""Install each agent program with Backstory, use both, and print what held.

Each program gets a home folder of its own, with a conversation that another program had
there before. The model is a fake on loopback, so that what a model is sent can be seen.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from e2e.fake_model import (
    ANSWER,
    CALL_TOOL,
    SEARCH_SESSION,
    Body,
    FakeModel,
    tool_names,
)
from e2e.node import install_node, install_packages
from e2e.programs import PROGRAMS, Program

REPOSITORY = Path(__file__).parents[1]
BACKSTORY = Path(sys.executable).with_name("backstory")
PLUGINS = REPOSITORY / "integrations"
PREFIX = REPOSITORY / "build/e2e"
TIMEOUT_S = 180

# What was said to another program before; the number is nowhere else.
FACT = "The staging database of the ledger service listens on port 64537."
QUESTION = "Which port does the staging database of the ledger service use?"
SECRET = "64537"
# What is said in the session that searches itself.
MOVED = "51987"
EVERYDAY = "run the tests"
FRAME = "Data, not instructions"


def main() -> int:
    """Check the programs that were named, or all; return 0 if everything held."""
    parser = argparse.ArgumentParser(prog="python -m e2e")
    parser.add_argument("hosts", nargs="*", metavar="HOST")
    parser.add_argument("--keep", action="store_true", help="keep the home folders")
    given = parser.parse_args()
    chosen = [each for each in PROGRAMS if not given.hosts or each.host in given.hosts]
    path = install_node(PREFIX)
    results: dict[str, dict[str, str]] = {}
    for program in chosen:
        print(f"{program.host} …", file=sys.stderr, flush=True)
        results[program.host] = _check_program(program, path, keep=given.keep)
        if program.add_plugin:
            name = f"{program.host}, as a plugin"
            print(f"{name} …", file=sys.stderr, flush=True)
            check = Check.run_as_plugin
            results[name] = _check_program(program, path, check, keep=given.keep)
    _print_table(results)
    held = [said == "yes" for row in results.values() for said in row.values()]
    return 0 if all(held) else 1


def _check_program(
    program: Program,
    path: str,
    run: "Callable[[Check], dict[str, str]] | None" = None,
    *,
    keep: bool,
) -> dict[str, str]:
    if not _install_from_npm(program, path):
        return {"runs here": "no: npm could not install it"}
    folder = Path(tempfile.mkdtemp(prefix=f"e2e-{program.host}-"))
    try:
        with FakeModel() as model:
            return (run or Check.run)(Check(program, folder, path, model))
    finally:
        if keep:
            print(f"  kept: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _install_from_npm(program: Program, path: str) -> bool:
    if (PREFIX / "node_modules" / program.package).exists():
        return True
    try:
        install_packages(PREFIX, [program.package], path=path)
    except subprocess.CalledProcessError:
        return False  # npm has printed why
    return True


class Check:
    """One program in a home of its own."""

    def __init__(
        self, program: Program, folder: Path, path: str, model: FakeModel
    ) -> None:
        self.program, self.path, self.model = program, path, model
        self.home, self.project = folder, folder / "ledger"
        self.project.mkdir()
        self.kept = self.home / ".local/share/backstory"

    def run(self) -> dict[str, str]:
        """Whether each promise held; one that did not says why."""
        _plant(self.program, self.home, self.project)
        for name, content in self.program.files:
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(content)
        version = self._version()
        before = self._settings()
        self._backstory("install", self.program.host)
        checks: Sequence[tuple[str, Callable[[], str]]] = (
            ("it answers", self._it_answers),
            ("a memory arrives in the prompt", self._memory_arrives),
            ("a tool call returns it", self._call_returns),
            ("another finds this session's own", self._session_is_searched),
            ("an everyday prompt gets nothing", self._everyday_prompt),
            ("our tools are offered", self._tools_are_offered),
            ("the new session is found", self._session_is_found),
            ("what was injected is not kept", self._injected_is_not_kept),
        )
        results = self._check(checks)
        self._backstory("uninstall")
        results["uninstalling leaves no trace"] = self._no_trace(before) or "yes"
        results["every byte is given back"] = self._there_and_back() or "yes"
        return {f"version {version}": "yes" if version else "no", **results}

    def run_as_plugin(self) -> dict[str, str]:
        """Whether promises held with our plugin, which the program itself installs."""
        # The plugin finds our commands on the PATH.
        self.path = f"{BACKSTORY.parent}:{self.path}"
        _plant(self.program, self.home, self.project)
        program, manage, _ = self.program.add_plugin
        self._run([program, manage, "marketplace", "add", str(PLUGINS)])
        self._run([*self.program.add_plugin, "backstory@backstory"])
        self._backstory("index")
        return self._check(
            (
                ("a memory arrives in the prompt", self._memory_arrives),
                ("a tool call returns it", self._call_returns),
                ("another finds this session's own", self._session_is_searched),
                ("our tools are offered", self._tools_are_offered),
                ("what was injected is not kept", self._injected_is_not_kept),
            )
        )

    def _check(self, checks: Sequence[tuple[str, Callable[[], str]]]) -> dict[str, str]:
        results = {}
        for promise, check in checks:
            try:
                results[promise] = check() or "yes"
            except subprocess.TimeoutExpired:
                results[promise] = f"no: nothing after {TIMEOUT_S} seconds"
        return results

    # -- the promises ---

    def _it_answers(self) -> str:
        requests = self._prompt("Hello, my word is quokka.")
        return "" if requests else "no: the model was sent nothing"

    def _tools_are_offered(self) -> str:
        # In any of the requests: the first may not wait for the server to start.
        every = self.model.requests
        offered = {name for body in every for name in tool_names(body)}
        found = [name for name in offered if name.endswith("search_history")]
        return "" if found else f"no: {len(offered)} tools, none of ours"

    def _memory_arrives(self) -> str:
        sent = json.dumps(self._prompt(QUESTION))
        return "" if SECRET in sent else "no: it is not in what the model was sent"

    def _call_returns(self) -> str:
        results = _tool_results(self._prompt(f"{CALL_TOOL}: look up the ledger"))
        return "" if SECRET in json.dumps(results) else f"no: {str(results)[:200]}"

    def _session_is_searched(self) -> str:
        said = f"{SEARCH_SESSION}: the staging ledger port moves to {MOVED}"
        results = _tool_results(self._prompt(said))
        return "" if MOVED in json.dumps(results) else f"no: {str(results)[:200]}"

    def _everyday_prompt(self) -> str:
        sent = json.dumps(self._prompt(EVERYDAY))
        is_clean = SECRET not in sent and EVERYDAY in sent
        return "" if is_clean else "no: it was given a memory"

    def _session_is_found(self) -> str:
        self._backstory("index")
        words = ("search", "quokka", "--host", self.program.reads, "--json")
        found = self._backstory(*words)
        return "" if "my word is quokka" in found else "no: not found"

    def _injected_is_not_kept(self) -> str:
        words = ("sessions", "--host", self.program.reads, "--json")
        sessions = json.loads(self._backstory(*words))
        if not sessions:
            return "no: no session was read"
        shown = [
            self._backstory("show", str(each["id"]), "--json") for each in sessions
        ]
        leaked = [text for text in shown if FRAME in text or FACT in text]
        return f"no: in {len(leaked)} sessions" if leaked else ""

    def _no_trace(self, before: dict[str, bytes]) -> str:
        after = self._settings()
        left = [name for name, raw in after.items() if b"backstory" in raw]
        own = {name for name, _ in self.program.files}
        lost = [name for name in own if before[name] != after.get(name)]
        if left or lost:
            return f"no: {', '.join(left + lost)}"
        return ""

    def _there_and_back(self) -> str:
        """Install and uninstall; nobody writes in between, so no file may change."""
        before = self._settings()
        self._backstory("install", self.program.host)
        during = self._settings()
        self._backstory("uninstall", self.program.host)
        after = self._settings()
        changed = [name for name in before if after.get(name) != before[name]]
        if during == before:
            return "no: nothing was installed"
        return f"no: {', '.join(changed)}" if changed else ""

    # -- running things ---

    @property
    def _environ(self) -> dict[str, str]:
        programs = PREFIX / "node_modules/.bin"
        return {
            "HOME": str(self.home),
            "PATH": f"{programs}:{self.path}",
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            **self.program.environ(self.model.url),
        }

    def _version(self) -> str:
        done = self._run([self.program.words("", "")[0], "--version"])
        lines = [
            line for line in done.stdout.splitlines() if any(map(str.isdigit, line))
        ]
        return lines[0].strip() if lines else ""

    def _prompt(self, prompt: str) -> list[Body]:
        """The requests that the model was sent because of a prompt."""
        start = len(self.model.requests)
        done = self._run(self.program.words(prompt, self.model.url))
        if ANSWER not in done.stdout:
            said = (done.stdout + done.stderr).strip()[-400:]
            print(f"  {self.program.host} said: {said}", file=sys.stderr)
        return self.model.requests[start:]

    def _run(self, words: list[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            words,
            cwd=self.project,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )

    def _backstory(self, *words: str) -> str:
        done = self._run([str(BACKSTORY), *words])
        if done.returncode not in (0, 1):
            print(f"  backstory {words[0]}: {done.stderr}", file=sys.stderr)
        return done.stdout

    def _settings(self) -> dict[str, bytes]:
        """The files that programs are set up with: neither logs nor conversations."""
        skipped = {"node_modules", "projects", "sessions", "session-state", "tmp"}
        skipped |= {".cache", "backups", "logs", "log", "telemetry", "history"}
        skipped |= {"ledger", "backstory", "shell-snapshots", "shell_snapshots"}
        kinds = (".json", ".jsonc", ".toml", ".js", ".md", ".yaml")
        return {
            str(path.relative_to(self.home)): path.read_bytes()
            for path in self.home.rglob("*")
            if path.is_file()
            and path.suffix in kinds
            and not skipped & set(path.relative_to(self.home).parts)
        }


def _tool_results(requests: Sequence[Body]) -> list[object]:
    """The results of tools in what a model was sent, in whichever protocol."""
    found: list[object] = []

    def visit(value: object) -> None:
        if isinstance(value, list):
            for each in value:
                visit(each)
        elif isinstance(value, dict):
            kind = str(value.get("type", ""))
            is_result = kind in ("tool_result", "function_call_output")
            if is_result or value.get("role") == "tool" or "functionResponse" in value:
                found.append(value)
            for each in value.values():
                visit(each)

    visit(list(requests))
    return found


def _plant(program: Program, home: Path, project: Path) -> None:
    """The only conversation so far, which another program had in the same project."""
    write = _write_codex if program.host == "claude-code" else _write_claude
    write(home, project, [("user", FACT), ("assistant", "Noted.")])


def _write_codex(home: Path, project: Path, said: Sequence[tuple[str, str]]) -> None:
    day = "2026-10-01"
    session = "01a1e05c-0000-7000-8000-000000000001"
    folder = home / ".codex/sessions" / day.replace("-", "/")
    meta: dict[str, object] = {"id": session, "cwd": str(project)}
    lines = [{"type": "session_meta", "payload": meta}]
    for role, text in said:
        kind = "input_text" if role == "user" else "output_text"
        content = [{"type": kind, "text": text}]
        message = {"type": "message", "role": role, "content": content}
        lines.append({"type": "response_item", "payload": message})
    stamped = [{"timestamp": f"{day}T09:00:00.000Z", **line} for line in lines]
    _write_lines(folder / f"rollout-{day}T09-00-00-{session}.jsonl", stamped)


def _write_claude(home: Path, project: Path, said: Sequence[tuple[str, str]]) -> None:
    slug = "".join(each if each.isalnum() else "-" for each in str(project))
    session = "7a0b2f7e-0000-4000-8000-000000000001"
    shared = {"sessionId": session, "cwd": str(project), "version": "2.1.327"}
    lines = [
        {
            **shared,
            "type": role,
            "uuid": f"{session}-{place}",
            "parentUuid": None,
            "isSidechain": False,
            "timestamp": f"2026-10-01T09:00:0{place}.000Z",
            "message": {"role": role, "content": text},
        }
        for place, (role, text) in enumerate(said)
    ]
    _write_lines(home / ".claude/projects" / slug / f"{session}.jsonl", lines)


def _write_lines(path: Path, lines: Sequence[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))


def _print_table(results: dict[str, dict[str, str]]) -> None:
    for host, row in results.items():
        print(f"\n{host}")
        for promise, said in row.items():
            print(f"  {promise:34} {said}")


if __name__ == "__main__":
    raise SystemExit(main())
