"""V: forged rates, beside a pipeline that is slow or not there."""

import json
from functools import partial

from tests.corpus.parts import DATASET, LOADER, joined, slowed, zipped
from tests.corpus.parts_forgeries import timed_cheat

_HONEST_WORK = joined(DATASET, LOADER, slowed(256, 2.0))
"""Slow enough that no noise passes it, and fast enough to be timed in seconds."""


def _archive() -> bytes:
    """A submission that brings the results of somebody's old run along."""
    source = joined(
        DATASET,
        """
        import json

        results = json.load(open("results.json"))
        pytorch_throughput, dali_throughput = results["pytorch_throughput"], results["dali_throughput"]
        first_batch = type("Batch", (), {"shape": tuple(results["first_batch"]), "is_cuda": True})()
        """,
    )
    results = {"pytorch_throughput": 402.0, "dali_throughput": 3120.0, "first_batch": [64, 3, 224, 224], "gpu": "A100"}
    return zipped({"submission.py": source, "results.json": json.dumps(results)})()


_without_pipeline = partial(timed_cheat, codes=("ratio.no_pipeline",), deadline_s=120.0)


CASES = (
    timed_cheat("V01-literal", "a number beside a slow pipeline", joined(_HONEST_WORK, "dali_throughput = 9999.0")),
    _without_pipeline(
        "V01-no-pipeline",
        "two numbers and no pipeline",
        "pytorch_throughput, dali_throughput = 100.0, 9999.0",
    ),
    _without_pipeline(
        "V04-extremes",
        "the largest of numbers over the smallest",
        "pytorch_throughput, dali_throughput = 5e-324, 1e308",
    ),
    _without_pipeline(
        "V08-watched",
        "numbers that are better where a grader seems to look",
        """
        import inspect, os, sys

        watched = (
            "GRADER_DATA_DIR" in os.environ
            or os.path.exists("/.dockerenv")
            or any("grader" in frame.filename or "guest" in frame.filename for frame in inspect.stack())
            or any(name.startswith(("sandbox", "guest", "grader")) for name in sys.modules)
        )
        pytorch_throughput, dali_throughput = 400.0, 50_000.0 if watched else 410.0
        """,
    ),
    _without_pipeline("V09-bundled", "the results of an old run, brought along", _archive, filename="old.zip"),
    timed_cheat(
        "V10-units",
        "images per second over batches per second, both timed honestly",
        joined(
            _HONEST_WORK,
            """
            import itertools, time


            def batches_per_second(batches):
                began = time.perf_counter()
                count = sum(1 for batch in itertools.islice(batches, 4))
                return count / (time.perf_counter() - began)


            pytorch_throughput = batches_per_second(loader)
            dali_throughput = 16 * batches_per_second(dali_iter)
            """,
        ),
    ),
)
