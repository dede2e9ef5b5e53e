"""The check `jpeg_dataset`: a data set of real JPEGs, and a PyTorch baseline over it."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from checks.api import Check, Result, failed, passed
from checks.jpeg_dataset import wording
from checks.silent_advice import silent_advice
from checks.stopped import Absent, absent, cut_short, missing, not_reached
from grader_service.model.base import Wire
from grader_service.model.discovery import Claim, PathClaim
from grader_service.model.evidence import Evidence, Need, Scan
from grader_service.model.feedback import Advice


class Params(Wire):
    """Thresholds of the lab."""

    min_images: Annotated[int, Field(ge=1, le=1024)] = 100
    baseline: bool = True
    """Whether a PyTorch baseline over the data is wanted too."""


class Observation(Wire):
    """The scanner's inventory, and what the learner's namespace held."""

    dataset_dir: PathClaim
    pytorch_throughput: Claim
    scan: Scan | None = None
    silent: Annotated[tuple[Advice, ...], Field(max_length=64)] = ()
    """Mistakes that raised nothing; never an input to the outcome."""
    loaders: Annotated[int, Field(ge=0)] = 0
    """Live `DataLoader` objects; a factory counts as one."""
    absent: Absent = Absent(name="pytorch_throughput")
    """What is known of a `pytorch_throughput` that is missing, and of how the run ended."""


class JpegDatasetCheck(Check[Params, Observation]):
    """Judges whether `dataset_dir` holds enough distinct, decodable JPEGs and, if wanted, a baseline was built on it.

    Evidence:
        scan.distinct: int, files of at least 32 pixels a side that our own decoder read to the end and that differ in
            their pixels. One picture saved again and again, and images of one colour, count; most of them being so is
            said as advice, and flagged in `details` for staff.
        pytorch_throughput: a claim; it must be there and positive, its size is never used.
    Points: all or nothing.
    Errors: 0 false accepts and 0 false rejects on the controls in `tests/checks/test_jpeg_dataset.py`.
    Cannot detect: pictures that differ in a few pixels only, or that somebody else took.
    """

    id = "jpeg_dataset"
    version = "1.3.0"
    title = "JPEG data set"
    word = "jpeg"
    needs = frozenset({Need.DISCOVERY, Need.SCAN})
    codes: Mapping[str, str] = {
        "jpeg.ok": "enough distinct JPEGs decode; a baseline is there where wanted",
        "jpeg.dataset_dir_missing": "`dataset_dir` is not defined",
        "jpeg.dataset_dir_unreadable": "`dataset_dir` holds no path",
        "jpeg.not_found": "there is no such folder",
        "jpeg.not_a_directory": "`dataset_dir` is a file",
        "jpeg.outside": "`dataset_dir` lies outside the submission's folders",
        "jpeg.unreadable": "the folder cannot be read",
        "jpeg.too_few": "fewer distinct, decodable JPEGs than the lab asks for",
        "jpeg.pytorch_throughput_missing": "`pytorch_throughput` is not defined",
        "jpeg.pytorch_throughput_invalid": "`pytorch_throughput` is no finite number",
        "jpeg.pytorch_throughput_not_positive": "`pytorch_throughput` is not above 0",
        "jpeg.no_loader": "no DataLoader is left in the namespace",
    }
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return not_reached()
        if discovery.dataset_dir.status == "missing":
            return missing(absent(discovery, "dataset_dir"), "the folder with your JPEG files")
        rate = discovery.pytorch_throughput
        return Observation(
            dataset_dir=discovery.dataset_dir,
            pytorch_throughput=rate,
            scan=evidence.scan,
            loaders=len(discovery.loaders) + ("build_pytorch_loader" in discovery.factories),
            absent=absent(discovery, "pytorch_throughput"),
            silent=tuple(silent_advice(evidence, "data")),
        )

    def judge(self, observation: Observation, params: Params) -> Result:
        """See `checks.api.Check.judge`."""
        scan, shown = observation.scan, observation.dataset_dir.shown
        if observation.dataset_dir.status != "present" or scan is None:
            return failed("jpeg.dataset_dir_unreadable", wording.no_folder(shown))
        if scan.problem is not None:
            code, feedback = wording.root_problem(scan.problem, shown)
            return failed(code, feedback)
        alike = wording.advice(scan)
        advice = (*alike, *observation.silent)
        flags = {"flags": [one.code.removeprefix("advice.") for one in alike]} if alike else {}
        details = {**scan.model_dump(exclude={"sizes"}), **flags}
        if scan.distinct < params.min_images:
            return failed("jpeg.too_few", wording.too_few(scan, shown, params.min_images, advice), details=details)
        if params.baseline and (problem := _baseline_problem(observation)) is not None:
            return problem
        rate = observation.pytorch_throughput.value if params.baseline else None
        return passed(wording.enough(scan, params.min_images, rate, advice), details=details)


def _baseline_problem(observation: Observation) -> Result | None:
    """What is wrong with the learner's baseline; None when nothing is."""
    claim = observation.pytorch_throughput
    if claim.status == "missing":
        return missing(observation.absent, "the images per second of your DataLoader, a number above 0")
    if claim.status != "present" or claim.value is None:
        return failed("jpeg.pytorch_throughput_invalid", wording.no_rate(claim.shown))
    if claim.value <= 0:
        return failed("jpeg.pytorch_throughput_not_positive", wording.no_rate(f"{claim.value:g}"))
    if observation.loaders == 0:
        if (result := cut_short(observation.absent.run)) is not None:
            return result
        return failed("jpeg.no_loader", wording.NO_LOADER)
    return None


CHECK = JpegDatasetCheck()
