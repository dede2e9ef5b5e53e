"""What a submission must leave behind, by the checks of its lab: for the handout, and for a preflight."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from checks.registry import Registry
from grader_service.errors import JudgeFailed
from grader_service.model.feedback import MAX_SENTENCE
from grader_service.model.lab import LabCheck, LabStep
from grader_service.model.preflight import WantedName

_MAX_NAME = 200


class _Name(NamedTuple):
    name: str
    holds: str
    any_name: bool = False
    optional: bool = False


LOADER = "a DataLoader"
ITERATOR = "a DALI iterator"
_LOADER = _Name(LOADER, "a torch.utils.data.DataLoader, in a variable of any name", any_name=True)
_RANKS = "a function {factory}(dataset_dir, batch_size, rank, world_size) that returns that rank's iterator"
_ITERATOR = _Name(ITERATOR, "an iterator over your DALI pipeline, in a variable of any name", any_name=True)


def _jpeg_dataset(params: Mapping[str, Any]) -> Iterator[_Name]:
    yield _Name("dataset_dir", f"the folder with your JPEG files, at least {params['min_images']} different ones")
    if params["baseline"]:
        yield _LOADER
        yield _Name("pytorch_throughput", "the images per second of your DataLoader, a number above 0")


def _cuda_batch(params: Mapping[str, Any]) -> Iterator[_Name]:
    yield _ITERATOR
    wanted = f"the images of the first batch of your DALI iterator, at least {params['min_batch']}, on the GPU"
    yield _Name("first_batch", wanted)


def _throughput_ratio(_: Mapping[str, Any]) -> Iterator[_Name]:
    yield from (_LOADER, _ITERATOR)
    yield _Name("dali_throughput", "the images per second of your DALI iterator, to compare", optional=True)


def _reflections(params: Mapping[str, Any]) -> Iterator[_Name]:
    for name, least, does in (("where_dali_wins", "min_wins", "wins"), ("where_dali_loses", "min_loses", "loses")):
        yield _Name(name, f"a list of at least {params[least]} texts, each a situation where DALI {does}, and why")


def _graph(params: Mapping[str, Any]) -> Iterator[_Name]:
    named = params.get("graph")
    yield _Name(named, "the DALI pipeline, or its iterator, that is looked at") if named else _ITERATOR


_BUILT_IN: Mapping[str, Callable[[Mapping[str, Any]], Iterable[_Name]]] = {
    "jpeg_dataset": _jpeg_dataset,
    "cuda_batch": _cuda_batch,
    "throughput_ratio": _throughput_ratio,
    "reflections": _reflections,
    "training_loop": lambda params: [
        _Name(name.partition(".")[0], f"the loss of each step, at least {params['min_steps']} numbers")
        for name in params["losses"]
    ],
    "placement_table": lambda params: [
        _Name(params["name"], "a dict of your pipeline's stages, each with 'cpu', 'gpu' or 'mixed'")
    ],
    "acceptance_metric": lambda params: [_Name(params["name"], "a text on when the change to DALI is a success")],
    "ddp_ranks": lambda params: [_Name(params["factory"], _RANKS.format_map(params))],
    **dict.fromkeys(("fair_baseline", "same_data"), lambda _: [_LOADER, _ITERATOR]),
    **dict.fromkeys(
        (
            "gpu_decode", "legacy_pipeline", "label_match", "epoch_coverage", "shard_coverage", "shuffle_determinism",
            "output_contract", "normalisation", "torchvision_agreement", "random_augmentation", "auto_augment",
        ),
        _graph,
    ),
}  # fmt: skip
"""By check. Another one says itself what it wants: see `names` in `checks.api.Check`."""


def wanted_names(steps: Iterable[LabStep], registry: Registry) -> tuple[WantedName, ...]:
    """All that these steps look for, in the order of the lab, each once; of hidden checks nothing.

    Raises:
        ConfigurationError: a check does not load.
        JudgeFailed: it does not say what it wants.
    """
    found: dict[str, WantedName] = {}
    for step in steps:
        for check in step.checks:
            for one in _of(check, registry):
                optional = one.optional or check.optional
                first = WantedName(name=one.name, holds=one.holds, steps=(), any_name=one.any_name, optional=optional)
                before = found.get(one.name, first)
                steps_of = tuple(dict.fromkeys((*before.steps, step.id)))
                changes = {"steps": steps_of, "optional": before.optional and optional}
                found[one.name] = before.model_copy(update=changes)
    return tuple(found.values())


def _of(check: LabCheck, registry: Registry) -> Iterable[_Name]:
    if check.feedback == "hidden":
        return ()
    loaded = registry.load(check.id)
    params = loaded.parse_params(check.params)
    if check.id in _BUILT_IN:
        return tuple(_BUILT_IN[check.id](params.model_dump()))
    try:
        said = loaded.check.names(params).items()
        return tuple(_Name(name[:_MAX_NAME], holds[:MAX_SENTENCE]) for name, holds in said)
    except Exception as error:
        raise JudgeFailed(check.id, loaded.distribution, f"its names: {type(error).__name__}: {error}") from error
