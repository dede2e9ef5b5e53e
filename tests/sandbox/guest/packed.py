"""Containers as MXNet, TensorFlow and webdataset write them, and pipelines on them; for children with DALI."""

import struct
from pathlib import Path
from typing import Any

from nvidia.dali import fn, pipeline_def, tfrecord, types

from sandbox.guest.graph import wire
from sandbox.guest.graph.wire import LENGTH, VARINT, Field
from tests.ingest.packing import tar_bytes
from tests.sandbox.guest import pipelines
from tests.sandbox.guest.pipelines import BASIC

LABEL = 700
"""The label of the first packed image; the others count on from there, so that no held-out label is equal."""
INTEGER = tfrecord.FixedLenFeature([1], tfrecord.int64, -1)
"""A label as ImageNet's TFRecords have it."""
STRING = tfrecord.FixedLenFeature((), tfrecord.string, "")
"""An encoded image, or a text."""


def write_recordio(folder: Path, files: list[Path]) -> dict[str, str]:
    """RecordIO with its index: magic, length, then flag, label, two ids and the JPEG, padded to four bytes."""
    record, index = folder / "images.rec", folder / "images.idx"
    lines = []
    with record.open("wb") as out:
        for number, file in enumerate(files):
            data = struct.pack("<IfQQ", 0, float(LABEL + number), number, 0) + file.read_bytes()
            lines.append(f"{number}\t{out.tell()}\n")
            out.write(struct.pack("<II", 0xCED7230A, len(data)) + data + bytes(-len(data) % 4))
    index.write_text("".join(lines))
    return {"path": str(record), "index_path": str(index)}


def write_tfrecord(folder: Path, files: list[Path]) -> dict[str, str]:
    """TFRecord with DALI's index: length, checksum, an `Example`, checksum; DALI looks at no checksum."""
    record, index = folder / "images.tfrecord", folder / "images.tfindex"
    lines = []
    with record.open("wb") as out:
        for number, file in enumerate(files):
            features = {
                "image/encoded": Field(1, LENGTH, wire.emit([Field(1, LENGTH, file.read_bytes())])),
                "image/class/label": Field(3, LENGTH, wire.emit([Field(1, VARINT, LABEL + number)])),
                "image/height": Field(3, LENGTH, wire.emit([Field(1, VARINT, 40 + number)])),
                "image/class/text": Field(1, LENGTH, wire.emit([Field(1, LENGTH, b"a dog")])),
            }
            entries = [
                wire.emit([Field(1, LENGTH, name.encode()), Field(2, LENGTH, wire.emit([feature]))])
                for name, feature in features.items()
            ]
            data = wire.emit([Field(1, LENGTH, wire.emit([Field(1, LENGTH, entry) for entry in entries]))])
            start = out.tell()
            out.write(struct.pack("<QI", len(data), 0) + data + bytes(4))
            lines.append(f"{start} {out.tell() - start}\n")
    index.write_text("".join(lines))
    return {"path": str(record), "index_path": str(index)}


def write_webdataset(folder: Path, files: list[Path]) -> str:
    """A tar of samples `NNN.jpg`, `NNN.cls` and `NNN.json`."""
    path = folder / "images.tar"
    members = []
    for number, file in enumerate(files):
        parts = {"jpg": file.read_bytes(), "cls": struct.pack("<i", LABEL + number), "json": b'{"dog": true}'}
        members += [(f"{number:03d}.{ending}", data) for ending, data in parts.items()]
    path.write_bytes(tar_bytes(members))
    return str(path)


def finished(jpegs: Any, **options: Any) -> Any:
    """Decoded on the GPU, resized and normalised."""
    return pipelines.finished(fn.decoders.image(jpegs, device="mixed"), **options)


@pipeline_def
def from_recordio(source: dict[str, Any]):
    """The example of DALI's documentation."""
    jpegs, labels = fn.readers.mxnet(**source, name="Reader")
    return finished(jpegs), labels.gpu()


@pipeline_def
def from_tfrecord(source: dict[str, str]):
    """The example of DALI's documentation; features come in the order in which they are named."""
    features = {"image/class/text": STRING, "image/class/label": INTEGER, "image/encoded": STRING}
    inputs = fn.readers.tfrecord(**source, features=features, random_shuffle=True, initial_fill=1 << 20)
    return finished(inputs["image/encoded"]), inputs["image/class/label"]


@pipeline_def
def from_webdataset(path: str, ext: tuple[str, ...] = ("cls", "jpg;jpeg")):
    """Labels first, as the tar is free to have them."""
    kinds = {"cls": types.INT32}
    parts = fn.readers.webdataset(paths=path, ext=list(ext), dtypes=[kinds.get(e, types.UINT8) for e in ext])
    parts = parts if isinstance(parts, list) else [parts]
    found = dict(zip(ext, parts, strict=True))
    return finished(found.pop("jpg;jpeg")), *found.values()


