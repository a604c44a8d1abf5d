"""The rules of the house: who may import whom, and who may touch the world."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import backstory

ROOT = Path(backstory.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

LAYERS = (
    {
        "errors",
        "forking",
        "expiring",
        "side_threads",
        "model",
        "moments",
        "text",
        "identity",
        "units",
        "run_values",
    },
    {
        "redaction",
        "words",
        "dates",
        "querying",
        "excerpts",
        "chunking",
        "ranking",
        "envelope",
        "tokens",
        "markdown_lines",
        "outline",
        "inert",
        "wording",
        "duplicates",
        "facts",
        "daily_logs",
        "merging",
        "highlights",
        "recalling",
        "passages",
        "trimming",
    },
    {
        "json_values",
        "files",
        "notes",
        "notebook",
        "archives",
        "keys",
        "servers",
        "store",
        "importers",
        "dialects",
        "hosts",
        "embedders",
        "llms",
    },
    {
        "indexing",
        "cataloguing",
        "embedding",
        "gathering",
        "showing",
        "searching",
        "plain_searching",
        "model_calls",
        "summarizing",
        "curating",
        "run_searching",
        "run_shelf",
        "run_recording",
        "fitting",
        "listening",
        "following",
        "spilled_results",
    },
    {
        "settings",
        "places",
        "asking",
        "background",
        "derived",
        "upkeep",
        "lookup",
        "logbook",
        "reading",
        "runs",
        "live_runs",
        "memory",
    },
    {"render", "render_hits", "render_notes", "render_runs", "tools", "cli"},
)
FAMILIES = ("store", "importers", "dialects", "hosts", "embedders", "llms")
SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+INTO|DELETE\s+FROM|CREATE\s+TABLE)\b", re.S
)
FORBIDDEN_NAMES = re.compile(
    r"utils|helpers|common|misc|core|manager|service|handler|processor|runner|engine|impl"
)
# Other programs' databases are read where their format is known.
MAY_SPEAK_SQL = ("store/", "importers/")


def name_of(module: Path) -> str:
    return str(module.relative_to(ROOT))


def each_module() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("module", MODULES, ids=name_of)


def part_of(module: Path) -> str:
    first = module.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def layer_of(part: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if part in layer)


def imports(module: Path) -> Iterator[str]:
    """The modules of ours that a module imports, as 'part' or 'part.more'.

    What only the type checker imports is no dependency.
    """
    tree = ast.parse(module.read_text(encoding="utf-8"))
    for_types = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "backstory":
                yield from (alias.name for alias in node.names)
            elif node.module.startswith("backstory."):
                yield node.module.removeprefix("backstory.")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("backstory."):
                    yield alias.name.removeprefix("backstory.")


def foreign_imports(module: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
    return found


def is_surface_entry(module: Path) -> bool:
    return name_of(module) in ("__init__.py", "__main__.py")


@each_module()
def test_a_module_imports_only_from_its_own_layer_or_below(module: Path) -> None:
    if is_surface_entry(module):
        return
    own = layer_of(part_of(module))

    too_high = [name for name in imports(module) if layer_of(name.split(".")[0]) > own]

    assert too_high == []


@each_module()
def test_families_of_the_edge_do_not_know_each_other(module: Path) -> None:
    own = part_of(module)

    others = [
        name
        for name in imports(module)
        if own in FAMILIES
        and name.split(".")[0] in FAMILIES
        and name.split(".")[0] != own
    ]

    assert others == []


@each_module()
def test_surfaces_reach_no_store_no_importer_and_no_use_case(module: Path) -> None:
    if part_of(module) not in LAYERS[-1]:
        return

    below = (
        "store",
        "importers",
        "embedders",
        "llms",
        *sorted(LAYERS[3]),
        "derived",
        "upkeep",
        "lookup",
    )
    reached = [name for name in imports(module) if name.startswith(below)]

    assert reached == []


@each_module()
def test_sql_stands_only_where_it_may(module: Path) -> None:
    if name_of(module).startswith(MAY_SPEAK_SQL):
        return

    texts = [
        node.value
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]

    assert [text for text in texts if SQL.search(text)] == []
    assert "apsw" not in foreign_imports(module)


@each_module()
def test_nothing_below_the_assembly_reads_the_clock_or_the_environment(
    module: Path,
) -> None:
    if is_surface_entry(module) or layer_of(part_of(module)) >= layer_of("settings"):
        return
    source = module.read_text(encoding="utf-8")

    forbidden = ("os.environ", "os.getenv", "datetime.now(", "time.time(", "Path.home(")
    read = [call for call in forbidden if call in source]

    assert read == []


@each_module()
def test_the_words_and_the_logic_use_the_standard_library_alone(module: Path) -> None:
    if is_surface_entry(module) or layer_of(part_of(module)) > 1:
        return

    used = foreign_imports(module) - {"backstory"}

    assert used <= set(sys.stdlib_module_names)


@each_module()
def test_a_module_begins_by_saying_what_it_is_for(module: Path) -> None:
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))

    assert docstring is not None or not module.read_text(encoding="utf-8")


@each_module()
def test_no_module_is_named_after_nothing(module: Path) -> None:
    assert not FORBIDDEN_NAMES.search(name_of(module))


@each_module()
def test_the_package_never_prints(module: Path) -> None:
    calls = [
        node.lineno
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]

    assert calls == []


@each_module()
def test_imports_stand_at_the_top_of_the_file(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))

    hidden = [
        node.lineno
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]

    assert hidden == []


def test_the_public_names_are_the_ones_written_out() -> None:
    assert backstory.__all__ == sorted(backstory.__all__)
    assert [name for name in backstory.__all__ if not hasattr(backstory, name)] == []
