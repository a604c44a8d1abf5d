"""The rules of the house: who may import whom, and who may touch the world.

Each rule is one test that lists the modules that break it, and with what.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import backstory
from backstory.errors import BackstoryError
from tests.source_code import GROUP, MODULES, ROOT, nodes_of, source_of, tree_of

pytestmark = pytest.mark.xdist_group(GROUP)

# A package imports from the layers before its own, and from itself.
LAYERS = (
    {"errors", "version"},
    {"values"},
    {"text"},
    {"system"},
    {"store", "providers"},
    {"ingest", "index", "notes", "search", "summaries", "runs"},
    {"settings"},
    {"address"},
    {"render"},
    {"tools"},
    {"exports", "forget", "stores"},
    {"moving", "options", "push"},
    {"access", "assembly"},
    {"maintenance"},
    {"database", "memory", "overview", "repair"},
    {"hooks"},
    {"evals", "install"},
    {"mcp", "web"},
    {"serve"},
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
PURE_LIBRARIES = {"msgspec", "orjson"}
# Surfaces reach everything else through Memory.
SURFACES = ("render", "tools", "evals", "install", "mcp", "web", "serve", "cli")
HIDDEN_FROM_SURFACES = ("store", "providers", "index", "summaries")
# One package for each kind of adapter; the members do not know each other.
FAMILIES = (
    "evals.sets",
    "install.hosts",
    "ingest.importers",
    "providers.embedders",
    "providers.llms",
    "runs.dialects",
)
MAY_READ_SETTINGS = (
    "settings",
    "address",
    "options",
    "assembly",
    "memory",
    "render",
    "hooks",
    "web",
    "serve",
    "cli",
)
# Where the clock and the environment may be read.
READS_THE_WORLD = ("system/machine.py", "system/home.py", "hooks/", "cli/")
# Everybody else knows a store by what ``store.base`` promises.
OPENS_A_STORE = (
    "access.py",
    "assembly/parts.py",
    "database.py",
    "stores.py",
    "index/damage.py",
    "hooks/opening.py",
    "hooks/reminding.py",
    "overview.py",
    "runs/items.py",
)
# Elsewhere, it would be imported with its telemetry on.
IMPORTS_ONNXRUNTIME = "providers/embedders/minilm/inference.py"
SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+INTO|DELETE\s+FROM|CREATE\s+TABLE)\b", re.S
)
FORBIDDEN_NAMES = re.compile(
    r"utils|helpers|common|misc|core|manager|service|handler|processor|runner|engine|impl"
)
NAMED_MODULE = re.compile(r"backstory\.([a-z_]+(?:\.[a-z_]+)*)(?::\w+)?")
DRIVERS = ("apsw", "psycopg")
# Other programs' databases are read where their format is known.
MAY_SPEAK_SQL = ("store/", "ingest/importers/", "ingest/parsing/")


def name_of(module: Path) -> str:
    return str(module.relative_to(ROOT))


def package_of(name: str) -> str:
    return name.split(".")[0]


def own_name(module: Path) -> str:
    parts = module.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def layer_of(package: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if package in layer)


def offenders(broken_by: Callable[[Path], Iterable[object]]) -> dict[str, list[object]]:
    """What breaks a rule, by the name of the module that holds it."""
    found = {name_of(module): list(broken_by(module)) for module in MODULES}
    return {name: broken for name, broken in found.items() if broken}


@cache
def imports(module: Path) -> tuple[str, ...]:
    """The modules of ours that a module imports, without the "backstory." before them.

    A module that a string names counts as well, such as in a table of adapters. What
    only the type checker imports is no dependency.
    """
    return tuple(_imports(module))


def _imports(module: Path) -> Iterator[str]:
    for_types = {
        node
        for block in nodes_of(module)
        if isinstance(block, ast.If)
        and isinstance(block.test, ast.Name)
        and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    constants = constants_of(tree_of(module))
    for node in nodes_of(module):
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
            case ast.Constant() | ast.JoinedStr():
                if named := NAMED_MODULE.fullmatch(text_of(node, constants)):
                    yield named[1]


def constants_of(tree: ast.Module) -> dict[str, str]:
    """The strings that the module gives a name at its top level."""
    found = {}
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name(id=name)], ast.Constant(value=str(text))):
                found[name] = text
    return found


def text_of(node: ast.expr, constants: dict[str, str]) -> str:
    """What a string says, with the constants of its module filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=ast.Name(id=name)):
            return constants.get(name, "")
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part, constants) for part in parts)
    return ""


