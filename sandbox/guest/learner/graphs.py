"""Takes the serialized graph of every DALI pipeline when its backend is made; in a rehearsal, builds its CPU twin."""

import inspect
import os
import weakref
from dataclasses import dataclass
from typing import Any

from ..graph import edit, model
from ..graph.operators import row_of
from ..graph.wire import WireError
from . import coerce, rehearsal

MAX_RECORDS = 64
_PICKS = ("files", "file_list", "file_filters", "dir_filters")
"""Arguments of a reader by which it does not read all of `file_root`."""


@dataclass(eq=False)
class PipelineRecord:
    """One pipeline that the learner's code built."""

    pipeline: Any
    """Weak reference to the `Pipeline`."""
    batch_size: int
    num_threads: int
    prefetch: str
    graph: bytes | None
    problem: str
    output_devices: list[str]
    """`gpu` or `cpu` per output, as the learner's code placed it."""


class Recorder:
    """Hooks into `nvidia.dali.pipeline`; keeps graphs even of pipelines that are gone when the code ends."""

    def __init__(self, *, rehearse: bool) -> None:
        self.records: list[PipelineRecord] = []
        self._rehearse = rehearse

    def patch(self, module: Any) -> None:
        """Wraps the one method through which every pipeline of 2.x gets its backend."""
        pipeline_class = module.Pipeline
        original_backend = pipeline_class._init_pipeline_backend
        original_init = pipeline_class.__init__
        recorder = self

        def init_backend(pipe: Any) -> None:
            original_backend(pipe)
            recorder.capture(pipe)

        def init(pipe: Any, *args: Any, **kwargs: Any) -> None:
            original_init(pipe, *args, **kwargs)
            # Without a driver an explicit device number is refused before any graph exists.
            pipe._device_id = None

        # `pipeline_def` sorts a call's arguments by the constructor's own names.
        init.__signature__ = inspect.signature(original_init)  # type: ignore[attr-defined]
        pipeline_class._init_pipeline_backend = init_backend
        if self._rehearse:
            pipeline_class.__init__ = init
            rehearsal.patch_dali_pipeline(pipeline_class)

    def capture(self, pipe: Any) -> PipelineRecord:
        """Serializes a pipeline whose backend was just made; in a rehearsal, swaps the backend for the CPU twin."""
        graph, problem = None, ""
        devices = [str(device) for _, device in pipe._names_and_devices]
        try:
            pipe._pipe.SetOutputDescs(pipe._generate_build_args())
            graph = bytes(pipe._pipe.SerializeToProtobuf())
            if self._rehearse:
                self._swap_backend(pipe, edit.cpu_twin(graph))
        except Exception as error:
            problem = coerce.text(error, 2000)
        return self._add(pipe, graph, problem, devices)

    def stands_in_for_gpu(self) -> bool:
        """Whether the newest pipeline delivers on the CPU only because this is a rehearsal."""
        return self._rehearse and bool(self.records) and "gpu" in self.records[-1].output_devices

    def record_of(self, pipe: Any) -> PipelineRecord | None:
        """The record of this pipeline; one that was defined and never built is serialized now."""
        known = self._known(pipe)
        if known is not None:
            return known
        try:
            graph = bytes(pipe.serialize())  # makes the backend, which calls capture(), unless it was made long ago
        except Exception as error:
            return self._known(pipe) or self._add(pipe, None, coerce.text(error, 2000), [])
        return self._known(pipe) or self._add(pipe, graph, "", [])

    def _known(self, pipe: Any) -> PipelineRecord | None:
        return next((record for record in self.records if record.pipeline() is pipe), None)

    def _swap_backend(self, pipe: Any, twin: bytes) -> None:
        import nvidia.dali.backend

        backend = nvidia.dali.backend.Pipeline(twin, pipe._get_params())
        pipe._names_and_devices = [(name, "cpu") for name, _ in pipe._names_and_devices]
        pipe._pipe = backend

    def _add(self, pipe: Any, graph: bytes | None, problem: str, devices: list[str]) -> PipelineRecord:
        if len(self.records) >= MAX_RECORDS:
            # The oldest that is gone makes room: what is left at the end counts more than what was tried first.
            gone = next((record for record in self.records if record.pipeline() is None), self.records[0])
            self.records.remove(gone)
        record = PipelineRecord(
            weakref.ref(pipe),
            int(pipe.max_batch_size),
            int(pipe.num_threads or 0),
            coerce.text(pipe.prefetch_queue_depth, 60),
            graph,
            problem,
            devices,
        )
        self.records.append(record)
        return record


def reader_root(graph: bytes) -> str:
    """The folder that all file readers of a serialized graph read whole, absolute; empty where there is no such one."""
    try:
        readers = model.operators_of(graph, lambda name: row_of(name).role == "reader")
    except WireError:
        return ""
    roots = {str(reader.scalar("file_root") or "") for reader in readers}
    if len(roots) != 1 or "" in roots or any(reader.get(name) for reader in readers for name in _PICKS):
        return ""
    return os.path.abspath(roots.pop())
