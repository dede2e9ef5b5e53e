"""The check `jpeg_dataset`: a data set of real JPEGs, and a PyTorch baseline over it."""

from typing import Annotated

from pydantic import Field

from checks.api import Advice, Dataset, Discovery, Result, absent, check, failed, missing, passed
from checks.silent_advice import AboutData
from checks.stopped import cut_short, run_end
from grader_service.model.evidence import Scan

_WANTED = "`dataset_dir` should be the folder with your JPEG files, as a string or Path."
_PROBLEMS = {
    "missing": (
        "not_found",
        "and there is no such folder",
        "Write or unpack the JPEGs there before you set it.",
    ),
    "not_a_directory": (
        "not_a_directory",
        "which is a file",
        "Set it to the folder that holds all your images, and look whether a later line gives it another value.",
    ),
    "outside": (
        "outside",
        "which lies outside the folders of your submission",
        "Put the JPEGs below the working directory or /tmp, or use the folder that GRADER_DATA_DIR names.",
    ),
    "unreadable": (
        "unreadable",
        "and that folder cannot be read",
        "Give yourself the right to read it: os.chmod(dataset_dir, 0o755).",
    ),
}
"""Why nothing was scanned → last word of the code, what `dataset_dir` is, and what to do."""
_REASONS = {
    "symlink": "symbolic links",
    "hard_link": "further hard links to one file",
    "copy": "copies of a file, byte for byte",
    "same_pixels": "copies with the same pixels",
    "not_jpeg": "that are no JPEG, whatever their names say",
    "truncated": "cut off",
    "undecodable": "do not decode",
    "too_small": "a side below 32 pixels",
    "too_many_pixels": "above 64 megapixels",
    "file_too_large": "above 64 MiB",
    "empty": "empty",
    "special_file": "pipes, sockets or devices",
    "unreadable": "cannot be read",
    "decoder_crashed": "crash or hang the decoder",
    "too_deep": "nested too deep",
}
_COPIES = ("hard_link", "copy", "same_pixels")
_STOPPED = {
    "too_many_entries": "The folder has more entries than are looked at.",
    "deadline": "Counting ran out of time.",
}
_ALIKE = {
    "flat": "have one colour only, and decode faster than photos",
    "one_picture": "look like one picture in other qualities or sizes",
}
"""Fact of the scan → what is so with most of the images."""


