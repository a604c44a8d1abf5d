"""What people install: the wheel holds everything, and nothing else is needed."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
            "--no-build-isolation",
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


# -- what it is built from ---


def read_lock() -> dict[str, list[tuple[Requirement, list[str]]]]:
    """What is pinned, by name, with the hashes of its files."""
    text = (REPOSITORY / "requirements-dev.txt").read_text(encoding="utf-8")
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", "")
    pinned: dict[str, list[tuple[Requirement, list[str]]]] = {}
    for line in lines.splitlines():
        said, *hashes = line.split(" --hash=")
        requirement = Requirement(said)
        name = canonicalize_name(requirement.name)
        pinned.setdefault(name, []).append((requirement, hashes))
    return pinned


def test_the_lock_file_has_what_the_project_says_it_needs() -> None:
    project = tomllib.loads(
        (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    pinned = read_lock()

    missing = [
        str(each)
        for each in map(Requirement, needed)
        if not any(
            each.specifier.contains(version.version)
            for pin, _ in pinned.get(canonicalize_name(each.name), ())
            for version in pin.specifier
        )
    ]

    assert missing == []


def test_every_pin_of_the_lock_file_is_one_version_with_hashes() -> None:
    loose = [
        str(pin)
        for pins in read_lock().values()
        for pin, hashes in pins
        if [each.operator for each in pin.specifier] != ["=="]
        or pin.url is not None
        or not hashes
        or not all(re.fullmatch(r"sha256:[0-9a-f]{64} *", each) for each in hashes)
    ]

    assert loose == []


def test_the_lock_file_names_no_place_to_download_from() -> None:
    text = (REPOSITORY / "requirements-dev.txt").read_text(encoding="utf-8")

    assert re.findall(r"://|^ *--(?!hash)\S+|(?<= )/\S+", text, re.MULTILINE) == []


def test_a_group_of_tests_is_kept_in_one_process(
    request: pytest.FixtureRequest,
) -> None:
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("'make test' runs tests in groups")

    # What pytest-xdist goes by; a pytest it does not fit runs every group everywhere.
    assert request.node.nodeid.endswith("@wheel")
