"""The check `jpeg_dataset`: a data set of real JPEGs, and a PyTorch baseline over it."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from checks.api import API_VERSION, CheckResult, failed, passed
from checks.codes import NEEDS_GPU, STOPPED, common
from checks.jpeg_dataset import wording
from checks.stopped import missing, no_evidence, stopped_before, without_name
from grader_service.model.base import LongText, Wire
from grader_service.model.evidence import Claim, Evidence, Need, PathClaim, Scan


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
    loaders: Annotated[int, Field(ge=0)] = 0
    """Live `DataLoader` objects; a factory counts as one."""
    stopped: str = ""
    """One sentence on what stopped the code, if anything did."""
    needs_gpu: LongText = ""
    """What a rehearsal could not carry to the CPU; empty when nothing."""


class JpegDatasetCheck:
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

    id: ClassVar[str] = "jpeg_dataset"
    version: ClassVar[str] = "1.2.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "JPEG data set"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY, Need.SCAN})
    codes: ClassVar[Mapping[str, str]] = common("jpeg", STOPPED, NEEDS_GPU) | {
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

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        discovery = evidence.discovery
        if discovery is None:
            return no_evidence(evidence, "jpeg")
        if discovery.dataset_dir.status == "missing":
            return missing(discovery, "jpeg", "dataset_dir", "the folder with your JPEG files, as a string or Path")
        return Observation(
            dataset_dir=discovery.dataset_dir,
            pytorch_throughput=discovery.pytorch_throughput,
            scan=evidence.scan,
            loaders=len(discovery.loaders) + ("build_pytorch_loader" in discovery.factories),
            stopped=stopped_before(discovery),
            needs_gpu=discovery.needs_gpu,
        )

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        scan = observation.scan
        if params.baseline and observation.pytorch_throughput.status == "missing":
            return without_name(
                "jpeg",
                "pytorch_throughput",
                "the images per second of your DataLoader",
                needs_gpu=observation.needs_gpu,
                stopped=observation.stopped,
            )
        if observation.dataset_dir.status != "present" or scan is None:
            return failed(
                "jpeg.dataset_dir_unreadable",
                f"`dataset_dir` holds {observation.dataset_dir.shown or 'nothing'}; "
                "expected the folder with your JPEG files, as a string or Path.",
            )
        if scan.problem is not None:
            code, text = wording.ROOT_PROBLEMS.get(scan.problem, wording.ROOT_PROBLEMS["unreadable"])
            return failed(code, text.format(shown=observation.dataset_dir.shown) + observation.stopped)
        flags, advice = wording.advice(scan)
        details = {**scan.model_dump(exclude={"sizes"}), **({"flags": flags} if flags else {})}
        remarks = f"{wording.why_not_counted(scan)}{advice}"
        if scan.distinct < params.min_images:
            return failed(
                "jpeg.too_few",
                f"{scan.distinct} distinct, decodable JPEG files lie below `dataset_dir` "
                f"({observation.dataset_dir.shown}); at least {params.min_images} are needed."
                f"{wording.why_not_counted(scan)}{observation.stopped}",
                details=details,
            )
        counted = f"{scan.distinct} or more" if scan.stopped_early == "enough" else str(scan.distinct)
        text = f"{counted} distinct JPEG files decode; at least {params.min_images} were needed."
        if not params.baseline:
            return passed("jpeg.ok", f"{text}{remarks}", details=details)
        if (problem := _baseline_problem(observation)) is not None:
            return problem
        value = observation.pytorch_throughput.value
        return passed(
            "jpeg.ok",
            f"{text} A DataLoader was found and your own figure for it, {value:,.0f} images/s, is on record.{remarks}",
            details=details,
        )


def _baseline_problem(observation: Observation) -> CheckResult | None:
    """What is wrong with the learner's baseline; None when nothing is."""
    claim = observation.pytorch_throughput
    if claim.status != "present" or claim.value is None:
        return failed(
            "jpeg.pytorch_throughput_invalid",
            f"`pytorch_throughput` holds {claim.shown}; expected a finite number of images per second.",
        )
    if claim.value <= 0:
        return failed(
            "jpeg.pytorch_throughput_not_positive",
            f"`pytorch_throughput` is {claim.value:g}; expected the images per second that you measured, above 0.",
        )
    if observation.loaders == 0:
        return failed(
            "jpeg.no_loader",
            "No torch.utils.data.DataLoader is left in your namespace. Keep the loader that you measured in a "
            "variable, or define build_pytorch_loader(dataset_dir, batch_size)." + observation.stopped,
        )
    return None


CHECK = JpegDatasetCheck()
