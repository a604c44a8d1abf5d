"""Made-up transcripts of any size, the same every time."""

import random
import uuid
from pathlib import Path

import orjson

_TEXT = """
the parser reads every line of a file and keeps what it needs for later because memory
is small when search index token budget agent session config branch deploy error test
cache Ärger señor 検索 記憶 résumé
"""


class Corpus:
    """Writes Claude Code sessions below a home folder."""

    def __init__(self, home: Path) -> None:
        self.folder = home / ".claude" / "projects" / "-home-dev-demo"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._chance = random.Random(20260220)
        self._words = _TEXT.split()

    def text(self, words: int) -> str:
        return " ".join(self._chance.choices(self._words, k=words))

    def _id(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))

    def lines(self, session: str, count: int) -> list[bytes]:
        """A session: question, answer, tool call and result, over and over."""
        made = []
        parent: str | None = None
        for number in range(count):
            own = self._id()
            record = {
                "parentUuid": parent,
                "isSidechain": False,
                "uuid": own,
                "timestamp": f"2026-02-{1 + number % 28:02d}T18:15:{number % 60:02d}Z",
                "userType": "external",
                "entrypoint": "cli",
                "cwd": "/home/dev/demo",
                "sessionId": session,
                "version": "2.1.325",
                "gitBranch": "main",
                **self._message(number, own),
            }
            made.append(orjson.dumps(record) + b"\n")
            parent = own
        return made

    def _message(self, number: int, own: str) -> dict[str, object]:
        content: object
        match number % 4:
            case 0:
                role, content = "user", self.text(30)
            case 1:
                role, content = "assistant", [{"type": "text", "text": self.text(60)}]
            case 2:
                role = "assistant"
                call = {"command": self.text(8)}
                content = [
                    {"type": "tool_use", "id": own, "name": "Bash", "input": call}
                ]
            case _:
                role = "user"
                content = [
                    {
                        "type": "tool_result",
                        "tool_use_id": own,
                        "content": self.text(150),
                    }
                ]
        return {"type": role, "message": {"role": role, "content": content}}

    def write(self, files: int, messages: int) -> list[Path]:
        """``files`` sessions of ``messages`` each."""
        written = []
        for _ in range(files):
            session = self._id()
            file = self.folder / f"{session}.jsonl"
            file.write_bytes(b"".join(self.lines(session, messages)))
            written.append(file)
        return written
