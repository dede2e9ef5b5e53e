"""Steps of learners' pipelines that several test files use, and the form of a table of controls."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from checks.api import Result
from grader_service.model.verdict import Outcome
from tests.checks.graphs.graphs import Workshop, bare

RESIZE = "images = fn.resize(images, size=[64, 64])"
NORMALISE = "images = fn.crop_mirror_normalize(images, mean=MEAN, std=STD)"
CROP = "images = fn.random_resized_crop(images, size=[64, 64])"
FLIP = "images = fn.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=fn.random.coin_flip(probability=0.5))"
JITTER = """images = fn.color_twist(images, hue=fn.random.uniform(range=(-25, 25)),
                         brightness=fn.random.uniform(range=(0.6, 1.4)))"""
CONDITIONS = ", enable_conditionals=True"
TRIVIAL = "from nvidia.dali.auto_aug import trivial_augment\nimages = trivial_augment.trivial_augment_wide(images)"
OLD_STYLE = """
from nvidia.dali import ops

class SimplePipeline(Pipeline):
    def __init__(self, batch_size, num_threads, device_id):
        super().__init__(batch_size, num_threads, device_id, seed=12)
        self.input = ops.readers.File(file_root=dataset_dir, random_shuffle=True)
        self.decode = ops.decoders.Image(device="mixed", output_type=types.RGB)
        self.crop = ops.RandomResizedCrop(device="gpu", size=[64, 64])
        self.coin = ops.random.CoinFlip(probability=0.5)
        self.finish = ops.CropMirrorNormalize(device="gpu", mean=MEAN, std=STD, output_layout="CHW")

    def define_graph(self):
        jpegs, labels = self.input()
        images = self.crop(self.decode(jpegs))
        return self.finish(images, mirror=self.coin()), labels

train_pipe = SimplePipeline(4, 2, 0)
train_pipe.build()
"""


@dataclass(frozen=True)
class Control:
    """A submission whose right result is known."""

    name: str
    source: str
    code: str
    """What the check must say; for a passing one its `.ok`."""
    params: dict[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    """Where it is neither a pass nor a failure."""


USUAL = (
    Control("the lab's own pipeline", bare(RESIZE, CROP, FLIP), "ok"),
    Control("old style", OLD_STYLE, "ok"),
    Control("colours at random", bare(RESIZE, JITTER, FLIP), "ok"),
    Control("automatic augmentation", bare(CROP, TRIVIAL, NORMALISE, options=CONDITIONS + ", seed=6"), "ok"),
)
"""What many learners hand in; right wherever a check looks at forms and numbers, not at what is random."""


class Controls:
    """The controls of one check; those that its docstring does not count are `further` ones."""

    def __init__(self, check: Any, word: str, counted: list[Control], *, further: Sequence[Control] = ()) -> None:
        self.check = check
        self.word = word
        self.passing = [control for control in counted if control.code == "ok"]
        self.failing = [control for control in counted if control.code != "ok"]
        self.all = [*counted, *further]
        assert len({control.name for control in self.all}) == len(self.all), "two controls have one name"

    def judged(self, workshop: Workshop, control: Control) -> Result:
        """The check's result."""
        return workshop.judge(control.source, self.check, **control.params)

    def assert_right(self, workshop: Workshop, control: Control) -> None:
        """The outcome and the code are those of the control, and the feedback is for a person."""
        result = self.judged(workshop, control)
        wanted = control.outcome or (Outcome.PASSED if control.code == "ok" else Outcome.FAILED)
        assert (result.outcome, result.code) == (wanted, f"{self.word}.{control.code}"), result.feedback
        assert result.parts.outcome.endswith("."), result.feedback
        assert (result.parts.next is None) is (result.outcome is Outcome.PASSED), result.feedback
