"""Arms whose images arrive here as pixels: learner code is credited for what it proved, our loaders for what they sent.

All of them pay for the same transfer. Whatever learner code says about itself is not used: images are counted on the
host, and the clock runs from the instant at which their files appear to the instant at which the pod is frozen again.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from grader_service.measure.arms import ArmLost, Asked, Pace, ReferenceArm, lost
from grader_service.measure.delivery import Arrival, receive
from grader_service.measure.gpu_use import Span
from grader_service.measure.proof import Ledger, Spread, Tally
from grader_service.measure.trial_shards import TrialShards
from grader_service.model.batch_geometry import height_width_channels
from grader_service.model.measurement import Arm, LoaderSettings, Window
from grader_service.run.dialogue import Mark, Problem, Stopped, ask, parse, trusted
from sandbox.api import Pod

_SLACK_IMAGES = 4096
_MOST_WINDOWS = 40
"""Windows' worth of images that `go_on` asks for at the most."""
_FULL_BATCHES = 0.75
"""Share of the images that batches of the size of the first one would hold, from which they are taken to have it."""


class ProofArm:
    """The learner's DALI code, tiers B and C; its pod is frozen whenever it is not its turn.

    Tier B: images are exchanged under the running iterator. Every instant in which the pod was not frozen since the
    trials began lies in some window, so that work done ahead in one window has cost that window its time.
    Tier C (`cold`): the iterator is built anew in each window, on a folder that appears when the clock starts; only
    images of that folder count.
    """

    arm = Arm.DALI

    def __init__(
        self, pod: Pod, shards: TrialShards, guest_folder: str, shape: Sequence[int], *, first_look: int
    ) -> None:
        """Takes over a frozen pod that has seen part 0 of the shards.

        Args:
            guest_folder: where the pod sees the folder of shards.
            shape: of a batch as the iterator delivers it; all its images must be of that size.
            first_look: blocks before the first look of the test.
        """
        self.ledger = Ledger(shards.plan, shards.per_part)
        self.cold = False
        self._image = height_width_channels(shape[1:])
        batch_size = min(shape[0], shards.per_part)
        self.least_batch = batch_size
        """Images that its batches hold at the least, as the host counted them; see `_batch_held`."""
        self._pod = pod
        self._shards = shards
        self._guest_folder = guest_folder
        self._batches = max(1, shards.per_part // batch_size)
        self._batch_size = batch_size
        self._spread = Spread(first_look)
        self.settled = True
        self._began = False
        self._last_s = 1.0
        """That the last window took."""

    def probe(self, *, cold: bool, timeout_s: float) -> Tally | ArmLost:
        """One window that warms the arm up and shows whether new images come out of it."""
        self.cold = cold
        outcome = self._run(timeout_s)
        return outcome if isinstance(outcome, ArmLost) else outcome[0]

    def window(self, batches: int, *, timeout_s: float) -> Window | ArmLost:
        """See `TimedArm.window`; the number of batches is that of one part, whatever is asked for."""
        del batches
        if not self._began:
            self.ledger.begin(self._shards.shown + 1)
            self._began = True
        outcome = self._run(timeout_s)
        if isinstance(outcome, ArmLost):
            return outcome
        tally, seconds = outcome
        images = tally.fresh if self.cold else self._spread.credit(tally)
        if images <= 0:
            return ArmLost(_nothing_new(tally))
        return Window(arm=self.arm, images=images, seconds=seconds)

    def batches_for(self, seconds: float) -> int:
        """See `TimedArm.batches_for`."""
        del seconds
        return self._batches

    def discarded(self) -> None:
        """See `Discarding.discarded`."""
        self._spread.discard()

    def go_on(self, seconds: float, *, timeout_s: float) -> Span:
        """Lets the iterator run for about so long without counting anything, since windows are too short to be watched.

        Returns:
            When it ran; whether it did, who looks at the GPU meanwhile will see.
        """
        batches = min(math.ceil(self._batches * seconds / self._last_s), _MOST_WINDOWS * self._batches)
        return self._deliver(batches, None, timeout_s)[1]

    def _run(self, timeout_s: float) -> tuple[Tally, float] | ArmLost:
        if self._shards.make_next() is None:
            return ArmLost("the measurement used up all held-out images without a decision")
        name = self._shards.show(under_new_name=self.cold)
        folder = f"{self._guest_folder}/{name}" if self.cold else None
        arrival, span = self._deliver(self._batches, folder, timeout_s)
        seconds = span.end - span.start
        if not isinstance(arrival, Arrival):
            return lost(arrival)
        self._last_s = seconds
        if others := arrival.shapes - {self._image}:
            return ArmLost(_other_size(min(others), self._image))
        self.least_batch = min(self.least_batch, _batch_held(arrival.images, self._batches, self._batch_size))
        return self.ledger.take(arrival.content, self._shards.shown, only_newest=self.cold), seconds

    def _deliver(self, batches: int, folder: str | None, timeout_s: float) -> tuple[Arrival | Problem | Stopped, Span]:
        """What came of so many batches, and the time in which the pod ran for them."""
        request = {"kind": "deliver_dali", "batches": batches, "folder": folder}
        ending = self._pod.send(request)  # read when the pod thaws
        started = time.monotonic()
        if ending is not None:
            return Stopped(ending), Span(self.arm, started, started)
        self._pod.resume()
        arrival = receive(self._pod, timeout_s, most_images=batches * self._batch_size + _SLACK_IMAGES)
        self._pod.pause()
        # Until it is frozen again it can work ahead, so that time is the arm's as well.
        return arrival, Span(self.arm, started, time.monotonic())


class ReferenceSender(ReferenceArm):
    """Our own loader, delivering as the learner's code does."""

    def window(self, batches: int, *, timeout_s: float) -> Window:
        """See `TimedArm.window`.

        Raises:
            SandboxUnavailable: the pod ended; it runs only our code, so that is ours.
        """
        asked = Asked(batches, self.queue_depth, {"kind": "deliver", "name": self.arm.value})
        outcome = _sent(self.pod, self.arm, asked, self.settings.batch_size, timeout_s, self._pace)
        if isinstance(outcome, Problem):
            outcome = Stopped(self.pod.reject(outcome.text))
        return trusted(outcome, self.pod) if isinstance(outcome, Stopped) else outcome


@dataclass
class HeldArm:
    """The learner's own loader, timed before the blocks.

    It shares a pod with the learner's DALI code, which would have the time of its windows to work ahead in. So it runs
    before the first trial, and its median window stands in every block.
    """

    held: Window
    arm: Arm = Arm.LEARNER
    settled: bool = True

    def window(self, batches: int, *, timeout_s: float) -> Window:
        """See `TimedArm.window`."""
        del batches, timeout_s
        return self.held

    def batches_for(self, seconds: float) -> int:
        """See `TimedArm.batches_for`."""
        del seconds
        return 1


def hold_loader(
    pod: Pod, settings: LoaderSettings, queue_depth: int, seconds: float, *, timeout_s: float
) -> HeldArm | ArmLost:
    """Times the learner's own loader, which `arms.prepare_learner_arm` made ready; the pod must be running."""
    pace = Pace(burst=settings.num_workers)
    windows: list[Window] = []
    for number in range(4):
        asked = Asked(pace.batches_for(seconds if number else 0.0), queue_depth, {"kind": "deliver_loader"})
        outcome = _sent(pod, Arm.LEARNER, asked, settings.batch_size, timeout_s, pace)
        if not isinstance(outcome, Window):
            return lost(outcome)
        if number:
            windows.append(outcome)
    return HeldArm(sorted(windows, key=lambda window: window.images_per_s)[len(windows) // 2])


def _sent(
    pod: Pod, arm: Arm, asked: Asked, batch_size: int, timeout_s: float, pace: Pace
) -> Window | Problem | Stopped:
    """What arrived, and the seconds from the mark to the last arrival."""
    sent = time.monotonic()
    request = {"discard": asked.discard, "batches": asked.batches, **asked.more}
    opened = parse(pod, ask(pod, request, timeout_s=timeout_s), Mark, Problem)
    if not isinstance(opened, Mark):
        assert isinstance(opened, (Problem, Stopped))  # noqa: S101 - the only other types
        return opened
    started = time.monotonic()
    arrival = receive(pod, timeout_s, most_images=asked.batches * batch_size + _SLACK_IMAGES)
    if not isinstance(arrival, Arrival):
        return arrival
    seconds = arrival.last_at - started
    pace.saw(asked.batches, seconds, discarded=asked.discard, asked_s=time.monotonic() - sent)
    return Window(arm=arm, images=arrival.images, seconds=seconds)


def _batch_held(images: int, batches: int, batch_size: int) -> int:
    """Images in a batch of one window: as was said, or their mean where it is clearly less.

    The last batch of an epoch may be short, so a mean that is a little below the batch's size says nothing against it.
    """
    return batch_size if images >= _FULL_BATCHES * batches * batch_size else math.ceil(images / batches)


def _other_size(found: tuple[int, ...], first: tuple[int, ...]) -> str:
    sizes = " × ".join(map(str, found)), " × ".join(map(str, first))
    return f"it delivered images of {sizes[0]}, and the first batch's are {sizes[1]}; all must have one size"


def _nothing_new(tally: Tally) -> str:
    return (
        f"of {tally.delivered} images in one window none was new: {tally.stale} from before the clock started, "
        f"{tally.repeated} repeated, {tally.unknown} unknown"
    )
