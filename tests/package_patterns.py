"""All regular expressions of the package, with how they are used.

They are recorded while a new process imports every module, so none is missed, however
it was put together. ``test_patterns`` sees to it that none is made later than that.
"""

import ast
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.source_code import MODULES, ROOT, nodes_of, source_of, tree_of

_METHODS = frozenset({"match", "fullmatch"})
_SEARCHING = frozenset({"search", "finditer", "findall", "sub", "subn", "split"})
_LIBRARIES = frozenset({"re", "regex", "sre_compile"})
_HAS_METHOD = re.compile(rf"\.({'|'.join(_METHODS | _SEARCHING)})\b")
_HAS_LIBRARY = re.compile(rf"\b({'|'.join(_LIBRARIES)})\b")

# Used by way of a table or an object, and only ever matched where a text begins, or
# where a word was found.
_MATCHED = frozenset(
    {
        "ingest.spilled_results._NOTICES",
        "text.dates._ARGUMENT_WAYS",
        "text.excerpts._ANYTHING",
        "text.excerpts._IS_LETTER",
        "text.excerpts._LETTERS",
        "text.excerpts._LIKE_E",
        "text.excerpts._LIKE_Y",
        "text.excerpts._WORD_END",
        "text.own_calls._JQ_SCRIPT",
        "text.own_calls._SED_SCRIPT",
    }
)


@dataclass(frozen=True, slots=True)
class PackagePattern:
    """A regular expression, and the name of the constant that it is or is part of."""

    name: str
    pattern: re.Pattern[str] | re.Pattern[bytes]
    is_searched: bool

    @property
    def source(self) -> str:
        text = self.pattern.pattern
        return text if isinstance(text, str) else text.decode("latin-1")

    @property
    def flags(self) -> int:
        """The flags to parse the source with, which is text even if it was bytes."""
        return self.pattern.flags & ~re.UNICODE

    def length(self, text: str) -> int:
        """How many characters or bytes the expression is given of a text."""
        is_bytes = isinstance(self.pattern.pattern, bytes)
        return len(text.encode("utf-8", "replace")) if is_bytes else len(text)

    def apply(self, text: str) -> None:
        """Use the expression on a text as the package does."""
        # Any pattern, any text: the types cannot say that the two belong together.
        pattern: re.Pattern[str] = self.pattern  # type: ignore[assignment]
        given = text
        if isinstance(self.pattern.pattern, bytes):
            given = text.encode("utf-8", "replace")  # type: ignore[assignment]
        if self.is_searched:
            pattern.sub(given[:0], given)
        else:
            pattern.match(given)
            pattern.fullmatch(given)


@cache
def package_patterns() -> tuple[PackagePattern, ...]:
    recorded = subprocess.run(
        [sys.executable, "-m", "tests.package_patterns"],
        cwd=ROOT.parents[1],
        check=True,
        capture_output=True,
    )
    return tuple(_read_pattern(*row) for row in json.loads(recorded.stdout))


def _read_pattern(
    module: str, line: int, source: str, flags: int, is_bytes: bool
) -> PackagePattern:
    constant = _constant_at(module, line)
    name = f"{module.removeprefix('backstory.')}.{constant}"
    made = source.encode("latin-1") if is_bytes else source
    methods = _methods_used(constant, module if constant.startswith("_") else None)
    is_searched = name not in _MATCHED and (not methods or not methods <= _METHODS)
    return PackagePattern(name, re.compile(made, flags), is_searched)


def _constant_at(module: str, line: int) -> str:
    """The constant whose value begins or goes on in a line."""
    (path,) = (each for each in MODULES if _name_of(each) == module)
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and node.lineno <= line <= (
            node.end_lineno or node.lineno
        ):
            return ast.unparse(node.targets[0])
    raise AssertionError(f"{module}:{line} makes an expression that is no constant")


def _modules_with(mention: re.Pattern[str]) -> Iterator[tuple[str, Path]]:
    """The modules whose text has it, by name: to parse all takes most of the time."""
    for module in MODULES:
        if mention.search(source_of(module)):
            yield _name_of(module), module


def _name_of(module: Path) -> str:
    parts = module.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _methods_used(constant: str, module: str | None) -> frozenset[str]:
    """By which methods of an expression a constant is used, in a module or in all."""
    return frozenset(
        method
        for name, used_in, method in _uses()
        if name == constant and module in (used_in, None)
    )


@cache
def _uses() -> frozenset[tuple[str, str, str]]:
    """A name, the module where it is used, and by which method of an expression."""
    return frozenset(
        (node.value.id, name, node.attr)
        for name, module in _modules_with(_HAS_METHOD)
        for node in nodes_of(module)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.attr in _METHODS | _SEARCHING
    )


def uses_outside_of_constants() -> set[str]:
    """The functions that make an expression, and imports that would hide that."""
    found: set[str] = set()
    for name, module in _modules_with(_HAS_LIBRARY):
        found.update(_hidden_uses(tree_of(module), name, ()))
    return found


def _hidden_uses(
    node: ast.AST, module: str, functions: tuple[str, ...]
) -> Iterator[str]:
    """Those in a node of a module, which is within these functions."""
    if isinstance(node, ast.ImportFrom) and node.module == "re":
        yield f"{module}: from re import"
    elif isinstance(node, ast.Import):
        for name in node.names:
            if name.name in _LIBRARIES and name.asname:
                yield f"{module}: {name.name} as {name.asname}"
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        within = f"{module.removeprefix('backstory.')}.{getattr(node, 'name', '')}"
        functions = (*functions, within)
    elif (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "re"
        and node.attr in {"compile", "template"} | _METHODS | _SEARCHING
    ):
        yield from functions
    for inner in ast.iter_child_nodes(node):
        yield from _hidden_uses(inner, module, functions)


def _record() -> list[tuple[str, int, str, int, bool]]:
    """Import every module, and note each expression that it makes."""
    recorded: list[tuple[str, int, str, int, bool]] = []
    compile_it = re.compile

    def recording(pattern: str | Callable[[], str], flags: int = 0) -> re.Pattern[str]:
        made = compile_it(pattern() if callable(pattern) else pattern, flags)
        frame = sys._getframe(1)
        # A function of the module may make it: what counts is where that is called.
        while frame.f_code.co_name != "<module>" and frame.f_back is not None:
            frame = frame.f_back
        module = frame.f_globals["__name__"]
        if module.startswith("backstory"):
            # Typed as text, but may be bytes.
            is_bytes = isinstance(made.pattern, bytes)
            text = made.pattern.decode("latin-1") if is_bytes else made.pattern  # type: ignore[attr-defined]
            recorded.append((module, frame.f_lineno, text, made.flags, is_bytes))
        return made

    re.compile = recording  # type: ignore[assignment]
    # Those that are compiled later are recorded where they are written, too.
    patterns = importlib.import_module("backstory.text.patterns")
    patterns.lazy_pattern = recording  # type: ignore[attr-defined]
    for module in pkgutil.walk_packages([str(ROOT)], "backstory."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return recorded


if __name__ == "__main__":
    # Forget what was imported before recording began.
    for name in [name for name in sys.modules if name.startswith("backstory")]:
        del sys.modules[name]
    print(json.dumps(_record()))  # noqa: T201
