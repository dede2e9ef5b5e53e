"""Probes that are functions in a check's own file: marked by `probe`, cut out of it, and carried into a pod as text.

The pod gets the function and what it needs of its module, at the lines where the author has them, and nothing of the
grader: a class of observations is there a function that gives back what it is given, as a dict.
"""

import ast
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, Generic, TypeVar, cast, get_type_hints

from pydantic import BaseModel

from checks.contexts import GraphProbe, LearnerProbe
from checks.own_source import named, parsed, reached, source_of
from checks.probe_files import PROBE_API, ProbeFile, parse_probe
from grader_service.model.base import Wire
from grader_service.model.evidence import ProbeSite

_SITES: Mapping[object, ProbeSite] = {GraphProbe: ProbeSite.GRAPH, LearnerProbe: ProbeSite.LEARNER}
_OURS = ("checks", "grader_service", "pydantic")
_TAKEN = frozenset({"PROBE_API", "VERSION", "SITE", "BUDGET_S", "probe"})
_CARRIED = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.Assign, ast.AnnAssign, ast.AugAssign),
)
"""Statements that say by their form which names they bind or change."""
SeenT = TypeVar("SeenT", bound=BaseModel)


class Observation(Wire):
    """Base of what a probe returns. Bound every field: `Field(ge=, le=, max_length=)`; what does not fit is refused."""


@dataclass(frozen=True)
class OwnProbe(Generic[SeenT]):
    """A function that `probe` marked."""

    function: Callable[[Any], SeenT]
    returns: type[SeenT]
    file: ProbeFile

    def __call__(self, context: Any) -> SeenT:
        """The function itself, for tests of its author's."""
        return self.function(context)


def probe(*, version: str, budget_s: float = 30.0) -> Callable[[Callable[[Any], SeenT]], OwnProbe[SeenT]]:
    """Marks a function as a probe: `def name(context: GraphProbe) -> Seen`, or with `LearnerProbe`.

    The type of its argument says where it runs, its name is the probe's. It imports inside what it needs of Python's
    standard library, torch, torchvision, numpy, PIL and nvidia.dali, and may use functions and constants of its module.

    Args:
        version: three numbers; raised whenever it could observe something else.
        budget_s: seconds that it may take, at most 600.
    """

    def mark(function: Callable[[Any], SeenT]) -> OwnProbe[SeenT]:
        hints = get_type_hints(function)
        returns = hints.pop("return", None)
        site = _SITES.get(next(iter(hints.values()), None)) if len(hints) == 1 else None
        if site is None:
            raise TypeError(f"probe {function.__name__} expects one argument, of the type GraphProbe or LearnerProbe")
        if not (isinstance(returns, type) and issubclass(returns, Observation)):
            raise TypeError(f"probe {function.__name__} returns {returns!r}; expected a class made from Observation")
        if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
            raise TypeError(f"probe {function.__name__} has another decorator below @probe; expected none")
        source = _carried(function, returns, version, site, budget_s)
        origin = Path(function.__code__.co_filename).name
        return OwnProbe(function, cast(type[SeenT], returns), parse_probe(function.__name__, source.encode(), origin))

    return mark


def _carried(function: Callable[..., Any], returns: type, version: str, site: ProbeSite, budget_s: float) -> str:
    name = function.__name__
    namespace = function.__globals__
    models = {one for one, value in namespace.items() if isinstance(value, type) and issubclass(value, BaseModel)}
    text = source_of(function)
    tree = _imported(parsed(text), namespace)
    needed = reached(tree, name, models)
    stand_ins = {returns.__name__, *models.intersection(needed)}
    for taken in sorted(_TAKEN.intersection({*needed, returns.__name__})):
        raise TypeError(
            f"probe {name} uses the name {taken}, which the file of a probe needs for itself; choose another"
        )
    own = {one: nodes for one, nodes in needed.items() if one not in models}
    _refuse(function, own, tree)
    lines = text.removesuffix("\n").split("\n")  # as Python counts them; `splitlines` knows other ends of lines
    kept = [""] * len(lines)
    carried = [node for nodes in own.values() for node in nodes]
    for part in [one for node in carried for one in (node, *getattr(node, "decorator_list", ()))]:
        kept[part.lineno - 1 : part.end_lineno] = lines[part.lineno - 1 : part.end_lineno]
    for node in tree.body:
        if node not in carried and any(kept[node.lineno - 1 : node.end_lineno]):
            raise TypeError(f"probe {name} uses a part of line {node.lineno}; expected one statement on a line")
    future = "from __future__ import annotations"
    kept = [future, *kept[1:]] if not kept[0] else [future, *kept]
    made = [f"def {one}(**seen): return seen" for one in sorted(stand_ins)]
    last = [
        f"PROBE_API = {PROBE_API}",
        f"VERSION = {version!r}",
        f"SITE = {site.value!r}",
        f"BUDGET_S = {float(budget_s)!r}",
        f"def probe(context): return {name}(context)",
    ]
    return "\n".join([*kept, *made, *last, ""])


def _imported(tree: ast.Module, namespace: Mapping[str, Any]) -> ast.Module:
    """The module as it is run by an import, without `@probe` and `@check`, of which a pod knows nothing."""
    body = []
    for node in tree.body:
        if isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test) == "__name__ == '__main__'":
            continue
        plain = copy.copy(node)
        if isinstance(plain, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            plain.decorator_list = [one for one in plain.decorator_list if not _is_mark(one, namespace)]
        body.append(plain)
    return ast.Module(body, [])


def _is_mark(decorator: ast.expr, namespace: Mapping[str, Any]) -> bool:
    first, *parts = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator).split(".")
    found = namespace.get(first)
    for part in parts:
        found = getattr(found, part, None)
    return getattr(found, "__module__", None) in (__name__, "checks.function")


def _refuse(function: Callable[..., Any], needed: Mapping[str, list[ast.stmt]], tree: ast.Module) -> None:
    """Refuses what would be another program in a pod than it is in the author's file."""
    probe_id = function.__name__
    found = needed.get(probe_id, [])
    if function.__qualname__ != probe_id or [type(node) for node in found] != [ast.FunctionDef]:
        raise TypeError(f"probe {probe_id} is not made by one `def` at the top level of its file; expected only that")
    if getattr(found[0], "decorator_list", ()):
        raise TypeError(
            f"probe {probe_id} has another decorator beside @probe; expected none, call inside what it does"
        )
    for name, nodes in needed.items():
        for node in nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)) and _is_ours(node):
                raise TypeError(f"probe {probe_id} uses {name}, which no pod has; import what a pod has inside it")
            if isinstance(node, ast.ClassDef) and node.decorator_list:  # dataclasses want a module in sys.modules
                raise TypeError(
                    f"probe {probe_id} uses the decorated class {name}; expected a plain one or a NamedTuple"
                )
    for node in tree.body:
        for name in sorted(named(node) & needed.keys()) if not isinstance(node, _CARRIED) else ():
            raise TypeError(
                f"probe {probe_id} uses {name}, which line {node.lineno} may change; expected only `def`, `class`, "
                "imports and assignments with it at the top level: do there what that line does, or inside the probe"
            )


def _is_ours(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return bool(node.level) or (node.module or "").partition(".")[0] in _OURS
    return any(alias.name.partition(".")[0] in _OURS for alias in node.names)
