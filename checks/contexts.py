"""What a probe sees, as types for authors; the objects themselves are made in the pod, by `sandbox.guest.probes`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from checks.dali_operators import Row


class GraphRun(Protocol):
    """What a graph delivered on a probe's images."""

    batches: list[list[Any]]
    """Per batch, one entry per output: an array [N, ...], or a list of N arrays where their shapes differ."""
    layouts: list[str]
    """Per output, DALI's layout of one sample, such as `HWC`; empty where there is none."""
    dtypes: list[str]
    """Per output, DALI's name of the type, such as `uint8` or `float`."""
    devices: list[str]
    """Per output, `gpu` or `cpu`, as the learner's graph places it."""

    def output(self, index: int) -> list[Any]:
        """All samples of one output, in order."""


class CarriedGraph(Protocol):
    """One pipeline that the learner's code built, as data."""

    name: str
    """Variable in which it was found."""
    facts: dict[str, Any]
    """As `grader_service.model.discovery.PipelineFacts`: claims of the learner's process."""
    refused: str
    """Why it may not be run on other images; empty when it may."""
    batch_size: int
    operators: list[dict[str, Any]]
    """In order: `name`, `device`, `file`, `line`, `inputs`, `outputs`, `arguments`."""
    output_devices: list[str]
    """`gpu` or `cpu` per output."""
    readers: list[dict[str, Any]]
    """Arguments of every reader that decide order, padding and shards."""

    def run(
        self,
        files: Sequence[str],
        labels: Sequence[int] | None = None,
        *,
        batches: int,
        batch_size: int | None = None,
        **reader: int | bool,
    ) -> GraphRun:
        """Draws batches from these JPEG files, with the numbers of the files as labels if none are given."""


class AnyProbe(Protocol):
    """What a probe has at either site."""

    device: str
    """`cuda`, or `cpu` in a rehearsal, where every graph runs on DALI's CPU backend."""
    params: Mapping[str, Mapping[str, Any]]
    """Per check that asked for this probe, the lab's parameters; at the site `learner` without the hidden ones."""
    folder: str
    """An empty folder of the probe's own."""

    @property
    def remaining_s(self) -> float:
        """Seconds of the budget that are left."""

    def operator_row(self, name: str) -> Row:
        """What is known of an operator of a graph, by its schema name."""


class GraphProbe(AnyProbe, Protocol):
    """The argument of a probe of the site `graph`: the learner's graphs, and none of its Python. Facts."""

    graphs: tuple[CarriedGraph, ...]
    """Best candidate first; may be empty."""

    @property
    def graph(self) -> CarriedGraph:
        """The best candidate that may be run on other images; without one the probe ends, and the check is told."""

    def write_jpegs(self, images: Sequence[Any], *, quality: int = 95) -> list[str]:
        """Writes uint8 arrays [H, W, 3] as JPEG files without chroma subsampling; returns their paths in order."""


class LearnerProbe(AnyProbe, Protocol):
    """The argument of a probe of the site `learner`: the process in which the learner's code ran. Claims.

    Whatever it holds is of the learner's making and may do anything when used.
    """

    names: Mapping[str, Any]
    """The namespace that the code left."""
    loaders: tuple[tuple[str, Any], ...]
    """(name, `torch.utils.data.DataLoader`), the likeliest baseline first."""
    dataset_dir: str | None
    """As the namespace says; None where it does not."""

    @property
    def iterators(self) -> list[tuple[str, Any]]:
        """(name, DALI iterator)."""

    @property
    def pipelines(self) -> list[tuple[str, Any]]:
        """(name, `nvidia.dali.Pipeline`)."""

    def factory(self, name: str) -> Callable[..., Any] | None:
        """A function of the namespace, or None."""

    def cut_out(self, name: str) -> tuple[str, dict[str, Any]]:
        """A definition's source with all that it needs, and the plain values among these, to run without the lab."""

    def readers(self, pipeline: Any) -> list[tuple[str, dict[str, list[Any]]]]:
        """Of each operator that brings data into a pipeline its schema name, and its arguments as lists of values."""

    def text(self, value: Any, limit: int = 200) -> str:
        """The value as text, shortened; never raises for what the value does."""
