"""Counts what learner code delivered: an image counts once, when it is one that could not be known before the trial."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grader_service.held_out.audit import Image, spot_check
from grader_service.held_out.identity import Identifier, Normalisation
from grader_service.held_out.plan import ShardPlan
from grader_service.held_out.proof import Figures, prove
from grader_service.measure.delivery import Delivered
from grader_service.measure.work_parity import standard_work
from grader_service.model.measurement import ContentProof

AUDITS = 64
_FEWEST_TO_FIT = 48
_MOST = 0.5
"""Share of all images from which something is what the arm mostly does."""


@dataclass
class Tally:
    """Images of one or more windows, by what they are worth."""

    delivered: int = 0
    fresh: int = 0
    """Shown to the pod in a trial that counts, and delivered for the first time."""
    stale: int = 0
    """Shown before the trials that count."""
    repeated: int = 0
    """Delivered before, or the same pixels again."""
    unknown: int = 0
    """No image of this run, or one that was not shown yet."""

    def add(self, other: "Tally") -> None:
        """Adds another tally to this one."""
        self.delivered += other.delivered
        self.fresh += other.fresh
        self.stale += other.stale
        self.repeated += other.repeated
        self.unknown += other.unknown


@dataclass
class Ledger:
    """Remembers which images of a plan were delivered, over all windows of a run."""

    plan: ShardPlan
    per_part: int
    total: Tally = field(default_factory=Tally)
    """Of the windows that count."""
    samples: list[Image] = field(default_factory=list)
    """Images that were counted and are kept for an audit."""
    problem: str | None = None
    """Why identities could not be told in some window that counts."""

    def __post_init__(self) -> None:
        self._identifier = Identifier(self.plan)
        self._normalisation: Normalisation | None = None
        self._counted = np.zeros(len(self.plan.sizes), bool)
        self._seen: set[bytes] = set()
        self._first_part = 1

    def begin(self, first_part: int) -> None:
        """From here on windows count, and images of this part and later ones; all earlier images are stale."""
        self._first_part = first_part
        self.total, self.samples, self.problem = Tally(), [], None

    def take(self, content: Delivered, shown: int, *, only_newest: bool = False) -> Tally:
        """Judges one window's images.

        Args:
            shown: newest part that the pod has seen.
            only_newest: images of earlier parts are stale, as for a loader that was built anew in this window.
        """
        ids = self._identify(content.means)
        first, end = (shown if only_newest else self._first_part) * self.per_part, (shown + 1) * self.per_part
        tally = Tally(delivered=len(ids))
        fresh: set[int] = set()
        here: set[bytes] = set()
        for row, index in enumerate(ids.tolist()):
            pixels = content.means[row].tobytes()
            again, at_once = pixels in self._seen, pixels in here
            self._seen.add(pixels)
            here.add(pixels)
            if at_once:
                # A window is one part, in which no file stands twice; whatever it is taken for, it came again.
                tally.repeated += 1
            elif index >= end or (index < 0 and not again):
                tally.unknown += 1
            elif index < 0 or (index >= first and self._counted[index]):
                tally.repeated += 1
            elif index < first:
                tally.stale += 1
            else:
                self._counted[index] = True
                fresh.add(row)
        tally.fresh = len(fresh)
        self.total.add(tally)
        self.samples += [(int(ids[row]), pixels) for row, pixels in content.copies if row in fresh]
        return tally

    def conclude(self) -> ContentProof:
        """Audits some of the images that were counted, and says whether the arm's images count as delivered work.

        Problems beside those of `held_out.proof.prove`, where most images did not count: `replayed` (more of them had
        come before), `stale` (more of them were from before the trials).
        """
        audits = spot_check(self.plan, self.samples, AUDITS)
        total = self.total
        figures = Figures(
            delivered=total.delivered,
            identified=total.fresh + total.repeated,
            distinct=total.fresh,
            stale=total.stale,
            problem=self.problem if total.unknown > _MOST * total.delivered else None,
        )
        # The learner's job is not known here, so torchvision's RandomResizedCrop stands in for it.
        proof = prove(audits, figures, expected=standard_work(self.plan.sizes))
        problem = proof.problem
        if total.repeated + total.stale > _MOST * total.delivered:
            problem = "replayed" if total.repeated >= total.stale else "stale"
        return proof.model_copy(update={"repeated": total.repeated, "problem": problem})

    def _identify(self, means: NDArray[np.float32]) -> NDArray[np.int32]:
        if means.shape[1] != 3:
            self.problem = "no_colour"
            return np.full(len(means), -1, np.int32)
        found = self._identifier.identify_means(means)
        self.problem = found.problem or self.problem
        if self._normalisation is None and found.normalisation is not None and len(means) >= _FEWEST_TO_FIT:
            # One scale for the whole run: the pod fixed it with its first batch.
            self._normalisation = found.normalisation
            self._identifier = Identifier(self.plan, normalisation=found.normalisation)
        return found.ids


@dataclass
class Spread:
    """Charges the images that a warm pipeline held when the trials began to the first look's blocks, in equal parts.

    A pipeline that was warmed up delivers what it had queued first. Those images cost time and count nothing; charged
    to one block alone they would make that block an outlier. By the first look every one of them has been charged.
    What a discarded block held costs nobody anything.
    """

    blocks: int
    _owed: float = 0.0
    _left: int = -1
    _before: tuple[float, int] = (0.0, -1)
    """Both before the last window."""

    def credit(self, tally: Tally) -> int:
        """Images to credit for the next window; may be below zero."""
        self._before = (self._owed, self._left)
        if self._left < 0:
            self._owed = tally.stale / self.blocks
            self._left = self.blocks
            images = tally.fresh + tally.stale - self._owed
        else:
            images = tally.fresh - (self._owed if self._left > 0 else 0.0)
        self._left = max(0, self._left - 1)
        return round(images)

    def discard(self) -> None:
        """The last window counts nowhere."""
        self._owed, self._left = self._before