def foreign_imports(module: Path) -> set[str]:
    found = set()
    for node in nodes_of(module):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
    return found


def is_surface_entry(module: Path) -> bool:
    return name_of(module) in ("__init__.py", "__main__.py")


def test_a_package_imports_only_from_layers_below_it() -> None:
    def forbidden(module: Path) -> list[str]:
        own = package_of(own_name(module))
        return [
            name
            for name in imports(module)
            if not is_surface_entry(module)
            and package_of(name) != own
            and layer_of(package_of(name)) >= layer_of(own)
            and (own, package_of(name)) not in ARROWS
        ]

    assert offenders(forbidden) == {}


def test_every_arrow_is_used() -> None:
    used = {
        (package_of(own_name(module)), package_of(name))
        for module in MODULES
        for name in imports(module)
    }

    assert used >= ARROWS


def members_of(family: str) -> set[str]:
    """The adapters that the table of a family names."""
    table = imports(ROOT / family.replace(".", "/") / "__init__.py")
    members = {member_of(family, name) for name in table} - {"base"}
    return {member for member in members if member is not None}


def test_the_tables_of_adapters_are_seen() -> None:
    assert [family for family in FAMILIES if len(members_of(family)) < 3] == []


def test_adapters_do_not_know_each_other() -> None:
    def others(module: Path) -> list[str]:
        own = own_name(module)
        family = next((each for each in FAMILIES if own.startswith(f"{each}.")), None)
        if family is None:
            return []
        known = members_of(family) - {member_of(family, own)}
        return [name for name in imports(module) if member_of(family, name) in known]

    assert offenders(others) == {}


def member_of(family: str, name: str) -> str | None:
    """Which member of the family a module belongs to."""
    if not name.startswith(f"{family}."):
        return None
    return name.removeprefix(f"{family}.").split(".")[0]


def test_surfaces_reach_no_store_and_no_provider() -> None:
    def reached(module: Path) -> list[str]:
        if package_of(own_name(module)) not in SURFACES:
            return []
        return [n for n in imports(module) if package_of(n) in HIDDEN_FROM_SURFACES]

    assert offenders(reached) == {}


def test_only_the_assembly_and_the_surfaces_read_settings() -> None:
    def read(module: Path) -> list[str]:
        if package_of(own_name(module)) in MAY_READ_SETTINGS:
            return []
        return [name for name in imports(module) if name == "settings"]

    assert offenders(read) == {}