@pipeline_def
def from_lmdb(reader: str, options: dict[str, Any]):
    """Caffe's and Caffe2's LMDB."""
    jpegs, labels, *others = getattr(fn.readers, reader)(path="/nowhere", **options)
    return finished(jpegs), labels, *others


@pipeline_def
def from_coco(*, boxes: bool):
    """Images of COCO, with or without the boxes."""
    jpegs, found, _ = fn.readers.coco(file_root="/nowhere", annotations_file="/nowhere.json")
    return (finished(jpegs), found) if boxes else finished(jpegs)


@pipeline_def
def unusual(source: dict[str, str], kind: str):
    """TFRecords of which the graph takes more than an image and a label beside it."""
    features = {"image/encoded": STRING, "image/class/label": INTEGER, "image/height": INTEGER}
    if kind == "list":
        features["image/class/label"] = tfrecord.VarLenFeature(tfrecord.int64, -1)
    if kind == "text":
        features["image/class/text"] = STRING
    inputs = fn.readers.tfrecord(**source, features=features)
    jpegs, label = inputs["image/encoded"], inputs["image/class/label"]
    if kind == "second image":
        return finished(jpegs), fn.decoders.image(inputs["image/class/label"])
    if kind == "no image":
        files, _ = fn.readers.file(file_root="/nowhere")
        return finished(files), label
    if kind == "steered":
        return finished(jpegs, mirror=label % 2), label
    if kind == "two numbers":
        return finished(jpegs), label, inputs["image/height"]
    return finished(jpegs), inputs["image/class/text"] if kind == "text" else label


@pipeline_def
def mixed_readers(source: dict[str, str], root: str):
    """A container's reader beside one of files."""
    jpegs, labels = fn.readers.mxnet(**source, name="Packed")
    files, _ = fn.readers.file(file_root=root, name="Files")
    return fn.cat(finished(jpegs), finished(files), axis=0), labels


@pipeline_def(enable_conditionals=True)
def decoded_in_a_branch(source: dict[str, str]):
    """Encoded images that pass a conditional before they are decoded."""
    jpegs, labels = fn.readers.mxnet(**source)
    if fn.random.coin_flip(dtype=types.BOOL):
        images = fn.decoders.image(jpegs, device="cpu")
    else:
        images = fn.decoders.image(jpegs, device="cpu", dtype=types.UINT8)
    return pipelines.finished(images), labels


def corpus(root: str, folder: str) -> dict[str, bytes]:
    """Serialized graphs over containers of the JPEGs below `root`, by name."""
    files = sorted(Path(root).glob("*/*.jpg"))
    record, table, tar = (write(Path(folder), files) for write in (write_recordio, write_tfrecord, write_webdataset))
    options = {"num_shards": 3, "shard_id": 1, "pad_last_batch": True, "random_shuffle": True, "seed": 11}
    made = {
        "recordio": from_recordio(record, **BASIC),
        "sharded recordio": from_recordio({**record, **options}, **BASIC),
        "tfrecord": from_tfrecord(table, **BASIC),
        "webdataset": from_webdataset(tar, **BASIC),
        "webdataset without labels": from_webdataset(tar, ("jpg;jpeg",), **BASIC),
        "caffe": from_lmdb("caffe", {}, **BASIC),
        "caffe2": from_lmdb("caffe2", {}, **BASIC),
        "coco": from_coco(boxes=False, **BASIC),
        "mixed readers": mixed_readers(record, root, **BASIC),
        "branch": decoded_in_a_branch(record, **BASIC),
        "declared types": from_recordio(record, **BASIC, output_dtype=[types.FLOAT, types.FLOAT], output_ndim=[3, 1]),
        "webdataset with json": from_webdataset(tar, ("jpg;jpeg", "json"), **BASIC),
        "webdataset with two": from_webdataset(tar, ("jpg;jpeg", "cls", "json"), **BASIC),
        "caffe2 vectors": from_lmdb("caffe2", {"label_type": 2, "num_labels": 5}, **BASIC),
        "caffe2 with boxes": from_lmdb("caffe2", {"bbox": True}, **BASIC),
        "coco with boxes": from_coco(boxes=True, **BASIC),
        **{
            f"tfrecord, {kind}": unusual(table, kind, **BASIC)
            for kind in ("list", "text", "second image", "no image", "steered", "two numbers")
        },
    }
    return {name: bytes(pipe.serialize()) for name, pipe in made.items()}
