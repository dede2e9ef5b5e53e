"""Probes that are functions in a check's own file: marked by `probe`, cut out of it, and carried into a pod as text.

The pod gets the function and what it needs of its module, at the lines where the author has them, and nothing of the
grader: a class of observations is there a function that gives back what it is given, as a dict.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, get_type_hints

from pydantic import BaseModel

from checks.contexts import GraphProbe, LearnerProbe
from checks.own_source import parsed, reached, source_of
from checks.probe_files import PROBE_API, ProbeFile, parse_probe
from grader_service.model.base import Wire
from grader_service.model.evidence import ProbeSite

_SITES: Mapping[object, ProbeSite] = {GraphProbe: ProbeSite.GRAPH, LearnerProbe: ProbeSite.LEARNER}
_OURS = ("checks", "grader_service", "pydantic")
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
        source = _carried(function, returns, version, site, budget_s)
        origin = Path(function.__code__.co_filename).name
        return OwnProbe(function, cast(type[SeenT], returns), parse_probe(function.__name__, source.encode(), origin))

    return mark


def _carried(function: Callable[..., Any], returns: type, version: str, site: ProbeSite, budget_s: float) -> str:
    text = source_of(function)
    lines = text.splitlines()
    kept = [""] * len(lines)
    models = {
        name for name, value in function.__globals__.items() if isinstance(value, type) and issubclass(value, BaseModel)
    }
    stand_ins = {returns.__name__}
    for name, node in reached(parsed(text), function.__name__, models).items():
        if name in models:
            stand_ins.add(name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)) and _is_ours(node):
            raise TypeError(f"probe {function.__name__} uses {name}, which no pod has; import what a pod has inside it")
        else:
            kept[node.lineno - 1 : node.end_lineno] = lines[node.lineno - 1 : node.end_lineno]
    future = "from __future__ import annotations"
    kept = [future, *kept[1:]] if not kept[0] else [future, *kept]
    made = [f"def {name}(**seen): return seen" for name in sorted(stand_ins)]
    last = [
        f"PROBE_API = {PROBE_API}",
        f"VERSION = {version!r}",
        f"SITE = {site.value!r}",
        f"BUDGET_S = {float(budget_s)!r}",
        f"def probe(context): return {function.__name__}(context)",
    ]
    return "\n".join([*kept, *made, *last, ""])


def _is_ours(node: ast.Import | ast.ImportFrom) -> bool:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return any(name.partition(".")[0] in _OURS for name in names)
