"""The source of a function's module, as a tree: what its codes and its probe are read from."""

import __future__

import ast
import dis
import linecache
import sys
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from importlib.util import resolve_name
from types import CodeType, ModuleType
from typing import Any


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


@lru_cache(maxsize=64)
def definitions(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """Name → the statements of a module's top level that bind or change it, in their order."""
    found: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for name in dict.fromkeys([*_steps(_code(node), _BINDS), *_changed(node)]):
            found.setdefault(name, []).append(node)
    return found


def used(node: ast.stmt) -> dict[str, None]:
    """Names that a statement of the top level, and the code inside it, takes from its module, in their order.

    Local names are none, as Python itself sees it; annotations are not run.
    """
    return dict.fromkeys(_used(_code(node)))


def named(node: ast.stmt) -> set[str]:
    """Names of its module that a statement of the top level reads, binds or deletes."""
    code = _code(node)
    return set(_steps(code, _BINDS)).union(_used(code))


_READS = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL", "DELETE_GLOBAL")
_BINDS = ("STORE_NAME", "STORE_GLOBAL", "DELETE_NAME", "DELETE_GLOBAL")


def _code(node: ast.stmt) -> CodeType:
    flags = __future__.annotations.compiler_flag
    code: CodeType = compile(ast.Module([node], []), "<part>", "exec", flags, dont_inherit=True, optimize=0)
    return code


def _steps(code: CodeType, kinds: Collection[str]) -> Iterator[str]:
    return (step.argval for step in dis.get_instructions(code) if step.opname in kinds)


def _used(code: CodeType) -> Iterator[str]:
    own: set[str] = set()  # a class reads by one instruction what it bound and what its module has
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME":
            own.add(step.argval)
        elif step.opname in _READS and step.argval not in own:
            yield step.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _used(inner)


def _changed(node: ast.stmt) -> Iterator[str]:
    """Names to whose parts it assigns: `name[0] = …`, `name.part += …`."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for part in (part for target in targets if isinstance(target, ast.AST) for part in ast.walk(target)):
        if isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store):
            whole: ast.expr = part
            while isinstance(whole, (ast.Attribute, ast.Subscript, ast.Call)):
                whole = whole.func if isinstance(whole, ast.Call) else whole.value
            if isinstance(whole, ast.Name):
                yield whole.id


def reached(tree: ast.Module, name: str, known: Collection[str] = ()) -> dict[str, list[ast.stmt]]:
    """What a definition of the module needs of the same module, itself first.

    Args:
        tree: the module.
        name: of the definition.
        known: names that are listed, and whose own needs are not.
    """
    all_of_them = definitions(tree)
    found: dict[str, list[ast.stmt]] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current in found or current not in all_of_them:
            continue
        found[current] = all_of_them[current]
        if current not in known:
            waiting += [one for node in found[current] for one in used(node)]
    return found


def reached_from(function: Callable[..., Any], left_out: Collection[str] = ()) -> Iterator[tuple[ast.Module, ast.stmt]]:
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
        for node in definitions(tree).get(name, []):
            if isinstance(node, ast.ImportFrom):
                home = _home(node, module)
                if home.partition(".")[0] in packages and home not in left_out:
                    waiting += [(home, one.name) for one in node.names if name == (one.asname or one.name)]
            else:
                yield tree, node
                waiting += [(module, one) for one in used(node)]


def _home(node: ast.ImportFrom, module: str) -> str:
    """The module from which one of that name imports."""
    package = getattr(sys.modules.get(module), "__package__", None)
    if not node.level or not package:
        return node.module or ""
    return resolve_name("." * node.level + (node.module or ""), package)


def _tree_of(module: ModuleType | None) -> ast.Module:
    file = getattr(module, "__file__", None)
    return parsed(_text_of(file, vars(module))) if file and module is not None else ast.parse("")
