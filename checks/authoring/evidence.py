"""Builds valid evidence of a run in which all went well; an author changes the part that a test is about."""

import copy
import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic_core import to_jsonable_python

from grader_service.measure.sequential_test import decide
from grader_service.model.evidence import Evidence
from grader_service.model.lab import MeasurementPlan

_RATIOS = (1.9, 2.0, 2.1, 2.0)


@dataclass(frozen=True)
class EvidenceBuilder:
    """Evidence as JSON, changed step by step; every method returns a new builder.

    The evidence is that of an official run on a GPU: the code ran to its end, one DataLoader and one DALI iterator
    were found, its graph ran in the clean room, and DALI was measured at twice the baseline.
    """

    _data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self._data:
            object.__setattr__(self, "_data", copy.deepcopy(_base()))

    def part(self, path: str, value: object) -> Self:
        """Replaces one part.

        Args:
            path: names of fields and numbers of list items, such as `discovery.loaders.0.num_workers`.
            value: a JSON value or a model.

        Raises:
            KeyError: there is no such place.
        """
        *parents, last = path.split(".")
        data = copy.deepcopy(dict(self._data))
        place: Any = data
        for name in parents:
            place = _inside(place, name, path)
        if isinstance(place, list):
            _inside(place, last, path)
            place[int(last)] = _json(value)
        elif isinstance(place, dict):
            place[last] = _json(value)
        else:
            raise KeyError(f"{path}: {'.'.join(parents)} is {place!r}, in which nothing can be set")
        return type(self)(data)

    def without(self, path: str) -> Self:
        """Takes a part away, so that it has its default: null for whole parts such as `scan`.

        Raises:
            KeyError: it is not there.
        """
        *parents, last = path.split(".")
        data = copy.deepcopy(dict(self._data))
        place: Any = data
        for name in parents:
            place = _inside(place, name, path)
        _inside(place, last, path)
        del place[int(last) if isinstance(place, list) else last]
        return type(self)(data)

    def probe(
        self,
        probe_id: str,
        observations: Mapping[str, object] | None = None,
        *,
        status: str = "ok",
        site: str = "graph",
        text: str = "",
        version: str = "1.0.0",
    ) -> Self:
        """Puts in what a probe observed, or that it could not; see `grader_service.model.evidence.ProbeRecord`."""
        record = {
            "id": probe_id,
            "version": version,
            "site": site,
            "sha256": "0" * 64,
            "status": status,
            "text": text,
            "wall_s": 0.2,
            "observations": _json(observations) if status == "ok" else None,
        }
        others = [other for other in self._data.get("probes", []) if other["id"] != probe_id]
        return self.part("probes", [*others, record])

    def rehearsal(self) -> Self:
        """The same run on a host without a GPU."""
        built = self.part("run.device", "cpu").part("run.gpu", None)
        places = {
            "discovery.first_batch.device": "cpu",
            "clean_room.batch.device": "cpu",
            "measurement.device": "cpu",
        }
        for path, value in places.items():
            if built.as_json().get(path.split(".")[0]) is not None:
                built = built.part(path, value)
        return built

    def ended(self, ending: str, exit_code: int | None = 1) -> Self:
        """The learner's process ended without a word, such as `timed_out`, `out_of_memory` or `exited`."""
        record = {"role": "learner", "ending": ending, "exit_code": exit_code, "wall_s": 3.0}
        built = self.part("run.pods", [record]).part("probes", [])
        for name in ("discovery", "scan", "clean_room", "measurement"):
            built = built.part(name, None)
        return built

    def as_json(self) -> dict[str, Any]:
        """A copy of the evidence as JSON values."""
        return copy.deepcopy(dict(self._data))

    def build(self) -> Evidence:
        """The evidence; raises pydantic's `ValidationError` where a part does not fit."""
        return Evidence.model_validate_json(json.dumps(self._data))


def _inside(place: Any, name: str, path: str) -> Any:
    try:
        return place[int(name)] if isinstance(place, list) else place[name]
    except (KeyError, IndexError, TypeError, ValueError):
        known = ", ".join(place) if isinstance(place, dict) else f"{len(place)} items" if place else "nothing"
        raise KeyError(f"{path}: there is no {name!r}; there is {known}") from None


def _json(value: object) -> Any:
    return to_jsonable_python(value, by_alias=False)


@functools.cache
def _base() -> dict[str, Any]:
    return {
        "schema": "grader.evidence/v1",
        "run": {
            "run_id": "0" * 32,
            "device": "cuda",
            "sandbox": "docker",
            "isolated": True,
            "image": "grader-lab",
            "image_digest": "sha256:" + "0" * 64,
            "engine": "docker 26.1.5",
            "entry_point": "submission.ipynb",
            "host": {"cpus": 16},
            "gpu": {"name": "NVIDIA H200"},
            "seed": "ab" * 16,
            "pods": [{"role": "learner", "ending": "completed", "exit_code": 0, "wall_s": 20.0, "log_tail": "done"}],
            "versions": {"torch": "2.11.0", "torchvision": "0.26.0", "dali": "2.4.0"},
            "timings_s": {"learner": 12.0},
        },
        "discovery": _discovery(),
        "scan": {
            "root": "/workspace/dataset",
            "distinct": 160,
            "rejected": {"not_a_jpeg": 1},
            "examples": [{"path": "notes.jpg", "reason": "not_a_jpeg"}],
            "entries_seen": 162,
            "sizes": [{"width": 500, "height": 375, "size_bytes": 60_000}],
        },
        "clean_room": {"pipeline": "dali_iter", "graph": _graph(), "batch": _batch()},
        "measurement": _measurement(),
        "probes": [],
    }


