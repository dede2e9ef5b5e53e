"""What a probe at the site `learner` sees: the namespace that the learner's code left, in the process where it ran."""

import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from ..graph import model
from ..graph.operators import row_of
from ..probes.running import Context
from . import coerce, observe


class LearnerContext(Context):
    """The argument of `probe(context)`. Whatever it holds is of the learner's making and may do anything when used."""

    def __init__(self, module: ModuleType, loaders: list[tuple[str, Any]], **given: Any) -> None:
        super().__init__(**given)
        self._module = module
        self.names: Mapping[str, Any] = MappingProxyType(module.__dict__)
        self.loaders = tuple(loaders)
        """(name, `torch.utils.data.DataLoader`), the likeliest baseline first."""
        said = observe.namespace_facts(module)["dataset_dir"]
        self.dataset_dir: str | None = said["path"] if said["status"] == "present" else None
        """As the namespace says; None where it does not."""

    @property
    def iterators(self) -> list[tuple[str, Any]]:
        """(name, DALI iterator) of the namespace and, one level down, of its containers and of its own objects."""
        base = sys.modules.get("nvidia.dali.plugin.base_iterator")
        return [] if base is None else observe.of_kind(self._module, base._DaliBaseIterator)

    @property
    def pipelines(self) -> list[tuple[str, Any]]:
        """(name, `nvidia.dali.Pipeline`), found in the same places."""
        core = sys.modules.get("nvidia.dali.pipeline")
        return [] if core is None else observe.of_kind(self._module, core.Pipeline)

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

    def text(self, value: Any, limit: int = 200) -> str:
        """The value as text, shortened; never raises for what the value does."""
        return coerce.text(value, limit)
