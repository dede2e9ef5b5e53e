"""Makes running pipelines of graphs."""

from typing import Any

from ..graph import model


def build(graph: model.Graph) -> Any:
    """The running pipeline, with the executor that the graph names.

    Left to itself `deserialize` takes the synchronous one, which prefetches nothing and refuses separate queues.
    """
    from nvidia.dali import Pipeline

    flags = graph.executor or 0
    cpu, gpu = graph.prefetch
    return Pipeline.deserialize(
        model.write(graph),
        exec_pipelined=bool(flags & model.PIPELINED),
        exec_async=bool(flags & model.ASYNC),
        exec_dynamic=bool(flags & model.DYNAMIC),
        prefetch_queue_depth={"cpu": cpu, "gpu": gpu} if flags & model.SEPARATED else max(cpu, gpu),
    )
