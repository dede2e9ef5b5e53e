"""The source of a function's module, as a tree: what its codes and its probe are read from."""

import ast
import linecache
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Any

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom


def source_of(function: Callable[..., Any]) -> str:
    """The text of the file in which it is written.

    Raises:
        TypeError: the file cannot be read.
    """
    file = function.__code__.co_filename
    linecache.checkcache(file)  # an author changes it and loads it again
    text = "".join(linecache.getlines(file, function.__globals__))
    if not text:
        raise TypeError(f"the source of {function.__name__} cannot be read from {file}; expected a Python file")
    return text


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
