"""A process ends at once and with its own exit code, whatever its threads are doing."""

import os
import random
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from tests.chance import SOAK, seeds
from tests.processes import PATIENCE_S
from tests.samples import a_memory

# Threads in onnxruntime, in SQLite and in HTTP, while the program ends.
BUSY_PROGRAM = """
import sys, threading, time
from backstory import BackstoryError, Memory
from backstory.providers.embedders import load_embedder

home, port, pause_s, is_closing = sys.argv[1:]
memory = Memory.open(home, settings="embedder.in_background=false")
server = load_embedder("ollama", url=f"http://127.0.0.1:{port}")
begun = threading.Semaphore(0)

def search():
    begun.release()
    while True:
        try:
            memory.search("where do we fly")
        except BackstoryError:
            # A closed memory cannot be searched.
            if is_closing == "True":
                return
            raise

def ask():
    begun.release()
    server.embed_query("nobody answers")

for work in (search, search, ask):
    threading.Thread(target=work, daemon=True).start()
for _ in range(3):
    begun.acquire()
time.sleep(float(pause_s))
if is_closing == "True":
    memory.close()
sys.exit(7)
"""
# A thread in a statement that takes forever; it is given little time.
STUCK_PROGRAM = """
import contextlib, sys, threading
from backstory import Memory
from backstory.errors import StoreProblem
from backstory.system import fork_safety

fork_safety._EXIT_WAIT_S = 0.05
memory = Memory.open(sys.argv[1], settings="embedder.name=none")
memory.search("anything")
begun = threading.Event()

def count_forever():
    index = memory._parts.index_files.index
    with contextlib.suppress(StoreProblem), index._connection.reading() as db:
        begun.set()
        db.execute(
            "WITH RECURSIVE counted (n) AS "
            "(SELECT 1 UNION ALL SELECT n + 1 FROM counted) "
            "SELECT COUNT(*) FROM counted"
        ).fetchall()

threading.Thread(target=count_forever, daemon=True).start()
begun.wait()
sys.exit(7)
"""

# A thread waits for somebody else to finish writing, for an hour if need be.
WAITING_PROGRAM = """
import contextlib, sys, threading
from backstory.store.sqlite import connection

connection.BUSY_TIMEOUT_MS = 3_600_000
from backstory import BackstoryError, Memory
from backstory.store.sqlite import page_checksums
from backstory.system import fork_safety

fork_safety._EXIT_WAIT_S = 3_600
memory = Memory.open(sys.argv[1], settings="embedder.name=none")
memory.sessions()
is_waiting = threading.Event()
sleep = page_checksums.time.sleep

def note_and_sleep(seconds):
    is_waiting.set()
    sleep(seconds)

page_checksums.time.sleep = note_and_sleep

def record():
    with contextlib.suppress(BackstoryError):
        memory.record("s1", "user", "hello")

threading.Thread(target=record, daemon=True).start()
is_waiting.wait()
sys.exit(7)
"""


def end_of_program(program: str, *words: object, home: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    return done.returncode, done.stderr


def test_an_exit_stops_a_statement_that_would_never_end(
    tmp_path: Path, home: Path
) -> None:
    assert end_of_program(STUCK_PROGRAM, tmp_path / "kept", home=home) == (7, "")


def test_an_exit_does_not_wait_for_whoever_is_writing(
    tmp_path: Path, home: Path
) -> None:
    with a_memory(tmp_path, settings=("embedder.name=none",)) as memory:
        memory.record("s1", "user", "first")
    with closing(apsw.Connection(str(memory.home / "history.db"))) as writer:
        writer.execute("BEGIN IMMEDIATE")

        assert end_of_program(WAITING_PROGRAM, memory.home, home=home) == (7, "")


@pytest.mark.parametrize("seed", seeds(1, soaking=20))
def test_an_exit_is_clean_while_threads_search_and_wait_for_a_server(
    tmp_path: Path, home: Path, seed: int
) -> None:
    chance = random.Random(seed)
    with a_memory(tmp_path, settings=("embedder.name=minilm",)) as memory:
        for number in range(50):
            memory.record("trip", "user", f"We fly to Lisbon on day {number}.")
        memory.embed()
    # It accepts and never answers.
    with socket.create_server(("127.0.0.1", 0)) as server:
        end = end_of_program(
            BUSY_PROGRAM,
            memory.home,
            server.getsockname()[1],
            chance.uniform(0, 1.5) if SOAK else 0.3,
            chance.random() < 0.5,
            home=home,
        )

    assert end == (7, "")


@pytest.mark.parametrize("seed", seeds(1, soaking=20))
def test_a_command_that_runs_out_of_time_ends_well(
    tmp_path: Path, home: Path, seed: int
) -> None:
    chance = random.Random(seed)
    with a_memory(tmp_path, settings=("embedder.name=minilm",)) as memory:
        memory.record("trip", "user", "We fly to Lisbon on Tuesday.")
        memory.embed()
    command = chance.choice(["context", "search"])

    done = subprocess.run(
        [
            *(sys.executable, "-m", "backstory", "--home", str(memory.home)),
            *("--set", "embedder.in_background=false"),
            *("--set", f"{command}.timeout_seconds={chance.uniform(0.1, 0.6)}"),
            *(command, "where do we fly to"),
        ],
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    complaints = [
        line for line in done.stderr.splitlines() if not line.startswith("Notice: ")
    ]
    assert (done.returncode, complaints) in [
        (0, []),
        (1, ["No memories fit this prompt."]),
        (1, ["Nothing was found."]),
    ]
