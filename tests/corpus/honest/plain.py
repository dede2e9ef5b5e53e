"""The lab as its pages teach it."""

from tests.corpus.parts import DATASET, GRAPH, LOADER, REFLECTIONS
from tests.corpus.parts_honest import honest

CASES = (honest("K04-pipeline-def", "@pipeline_def and the fn API", DATASET, LOADER, GRAPH, REFLECTIONS),)
