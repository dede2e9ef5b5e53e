"""Finds in which style the learner wrote DALI pipelines.

Observations:
    classes: classes derived from `Pipeline` that define `define_graph`: name, place and, where the source was readable,
        the old operator objects (`nvidia.dali.ops`) that they make.
    definitions: functions under `@pipeline_def`: name and place.
    plain: live pipelines that no such class made.
    operators: uses of `nvidia.dali.ops` outside those classes: name and place.
    dali: whether DALI was imported at all.

Sources are read from disk and parsed; nothing of the learner's is called.
"""

import ast
import re
import sys
import types
from pathlib import Path
from typing import Any

PROBE_API = 1
VERSION = "1.0.0"
SITE = "learner"
BUDGET_S = 20.0

_MOST = 60
_ERRORS = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)
_CELL = re.compile(r"cell_(\d{3,6})\.py")


def probe(context: Any) -> dict[str, Any]:
    """See the module."""
    core = sys.modules.get("nvidia.dali.pipeline")
    trees = _sources(context)
    if core is None:
        return {"dali": False, "classes": [], "definitions": [], "plain": 0, "operators": []}
    base = core.Pipeline
    old = _old_uses(trees)
    classes, spans = [], []
    for name, kind in _classes(context, base):
        entry = {"name": name, **_place(_graph_code(kind, base))}
        span = _span(trees, entry["file"], entry["cell"], entry["line"])
        if span:
            spans.append((entry["file"], entry["cell"], *span))
            entry["line"] = span[0]
        entry["operators"] = sorted({use["name"] for use in old if span and _inside(use, spans[-1])})[:20]
        classes.append(entry)
    outside = [use for use in old if not any(_inside(use, span) for span in spans)]
    definitions = _definitions(context, trees)
    live = [pipe for _, pipe in context.pipelines]
    for _, iterator in context.iterators:
        try:
            live += [pipe for pipe in iterator.__dict__.get("_pipes") or () if issubclass(type(pipe), base)][:16]
        except _ERRORS:
            continue
    plain = {id(pipe) for pipe in live if _graph_code(type(pipe), base) is None}
    return {
        "dali": True,
        "classes": classes[:_MOST],
        "definitions": definitions[:_MOST],
        "plain": len(plain),
        "operators": outside[:_MOST],
    }


def _classes(context: Any, base: Any) -> Any:
    """(name, class) of pipelines in the old style, in the namespace and in modules beside the submission."""
    found: dict[int, tuple[str, Any]] = {}
    spaces = [context.names]
    here = f"{Path.cwd()}/"
    spaces += [
        module.__dict__
        for module in list(sys.modules.values())
        if type(module) is types.ModuleType and str(module.__dict__.get("__file__") or "").startswith(here)
    ]
    for space in spaces:
        for name, value in list(space.items()):
            if issubclass(type(value), type) and value is not base and _graph_code(value, base) is not None:
                found.setdefault(id(value), (str(name), value))
    return list(found.values())


def _graph_code(kind: Any, base: Any) -> Any:
    """The code of the `define_graph` that a class has of its own; None where it has none."""
    for part in type.__dict__["__mro__"].__get__(kind):
        if part is base:
            return None
        method = type.__dict__["__dict__"].__get__(part).get("define_graph")
        if type(method) is types.FunctionType and base in type.__dict__["__mro__"].__get__(kind):
            return method.__code__
    return None


def _definitions(context: Any, trees: Any) -> Any:
    found = []
    for name, value in list(context.names.items()):
        if type(value) is types.FunctionType and value.__dict__.get("_is_pipeline_def"):
            found.append({"name": str(name), **_place(_codes(value)[-1])})
    for place, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and any(_is_pipeline_def(item) for item in node.decorator_list):
                entry = {"name": node.name, **place, "line": node.lineno}
                if all((entry["name"], entry["file"]) != (known["name"], known["file"]) for known in found):
                    found.append(entry)
    return found


def _is_pipeline_def(node: Any) -> Any:
    node = node.func if isinstance(node, ast.Call) else node
    return getattr(node, "attr", getattr(node, "id", "")) == "pipeline_def"


def _old_uses(trees: Any) -> Any:
    """Every `ops.X(...)` of the sources, by the names under which they import `nvidia.dali.ops`."""
    aliases = set()
    for _, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "nvidia.dali":
                aliases |= {item.asname or item.name for item in node.names if item.name == "ops"}
            elif isinstance(node, ast.Import):
                aliases |= {item.asname for item in node.names if item.name == "nvidia.dali.ops" and item.asname}
    uses = []
    for place, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (name := _dotted(node.func)):
                first, _, rest = name.partition(".")
                whole = next((old for old in ("nvidia.dali.ops.", "dali.ops.") if name.startswith(old)), None)
                if (first in aliases and rest) or whole:
                    text = "ops." + (name.removeprefix(whole) if whole else rest)
                    uses.append({"name": text[:100], **place, "line": node.lineno})
    return uses


def _dotted(node: Any) -> Any:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) and parts else ""


def _sources(context: Any) -> Any:
    """(place, tree) of the submission's own files; the cells of a notebook lie in a folder of their own."""
    paths = set()
    own = context.names.get("__file__")
    if type(own) is str:
        paths.add(own)
    paths |= {str(path) for path in sorted(Path.cwd().glob("*.py"))[:50]}
    for value in list(context.names.values()):
        for code in _codes(value):
            cell = Path(code.co_filename)
            if _CELL.fullmatch(cell.name):
                paths |= {str(path) for path in sorted(cell.parent.glob("cell_*.py"))[:500]}
    trees = []
    for path in sorted(paths):
        try:
            with Path(path).open("rb") as file:
                trees.append((_place_of(path, 1), ast.parse(file.read(2 << 20))))
        except _ERRORS:
            continue
    return trees


def _codes(value: Any) -> Any:
    if type(value) is types.FunctionType:
        inner = value.__dict__.get("__wrapped__")
        return [value.__code__, *([inner.__code__] if type(inner) is types.FunctionType else [])]
    if issubclass(type(value), type):
        space = type.__dict__["__dict__"].__get__(value)
        return [item.__code__ for item in list(space.values())[:50] if type(item) is types.FunctionType]
    return []


def _span(trees: Any, file: Any, cell: Any, line: Any) -> Any:
    """First and last line of the class around a line of a file."""
    spans = [
        (node.lineno, node.end_lineno)
        for place, tree in trees
        if (place["file"], place["cell"]) == (file, cell)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.lineno <= (line or 0) <= (node.end_lineno or 0)
    ]
    return max(spans) if spans else None


def _inside(use: Any, span: Any) -> Any:
    file, cell, first, last = span
    return (use["file"], use["cell"]) == (file, cell) and first <= use["line"] <= last


def _place(code: Any) -> Any:
    return _place_of(code.co_filename, code.co_firstlineno)


def _place_of(path: Any, line: Any) -> Any:
    name = Path(path).name
    cell = _CELL.fullmatch(name)
    return {"file": "" if cell else name[:150], "cell": int(cell[1]) if cell else None, "line": max(1, int(line))}
