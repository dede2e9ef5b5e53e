"""Our own DALI graph for a job: what anyone would write, to see whether a host can show DALI's advantage at all."""

from typing import Any

from ..channel import Link
from .batches import Batches
from .reference import IMAGENET_MEAN, IMAGENET_STD

_LABELS = 1000
_QUEUE_DEPTH = 2
_OFTEN = 0.5
"""Share of the images from which an augmentation of the job is done, here to all of them."""
_INTERPOLATION = {"nearest": "INTERP_NN", "bilinear": "INTERP_LINEAR"}


def prepare(link: Link, request: dict[str, Any]) -> Batches | None:
    """Our graph as the host wants it (`prepare_own`), warm; says `prepared_own`, or `refused` where there is none."""
    batch_size, device = request["batch_size"], request["device"]
    try:
        pipe = build(request["files"], request["plan"], batch_size, request["threads"], device)
        own = Batches(pipe, batch_size, device)
        own.draw(1)
    except Exception as error:
        link.send("refused", problem="own_graph_failed", text=str(error)[:2000])
        return None
    link.send("prepared_own", batch_size=batch_size, queue_depth=_QUEUE_DEPTH)
    return own


def build(files: list[str], plan: dict[str, Any], batch_size: int, threads: int, device: str) -> Any:
    """A built `nvidia.dali.Pipeline` with the outputs images and labels.

    Args:
        files: JPEG files, read in an order that is shuffled anew in each epoch.
        plan: the job, as `reference_plan.plan` makes it; images come out with its size and type, `CHW` for floats and
            `HWC` for bytes.
        device: `cuda` decodes with `mixed` and goes on on the GPU, anything else stays on the CPU.
    """
    from nvidia.dali import Pipeline, fn, types

    on_gpu = device == "cuda"
    place = "gpu" if on_gpu else "cpu"
    pipe = Pipeline(
        batch_size=batch_size,
        num_threads=threads,
        device_id=0 if on_gpu else None,
        seed=1,
        prefetch_queue_depth=_QUEUE_DEPTH,
    )
    with pipe:
        encoded, labels = fn.readers.file(
            files=files, labels=[index % _LABELS for index in range(len(files))], random_shuffle=True, name="Reader"
        )
        kind = types.GRAY if plan["channels"] == 1 else types.RGB
        images = fn.decoders.image(encoded, device="mixed" if on_gpu else "cpu", output_type=kind)
        images = _sized(images, plan, place)
        images = _changed(images, plan, place)
        mirror = fn.random.coin_flip() if plan["mirror"] else 0
        if plan["floats"]:
            channels = 1 if plan["channels"] == 1 else 3
            images = fn.crop_mirror_normalize(
                images,
                device=place,
                dtype=types.FLOAT,
                output_layout="CHW",
                mean=[255 * value for value in IMAGENET_MEAN[:channels]],
                std=[255 * value for value in IMAGENET_STD[:channels]],
                mirror=mirror,
            )
        elif plan["mirror"]:
            images = fn.flip(images, device=place, horizontal=mirror)
        pipe.set_outputs(images, labels.gpu() if on_gpu else labels)
    pipe.build()
    return pipe


def _sized(images: Any, plan: dict[str, Any], place: str) -> Any:
    """The windows and sizes of `reference.transforms_of`."""
    from nvidia.dali import fn, types

    size = list(plan["size"])
    options: dict[str, Any] = {"device": place, "interp_type": getattr(types, _INTERPOLATION[plan["interpolation"]])}
    exact = False
    for step in plan["steps"]:
        exact = False
        if step["op"] == "random_resized_crop":
            images = fn.random_resized_crop(
                images, size=size, random_area=list(step["area"]), random_aspect_ratio=list(step["ratio"]), **options
            )
            exact = True
        elif step["op"] == "resize":
            wanted = {"size": step["size"]} if len(step["size"]) == 2 else {"resize_shorter": step["size"][0]}
            images = fn.resize(images, **wanted, **options)
        elif step["op"] == "crop":
            exact = step["size"] == size
            policy = "pad" if exact else "trim_to_shape"
            images = fn.crop(images, device=place, crop=step["size"], out_of_bounds_policy=policy)
    return images if exact else fn.resize(images, size=size, **options)


def _changed(images: Any, plan: dict[str, Any], place: str) -> Any:
    """The augmentations of `reference.transform` that the plan asks for."""
    from nvidia.dali import fn

    if plan["turn"] >= _OFTEN:
        angle = fn.random.uniform(range=[-15.0, 15.0])
        images = fn.rotate(images, device=place, angle=angle, keep_size=True, fill_value=0)
    if plan["colour"] >= _OFTEN and plan["channels"] != 1:
        images = fn.color_twist(
            images,
            device=place,
            brightness=fn.random.uniform(range=[0.8, 1.2]),
            contrast=fn.random.uniform(range=[0.8, 1.2]),
            saturation=fn.random.uniform(range=[0.8, 1.2]),
        )
    if plan["blur"] >= _OFTEN:
        images = fn.gaussian_blur(images, device=place, window_size=3)
    return images
