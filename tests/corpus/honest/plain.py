"""The lab as its pages teach it."""

from tests.corpus.case import Honest
from tests.corpus.parts import DATASET, GRAPH, LOADER, REFLECTIONS, joined

CASES = (
    Honest(
        id="K04-pipeline-def",
        title="@pipeline_def and the fn API",
        content=joined(DATASET, LOADER, GRAPH, REFLECTIONS),
        steps=("baseline", "pipeline", "benchmark", "reflection"),
    ),
)
