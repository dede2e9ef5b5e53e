"""Cuts a definition out of a submission together with what it needs, so that it runs without the rest of the lab."""

import ast
import re
import symtable
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_CELL = re.compile(r"cell_(\d{3,6})\.py")
_PLAIN = (str, int, float, bool, bytes, type(None))
_MAX_ITEMS = 10_000
_MAX_DEPTH = 4

_Place = tuple[int, int]
_Bound = dict[str, tuple[_Place, ast.stmt]]


def cut_out(names: Mapping[str, Any], name: str) -> tuple[str, dict[str, Any]]:
    """The source of a definition and of all that it needs, and the plain values among these.

    Imports, functions and classes come as source, in the order in which they stand in the submission; names that hold
    plain values (numbers, texts, containers of these) come as values, since their source may have run the lab.

    Args:
        name: of a function or class at the top level of the submission.

    Raises:
        ValueError: its source was not found.
    """
    bound = _bindings(names)
    wanted = [name]
    taken: _Bound = {}
    values: dict[str, Any] = {}
    while wanted:
        current = wanted.pop()
        if current in taken or current in values:
            continue
        value = names.get(current)
        if _is_plain(value) and current in names:
            values[current] = value
            continue
        if current not in bound:
            continue  # a builtin, or a name that only a branch uses
        place, node = bound[current]
        taken[current] = (place, node)
        wanted += [used for used in _used(node) if used not in taken]
    if name not in taken:
        raise ValueError(f"the source of {name} was not found at the top level of the submission")
    nodes = {id(node): (place, node) for place, node in taken.values()}
    ordered = [node for _, node in sorted(nodes.values(), key=lambda pair: pair[0])]
    return "\n".join(ast.unparse(node) for node in ordered) + "\n", values


def _bindings(names: Mapping[str, Any]) -> _Bound:
    """Name to (place, statement) of its last binding at the top level of the submission."""
    bound: _Bound = {}
    for number, path in enumerate(_sources(names)):
        try:
            tree = ast.parse(Path(path).read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        for place, node in enumerate(_top_level(tree.body)):
            for name in _bound_by(node):
                bound[name] = ((number, place), node)
    return bound


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, those inside try, if and with included."""
    for node in body:
        if isinstance(node, ast.Try | ast.If | ast.With):
            yield from _top_level(node.body)
            if not isinstance(node, ast.With):
                yield from _top_level(node.orelse)
            for handler in getattr(node, "handlers", []):
                yield from _top_level(handler.body)
        else:
            yield node


def _bound_by(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [item.asname or item.name.partition(".")[0] for item in node.names if item.name != "*"]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]


def _used(node: ast.stmt) -> list[str]:
    """Names of the module that a statement needs; locals of its functions are not among them."""
    tables = [symtable.symtable(ast.unparse(node), "<submission>", "exec")]
    names = {symbol.get_name() for symbol in tables[0].get_symbols() if symbol.is_referenced()}
    while tables:
        table = tables.pop()
        tables += table.get_children()
        if table.get_type() != "module":
            names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return sorted(names)


def _is_plain(value: Any, depth: int = _MAX_DEPTH) -> bool:
    """Whether a value can be handed on as it is."""
    if type(value) in _PLAIN:
        return True
    if type(value) in (list, tuple, set, frozenset):
        return depth > 0 and len(value) <= _MAX_ITEMS and all(_is_plain(item, depth - 1) for item in value)
    if type(value) is dict:
        return depth > 0 and all(_is_plain(item, depth - 1) for pair in value.items() for item in pair)
    return type(value).__module__ in ("pathlib", "numpy") and not callable(value)


def _sources(names: Mapping[str, Any]) -> list[str]:
    """The module's file, or the cells of the notebook in order."""
    own = names.get("__file__")
    if type(own) is str:
        return [own]
    for value in list(names.values()):
        inner = getattr(value, "__wrapped__", value) if type(value) is types.FunctionType else None
        for function in (value, inner):
            if type(function) is types.FunctionType and _CELL.fullmatch(Path(function.__code__.co_filename).name):
                folder = Path(function.__code__.co_filename).parent
                return [str(path) for path in sorted(folder.glob("cell_*.py"))]
    return []
