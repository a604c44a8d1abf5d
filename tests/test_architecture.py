"""The rules of the house: who may import whom, and who may touch the world."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import backstory

ROOT = Path(backstory.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

# A package imports from the layers before its own, and from itself.
LAYERS = (
    {"errors"},
    {"values"},
    {"text"},
    {"system"},
    {"store", "providers"},
    {"ingest", "index", "notes", "search", "summaries", "runs"},
    {"settings"},
    {"render"},
    {"tools"},
    {"assembly"},
    {"memory"},
    {"cli"},
)
# What else may be imported. A new arrow is a design decision: see ARCHITECTURE.md.
ARROWS = {
    ("index", "notes"),
    ("search", "index"),
    ("search", "notes"),
    ("summaries", "notes"),
    ("runs", "ingest"),
    # A run hands out the tools that search it, as a memory does.
    ("runs", "tools"),
}
PURE = ("errors", "values", "text")
# It neither reads nor writes anything.
PURE_LIBRARIES = {"orjson"}
# Surfaces reach everything else through Memory.
SURFACES = ("render", "tools", "cli")
HIDDEN_FROM_SURFACES = ("store", "providers", "index", "summaries")
# One package for each kind of adapter; the members do not know each other.
FAMILIES = (
    "ingest.hosts",
    "ingest.importers",
    "providers.embedders",
    "providers.llms",
    "runs.dialects",
)
# Where the clock and the environment may be read.
READS_THE_WORLD = ("system/machine.py", "cli/")
# Everybody else knows a store by what ``store.base`` promises.
OPENS_A_STORE = (
    "assembly.py",
    "index/files.py",
    "runs/items.py",
    "summaries/logbook.py",
)
SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+INTO|DELETE\s+FROM|CREATE\s+TABLE)\b", re.S
)
FORBIDDEN_NAMES = re.compile(
    r"utils|helpers|common|misc|core|manager|service|handler|processor|runner|engine|impl"
)
NAMED_MODULE = re.compile(r"backstory\.([a-z_]+(?:\.[a-z_]+)*)(?::\w+)?")
# Other programs' databases are read where their format is known.
MAY_SPEAK_SQL = ("store/", "ingest/importers/")


def name_of(module: Path) -> str:
    return str(module.relative_to(ROOT))


def each_module() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("module", MODULES, ids=name_of)


def package_of(name: str) -> str:
    return name.split(".")[0]


def own_name(module: Path) -> str:
    parts = module.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def layer_of(package: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if package in layer)


def imports(module: Path) -> Iterator[str]:
    """The modules of ours that a module imports, without the "backstory." before them.

    A module that a string names counts as well, such as in a table of adapters. What
    only the type checker imports is no dependency.
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
        match node:
            case ast.ImportFrom(module="backstory", names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(name)) if name.startswith("backstory."):
                yield name.removeprefix("backstory.")
            case ast.Import(names=names):
                for alias in names:
                    if alias.name.startswith("backstory."):
                        yield alias.name.removeprefix("backstory.")
            case ast.Constant(value=str(text)) if named := NAMED_MODULE.fullmatch(text):
                yield named[1]


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
def test_a_package_imports_only_from_layers_below_it(module: Path) -> None:
    if is_surface_entry(module):
        return
    own = package_of(own_name(module))

    forbidden = [
        name
        for name in imports(module)
        if package_of(name) != own
        and layer_of(package_of(name)) >= layer_of(own)
        and (own, package_of(name)) not in ARROWS
    ]

    assert forbidden == []


def test_every_arrow_is_used() -> None:
    used = {
        (package_of(own_name(module)), package_of(name))
        for module in MODULES
        for name in imports(module)
    }

    assert used >= ARROWS


@each_module()
def test_adapters_do_not_know_each_other(module: Path) -> None:
    own = own_name(module)
    family = next((each for each in FAMILIES if own.startswith(f"{each}.")), None)
    if family is None:
        return
    rows = {
        name.removeprefix(f"{family}.").split(".")[0]
        for name in imports(ROOT / family.replace(".", "/") / "__init__.py")
        if name.startswith(f"{family}.")
    } - {"base"}

    others = [
        name
        for name in imports(module)
        if name.startswith(f"{family}.")
        and name.removeprefix(f"{family}.").split(".")[0]
        in rows - {own.removeprefix(f"{family}.").split(".")[0]}
    ]

    assert others == []


@each_module()
def test_surfaces_reach_no_store_and_no_provider(module: Path) -> None:
    if package_of(own_name(module)) not in SURFACES:
        return

    reached = [n for n in imports(module) if package_of(n) in HIDDEN_FROM_SURFACES]

    assert reached == []


@each_module()
def test_only_the_assembly_and_the_surfaces_read_settings(module: Path) -> None:
    if package_of(own_name(module)) in (
        "settings",
        "assembly",
        "memory",
        "render",
        "cli",
    ):
        return

    assert "settings" not in set(imports(module))


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
    if name_of(module).startswith(READS_THE_WORLD):
        return
    source = module.read_text(encoding="utf-8")

    forbidden = ("os.environ", "os.getenv", "datetime.now(", "time.time(", "Path.home(")
    read = [call for call in forbidden if call in source]

    assert read == []


@each_module()
def test_pure_packages_use_the_standard_library_alone(module: Path) -> None:
    if package_of(own_name(module)) not in PURE:
        return

    used = foreign_imports(module) - {"backstory"} - PURE_LIBRARIES

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
def test_an_import_inside_a_function_says_why(module: Path) -> None:
    source = module.read_text(encoding="utf-8")
    lines = source.splitlines()

    unexplained = [
        node.lineno
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and not lines[node.lineno - 2].lstrip().startswith(("#", "from ", "import "))
    ]

    assert unexplained == []


def test_the_public_names_are_the_ones_written_out() -> None:
    assert backstory.__all__ == sorted(backstory.__all__)
    assert [name for name in backstory.__all__ if not hasattr(backstory, name)] == []


@pytest.mark.parametrize(
    "public",
    [getattr(backstory, name) for name in backstory.__all__ if name[0].isupper()],
    ids=lambda public: public.__name__,
)
def test_every_type_that_something_public_returns_is_public(public: type) -> None:
    returned = set()
    for name, member in inspect.getmembers(public):
        if name.startswith("_"):
            continue
        member = getattr(member, "fget", None) or getattr(member, "func", member)
        if inspect.isfunction(member):
            returned |= own_classes(get_type_hints(member, EVERY_NAME).get("return"))

    assert sorted(returned - set(backstory.__all__)) == []


EVERY_NAME = {name: getattr(backstory, name) for name in backstory.__all__}


def own_classes(hint: object) -> set[str]:
    """The classes of ours that a type is made of."""
    inner = {each for argument in get_args(hint) for each in own_classes(argument)}
    if isinstance(hint, type) and hint.__module__.startswith("backstory."):
        inner.add(hint.__name__)
    return inner


@each_module()
def test_only_those_who_open_a_store_know_which_it_is(module: Path) -> None:
    if name_of(module).startswith(("store/", *OPENS_A_STORE)):
        return

    assert [name for name in imports(module) if name.startswith("store.sqlite")] == []
