"""A small valid lab in both languages."""

from checks.registry import Registry
from grader_service.labs.catalogue import inspect_lab
from grader_service.labs.documents import Form

REGISTRY = Registry()

TOML = """\
schema = "grader.lab/v1"
id = "small"
version = "1.0.0"
title = "A small lab"

[[steps]]
id = "baseline"
title = "Baseline"

[[steps.checks]]
id = "jpeg_dataset"
points = 25
params = { min_images = 100 }

[[steps]]
id = "benchmark"
title = "Benchmark"

[[steps.checks]]
id = "throughput_ratio"
points = 75
[steps.checks.params]
threshold = 1.1

[limits]
learner_timeout_s = 900
"""

YAML = """\
schema: grader.lab/v1
id: small
version: 1.0.0
title: A small lab
steps:
  - id: baseline
    title: Baseline
    checks:
      - id: jpeg_dataset
        points: 25
        params: {min_images: 100}
  - id: benchmark
    title: Benchmark
    checks:
      - id: throughput_ratio
        points: 75
        params:
          threshold: 1.1
limits:
  learner_timeout_s: 900
"""


def inspected(text, form=Form.TOML):
    """What is said about a text, with the installed checks."""
    content = text if isinstance(text, bytes) else text.encode()
    return inspect_lab(content, form, REGISTRY)


def lines(text, form=Form.TOML):
    """The mistakes as they are printed."""
    return [mistake.text("lab") for mistake in inspected(text, form).mistakes]
