"""The docs say what is true: every page fresh, every public thing described."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from backstory import HitSource, Memory, Strength, __all__
from backstory.cli.app import COMMANDS, commands
from backstory.ingest.hosts import HOSTS
from backstory.providers.embedders import EMBEDDERS
from backstory.providers.llms import LLMS
from backstory.tools import ALL_TOOLS, ToolRow
from tests import tutorial
from tests.samples import all_cases

REPOSITORY = Path(__file__).parents[1]
PAGES = [
    page
    for page in sorted(REPOSITORY.rglob("*.md"))
    if not {".venv", "data", "node_modules"} & set(page.relative_to(REPOSITORY).parts)
]


def read(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def test_the_generated_pages_are_fresh() -> None:
    pages = sorted(str(page) for page in (REPOSITORY / "docs/reference").glob("*.md"))

    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "-I", ".", "--check", *pages],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]

    broken = [link for link in local if not (page.parent / link).exists()]

    assert broken == []


def test_every_public_name_is_on_the_python_page() -> None:
    page = read("docs/reference/python-api.md")
    methods = [name for name in vars(Memory) if not name.startswith("_")]

    missing = [
        name
        for name in [*__all__, *methods]
        if name != "__version__" and f"{name}" not in page
    ]

    assert missing == []


def test_the_readme_fits_on_two_screens_and_begins_with_its_commands() -> None:
    readme = read("README.md").splitlines()

    assert len(readme) < 150
    first_screen = "\n".join(readme[:40])
    assert "make demo" in first_screen
    assert "make test" in first_screen


def test_the_readme_names_every_agent_program() -> None:
    readme = read("README.md")

    assert [host.title for host in HOSTS if host.title not in readme] == []


def test_the_output_in_the_readme_is_what_the_demo_prints(tmp_path: Path) -> None:
    shown = re.findall(
        r"```console\n(\$ backstory .*?)```", read("README.md"), re.DOTALL
    )
    done = subprocess.run(
        [sys.executable, "-m", "backstory", "demo"],
        env={"HOME": str(tmp_path), "TZ": "UTC", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    timeless = re.sub(r"in \d+\.\d s", "in 0.0 s", done.stdout)
    printed = tutorial.without_scores(timeless)

    assert shown
    assert [
        block
        for block in map(tutorial.without_scores, shown)
        if block.strip() not in printed
    ] == []


@pytest.mark.parametrize("page", tutorial.PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_its_commands_print(page: Path) -> None:
    shown = tutorial.without_scores(tutorial.run_page(page))

    assert shown == tutorial.without_scores(page.read_text(encoding="utf-8"))


def test_every_command_is_in_the_readme_or_the_reference() -> None:
    page = read("docs/reference/cli.md")
    context = click.Context(commands)
    listed = {name: commands.get_command(context, name) for name in COMMANDS}

    documented = {name for name in COMMANDS if f"## backstory {name}" in page}

    assert documented == {
        name for name, each in listed.items() if each and not each.hidden
    }


def test_every_embedder_is_documented() -> None:
    pages = ("docs/reference/embedders.md", "docs/how-to/choose-an-embedder.md")

    missing = [
        f"{row.name}: {page}"
        for page in pages
        for row in EMBEDDERS
        if f"`{row.name}`" not in read(page)
    ]

    assert missing == []


def test_every_language_model_is_documented() -> None:
    pages = ("docs/reference/llms.md", "docs/how-to/choose-a-model.md")

    missing = [
        f"{row.name}: {page}"
        for page in pages
        for row in LLMS
        if f"`{row.name}`" not in read(page)
    ]

    assert missing == []


def _properties(row: ToolRow[Any]) -> Mapping[str, object]:
    properties = row.parameters["properties"]
    assert isinstance(properties, Mapping)
    return properties


def test_every_tool_is_documented_with_all_its_arguments() -> None:
    page = read("docs/reference/tools.md")

    missing = [
        word
        for row in ALL_TOOLS
        for word in (
            f"## {row.name}",
            row.description,
            f"`{row.setting}`",
            *(f'"{name}": {{' for name in _properties(row)),
        )
        if word not in page
    ]

    assert missing == []


def test_every_word_of_a_result_is_in_the_glossary() -> None:
    page = read("docs/reference/glossary.md")
    words = [*HitSource, *Strength, "chunk", "embedder", "episode", "scope", "unit"]

    assert [word for word in words if word not in page] == []


def test_the_changelog_knows_the_version() -> None:
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    headings = re.findall(r"^## \[(.+?)\]", read("CHANGELOG.md"), re.MULTILINE)

    assert headings[0] in ("Unreleased", version)


def test_every_sample_is_described() -> None:
    page = read("tests/data/transcripts/README.md")

    missing = [
        f"{case.format}/{case.name}"
        for case in all_cases()
        if f"`{case.format}/{case.name}`" not in page
    ]

    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_a_machine_of_ours(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert not re.search(r"/root/|/tmp/", text)
