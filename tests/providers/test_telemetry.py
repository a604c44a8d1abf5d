"""The bundled model reports nothing to anybody: its library would by default."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chance import SOAK
from tests.processes import PATIENCE_S

# The library's uploader looks up its server, and writes, after some seconds.
LIFETIME_S = 10 if SOAK else 0
PROGRAM = f"""
import sys, time
from backstory import Memory

with Memory.open(settings="embedder.in_background=false") as memory:
    memory.record("trip", "user", "We fly to Lisbon on Tuesday.")
    memory.embed()
    result = memory.search("when is the journey to Portugal")
    assert result.hits and not result.notices, result
    time.sleep({LIFETIME_S})
    print("onnxruntime" in sys.modules)
"""
CASES = {
    "no variable set": (),
    "folders set": ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "TMPDIR"),
}


@pytest.mark.parametrize("variables", CASES.values(), ids=CASES)
def test_a_search_by_meaning_writes_nothing_outside_its_own_home(
    tmp_path: Path, variables: tuple[str, ...]
) -> None:
    home = tmp_path / "home"
    folders = {name: home / name.lower() for name in variables}
    for folder in (home, *folders.values()):
        folder.mkdir()
    before = sorted(home.rglob("*"))

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "BACKSTORY_HOME": str(tmp_path / "kept"),
            "ORT_DISABLE_TELEMETRY": "0",
            **{name: str(folder) for name, folder in folders.items()},
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
    assert sorted(home.rglob("*")) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "kept"]
