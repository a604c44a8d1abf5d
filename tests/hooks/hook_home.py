"""A home with something to remember, and hooks that are run for it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from backstory.hooks.events import answer_event
from backstory.memory import Memory
from backstory.store.base.history import Batch, KeptMessage
from backstory.values.history import NewMessage, Role, SessionFacts
from backstory.values.moments import Moment
from tests.samples import a_memory

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PROJECT = "/home/dev/billing"
QUESTION = "why does the parser fail on Contoso invoices that have no total?"
SAID = "The parser fails on Contoso invoices because the total is missing"
FACTS = "# Long-term Memory\n\n## Preferences\n- Answers in German\n"
RELEVANT = f'- [Conversation 2026-02-26 "Invoices"] User: {SAID}'


def fill(memory: Memory) -> None:
    """Record a session about invoices, and others that share no word with it."""
    memory.record(
        "old",
        "user",
        SAID,
        sent_at=NOW - timedelta(days=3),
        title="Invoices",
        project=PROJECT,
    )
    # All at once: as many calls of ``record`` take longer than most tests do.
    memory._parts.history.write(
        Batch(
            "python",
            facts=[SessionFacts("older", project=PROJECT)],
            messages=[
                KeptMessage(
                    NewMessage(
                        "older",
                        f"m{number}",
                        Role.USER,
                        f"plum{number} pear{number}",
                        sent=Moment(NOW - timedelta(days=300 + number), 0),
                    )
                )
                for number in range(40)
            ],
        ),
        now=NOW,
    )
    notes = memory.home / "memory"
    notes.mkdir(exist_ok=True)
    (notes / "MEMORY.md").write_text(FACTS, encoding="utf-8")
    memory.search("invoices")


def make_home(tmp_path: Path) -> Path:
    with a_memory(tmp_path, settings=("embedder.name=none",), clock=lambda: NOW) as it:
        fill(it)
        return it.home


def environ_of(tmp_path: Path) -> dict[str, str]:
    """The environment of hooks: none of their files are anywhere but in a test's."""
    config = tmp_path / "config.toml"
    config.touch()
    return {
        **os.environ,
        "HOME": str(tmp_path / "nobody"),
        "BACKSTORY_CONFIG": str(config),
    }


class Hooks:
    """Runs hooks for one home: in this process, or as a host does."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self.home = home
        self.environ = environ

    def answer(self, event: str, host: str, payload: object) -> Any:
        """What is printed, parsed; None if nothing is."""
        passed = json.dumps(payload).encode()
        printed = answer_event(event, host, str(self.home), passed, self.environ)
        return json.loads(printed) if printed else None

    def run(
        self, *arguments: str, payload: object = None, raw: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the program as a host does."""
        return subprocess.run(
            self.command(*arguments),
            input=json.dumps(payload).encode() if raw is None else raw,
            capture_output=True,
            env=self.environ,
            timeout=120,
        )

    def command(self, *arguments: str) -> list[str]:
        program = Path(sys.executable).with_name("backstory-hook")
        return [str(program), *arguments, "--home", str(self.home)]

    def log(self) -> list[str]:
        path = self.home / "hooks.log"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [line.partition(" ")[2] for line in lines]
