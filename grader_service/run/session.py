"""What the measuring half of a run is done with."""

from collections.abc import Sequence
from dataclasses import dataclass

from grader_service.model.evidence import ImageSize, Scan
from grader_service.run import learner
from grader_service.run.pod_set import PodSet
from grader_service.run.progress import StageClock


@dataclass(frozen=True)
class Session:
    """One run, once the learner's code has ended."""

    pod_set: PodSet
    found: learner.Found
    inventory: Scan | None
    seed: str
    clock: StageClock
    threshold: float
    attempt: int
    submitter: str
    """The learner, or what stands for one who is not named."""
    versions: dict[str, str]
    """Filled in with what the trusted pods say."""

    @property
    def sizes(self) -> Sequence[ImageSize]:
        """Of the learner's images; none where they were not counted."""
        return self.inventory.sizes if self.inventory else ()
