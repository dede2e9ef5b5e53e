"""What a probe at the site `learner` sees: the namespace that the learner's code left, in the process where it ran."""

import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from ..graph import model
from ..graph.operators import Row, row_of
from ..probes.running import Budget
from . import coerce, observe


class LearnerContext:
    """The argument of `probe(context)`. Whatever it holds is of the learner's making and may do anything when used."""

    def __init__(
        self,
        module: ModuleType,
        loaders: list[tuple[str, Any]],
        *,
        device: str,
        dataset_dir: str | None,
        params: Mapping[str, Any],
        folder: str,
        budget: Budget,
    ) -> None:
        self._module = module
        self.names: Mapping[str, Any] = MappingProxyType(module.__dict__)
        """The namespace."""
        self.loaders = tuple(loaders)
        """(name, `torch.utils.data.DataLoader`), the likeliest baseline first."""
        self.device = device
        """`cuda`, or `cpu` in a rehearsal."""
        self.dataset_dir = dataset_dir
        """As the namespace says; None where it does not."""
        self.params = params
        """Per check that asked for this probe, the lab's parameters."""
        self.folder = folder
        """An empty folder of the probe's own."""
        self._budget = budget

    @property
    def remaining_s(self) -> float:
        """Seconds of the budget that are left."""
        return self._budget.remaining_s

    @property
    def iterators(self) -> list[tuple[str, Any]]:
        """(name, DALI iterator) of the namespace and, one level down, of its containers and of its own objects."""
        base = sys.modules.get("nvidia.dali.plugin.base_iterator")
        return [] if base is None else self._found(base._DaliBaseIterator)

    @property
    def pipelines(self) -> list[tuple[str, Any]]:
        """(name, `nvidia.dali.Pipeline`), found in the same places."""
        core = sys.modules.get("nvidia.dali.pipeline")
        return [] if core is None else self._found(core.Pipeline)

    def factory(self, name: str) -> Callable[..., Any] | None:
        """A function of the namespace, or None."""
        value = self.names.get(name)
        return value if callable(value) else None

    def cut_out(self, name: str) -> tuple[str, dict[str, Any]]:
        """A definition's source with all that it needs, and the plain values among these, to run without the lab.

        Raises:
            ValueError: its source was not found at the top level of the submission.
        """
        from ..probes.cutting import cut_out  # few probes ask for it

        return cut_out(self.names, name)

    def readers(self, pipeline: Any) -> list[tuple[str, dict[str, list[Any]]]]:
        """Of each operator that brings data into a pipeline its schema name, and its arguments as lists of values.

        Raises:
            WireError: what the pipeline gives as itself is none.
        """
        found = model.operators_of(bytes(pipeline.serialize()), lambda name: row_of(name).brings_data)
        return [(one.name, {argument.name: [*argument.values] for argument in one.arguments}) for one in found]

    def operator_row(self, name: str) -> Row:
        """What is known of an operator of a graph, by its schema name."""
        return row_of(name)

    def text(self, value: Any, limit: int = 200) -> str:
        """The value as text, shortened; never raises for what the value does."""
        return coerce.text(value, limit)

    def _found(self, kind: type) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        for name, value in observe.reachable(self._module):
            if coerce.is_a(value, kind) and all(value is not other for _, other in found):
                found.append((name, value))
        return found


def dataset_dir_of(module: ModuleType) -> str | None:
    """The learner's `dataset_dir` as a path, if it is one."""
    facts = observe.namespace_facts(module)["dataset_dir"]
    return facts.get("path") if facts.get("status") == "present" else None
