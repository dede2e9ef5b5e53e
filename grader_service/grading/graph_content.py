"""Tier A: whether what a graph delivered in the clean room is the decoded shard, told from the pixels."""

from collections.abc import Sequence

import numpy as np

from grader_service.grading.arms import ArmLost
from grader_service.grading.clean_room import Carried
from grader_service.grading.contents import Delivered
from grader_service.grading.work_parity import expected_area, lesser_job, standard_area
from grader_service.held_out.figures import Figures, figures
from grader_service.held_out.identity import Identifier, Identities
from grader_service.held_out.plan import ShardPlan
from grader_service.held_out.proof import prove
from grader_service.held_out.spot_check import Image, spot_check
from grader_service.model.measurement import ContentKind, ContentProof

AUDITS = 24
"""A graph is the same for every image, so a few tell; learner code could treat each one differently."""
_TWIN_IMAGES = 1024
"""About so many images of a plain twin are looked at, outside of any timed window."""
_LABELS = 1000
"""The reader's labels repeat after this many images (see the clean room), so a larger shard is not told by them."""
_HIDDEN = ("not_identified", "not_audited", "rendered", "partial_decode", "colours_changed", "no_colour")


def collect(carried: Carried, images: int) -> Sequence[Delivered] | ArmLost:
    """Everything that the timed windows delivered; after its arm's last window.

    A graph that changes colours is looked at through its plain twin, which runs now; the graph itself runs no more.

    Args:
        carried: the graph.
        images: in the shard.
    """
    arm = carried.arm
    channels = arm.delivered[0].means.shape[1] if arm.delivered else 3
    if carried.colours_changed or (channels != 3 and images <= _LABELS):
        twin = arm.plain_twin(max(2, -(-_TWIN_IMAGES // carried.batch_size)), copies=AUDITS)
        return twin if isinstance(twin, ArmLost) else [twin]
    return arm.delivered


def prove_graph(
    delivered: Sequence[Delivered] | ArmLost, carried: Carried, shard: ShardPlan, threads: int
) -> ContentProof:
    """Looks at all images, and compares some with our own decode; needs no pod any more.

    After operators that distort or hide an image (`Carried.opaque`) nothing is held against the graph: all of it came
    from the allow-list and runs without learner code.

    Args:
        delivered: from `collect`.
        carried: the graph.
        shard: what it read.
        threads: for the audits.
    """
    if isinstance(delivered, ArmLost):
        return _nothing(f"the graph without its colour changes did not run: {delivered.reason}")
    by_labels = any(window.labels for window in delivered) and delivered[0].means.shape[1] != 3
    found = _identify(delivered, shard, by_labels=by_labels)
    counts = figures(
        found,
        len(shard.sizes),
        windows=[len(window.means) for window in delivered],
        epochs=_epochs(len(shard.sizes), carried.batch_size),
    )
    audits = spot_check(shard, _copies(delivered, found), AUDITS, threads=threads)
    expected = expected_area(carried.plan, shard.sizes)
    # What the graph itself says of its windows is exact; a sample of areas is compared only where it says nothing.
    proof = prove(audits, counts, expected_area=standard_area(shard.sizes) if expected is None else None)
    proof = proof.model_copy(update={"expected_area": expected or proof.expected_area})
    if proof.problem == "not_comparable":
        # Known by their colours, and too small or smooth for a look at their texture.
        proof = proof.model_copy(update={"problem": None, "kind": ContentKind.UNKNOWN})
    if proof.problem in _HIDDEN and carried.opaque:
        note = f"not judged, for {', '.join(carried.opaque)} may hide what an image shows; {proof.note}"
        return proof.model_copy(update={"problem": None, "kind": ContentKind.UNKNOWN, "note": note})
    if proof.problem is None and (lesser := lesser_job(carried.plan, shard.sizes)) is not None:
        return proof.model_copy(update={"problem": "small_area", "note": lesser})
    return proof


def _identify(delivered: Sequence[Delivered], shard: ShardPlan, *, by_labels: bool) -> Identities:
    if by_labels:
        labels = [label for window in delivered for label in window.labels or [-1] * len(window.means)]
        known = np.array([label if 0 <= label < len(shard.sizes) else -1 for label in labels], np.int32)
        return Identities(known)
    means = np.concatenate([window.means for window in delivered]) if delivered else np.zeros((0, 3), np.float32)
    if means.shape[1] != 3:
        return Identities(np.full(len(means), -1, np.int32), "no_colour")
    return Identifier(shard).identify_means(means)


def _epochs(images: int, batch_size: int) -> tuple[int, ...]:
    """Lengths of an epoch where the last batch is left out or filled up."""
    whole = images // batch_size * batch_size
    return tuple({length for length in (whole, whole + batch_size) if length})


def _copies(delivered: Sequence[Delivered], found: Identities) -> list[Image]:
    """The images that were kept whole and are known."""
    first = 0
    kept: list[Image] = []
    for window in delivered:
        kept += [(int(found.ids[first + place]), pixels) for place, pixels in window.copies]
        first += len(window.means)
    return [image for image in kept if image[0] >= 0]


def _nothing(note: str) -> ContentProof:
    empty = Figures(delivered=0, identified=0, distinct=0, stale=0, repeated=0)
    return prove((), empty).model_copy(update={"note": note[:4000]})
