"""Learner code that is measured by content: honest code is credited for its work, forgeries are not."""

import dataclasses
import itertools
import time

import numpy as np
import pytest

from grader_service.held_out.plan import codes, plan_shard
from grader_service.measure.arms import ArmLost
from grader_service.measure.delivery import Delivered
from grader_service.measure.proof import Ledger
from grader_service.measure.proof_arm import ProofArm
from grader_service.measure.trial_shards import TrialShards
from grader_service.model.evidence import ImageSize
from grader_service.model.measurement import ContentKind, Window
from sandbox.frames import Message
from tests.measure.delivering_pod import BATCH, DeliveringPod, Honest

pytestmark = [pytest.mark.slow, pytest.mark.integration]

SIZES = (ImageSize(width=176, height=144, size_bytes=9000),)
SHAPE = (144, 176, 3)
PER_PART = 4 * BATCH
WINDOWS = 4


@pytest.fixture
def serve(tmp_path):
    """`serve(behaviour)` → (arm, pod), warmed up as a run does it: part 0 shown, two probes."""
    opened = []

    def start(behaviour, *, cold=False, extra=(), probes=2):
        folder = tmp_path / str(len(opened)) / "shards"
        folder.mkdir(parents=True)
        shards = TrialShards("ab" * 16, SIZES, PER_PART, 12, folder)
        opened.append(shards)
        shards.make_next()
        shards.show()
        pod = DeliveringPod(folder, behaviour)
        arm = ProofArm(pod, shards, str(folder), (BATCH, *SHAPE), first_look=WINDOWS)
        for _ in range(probes):
            assert not isinstance(arm.probe(cold=cold, timeout_s=20.0), ArmLost)
        pod.extra = extra
        return arm, pod

    yield start
    for shards in opened:
        shards.close()


def windows(arm, count=WINDOWS):
    """The first windows, or the loss that ended them."""
    done = []
    for _ in range(count):
        window = arm.window(4, timeout_s=20.0)
        done.append(window)
        if isinstance(window, ArmLost):
            break
    return done


def credited(arm):
    """Images credited over all windows."""
    return sum(window.images for window in windows(arm) if isinstance(window, Window))


def test_honest_code_is_credited_for_every_image(serve):
    """Whole decodes of new images all count, and their audits say so."""
    arm, pod = serve(Honest())
    assert credited(arm) == WINDOWS * PER_PART
    proof = arm.ledger.conclude()
    assert (proof.problem, proof.kind, proof.failed_audits) == (None, ContentKind.FULL, 0)
    assert (proof.delivered, proof.distinct, proof.stale) == (WINDOWS * PER_PART, WINDOWS * PER_PART, 0)
    assert not pod.running


def test_a_queue_costs_its_images_once_and_in_equal_parts(serve):
    """What was queued before the trials counts nothing, and no single window has to bear that."""
    arm, _ = serve(Honest(queue=24))
    assert [window.images for window in windows(arm)] == [PER_PART - 6] * WINDOWS
    assert arm.ledger.total.stale == 24
    assert arm.ledger.conclude().problem is None


@pytest.mark.parametrize(("discarded", "per_window"), [(0, PER_PART), (1, PER_PART - 6)])
def test_what_a_discarded_block_held_costs_nobody_anything(serve, discarded, per_window):
    """Its queued images went with it; and what others owe they still owe."""
    arm, _ = serve(Honest(queue=24))
    counted = []
    for number in range(WINDOWS):
        window = arm.window(0, timeout_s=5.0)
        if number == discarded:
            arm.discarded()
        else:
            counted.append(window.images)
    assert counted == [per_window] * (WINDOWS - 1)


def test_a_replayed_ring_is_stale(serve):
    """Batches of the warm-up images, over and over, are recognised and never counted."""
    honest = Honest()
    ring = []

    def replay(folder, batches):
        if not ring:
            ring.extend(honest(folder, 2))
        return (ring[number % len(ring)] for number in range(batches))

    arm, _ = serve(replay)
    lost = windows(arm)[-1]
    assert isinstance(lost, ArmLost)
    assert "none was new" in lost.reason
    assert arm.ledger.conclude().problem in {"stale", "replayed"}


@pytest.mark.parametrize(
    ("kept", "fresh"),
    [(lambda batch: batch, BATCH), (lambda batch: np.repeat(batch[:1], BATCH, axis=0), 1)],
    ids=["batch", "image"],
)
def test_what_comes_over_and_over_is_replayed(serve, kept, fresh):
    """One batch of a new folder, or one image of it, delivered again and again counts once in each window."""

    def replay(folder, batches):
        return itertools.repeat(kept(next(Honest()(folder, 1))), batches)

    arm, _ = serve(replay, cold=True)
    assert credited(arm) == WINDOWS * fresh
    assert arm.ledger.conclude().problem == "replayed"