def _discovery() -> dict[str, Any]:
    return {
        "ran": "completed",
        "duration_s": 12.0,
        "dataset_dir": {"status": "present", "path": "/workspace/dataset", "shown": "dataset"},
        "pytorch_throughput": {"status": "present", "value": 500.0, "shown": "500.0"},
        "dali_throughput": {"status": "present", "value": 1000.0, "shown": "1000.0"},
        "where_dali_wins": {
            "status": "present",
            "items": [
                "Training on large JPEGs with few CPU cores: decoding in the workers starves the GPU.",
                "Video that NVDEC decodes, so that frames never pass through the CPU.",
                "Several GPUs on one host whose loader workers compete for the same cores.",
            ],
        },
        "where_dali_loses": {
            "status": "present",
            "items": [
                "Text that was tokenised before: there is nothing to decode.",
                "Tiny images that fit into memory and are not compressed.",
            ],
        },
        "first_batch": {
            "status": "present",
            "type": "Tensor",
            "shape": [32, 3, 224, 224],
            "dtype": "float32",
            "device": "cuda:0",
        },
        "loaders": [
            {
                "name": "loader",
                "batch_size": 32,
                "num_workers": 8,
                "pin_memory": True,
                "persistent_workers": True,
                "prefetch_factor": 2,
                "drop_last": False,
                "dataset_type": "ImageFolder",
                "dataset_length": 160,
                "transform": "Compose(RandomResizedCrop(224), ToTensor(), Normalize())",
            }
        ],
        "pipelines": [
            {
                "name": "dali_iter",
                "iterator_type": "DALIGenericIterator",
                "batch_size": 32,
                "num_threads": 4,
                "prefetch_queue_depth": "2",
                "reader_name": "reader",
                "graph": 0,
            }
        ],
        "graphs": [{"sha256": "1" * 64, "size_bytes": 4000}],
        "versions": {"torch": "2.11.0"},
        "defined": ["dali_iter", "loader", "dataset_dir"],
    }


def _graph() -> dict[str, Any]:
    names = (("readers__File", "cpu"), ("decoders__Image", "mixed"), ("Resize", "gpu"), ("CropMirrorNormalize", "gpu"))
    return {
        "operators": [
            {"name": name, "device": device, "file": "submission.py", "line": 20 + number}
            for number, (name, device) in enumerate(names)
        ],
        "declared_batch_size": 32,
        "declared_threads": 4,
        "declared_prefetch": 2,
        "output_devices": ["gpu", "gpu"],
        "decoder_devices": ["mixed"],
    }


def _batch() -> dict[str, Any]:
    return {
        "output": 0,
        "shape": [32, 3, 224, 224],
        "dtype": "FLOAT",
        "layout": "CHW",
        "device": "cuda",
        "declared_device": "gpu",
        "finite": True,
        "constant": False,
        "low": -2.1,
        "high": 2.6,
        "outputs": ["32x3x224x224 FLOAT", "32x1 INT32"],
    }


def _measurement() -> dict[str, Any]:
    plan = MeasurementPlan()
    logs = [math.log(ratio) for ratio in _RATIOS]
    decision = decide(logs, plan, 1.1, last=True)
    settings = {
        "batch_size": 32,
        "num_workers": 8,
        "pin_memory": True,
        "persistent_workers": True,
        "prefetch_factor": 2,
    }
    arms = (("dali", 1000.0, None), ("pytorch", 500.0, settings), ("reference_declared", 505.0, settings))
    return {
        "device": "cuda",
        "plan": plan.model_dump(mode="json"),
        "images": 160,
        "image_sizes": "500-500 x 375-375",
        "arms": [
            {"arm": arm, "images_per_s": rate, "low": 0.95 * rate, "high": 1.05 * rate, "settings": kept}
            for arm, rate, kept in arms
        ],
        "blocks": [
            {
                "index": number,
                "order": [arm for arm, _, _ in arms],
                "windows": [
                    {"arm": arm, "images": int(rate if arm != "dali" else 500 * ratio), "seconds": 1.0}
                    for arm, rate, _ in arms
                ],
                "log_ratio": math.log(ratio),
                "baseline": "pytorch",
            }
            for number, ratio in enumerate(_RATIOS)
        ],
        "decision": None if decision is None else decision.model_dump(mode="json"),
        "claims": [
            {"name": "pytorch_throughput", "claimed": 500.0, "measured": 500.0},
            {"name": "dali_throughput", "claimed": 1000.0, "measured": 1000.0},
        ],
        "measured_s": 14.0,
    }
