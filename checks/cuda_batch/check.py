"""The check `cuda_batch`: the DALI iterator delivers 4-D batches of images on the GPU."""

from collections.abc import Iterator, Mapping
from typing import Annotated, TypedDict

from pydantic import Field

from checks.api import Advice, CleanRoom, Result, Taken, absent, check, failed, missing, not_reached, passed, unverified
from checks.listing import pipeline_named
from checks.not_carried import no_dali, not_carried
from checks.silent_advice import AboutBatch
from grader_service.model.base import Device
from grader_service.model.discovery import FirstBatch
from grader_service.model.evidence import BatchFacts, Evidence, ServedBatch
from grader_service.model.verdict import Tier

_MIXED = 'images = fn.decoders.image(jpegs, device="mixed")'
_NORMALISE = (
    "Write mean=[0.485 * 255, 0.456 * 255, 0.406 * 255] and std=[0.229 * 255, 0.224 * 255, 0.225 * 255] in "
    "fn.crop_mirror_normalize."
)


def _first_batch(evidence: Evidence) -> FirstBatch | Result:
    """The learner's own, a claim, which is only shown beside ours."""
    discovery = evidence.discovery
    if discovery is None:
        return not_reached()
    if (result := no_dali(discovery)) is not None:
        return result
    if discovery.first_batch.status == "missing":
        return missing(absent(discovery, "first_batch"), "the first batch that your DALI iterator delivered")
    return discovery.first_batch


class _Told(TypedDict):
    seen: str
    wanted: str
    advice: tuple[Advice, ...]
    numbers: Mapping[str, int]
    details: Mapping[str, object]
    tier: Tier


@check(
    version="1.3.0",
    title="DALI batch on the GPU",
    word="batch",
    codes={
        "first_batch_missing": "`first_batch` is not defined",
        "not_4d": "the batch has another number of dimensions than wanted",
        "too_small": "the batch holds too few images",
        "not_cuda": "the batch lies on the CPU",
        "not_finite": "the batch holds NaN or infinite values",
        "constant": "all values of the batch are the same",
    },
)
def cuda_batch(
    first_batch: Annotated[FirstBatch, Taken(_first_batch)],
    room: CleanRoom,
    device: Annotated[Device, Taken(lambda evidence: evidence.run.device)],
    silent: AboutBatch,
    *,
    min_batch: Annotated[int, Field(ge=1)] = 16,
    dimensions: Annotated[int, Field(ge=1, le=8)] = 4,
) -> Result:
    """Judges whether a batch drawn from the learner's pipeline is a 4-D tensor of at least 16 images on the GPU.

    Evidence:
        batch.shape: [N, C, H, W] or [N, H, W, C], counted in the grader's own process.
        batch.device: where that process found the batch; in a rehearsal, where the graph places it.
        served: where the graph could not be carried (tiers B and C, softer): shape and device as the learner's process
            says, and how many different new images the host saw come.
    Points: all or nothing.
    Errors: 0 false accepts and 0 false rejects on the controls in `tests/checks/test_cuda_batch.py`.
    Cannot detect: whether the learner's own `first_batch` came from this pipeline; it is not used.
    """
    batch = room.served or (room.batch if room.graph is not None else None)
    if batch is None:
        return not_carried(room)
    shape, images = batch.shape, batch.shape[0] if batch.shape else 0
    whose, form, on_gpu = (
        _served(batch) if isinstance(batch, ServedBatch) else _drawn(batch, pipeline_named(room.pipeline), device)
    )
    advice = (*_of_values(batch), *_of_first_batch(first_batch, dimensions), *silent)
    told = _Told(
        seen=f"It is {form}.",
        wanted=f"A {dimensions}-D batch of at least {min_batch} images on the GPU was wanted.",
        advice=advice,
        numbers={"images": images, "needed": min_batch},
        details={
            "served" if isinstance(batch, ServedBatch) else "batch": batch.model_dump(mode="json"),
            "first_batch": first_batch.model_dump(mode="json"),
            "advice": [one.code for one in advice],
        },
        tier=Tier(batch.tier) if isinstance(batch, ServedBatch) else Tier.GRAPH,
    )
    wrong = f"{whose} is not what is wanted"
    if len(shape) != dimensions:
        return failed(
            "not_4d",
            f"{wrong}: it has {len(shape)} dimensions, not {dimensions}.",
            next="Return the images themselves, as batch, channels, height and width:",
            write='images = fn.crop_mirror_normalize(images, output_layout="CHW")',
            **told,
        )
    if images < min_batch:
        action, line = "Raise the batch size of the pipeline:", f"batch_size={max(min_batch, 32)}"
        if isinstance(batch, ServedBatch):  # to which the batch size was given
            action, line = "Use the batch size that the function is given:", "pipe = pipeline(batch_size=batch_size)"
        few = f"{wrong}: it holds {images} image{'' if images == 1 else 's'}."
        return failed("too_small", few, next=action, write=line, **told)
    if not on_gpu:
        why, action, line = _why_on_cpu(room)
        return failed("not_cuda", f"{wrong}: it lies on the CPU{why}.", next=action, write=line, **told)
    if isinstance(batch, ServedBatch):
        if batch.distinct < min_batch:
            return unverified(
                "not_proved",
                "It is not known that `build_dali_iterator` delivers decoded images, so nothing is counted.",
                seen=f"Its first batch is {form}; {batch.distinct} different images per batch were recognised "
                "afterwards.",
                wanted=f"At least {min_batch} per batch are needed.",
                next="Read the folder that it is given, and deliver batch_size images in every batch.",
                advice=advice,
                numbers={"recognised": batch.distinct, "needed": min_batch},
                details=told["details"],
                tier=Tier.CLAIMS,
            )
        told["seen"] = f"It is {form}; at least {batch.distinct} different new images came out of it."
    elif not batch.finite:
        action = "Check std and scale of the normalisation: none of them may be 0."
        return failed("not_finite", f"{wrong}: it holds NaN or infinite values.", next=action, **told)
    elif batch.constant:
        same = f"{wrong}: every value in it is {batch.low:g}, although the images differ."
        return failed("constant", same, next="Return the decoded images from the pipeline.", **told)
    return passed(f"{whose} has the right form and place.", **told)