def test_noise_is_no_image_of_ours(serve):
    """Fresh random pixels, like torch.rand, are unknown."""
    generator = np.random.default_rng(5)

    def noise(folder, batches):
        return (generator.integers(0, 256, (BATCH, 144, 176, 3), dtype=np.uint8) for _ in range(batches))

    arm, _ = serve(noise)
    assert isinstance(windows(arm)[-1], ArmLost)
    assert arm.ledger.conclude().problem in {"colours_changed", "not_identified", "no_colour"}


def test_a_half_scale_decode_is_told_from_a_whole_one(serve):
    """Its colours are right, so it is counted at first; its texture is not there, so it proves nothing."""
    arm, _ = serve(Honest(scale=2))
    assert credited(arm) == WINDOWS * PER_PART
    proof = arm.ledger.conclude()
    assert (proof.problem, proof.kind) == ("partial_decode", ContentKind.REDUCED)


def test_flat_colour_is_told_from_an_image(serve):
    """An image drawn from its mean colour alone lacks all texture."""

    def flat(folder, batches, honest=Honest()):  # noqa: B008 - one stream for all windows
        for batch in honest(folder, batches):
            grating = (7 * np.sin(np.arange(176) / 2)).astype(np.int16)[None, None, :, None]
            mean = batch.mean(axis=(1, 2), keepdims=True)
            yield np.clip(np.broadcast_to(mean + grating, batch.shape), 0, 255).astype(np.uint8)

    arm, _ = serve(flat)
    windows(arm)
    assert arm.ledger.conclude().problem in {"rendered", "not_comparable"}


def test_decoding_ahead_of_delivery_gains_nothing(serve):
    """Code that delivers old images while it decodes new ones, and those in a burst later, gains nothing by the look.

    The burst window has full credit and takes no time; what it holds was paid for in the window before.
    """
    pause = 0.02
    honest = Honest(seconds=pause)
    old: list[np.ndarray] = []
    hoard: list[np.ndarray] = []
    seen = []

    def hoarder(folder, batches):
        old.extend(() if old else Honest()(folder, batches))
        seen.append(folder)
        if len(seen) == 3:  # after two probes
            hoard.extend(honest(folder, batches))
            return iter(old)
        return iter(hoard) if len(seen) == 4 else honest(folder, batches)

    arm, _ = serve(hoarder)
    done = windows(arm)
    assert done[1].images_per_s > 5 / pause, "the burst itself looks like a very fast pipeline"
    # Four windows, and images decoded in three of them.
    assert sum(window.images for window in done) <= 3 * PER_PART


