"""Single-use images for measuring learner code: each trial's are made where no pod sees them, and shown at one instant.

All trials of a run are parts of one plan: their files have the same names, and their colours tell which part an image
belongs to. A pod is frozen while a part takes the place of another, so that it never sees a folder that is half there.
"""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from grader_service.held_out.plan import MAX_IMAGES, ShardPlan, plan_shard
from grader_service.held_out.shards import PendingShard
from grader_service.model.evidence import ImageSize
from sandbox.run_folder import HIDDEN

_LIVE = "live"


class TrialShards:
    """Parts of one plan, shown one after another below `folder`; part 0 is for building and warming up."""

    def __init__(self, seed: str, sizes: Sequence[ImageSize], per_part: int, parts: int, folder: Path) -> None:
        """Plans the images; nothing is drawn yet.

        Args:
            seed: of the run. The images are others than those that the clean room gets, which pods have seen.
            per_part: images in each part, all of them in one epoch.
            parts: parts in all; fewer when a plan has no room for them.
            folder: the host's folder that pods see; its parent, which they do not see, keeps what is yet to be shown.
        """
        self.per_part = per_part
        self.parts = min(parts, MAX_IMAGES // per_part)
        own_seed = hashlib.sha256(f"trials {seed}".encode()).hexdigest()[:32]
        self.plan: ShardPlan = plan_shard(own_seed, sizes, per_part * self.parts)
        self.shown = -1
        """Newest part that a pod may have seen."""
        self._made = -1
        self._folder = folder
        self._hidden = folder.parent / HIDDEN

    def make_next(self) -> int | None:
        """Draws the next part out of sight; its number, or None when the plan is used up.

        Raises:
            OSError: it could not be written.
        """
        if self._made + 1 >= self.parts:
            return None
        self._made += 1
        target = self._hidden / str(self._made)
        target.mkdir(parents=True)
        target.chmod(0o755)
        start = self._made * self.per_part
        with PendingShard(self.plan, target, part=range(start, start + self.per_part)) as pending:
            pending.names()
        return self._made

    def show(self, *, under_new_name: bool = False) -> str:
        """Puts the part that was made last in its place; the folder's name below the pods' folder.

        Every pod that runs learner code must be frozen.

        Args:
            under_new_name: leave the folder that was shown before alone, for a loader that is built anew.
        """
        name = f"{_LIVE}-{self._made}" if under_new_name else _LIVE
        place = self._folder / name
        if place.exists():
            place.rename(self._hidden / f"shown-{self.shown}")
        (self._hidden / str(self._made)).rename(place)
        self.shown = self._made
        return name

    def close(self) -> None:
        """Deletes what pods cannot see; the run's own folder goes with the run."""
        shutil.rmtree(self._hidden, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
