"""A small valid lab in both languages, and what is said about a text."""

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


def inspected(text, form=Form.TOML, registry=REGISTRY):
    """What is said about a text, with the installed checks unless others are given."""
    content = text if isinstance(text, bytes) else text.encode()
    return inspect_lab(content, form, registry)


def lines(text, registry=REGISTRY):
    """The mistakes in a text of TOML as they are printed."""
    return [mistake.text("lab") for mistake in inspected(text, registry=registry).mistakes]


def locations(value, base=()):
    """Every place below a value, with what stands there, tables and lists included."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*base, key), inner
        yield from locations(inner, (*base, key))
