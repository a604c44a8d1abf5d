"""The modules of the package: their text, and what it says as a tree.

To parse them all takes a second. Tests that do belong to one group of ``xdist``, so
that only one process does.
"""

import ast
from functools import cache
from pathlib import Path

import backstory

ROOT = Path(backstory.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
GROUP = "source code"


@cache
def source_of(module: Path) -> str:
    return module.read_text(encoding="utf-8")


@cache
def tree_of(module: Path) -> ast.Module:
    return ast.parse(source_of(module))


@cache
def nodes_of(module: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(module)))
