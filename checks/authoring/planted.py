"""Plants marks where a learner must not read, and looks for them in feedback."""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from checks.api import Result
from checks.authoring.evidence import EvidenceBuilder
from checks.contract import is_hidden

SEED = "5eedc0de5eedc0de5eedc0de5eedc0de"
RUN = "canary-run-71c9f0"
HOST = "canary-host-9d0b52"
LOG = "canary-log-4be1a7"
HELD_OUT = "/canary/shards/held-out-3f77aa.jpg"
PARAMETER = "canary-parameter-e80d16"
_NUMBERS: tuple[int | float, ...] = (7919, 73.918273, 0.3918273, 61)

_SHORT = 2
"""A path of so few parts, such as `/root`, may be a learner's own."""
_MARKS = {
    SEED: "the seed of the held-out images",
    SEED[:12]: "the seed of the held-out images",
    RUN: "the run's id",
    HOST: "a name of the host",
    LOG: "the log of a pod",
    HELD_OUT: "a file of held-out images",
    Path(HELD_OUT).name: "a file of held-out images",
}


def plant(builder: EvidenceBuilder) -> EvidenceBuilder:
    """The same evidence with marks in what is for staff only."""
    data = builder.as_json()
    builder = builder.part("run.seed", SEED).part("run.run_id", RUN).part("run.image", HOST).part("run.engine", HOST)
    builder = builder.part("run.host", {"hostname": HOST, "shards": HELD_OUT, "state": f"/var/lib/{HOST}"})
    for number in range(len(data["run"]["pods"])):
        builder = builder.part(f"run.pods.{number}.log_tail", f"{LOG} {HELD_OUT}")
        builder = builder.part(f"run.pods.{number}.detail", f"{LOG} {HELD_OUT}")
    if isinstance(data.get("measurement"), dict):
        uses = [{"arm": "dali", "samples": 1}]
        builder = builder.part("measurement.corroboration", {"uses": uses, "flags": [f"{LOG} {HELD_OUT}"]})
    return builder


def told(result: Result) -> str:
    """Every text and number of the feedback's parts, a line each: some pages and exports show what others do not."""
    return "\n".join(_values(result.parts.model_dump(mode="json")))


def _values(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _values(item)
    elif value is not None:
        yield f"{value:g}" if isinstance(value, float) else str(value)


def leaks(feedback: str, folders: tuple[Path, ...] = ()) -> list[str]:
    """What of ours stands in a learner's text: planted marks and paths of this machine."""
    lowered = feedback.lower()
    found = {what: None for mark, what in _MARKS.items() if mark in lowered}
    whole = (*folders, Path(sys.prefix), Path.home())
    paths = {str(folder) for folder in whole if len(folder.parts) > _SHORT}
    found |= {f"a path of this machine ({path})": None for path in sorted(paths) if path in feedback}
    return list(found)


def shows(feedback: str, mark: str) -> bool:
    """Whether a text holds a mark; a number counts where it stands alone."""
    return re.search(rf"(?<![\w.]){re.escape(mark)}(?![\w]|\.\d)", feedback) is not None


def hidden_variants(model: type[BaseModel], params: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """For each parameter that its model marks as hidden: its name, a mark as its value, and the mark as text.

    A parameter that takes none of the marks is left out.
    """
    for name, field in model.model_fields.items():
        if not is_hidden(field.json_schema_extra):
            continue
        key = field.alias or name
        for value in (PARAMETER, *_NUMBERS, [PARAMETER]):
            try:
                taken = getattr(model.model_validate({**params, key: value}), name)
            except ValueError:
                continue
            number = isinstance(value, (int, float))
            if not number or taken == value:
                yield key, value, f"{value:g}" if number else PARAMETER
                break
