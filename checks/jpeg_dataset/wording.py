"""Words for what the scanner found."""

from collections.abc import Sequence

from grader_service.model.evidence import Scan
from grader_service.model.feedback import Advice, Feedback, NextStep

_WANTED = "`dataset_dir` should be the folder with your JPEG files, as a string or Path."
_ROOT_PROBLEMS = {
    "missing": (
        "jpeg.not_found",
        "`dataset_dir` is {shown}, and there is no such folder.",
        "Write or unpack the JPEGs there before you set it.",
    ),
    "not_a_directory": (
        "jpeg.not_a_directory",
        "`dataset_dir` is {shown}, which is a file.",
        "Set it to the folder that holds all your images, and look whether a later line gives it another value.",
    ),
    "outside": (
        "jpeg.outside",
        "`dataset_dir` is {shown}, which lies outside the folders of your submission.",
        "Put the JPEGs below the working directory or /tmp, or use the folder that GRADER_DATA_DIR names.",
    ),
    "unreadable": (
        "jpeg.unreadable",
        "`dataset_dir` is {shown}, and that folder cannot be read.",
        "Give yourself the right to read it: os.chmod(dataset_dir, 0o755).",
    ),
}
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
_COPIES = frozenset({"hard_link", "copy", "same_pixels"})
_STOPPED = {
    "too_many_entries": "The folder has more entries than are looked at.",
    "deadline": "Counting ran out of time.",
}
_ADVICE = {
    "flat": "{count} of your images have one colour only, and decode faster than photos: your own figures may be off.",
    "one_picture": "{count} of your images look like one picture in other qualities or sizes: your own figures may "
    "be off.",
}


def root_problem(problem: str, shown: str) -> tuple[str, Feedback]:
    """Code and feedback for a `dataset_dir` that could not be scanned."""
    code, seen, action = _ROOT_PROBLEMS.get(problem, _ROOT_PROBLEMS["unreadable"])
    return code, Feedback(outcome=seen.format(shown=shown), wanted=_WANTED, next=NextStep(text=action))


def too_few(scan: Scan, shown: str, needed: int, advice: Sequence[Advice]) -> Feedback:
    """Feedback for a folder with fewer distinct JPEGs than needed."""
    lacking = needed - scan.distinct
    files = "file" if scan.distinct == 1 else "files"
    action = f"Add {lacking} more, each another picture."
    if any(scan.rejected.get(reason) for reason in _COPIES):
        action = f"Add {lacking} more, each another picture: copies count once."
    if scan.stopped_early in _STOPPED:
        action = f"{_STOPPED[scan.stopped_early]} Put the images into a folder of their own."
    return Feedback(
        outcome=f"`dataset_dir` ({shown}) holds {scan.distinct} distinct JPEG {files}, {lacking} too few.",
        seen=not_counted(scan),
        wanted=f"At least {needed} are needed.",
        next=NextStep(text=action),
        advice=tuple(advice),
        numbers={"images": scan.distinct, "needed": needed, "lacking": lacking},
    )


def not_counted(scan: Scan) -> str:
    """What was left out and why, the commonest reasons, with an example; empty when every file was counted."""
    if not scan.rejected:
        return ""
    common = sorted(scan.rejected.items(), key=lambda pair: -pair[1])
    parts = [f"{count} {_REASONS.get(reason, reason)}" for reason, count in common[:3]]
    shown = f" (such as {scan.examples[0].path})" if scan.examples else ""
    return f"Not counted: {'; '.join(parts)}{shown}."


def advice(scan: Scan) -> list[Advice]:
    """What most of the images have in common; at most one piece."""
    flags = [flag for flag in _ADVICE if 2 * getattr(scan, flag) > scan.distinct]
    return [
        Advice(
            code=f"advice.{flag}",
            text=_ADVICE[flag].format(count=getattr(scan, flag)),
            next="Use different photos for your own measurement.",
        )
        for flag in flags[:1]
    ]


def enough(scan: Scan, needed: int, rate: float | None, advice: Sequence[Advice]) -> Feedback:
    """Feedback for a pass; `rate` is the learner's own figure, where one is asked for."""
    counted = f"{scan.distinct} or more" if scan.stopped_early == "enough" else str(scan.distinct)
    return Feedback(
        outcome=f"{counted} distinct JPEG files decode, and at least {needed} were needed.",
        seen="" if rate is None else f"A DataLoader is there; your own figure for it is {rate:,.0f} images/s.",
        advice=tuple(advice),
        numbers={"images": scan.distinct, "needed": needed},
    )


def no_folder(shown: str) -> Feedback:
    """Feedback for a `dataset_dir` that is no path."""
    return Feedback(
        outcome=f"`dataset_dir` holds {shown or 'nothing'}, which is no path.",
        wanted=_WANTED,
        next=NextStep(text="Set it to that folder.", code='dataset_dir = "/workspace/images"'),
    )


def no_rate(shown: str) -> Feedback:
    """Feedback for a `pytorch_throughput` that is no rate."""
    return Feedback(
        outcome=f"`pytorch_throughput` holds {shown}, which is no rate.",
        wanted="It should be the images per second that you measured, a finite number above 0.",
        next=NextStep(text="Divide the images by the seconds:", code="pytorch_throughput = images / elapsed"),
    )


NO_LOADER = Feedback(
    outcome="No torch.utils.data.DataLoader is left in your namespace.",
    wanted="The loader that you measured is timed again beside DALI.",
    next=NextStep(
        text="Keep it in a variable, and do not delete it; or define build_pytorch_loader(dataset_dir, batch_size)."
    ),
)