def _drawn(batch: BatchFacts, pipeline: str, device: Device) -> tuple[str, str, bool]:
    """Whose batch it is, its form, and whether it is on the GPU: in a rehearsal, where the graph places it."""
    on_gpu = batch.device == "cuda" if device == "cuda" else batch.declared_device == "gpu"
    place = f"on {batch.device}"
    if device == "cpu" and on_gpu:
        place = "placed on the GPU by your graph (rehearsed on the CPU)"
    return (
        f"The batch that the grader drew from {pipeline}",
        f"{batch.dtype.lower()} {list(batch.shape)}, {place}",
        on_gpu,
    )


def _served(batch: ServedBatch) -> tuple[str, str, bool]:
    """The same of a batch of the learner's own code.

    Shape and device are its word for it; what cannot be invented is that new images came. Forging the device earns
    nothing: speed and content are proved apart from it.
    """
    on_gpu = batch.device == "cuda"
    form = f"{batch.dtype} {list(batch.shape)}, {'on CUDA, as your code says' if on_gpu else 'on cpu'}"
    return "The batch that `build_dali_iterator` delivered on other images", form, on_gpu


def _why_on_cpu(room: CleanRoom) -> tuple[str, str, str]:
    """Why, what to do, and what to write."""
    if room.served is not None or room.graph is None:
        return "", "Decode on the GPU:", _MIXED
    if "mixed" not in room.graph.decoder_devices:
        return ", where your decoder puts it", "Decode on the GPU:", _MIXED
    return ", although your decoder runs on the GPU", "Leave out .cpu() and device='cpu' behind the decoder.", ""


def _of_first_batch(found: FirstBatch, dimensions: int) -> Iterator[Advice]:
    """On a `first_batch` that is no batch of images; the grader judges one that it drew itself."""
    if found.status == "no_tensor":
        form = f"a `{found.type}`" if found.type else "no tensor"
    elif found.shape is not None and len(found.shape) != dimensions:
        form = f"of the form {list(found.shape)}"
    else:
        return
    yield Advice(
        code="advice.first_batch_form",
        text=f"Your `first_batch` is {form}, which is no batch of images.",
        next='Take the images out of what the iterator gives: first_batch = next(iter(dali_iter))[0]["data"].',
    )


def _of_values(batch: BatchFacts | ServedBatch) -> Iterator[Advice]:
    """What the values of a batch of ours say about its normalisation; at most one piece."""
    if isinstance(batch, ServedBatch) or "FLOAT" not in batch.dtype or not batch.finite or batch.constant:
        return
    values = f"The batch has values from {batch.low:,.1f} to {batch.high:,.1f}"
    if batch.high > 256:
        text = f"{values}: mean and std are probably in the scale 0 to 1, but DALI's images go from 0 to 255."
        yield Advice(code="advice.mean_std_scale", text=text, next=_NORMALISE)
    elif batch.low >= 0 and batch.high > 16:
        text = f"{values}, so the images were turned into floats and not normalised."
        yield Advice(code="advice.not_normalised", text=text, next=_NORMALISE)
