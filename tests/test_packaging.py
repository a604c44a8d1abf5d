"""What people install: the wheel holds everything, and nothing else is needed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

# One process builds the wheel.
pytestmark = pytest.mark.xdist_group("wheel")

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--disable-pip-version-check",
            "--wheel-dir",
            str(folder),
            str(REPOSITORY),
        ],
        check=True,
        capture_output=True,
    )
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("backstory/")}

    package = REPOSITORY / "src" / "backstory"
    files = {
        str(file.relative_to(package.parent))
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert packed == files


def test_the_demo_runs_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")

    done = subprocess.run(
        [sys.executable, "-P", "-m", "backstory", "demo"],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(tmp_path / "installed"),
            "HOME": str(tmp_path),
            "PYTHONUTF8": "1",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "Decided: SQLite with WAL in data/loans.db" in done.stdout


def test_starting_up_loads_nothing_heavy() -> None:
    heavy = {"numpy", "onnxruntime", "mcp", "pydantic", "asyncio", "yaml", "rich"}
    heavy |= {"markdown_it", "subprocess"}

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, backstory; backstory.Memory; print(*sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )

    assert heavy & set(done.stdout.split()) == set()


def test_only_the_server_imports_the_mcp_library(tmp_path: Path) -> None:
    run_all = (
        "import atexit, sys\n"
        "from importlib import import_module\n"
        "atexit.register(lambda: print(*sys.modules))\n"
        "from backstory.cli.app import COMMANDS, commands\n"
        "for module in set(COMMANDS.values()):\n"
        "    import_module(f'backstory.cli.{module}')\n"
        "import backstory.hooks.entry\n"
        "commands(['status'], standalone_mode=False)\n"
        "commands(['call', 'search_history', '{\"query\": \"x\"}', '--json'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", run_all],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "BACKSTORY_EMBEDDER_NAME": "none",
        },
        capture_output=True,
        text=True,
        check=False,
    )

    # Nothing is found in an empty home.
    assert done.returncode == 1
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "backstory.cli.mcp" in loaded
    assert {"mcp", "mcp_types", "pydantic", "starlette", "uvicorn"} & loaded == set()
