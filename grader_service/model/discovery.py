"""What a process that the learner's code shared said of what it found: validated, bounded and never believed."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from grader_service.model.base import Count, Few, LongText, Seconds, Sha256, Shape, ShortText, Wire, Word
from grader_service.model.place import Place


class LearnerException(Wire):
    """What stopped the learner's code."""

    type: ShortText
    message: LongText
    place: Place | None = None
    """The innermost line that is the learner's own."""
    frames: Annotated[tuple[Place, ...], Field(max_length=32, fail_fast=True)] = ()


class Claim(Wire):
    """A number in the learner's namespace, recorded beside our measurement and never an input to a verdict."""

    status: Literal["present", "missing", "unreadable"]
    value: float | None = None
    shown: ShortText = ""
    """What stood there, as text."""


class PathClaim(Wire):
    """A directory in the learner's namespace."""

    status: Literal["present", "missing", "unreadable"]
    path: Annotated[str, StringConstraints(max_length=4096)] | None = None
    shown: ShortText = ""


class TextList(Wire):
    """A reflection list in the learner's namespace, turned into plain strings."""

    status: Literal["present", "missing", "unreadable"]
    items: Annotated[tuple[LongText, ...], Field(max_length=64, fail_fast=True)] = ()
    truncated: bool = False
    one_text: bool = False
    """It was one text, whose bullet points or paragraphs are the items."""
    shown: ShortText = ""


class FirstBatch(Wire):
    """The form of the learner's own `first_batch`; a claim, since its process can make any object."""

    status: Literal["present", "missing", "no_tensor"]
    type: ShortText = ""
    shape: Shape | None = None
    dtype: ShortText = ""
    device: ShortText = ""


class LoaderFacts(Wire):
    """A live `torch.utils.data.DataLoader` in the learner's namespace."""

    name: ShortText
    batch_size: Annotated[int, Field(ge=1, le=2**31)] | None
    num_workers: Annotated[int, Field(ge=0, le=4096)]
    pin_memory: bool
    persistent_workers: bool
    prefetch_factor: Annotated[int, Field(ge=0, le=4096)] | None
    drop_last: bool
    dataset_type: ShortText
    dataset_length: Count | None
    dataset_root: ShortText = ""
    """Folder that the dataset names as its `root`, absolute; empty where it names none, or its path is longer."""
    transform: LongText = ""


class PipelineFacts(Wire):
    """A DALI pipeline that the learner's code built."""

    name: ShortText
    """Where it was found, such as `dali_iter` or `an unnamed pipeline`."""
    iterator_type: ShortText = ""
    """Class of the iterator that owns it; empty for a bare pipeline."""
    batch_size: Annotated[int, Field(ge=0, le=2**31)]
    num_threads: Annotated[int, Field(ge=0, le=65536)]
    prefetch_queue_depth: ShortText = ""
    reader_name: ShortText = ""
    last_batch: ShortText = ""
    """`FILL`, `PARTIAL` or `DROP`: the iterator's policy; empty for a bare pipeline."""
    reader_root: ShortText = ""
    """Folder that its file readers read whole, absolute; empty where there is no such one, or its path is longer."""
    graph: Annotated[int, Field(ge=0, lt=16)] | None = None
    """Index into `Discovery.graphs`; null when it could not be serialized."""
    graph_problem: LongText = ""


class GraphRef(Wire):
    """Serialized DALI graph bytes, stored beside the evidence under their digest."""

    sha256: Sha256
    size_bytes: Count


class NameFacts(Wire):
    """A variable that may hold what the lab asks for under another name."""

    name: ShortText
    kind: Literal["folder", "batch", "texts", "text", "number"]
    """`folder`: a path of a folder with JPEG files; `batch`: a tensor with four dimensions."""
    count: Count | None = None
    """JPEG files, images, or texts; characters of a `text`."""
    shown: ShortText = ""


class Discovery(Wire):
    """What the learner's pod says about the run of the learner's code, top to bottom."""

    ran: Literal["completed", "raised", "exited", "timed_out", "stalled"]
    """`stalled`: ended by us because it neither used a processor nor wrote anything for long."""
    duration_s: Seconds
    exception: LearnerException | None = None
    exit_code: int | None = None
    dataset_dir: PathClaim
    pytorch_throughput: Claim
    dali_throughput: Claim
    where_dali_wins: TextList
    where_dali_loses: TextList
    first_batch: FirstBatch
    loaders: Annotated[tuple[LoaderFacts, ...], Field(max_length=16, fail_fast=True)] = ()
    pipelines: Annotated[tuple[PipelineFacts, ...], Field(max_length=16, fail_fast=True)] = ()
    graphs: Annotated[tuple[GraphRef, ...], Field(max_length=16, fail_fast=True)] = ()
    factories: Annotated[tuple[ShortText, ...], Field(max_length=2, fail_fast=True)] = ()
    """Which of the optional factories are defined."""
    dynamic_mode: bool = False
    """The code uses DALI's dynamic mode, which has no graph."""
    needs_gpu: LongText = ""
    """What a rehearsal could not carry to the CPU; empty when nothing."""
    versions: Annotated[Mapping[Word, ShortText], Few] = Field(default_factory=dict)
    notes: Annotated[tuple[ShortText, ...], Field(max_length=64, fail_fast=True)] = ()
    names: Annotated[tuple[NameFacts, ...], Field(max_length=64, fail_fast=True)] = ()
    defined: Annotated[tuple[ShortText, ...], Field(max_length=256, fail_fast=True)] = ()
    """Names at the top level of the learner's code, whatever they hold; newest first."""

    @property
    def left_nothing(self) -> bool:
        """Whether the code stopped before there was anything that another pod could look at or run."""
        return self.ran != "completed" and not (
            self.loaders or self.pipelines or self.factories or self.dynamic_mode or self.dataset_dir.path
        )
