"""Real decoders and augmentations, on files: torchvision on the CPU, DALI on the CPU or a GPU.

Each loader takes paths and gives one array per file, in order: [H, W, 3] or [3, H, W], of any type.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

Loader = Callable[[list[Path]], list[np.ndarray]]
_SHAPE = 224


def known(device: str, *, crops: bool) -> dict[str, Loader]:
    """Every loader that this device has; random crops of 8 to 100 % or the whole frame."""
    return {**_torchvision(crops=crops), **_dali(device, crops=crops)}


def _torchvision(*, crops: bool) -> dict[str, Loader]:
    import torch
    from PIL import Image
    from torchvision.io import decode_jpeg, read_file
    from torchvision.transforms import InterpolationMode, v2

    bicubic = InterpolationMode.BICUBIC

    def resize(**options):
        if crops:
            return v2.RandomResizedCrop(_SHAPE, **options)
        return v2.Resize((_SHAPE, _SHAPE), **options)

    normalise = v2.Compose(
        [
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    )
    flip = v2.RandomHorizontalFlip()

    def of_files(*steps):
        transform = v2.Compose([resize(**steps[0]), flip, *steps[1:]])

        def load(paths):
            torch.manual_seed(0)
            out = []
            for path in paths:
                with Image.open(path) as image:
                    made = transform(image.convert("RGB"))
                out.append(np.asarray(made) if isinstance(made, Image.Image) else made.numpy())
            return out

        return load

    def of_tensors(**options):
        transform = v2.Compose([resize(**options), flip])

        def load(paths):
            torch.manual_seed(0)
            return [transform(decode_jpeg(read_file(str(path)))).numpy() for path in paths]

        return load

    found = {
        "torchvision, Pillow": of_files({}),
        "torchvision, Pillow bicubic": of_files({"interpolation": bicubic}),
        "torchvision, Pillow normalised": of_files({}, normalise),
        "torchvision, tensors": of_tensors(antialias=True),
        "torchvision, no antialias": of_tensors(antialias=False),
        "torchvision, tensors bicubic": of_tensors(interpolation=bicubic, antialias=True),
    }
    if not crops:
        found["torchvision, 256 then middle 224"] = lambda paths: [
            np.asarray(v2.Compose([v2.Resize(256), v2.CenterCrop(_SHAPE)])(Image.open(path).convert("RGB")))
            for path in paths
        ]
    return found


def _dali(device: str, *, crops: bool) -> dict[str, Loader]:
    from nvidia.dali import fn, pipeline_def, types

    on_gpu = device == "cuda"
    decoder = "mixed" if on_gpu else "cpu"

    def loader(decode, finish, resize=None):
        @pipeline_def(batch_size=8, num_threads=2, device_id=0 if on_gpu else None, seed=7)
        def build(names):
            encoded, _ = fn.readers.file(files=names, random_shuffle=False, name="reader")
            return finish((resize or plain)(decode(encoded)))

        def load(paths):
            pipe = build([str(path) for path in paths])
            pipe.build()
            out = []
            while len(out) < len(paths):
                (batch,) = pipe.run()
                out += list(np.asarray((batch.as_cpu() if on_gpu else batch).as_array()))
            return out[: len(paths)]

        return load

    def whole(**options):
        return lambda encoded: fn.decoders.image(encoded, device=decoder, **options)

    def decoded(**options):
        if not crops:
            return whole(**options)
        window = {"random_area": [0.08, 1.0], "random_aspect_ratio": [0.75, 1.33]}
        return lambda encoded: fn.decoders.image_random_crop(encoded, device=decoder, **window, **options)

    def plain(images, **options):
        return fn.resize(images, resize_x=_SHAPE, resize_y=_SHAPE, **options)

    def mirrored(images):
        return fn.flip(images, horizontal=fn.random.coin_flip())

    def normalised(**options):
        means = {"mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}
        return lambda images: fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), **means, **options)

    def whole_then_crop(images):
        if crops:
            return fn.random_resized_crop(images, size=[_SHAPE, _SHAPE])
        return fn.crop(fn.resize(images, resize_shorter=256), crop=(_SHAPE, _SHAPE))

    found = {
        "DALI": loader(decoded(), mirrored),
        "DALI, fast IDCT": loader(decoded(use_fast_idct=True), mirrored),
        "DALI, fancy upsampling": loader(decoded(jpeg_fancy_upsampling=True), mirrored),
        "DALI, BGR": loader(decoded(output_type=types.BGR), mirrored),
        "DALI, normalised NCHW": loader(decoded(), normalised(dtype=types.FLOAT, output_layout="CHW")),
        "DALI, normalised fp16 NHWC": loader(decoded(), normalised(dtype=types.FLOAT16, output_layout="HWC")),
        "DALI, cubic": loader(decoded(), mirrored, lambda x: plain(x, interp_type=types.INTERP_CUBIC)),
        "DALI, triangular": loader(decoded(), mirrored, lambda x: plain(x, interp_type=types.INTERP_TRIANGULAR)),
        "DALI, no antialias": loader(decoded(), mirrored, lambda x: plain(x, antialias=False)),
        "DALI, decode then crop": loader(whole(), mirrored, whole_then_crop),
    }
    if on_gpu:
        found["DALI, hardware"] = loader(decoded(hw_decoder_load=1.0), mirrored)
        found["DALI, hybrid"] = loader(decoded(hw_decoder_load=0.0), mirrored)
        found["DALI, hardware then crop"] = loader(whole(hw_decoder_load=1.0), mirrored, whole_then_crop)
    return found
