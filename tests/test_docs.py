"""The docs say what is true: every page fresh, every public thing described."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from backstory import HitSource, Memory, Strength, __all__, __version__
from backstory.cli.app import COMMANDS, commands
from backstory.ingest.hosts import HOSTS
from backstory.providers.embedders import EMBEDDERS
from backstory.providers.llms import LLMS
from backstory.tools import ALL_TOOLS, ToolRow
from tests import tutorial
from tests.grid import cases
from tests.samples import all_cases
from tests.source_code import GROUP, MODULES, ROOT, nodes_of

REPOSITORY = Path(__file__).parents[1]
PAGES = [
    page
    for page in sorted(REPOSITORY.rglob("*.md"))
    if not {".venv", "data", "node_modules"} & set(page.relative_to(REPOSITORY).parts)
]
# What is in backticks, and what is bold.
QUOTED = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*")


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


@cases("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]

    broken = [link for link in local if not (page.parent / link).exists()]

    assert broken == []


def test_every_page_is_in_the_list_of_pages() -> None:
    index = REPOSITORY / "docs/README.md"
    pages = {path for path in index.parent.rglob("*.md") if path != index}

    listed = re.findall(r"\]\(([^)#]+)", index.read_text(encoding="utf-8"))

    assert pages - {(index.parent / link).resolve() for link in listed} == set()


def test_every_test_that_a_promise_names_exists() -> None:
    named = re.findall(r"`(tests/[^`]+)`", read("SECURITY.md"))

    assert len(named) > 10
    assert [path for path in named if not (REPOSITORY / path).is_file()] == []


def test_every_public_name_is_on_the_python_page() -> None:
    page = read("docs/reference/python-api.md") + read("docs/reference/values.md")
    methods = [name for name in vars(Memory) if not name.startswith("_")]

    missing = [
        name
        for name in [*__all__, *methods]
        if name != "__version__" and not re.search(rf"\b{name}\b", page)
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
    printed = tutorial.without_scores(tutorial.same_seal(timeless))

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


def glossary_tables() -> list[list[tuple[str, str]]]:
    """The tables of the glossary: words with their meanings, without the head."""
    sections = read("docs/reference/glossary.md").split("\n## ")[1:]
    rows = [re.findall(r"^\| (.+?) \| (.+) \|$", each, re.M) for each in sections]
    return [table[1:] for table in rows]


def names_in_the_code() -> set[str]:
    """What has a name in the code, the databases or on the command line."""
    names = {"backstory"}
    for module in MODULES:
        names |= {module.stem, module.parent.name}
        for node in nodes_of(module):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                    names.add(name)
                case ast.Name(id=name, ctx=ast.Store()):
                    names.add(name)
                # Settings, columns, files and the words of enums and commands.
                case ast.Constant(value=str(text)):
                    names.add(text)
    for migration in ROOT.rglob("*.sql"):
        sql = migration.read_text(encoding="utf-8")
        names |= set(re.findall(r"^(?:CREATE TABLE| {3}) (\w+)", sql, re.M))
    return names


def is_named(shown: str, names: set[str]) -> bool:
    """Whether every part exists of a name, a path of names or a command."""
    if {shown, shown.lower()} & names or re.fullmatch(r"</?private>|[\d-]+\.md", shown):
        return True
    parts = re.split(r"[ .]", shown)
    return len(parts) > 1 and all(part in names for part in parts)


def test_the_glossary_has_every_word_once_in_order() -> None:
    tables = [[word for word, _ in table] for table in glossary_tables()]
    words = [word for table in tables for word in table]

    assert [sorted(table, key=str.casefold) for table in tables] == tables
    assert [word for word, count in Counter(words).items() if count > 1] == []


def test_the_glossary_has_one_word_for_a_thing_and_one_thing_for_a_word() -> None:
    words = [word for table in glossary_tables() for word, _ in table]

    # Only a verb may be told from its noun.
    plain = re.compile(r"[^,;/()]+(?: \((?:noun|verb)\))?")
    assert [word for word in words if not plain.fullmatch(word)] == []


def test_the_glossary_gives_no_meaning_twice() -> None:
    meanings = [meaning for table in glossary_tables() for _, meaning in table]

    assert [text for text, count in Counter(meanings).items() if count > 1] == []
    assert [text for text in meanings if not text.strip()] == []


@pytest.mark.xdist_group(GROUP)
def test_every_name_in_the_glossary_exists_in_the_code() -> None:
    rows = [
        f"{word} {meaning}" for table in glossary_tables() for word, meaning in table
    ]
    shown = [name for row in rows for pair in QUOTED.findall(row) for name in pair]
    names = names_in_the_code()

    assert [name for name in shown if name and not is_named(name, names)] == []


def test_no_code_name_in_the_glossary_stands_for_two_words() -> None:
    named = [
        (name, word)
        for table in glossary_tables()
        for word, meaning in table
        for name in re.findall(r"`([A-Z][a-z]\w*)`", meaning)
    ]
    counts = Counter(name for name, _ in named)

    assert [pair for pair in named if counts[pair[0]] > 1] == []


def test_the_changelog_knows_the_version() -> None:
    headings = re.findall(r"^## \[(.+?)\]", read("CHANGELOG.md"), re.MULTILINE)

    assert headings[0] in ("Unreleased", __version__)


def test_every_sample_is_described() -> None:
    page = read("tests/data/transcripts/README.md")

    missing = [
        f"{case.format}/{case.name}"
        for case in all_cases()
        if f"`{case.format}/{case.name}`" not in page
    ]

    assert missing == []


@cases("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_a_machine_of_ours(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert not re.search(r"/root/|/tmp/", text)
