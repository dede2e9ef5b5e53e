"""The source of a function's module, as a tree: what its codes and its probe are read from."""

import ast
import linecache
import sys
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom


def source_of(function: Callable[..., Any]) -> str:
    """The text of the file in which it is written.

    Raises:
        TypeError: the file cannot be read.
    """
    file = function.__code__.co_filename
    text = _text_of(file, function.__globals__)
    if not text:
        raise TypeError(f"the source of {function.__name__} cannot be read from {file}; expected a Python file")
    return text


def _text_of(file: str, namespace: dict[str, Any]) -> str:
    linecache.checkcache(file)  # an author changes it and loads it again
    return "".join(linecache.getlines(file, namespace))


@lru_cache(maxsize=64)
def parsed(text: str) -> ast.Module:
    """The tree of a module."""
    return ast.parse(text)


def definitions(tree: ast.Module) -> dict[str, Definition]:
    """Name → what defines it at the top level of a module."""
    found: dict[str, Definition] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                found |= {one.id: node for one in ast.walk(target) if isinstance(one, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
    return found


def used(node: ast.AST) -> Iterator[str]:
    """Names that code reads when it runs; annotations and decorators are not run."""
    if isinstance(node, ast.Name):
        yield node.id
    skipped = ("annotation", "returns", "decorator_list") if isinstance(node, _TYPED) else ()
    for name, value in ast.iter_fields(node):
        if name in skipped:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from used(child)


_TYPED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg, ast.AnnAssign)


def reached(tree: ast.Module, name: str, known: Collection[str] = ()) -> dict[str, Definition]:
    """What a definition of the module needs of the same module, itself first.

    Args:
        tree: the module.
        name: of the definition.
        known: names that are listed, and whose own needs are not.
    """
    all_of_them = definitions(tree)
    found: dict[str, Definition] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current in found or current not in all_of_them:
            continue
        found[current] = all_of_them[current]
        if current not in known:
            waiting += used(all_of_them[current])
    return found


def reached_from(
    function: Callable[..., Any], left_out: Collection[str] = ()
) -> Iterator[tuple[ast.Module, Definition]]:
    """What a function needs of its own package and of the grader's checks: each definition, with its module.

    Args:
        function: itself first.
        left_out: names of modules that are not looked into.

    Raises:
        TypeError: its source cannot be read.
    """
    waiting: list[tuple[str, str]] = [(function.__module__, function.__name__)]
    trees = {function.__module__: parsed(source_of(function))}
    packages = {function.__module__.partition(".")[0], __name__.partition(".")[0]}
    seen: set[tuple[str, str]] = set()
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        module, name = place
        tree = trees.get(module) or trees.setdefault(module, _tree_of(sys.modules.get(module)))
        node = definitions(tree).get(name)
        if isinstance(node, ast.ImportFrom):
            home = node.module or ""
            if home.partition(".")[0] in packages and home not in left_out:
                waiting += [(home, one.name) for one in node.names if name == (one.asname or one.name)]
        elif node is not None:
            yield tree, node
            waiting += [(module, one) for one in used(node)]


def _tree_of(module: ModuleType | None) -> ast.Module:
    file = getattr(module, "__file__", None)
    return parsed(_text_of(file, vars(module))) if file and module is not None else ast.parse("")
