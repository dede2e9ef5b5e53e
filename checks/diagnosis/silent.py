"""Mistakes that raise nothing, from facts that a run's evidence already holds.

Each function looks at one side and gives (id of the row, values for its texts). Claims and loader facts are the
learner's own word, so a diagnosis may be wrong; it decides nothing. What explains a measured rate (a data set without
files, no workers, decoder on the CPU, one thread, a queue as long as the epoch, a missing synchronize, unequal output)
is said by `checks.throughput_ratio.causes`, and what the values of the batch say by `checks.cuda_batch`; neither is
repeated here.
"""

import math
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from statistics import median

from checks.diagnosis.matching import fill
from checks.diagnosis.rows import Diagnosis, silent_rows
from grader_service.model.discovery import Discovery, FirstBatch, LoaderFacts, PipelineFacts
from grader_service.model.evidence import Evidence
from grader_service.model.measurement import ClaimBesideMeasurement

MANY_PIPELINES = 4
"""The grader looks at no more."""
SHORT_EPOCH = 8
"""Batches: with two decoded ahead and one at hand, a third of such an epoch takes no time."""
SMALL_SIDE = 96
"""Pixels."""
FAR_OFF = 1.5
NOTHING_TIMED = 20.0
"""No missing synchronize or short epoch makes a rate so many times larger."""
IN_MEMORY = ("TensorDataset", "FakeData", "CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "list", "range")
"""Data sets that read no JPEG files."""
_SIZING = re.compile(r"\b(RandomResizedCrop|Resize|CenterCrop|RandomCrop)\(")
_COSTLY = re.compile(r"\b(ColorJitter|GaussianBlur|RandomRotation|RandomAffine|RandomPerspective|ElasticTransform)\(")
_BROKEN = ("not_jpeg", "truncated", "undecodable", "empty", "decoder_crashed")

Found = Iterator[tuple[str, dict[str, str]]]


def silent_mistakes(evidence: Evidence) -> tuple[Diagnosis, ...]:
    """Every silent mistake that the evidence shows, in the order of the table."""
    discovery = evidence.discovery
    if discovery is None:
        return ()
    found = dict(_all(evidence, discovery))
    return tuple(fill(row, found[row.id]) for row in silent_rows().values() if row.id in found)


def endless_iterator(discovery: Discovery) -> Diagnosis | None:
    """An iterator of the learner's that has no end unless it was given a size; None when each has a reader's name."""
    found = next((pipeline for pipeline in discovery.pipelines if _is_endless(pipeline)), None)
    return fill(silent_rows()["iterator_without_end"], {"iterator": found.name}) if found is not None else None


def _is_endless(pipeline: PipelineFacts) -> bool:
    return bool(pipeline.iterator_type) and not pipeline.reader_name


def _all(evidence: Evidence, discovery: Discovery) -> Found:
    loader = discovery.loaders[0] if len(discovery.loaders) == 1 else None
    driven = [pipeline for pipeline in discovery.pipelines if pipeline.iterator_type]
    dali = driven[0] if len(driven) == 1 else None
    images = _images(evidence, loader)
    yield from _pipelines(discovery, driven)
    if loader is not None:
        yield from _loader(evidence, loader)
        yield from _folders(evidence, discovery, loader)
        yield from _transform(evidence, loader.transform)
    if loader is not None and dali is not None:
        yield from _both(loader, dali)
    yield from _first_batch(evidence, discovery.first_batch, dali)
    yield from _claims(evidence, loader, dali, images)
    yield from _data(evidence, dali, images)


def _images(evidence: Evidence, loader: LoaderFacts | None) -> int:
    scan = evidence.scan
    if scan is not None and scan.problem is None and scan.distinct:
        return scan.distinct
    return (loader.dataset_length or 0) if loader is not None else 0


def _pipelines(discovery: Discovery, driven: list[PipelineFacts]) -> Found:
    endless = next((pipeline for pipeline in driven if _is_endless(pipeline)), None)
    if endless is not None:
        yield "iterator_without_end", {"iterator": endless.name}
    if discovery.pipelines and not driven and discovery.ran == "completed" and not discovery.factories:
        yield "pipeline_without_iterator", {}
    if len(discovery.pipelines) >= MANY_PIPELINES:
        yield "many_pipelines", {"count": str(len(discovery.pipelines))}


def _loader(evidence: Evidence, loader: LoaderFacts) -> Found:
    if evidence.run.device == "cuda" and not loader.pin_memory:
        yield "no_pinned_memory", {}
    if loader.num_workers > 0 and loader.prefetch_factor == 1:
        yield "one_batch_per_worker", {}
    if loader.batch_size is None:
        yield "loader_without_batches", {}
    cpus = evidence.run.host.get("cpus_per_arm")
    if isinstance(cpus, int) and 0 < cpus < loader.num_workers:
        yield "more_workers_than_cores", {"workers": str(loader.num_workers), "cpus": str(cpus)}


def _folders(evidence: Evidence, discovery: Discovery, loader: LoaderFacts) -> Found:
    """Other images on one side; where either side reads a part of a folder, the other may read the same part."""
    own = loader.dataset_root
    readers = [pipeline.reader_root for pipeline in discovery.pipelines if pipeline.reader_root]
    if own and readers and not any(_within(reader, own) or _within(own, reader) for reader in readers):
        yield "different_folders", {"loader": own, "dali": readers[0]}
        return
    whole = discovery.dataset_dir.path or ""
    if any(folder != whole and _within(folder, whole) for folder in readers or [own]):
        return
    files = 0 if loader.dataset_type in IN_MEMORY else _scanned(evidence)
    if files and loader.dataset_length and loader.dataset_length != files:
        yield "different_data", {"loader": str(loader.dataset_length), "files": str(files)}


def _within(folder: str, other: str) -> bool:
    """Whether one folder is the other or lies below it, by their names."""
    return PurePosixPath(folder).is_relative_to(other)


def _scanned(evidence: Evidence) -> int:
    """Number of images below `dataset_dir`; 0 when they were not all counted."""
    scan = evidence.scan
    whole = scan is not None and scan.problem is None and scan.stopped_early is None and not scan.rejected
    return scan.distinct if scan is not None and whole else 0


def _transform(evidence: Evidence, transform: str) -> Found:
    sizing, costly = _SIZING.search(transform), _COSTLY.search(transform)
    if sizing is not None and costly is not None and costly.start() < sizing.start():
        yield "augmentation_at_full_size", {"name": costly[1], "resize": sizing[1]}
    if re.search(r"\bResize\((?s:.){1,400}?\bRandomResizedCrop\(", transform):
        yield "loader_resizes_twice", {}
    batch = evidence.clean_room.batch if evidence.clean_room is not None else None
    normalised = batch is not None and batch.low < 0 and batch.finite and "FLOAT" in batch.dtype
    if normalised and "ToTensor(" in transform and "Normalize(" not in transform:
        yield "normalised_on_one_side", {}


def _both(loader: LoaderFacts, dali: PipelineFacts) -> Found:
    if loader.batch_size and dali.batch_size and loader.batch_size != dali.batch_size:
        yield "batch_sizes_of_both_sides", {"loader": str(loader.batch_size), "dali": str(dali.batch_size)}
    lost = (loader.dataset_length or 0) % loader.batch_size if loader.batch_size else 0
    if loader.drop_last and lost and dali.last_batch != "DROP":
        yield "drop_last_on_one_side", {"lost": str(lost), "images": str(loader.dataset_length)}


def _first_batch(evidence: Evidence, batch: FirstBatch, dali: PipelineFacts | None) -> Found:
    shape = batch.shape
    if batch.status != "present" or shape is None:
        return
    shown = {"shape": str(list(shape))}
    if evidence.run.device == "cuda" and batch.device.split(":")[0] == "cpu":
        yield "first_batch_on_cpu", {}
    if len(shape) in (1, 2) and (len(shape) == 1 or shape[1] <= 1):
        yield "first_batch_is_labels", shown
    if len(shape) != 4:
        return
    if shape[3] in (1, 3) and shape[1] not in (1, 3):
        yield "first_batch_channels_last", shown
    if batch.dtype.lower().endswith("uint8"):
        yield "first_batch_of_bytes", {}
    if dali is not None and dali.batch_size and shape[0] != dali.batch_size:
        yield "first_batch_from_elsewhere", {"batch": str(shape[0]), "dali": str(dali.batch_size)}


def _claims(evidence: Evidence, loader: LoaderFacts | None, dali: PipelineFacts | None, images: int) -> Found:
    measurement = evidence.measurement
    claims = measurement.claims if measurement is not None else ()
    sizes = {
        "pytorch_throughput": (loader.batch_size or 0) if loader is not None else 0,
        "dali_throughput": dali.batch_size if dali is not None else 0,
    }
    for claim in claims:
        yield from _claim(claim, sizes.get(claim.name, 0), images)
    values = {claim.name: claim.claimed for claim in claims}
    both = values.get("pytorch_throughput")
    if both and both == values.get("dali_throughput"):
        yield "one_figure_twice", {"claimed": f"{both:g}"}


def _claim(claim: ClaimBesideMeasurement, batch: int, images: int) -> Found:
    claimed, measured = claim.claimed, claim.measured
    if not claimed or not measured or claimed <= 0 or measured <= 0:
        return
    shown = {"name": claim.name, "claimed": f"{claimed:.4g}"}
    if claimed / measured >= NOTHING_TIMED:
        yield "clock_around_nothing", shown | {"factor": f"{claimed / measured:,.0f}"}
    elif claimed * FAR_OFF >= measured:
        return
    # The explanations below can be told apart only where their numbers lie far apart: the nearest one counts.
    meant = {
        "batches_counted": measured / batch if batch > 2 else 0.0,
        "seconds_not_rate": images / measured,
        "rate_per_millisecond": measured / 1000,
    }
    near = {word: abs(math.log(claimed) - math.log(value)) for word, value in meant.items() if value > 0}
    word = min(near, key=lambda word: near[word])
    if near[word] <= math.log(FAR_OFF):
        yield word, shown | {"batch": str(batch), "images": str(images)}


def _data(evidence: Evidence, dali: PipelineFacts | None, images: int) -> Found:
    batch = dali.batch_size if dali is not None else 0
    batches = math.ceil(images / batch) if batch else 0
    if 1 < batches < SHORT_EPOCH:
        yield "tiny_epoch", {"batches": str(batches), "images": str(images), "batch": str(batch)}
    scan = evidence.scan
    if scan is None or scan.problem is not None:
        return
    if scan.sizes and median(max(size.width, size.height) for size in scan.sizes) < SMALL_SIDE:
        yield "tiny_images", {"side": str(SMALL_SIDE)}
    broken = sum(scan.rejected.get(reason, 0) for reason in _BROKEN)
    if broken and scan.distinct:  # where nothing decodes, the count itself says so
        yield "broken_files_below", {"count": str(broken)}