def test_sql_is_only_where_it_may_be() -> None:
    def sql(module: Path) -> list[str]:
        if name_of(module).startswith(MAY_SPEAK_SQL):
            return []
        texts = [
            node.value
            for node in nodes_of(module)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        return [text for text in texts if SQL.search(text)] + [
            name for name in foreign_imports(module) if name in DRIVERS
        ]

    assert offenders(sql) == {}


def test_nothing_below_the_assembly_reads_the_clock_or_the_environment() -> None:
    calls = ("os.environ", "os.getenv", "datetime.now(", "time.time(", "Path.home(")

    def read(module: Path) -> list[str]:
        if name_of(module).startswith(READS_THE_WORLD):
            return []
        return [call for call in calls if call in source_of(module)]

    assert offenders(read) == {}


def test_onnxruntime_is_imported_only_where_its_telemetry_is_turned_off() -> None:
    importing = [
        name_of(module)
        for module in MODULES
        if "onnxruntime" in foreign_imports(module)
    ]

    assert importing == [IMPORTS_ONNXRUNTIME]


def test_pure_packages_use_the_standard_library_alone() -> None:
    allowed = {"backstory"} | PURE_LIBRARIES | set(sys.stdlib_module_names)

    def foreign(module: Path) -> set[str]:
        is_pure = package_of(own_name(module)) in PURE
        return foreign_imports(module) - allowed if is_pure else set()

    assert offenders(foreign) == {}


def test_a_module_begins_by_saying_what_it_is_for() -> None:
    silent = [
        name_of(module)
        for module in MODULES
        if source_of(module) and ast.get_docstring(tree_of(module)) is None
    ]

    assert silent == []


def test_one_name_is_one_class() -> None:
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in tree_of(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name_of(module))

    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_no_module_uses_the_underscored_names_of_another() -> None:
    def borrowed(module: Path) -> list[str]:
        return [
            f"{node.module}.{alias.name}"
            for node in nodes_of(module)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name.startswith("_") and not alias.name.startswith("__")
        ]

    assert offenders(borrowed) == {}


def test_no_module_is_named_after_nothing() -> None:
    names = [name_of(module) for module in MODULES]

    assert [name for name in names if FORBIDDEN_NAMES.search(name)] == []


def test_no_value_is_computed_under_a_lock_that_a_fork_could_keep() -> None:
    uses = [name_of(each) for each in MODULES if "cached_property" in names_in(each)]
    assert uses == []  # backstory.values.lazy has one that can be forked


def names_in(module: Path) -> set[str]:
    return {
        alias.name
        for node in nodes_of(module)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_the_package_never_prints() -> None:
    def prints(module: Path) -> list[int]:
        return [
            node.lineno
            for node in nodes_of(module)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
        ]

    assert offenders(prints) == {}


def test_an_import_inside_a_function_says_why() -> None:
    def unexplained(module: Path) -> list[int]:
        lines = source_of(module).splitlines()
        return [
            node.lineno
            for function in nodes_of(module)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
            and not lines[node.lineno - 2]
            .lstrip()
            .startswith(("#", "from ", "import "))
        ]

    assert offenders(unexplained) == {}


def test_the_public_names_are_the_ones_written_out() -> None:
    assert backstory.__all__ == sorted(backstory.__all__)
    assert [name for name in backstory.__all__ if not hasattr(backstory, name)] == []


def test_every_type_that_something_public_returns_is_public() -> None:
    hidden = {
        name: sorted(returned_by(getattr(backstory, name)) - set(backstory.__all__))
        for name in backstory.__all__
        if name[0].isupper()
    }

    assert {name: classes for name, classes in hidden.items() if classes} == {}


def test_every_error_is_public() -> None:
    errors = {
        node.name
        for module in MODULES
        for node in tree_of(module).body
        if isinstance(node, ast.ClassDef)
        and any(base in PUBLIC_ERRORS for base in map(ast.unparse, node.bases))
    }

    assert errors - PUBLIC_ERRORS == ERRORS_OF_THE_HTTP_CLIENT


def returned_by(public: type) -> set[str]:
    """The classes of ours that the public methods and properties of a class return."""
    returned = set()
    for name, member in inspect.getmembers(public):
        if name.startswith("_"):
            continue
        member = getattr(member, "fget", None) or getattr(member, "func", member)
        if inspect.isfunction(member):
            returned |= own_classes(get_type_hints(member, EVERY_NAME).get("return"))
    return returned


# Its callers catch them: who sees one otherwise sees a ``ProviderRefused``.
ERRORS_OF_THE_HTTP_CLIENT = {"Declined", "TooLarge"}
PUBLIC_ERRORS = {
    name
    for name in backstory.__all__
    if isinstance(kind := getattr(backstory, name), type)
    and issubclass(kind, BackstoryError)
}
EVERY_NAME = {name: getattr(backstory, name) for name in backstory.__all__}


def own_classes(hint: object) -> set[str]:
    """The classes of ours that a type is made of."""
    inner = {each for argument in get_args(hint) for each in own_classes(argument)}
    if isinstance(hint, type) and hint.__module__.startswith("backstory."):
        inner.add(hint.__name__)
    return inner


def test_only_those_who_open_a_store_know_which_it_is() -> None:
    def known(module: Path) -> list[str]:
        if name_of(module).startswith(("store/", *OPENS_A_STORE)):
            return []
        kinds = ("store.sqlite", "store.postgres")
        return [name for name in imports(module) if name.startswith(kinds)]

    assert offenders(known) == {}


# What sources and people wrote, in the values that renderers are given.
FOREIGN = {
    "excerpt",
    "heading",
    "host",
    "name",
    "native_id",
    "parent_id",
    "path",
    "preview",
    "project",
    "snippet",
    "text",
    "title",
    "tool_name",
}
WRITES_FOR_MODELS = ("render/models/", "search/sections.py", "search/memory_lines.py")


def test_no_foreign_text_reaches_a_model_outside_the_envelope() -> None:
    """In a line for a model, such a field is only inside a call that envelopes it."""
    found = {
        f"{name}:{piece.lineno}": ast.unparse(piece.value)
        for path in MODULES
        if (name := path.relative_to(ROOT).as_posix()).startswith(WRITES_FOR_MODELS)
        for piece in nodes_of(path)
        if isinstance(piece, ast.FormattedValue)
        and isinstance(piece.value, ast.Attribute)
        and piece.value.attr in FOREIGN
    }

    # It is labelled together with the facts beside it.
    allowed = {"session.parent_id"}
    assert {place: said for place, said in found.items() if said not in allowed} == {}