@check(
    version="1.3.0",
    title="JPEG data set",
    word="jpeg",
    tier=None,  # claims have to be there, and nothing else rests on them
    codes={
        "not_found": "there is no such folder",
        "not_a_directory": "`dataset_dir` is a file",
        "outside": "`dataset_dir` lies outside the submission's folders",
        "unreadable": "the folder cannot be read",
        "pytorch_throughput_invalid": "`pytorch_throughput` is no finite number",
        "pytorch_throughput_not_positive": "`pytorch_throughput` is not above 0",
    },
)
def jpeg_dataset(
    discovery: Discovery,
    scan: Dataset | None,
    silent: AboutData,
    *,
    min_images: Annotated[int, Field(ge=1, le=1024)] = 100,
    baseline: bool = True,
) -> Result:
    """Judges whether `dataset_dir` holds enough distinct, decodable JPEGs and, if wanted, a baseline was built on it.

    Evidence:
        scan.distinct: int, files of at least 32 pixels a side that our own decoder read to the end and that differ in
            their pixels. One picture saved again and again, and images of one colour, count; most of them being so is
            said as advice, and flagged in `details` for staff.
        pytorch_throughput: a claim; it must be there and positive, its size is never used.
    Points: all or nothing.
    Errors: 0 false accepts and 0 false rejects on the controls in `tests/checks/test_jpeg_dataset.py`.
    Cannot detect: pictures that differ in a few pixels only, or that somebody else took.

    Args:
        baseline: Whether a PyTorch baseline over the data is wanted too.
    """
    folder, shown = discovery.dataset_dir, discovery.dataset_dir.shown
    if folder.status == "missing":
        return missing(absent(discovery, "dataset_dir"), "the folder with your JPEG files")
    if folder.status != "present" or scan is None:
        return failed(
            "dataset_dir_unreadable",
            f"`dataset_dir` holds {shown or 'nothing'}, which is no path.",
            wanted=_WANTED,
            next="Set it to that folder.",
            write='dataset_dir = "/workspace/images"',
        )
    if scan.problem is not None:
        code, so, action = _PROBLEMS.get(scan.problem, _PROBLEMS["unreadable"])
        return failed(code, f"`dataset_dir` is {shown}, {so}.", wanted=_WANTED, next=action)
    flags = [flag for flag in _ALIKE if 2 * getattr(scan, flag) > scan.distinct][:1]
    alike = (
        Advice(
            code=f"advice.{flag}",
            text=f"{getattr(scan, flag)} of your images {_ALIKE[flag]}: your own figures may be off.",
            next="Use different photos for your own measurement.",
        )
        for flag in flags
    )
    advice = (*alike, *silent)
    details = {**scan.model_dump(exclude={"sizes"}), **({"flags": flags} if flags else {})}
    numbers = {"images": scan.distinct, "needed": min_images}
    if scan.distinct < min_images:
        lacking, files = min_images - scan.distinct, "file" if scan.distinct == 1 else "files"
        return failed(
            "too_few",
            f"`dataset_dir` ({shown}) holds {scan.distinct} distinct JPEG {files}, {lacking} too few.",
            seen=_not_counted(scan),
            wanted=f"At least {min_images} are needed.",
            next=_add(scan, lacking),
            advice=advice,
            numbers=numbers | {"lacking": lacking},
            details=details,
        )
    if baseline and (problem := _baseline_problem(discovery)) is not None:
        return problem
    counted = f"{scan.distinct} or more" if scan.stopped_early == "enough" else str(scan.distinct)
    rate = discovery.pytorch_throughput.value if baseline else None
    return passed(
        f"{counted} distinct JPEG files decode, and at least {min_images} were needed.",
        seen="" if rate is None else f"A DataLoader is there; your own figure for it is {rate:,.0f} images/s.",
        advice=advice,
        numbers=numbers,
        details=details,
    )


def _not_counted(scan: Scan) -> str:
    """What was left out and why, the commonest reasons, with an example; empty when every file was counted."""
    if not scan.rejected:
        return ""
    common = sorted(scan.rejected.items(), key=lambda pair: -pair[1])
    parts = [f"{count} {_REASONS.get(reason, reason)}" for reason, count in common[:3]]
    shown = f" (such as {scan.examples[0].path})" if scan.examples else ""
    return f"Not counted: {'; '.join(parts)}{shown}."


def _add(scan: Scan, lacking: int) -> str:
    if scan.stopped_early in _STOPPED:
        return f"{_STOPPED[scan.stopped_early]} Put the images into a folder of their own."
    copies = any(scan.rejected.get(reason) for reason in _COPIES)
    return f"Add {lacking} more, each another picture{': copies count once' if copies else ''}."


def _baseline_problem(discovery: Discovery) -> Result | None:
    """What is wrong with the learner's baseline; None when nothing is."""
    claim = discovery.pytorch_throughput
    if claim.status == "missing":
        wanted = "the images per second of your DataLoader, a number above 0"
        return missing(absent(discovery, "pytorch_throughput"), wanted)
    rate = claim.value if claim.status == "present" else None
    if rate is None or rate <= 0:
        shown = claim.shown if rate is None else f"{rate:g}"
        return failed(
            "pytorch_throughput_invalid" if rate is None else "pytorch_throughput_not_positive",
            f"`pytorch_throughput` holds {shown}, which is no rate.",
            wanted="It should be the images per second that you measured, a finite number above 0.",
            next="Divide the images by the seconds:",
            write="pytorch_throughput = images / elapsed",
        )
    if discovery.loaders or "build_pytorch_loader" in discovery.factories:
        return None
    return cut_short(run_end(discovery)) or failed(
        "no_loader",
        "No torch.utils.data.DataLoader is left in your namespace.",
        wanted="The loader that you measured is timed again beside DALI.",
        next="Keep it in a variable, and do not delete it; or define build_pytorch_loader(dataset_dir, batch_size).",
    )