def test_sleeping_through_the_warm_up_shortens_no_window(serve):
    """(C07) Who is slow while it is warmed up, so that less is asked of it later, is asked for as much as anybody.

    It delivers the few batches that it hopes are enough, over and over.
    """
    honest, asked = Honest(), []

    def sleeper(folder, batches):
        asked.append(batches)
        if len(asked) <= 2:  # the probes
            time.sleep(0.3)
            return honest(folder, batches)
        few = list(Honest()(folder, 1))
        return (few[0] for _ in range(batches))

    arm, _ = serve(sleeper)
    wanted = [arm.window(arm.batches_for(seconds), timeout_s=20.0).images for seconds in (0.0, 0.01, 1.0, 60.0)]
    assert set(asked) == {PER_PART // BATCH}
    assert wanted == [BATCH] * 4, "one batch is new in each window, and one batch counts"
    assert arm.ledger.conclude().problem == "replayed"


def test_batches_have_the_size_that_windows_show(serve):
    """(T09) One image at a time after a full batch is a batch of one; the short last batch of an epoch is allowed.

    The iterator's word for its size is that of its first batch.
    """

    def singles(folder, batches):
        return (batch[:1] for batch in Honest()(folder, batches))

    def short_last(folder, batches):
        *full, last = Honest()(folder, batches)
        yield from full
        yield last[:1]

    assert serve(Honest())[0].least_batch == BATCH
    assert serve(short_last)[0].least_batch == BATCH
    assert serve(singles)[0].least_batch == 1


@pytest.mark.parametrize("smaller", [lambda batch: batch[:, ::2, ::2], lambda batch: batch.transpose(0, 2, 1, 3)])
def test_images_keep_the_size_of_the_first_batch(serve, smaller):
    """A large first batch would have the references send more pixels than the code that they are compared with."""

    def show(folder, batches):
        return map(smaller, Honest()(folder, batches))

    arm, pod = serve(Honest())
    pod._behaviour = show
    lost = arm.window(4, timeout_s=20.0)
    assert isinstance(lost, ArmLost)
    assert "144 × 176 × 3" in lost.reason


def test_channels_may_come_first(serve):
    """The size is the same, however the axes are ordered."""
    arm, pod = serve(Honest())
    pod._behaviour = lambda folder, batches: (batch.transpose(0, 3, 1, 2) for batch in Honest()(folder, batches))
    assert credited(arm) == WINDOWS * PER_PART


def test_extra_images_after_the_window_count_nothing(serve):
    """What is sent after the end ends the pod when the next window begins, and adds no image."""
    late = Message({"kind": "images", "shape": [1, 144, 176, 3]}, bytes(144 * 176 * 3))
    arm, pod = serve(Honest(), extra=[late] * 50)
    window = arm.window(4, timeout_s=20.0)
    assert (window.images, arm.ledger.total.delivered) == (PER_PART, PER_PART)
    assert pod.rejected is None


@pytest.mark.parametrize(
    "message",
    [
        Message({"kind": "images", "shape": [16, 144, 176, 3]}, b"short"),
        Message({"kind": "images", "shape": [0, 144, 176, 3]}, b""),
        Message({"kind": "images", "shape": [1 << 14, 1, 1, 1]}, bytes(1 << 14)),
        Message({"kind": "window_done", "images": 10_000}, b""),
    ],
    ids=["size", "none", "too_many", "claim"],
)
def test_messages_that_lie_end_the_pod(serve, message):
    """Counts come from bytes: a frame that says something else than it holds loses the arm."""
    arm, pod = serve(Honest())
    pod._answers = lambda folder, batches: iter([message])
    assert isinstance(arm.window(4, timeout_s=20.0), ArmLost)
    assert pod.rejected is not None


def test_a_loader_that_keeps_bytes_is_measured_cold(serve):
    """Files read when the iterator is built are stale in tier B; built anew in each window, all images count."""
    kept = {}

    def caching(folder, batches):
        kept.setdefault(folder, [batch.copy() for batch in Honest()(folder, 4)])
        return iter(kept[folder][:batches])

    arm, _ = serve(caching, probes=0)
    for _ in range(2):
        assert arm.probe(cold=False, timeout_s=20.0).fresh in {0, PER_PART}
    assert arm.probe(cold=False, timeout_s=20.0).fresh == 0
    assert arm.probe(cold=True, timeout_s=20.0).fresh == PER_PART
    assert credited(arm) == WINDOWS * PER_PART
    assert arm.ledger.conclude().problem is None


def test_images_run_out_rather_than_come_twice(serve):
    """When every part was shown the arm ends: no image is ever shown a second time."""
    arm, _ = serve(Honest())
    lost = windows(arm, 20)[-1]
    assert isinstance(lost, ArmLost)
    assert "used up" in lost.reason


def test_the_clock_includes_the_time_until_the_pod_is_frozen(serve, monkeypatch):
    """Work done between the last image and the freeze is paid for."""
    arm, pod = serve(Honest())
    freeze = pod.pause

    def slow():
        time.sleep(0.2)
        freeze()

    monkeypatch.setattr(pod, "pause", slow)
    assert arm.window(4, timeout_s=20.0).seconds >= 0.2


def test_what_comes_twice_in_one_window_is_repeated_whatever_it_is_taken_for():
    """A file stands once in a part: the same pixels again are no older image, even where their colour is one's."""
    plan = plan_shard("0e" * 16, (), 4 * 64)
    ledger = Ledger(plan, 64)
    ledger.begin(2)
    old = codes(plan)[5].astype(np.float32)  # an image of part 0
    window = np.repeat(old[None] + np.float32(0.1) * np.arange(4, dtype=np.float32)[:, None], 16, axis=0)
    tally = ledger.take(Delivered(window, ()), 2)
    assert (tally.delivered, tally.fresh) == (64, 0)
    assert tally.repeated == 60
    assert ledger.conclude().problem == "replayed"


def test_what_goes_on_after_the_trials_counts_nothing(serve):
    """Code that runs on for the GPU to be watched leaves the record as it was, and its pod frozen."""
    arm, pod = serve(Honest())
    windows(arm)
    counted, kept = dataclasses.replace(arm.ledger.total), len(arm.ledger.samples)
    span = arm.go_on(0.1, timeout_s=20.0)
    assert span.end > span.start
    assert (arm.ledger.total, len(arm.ledger.samples)) == (counted, kept)
    assert not pod.running
