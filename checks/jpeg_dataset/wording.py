"""Words for what the scanner found."""

from grader_service.model.evidence import Scan

ROOT_PROBLEMS = {
    "missing": (
        "jpeg.not_found",
        "`dataset_dir` is {shown}, and there is no such folder. Write or unpack the JPEGs there before you set it.",
    ),
    "not_a_directory": (
        "jpeg.not_a_directory",
        "`dataset_dir` is {shown}, which is a file; expected a folder.",
    ),
    "outside": (
        "jpeg.outside",
        "`dataset_dir` is {shown}, which lies outside the folders of your submission. "
        "Put the JPEGs below the working directory or /tmp, or use the folder that GRADER_DATA_DIR names.",
    ),
    "unreadable": ("jpeg.unreadable", "`dataset_dir` is {shown}, and that folder cannot be read."),
}

_REASONS = {
    "symlink": "symbolic links (the files themselves are needed)",
    "hard_link": "further hard links to a file that was counted",
    "copy": "byte-for-byte copies of a file that was counted",
    "same_pixels": "copies with the same pixels as a file that was counted",
    "not_jpeg": "files that are no JPEG whatever their name says",
    "truncated": "JPEGs that are cut off",
    "undecodable": "JPEGs that do not decode",
    "too_small": "images with a side below 32 pixels",
    "too_many_pixels": "images above 64 megapixels",
    "file_too_large": "files above 64 MiB",
    "empty": "empty files",
    "special_file": "pipes, sockets or devices",
    "unreadable": "files or folders that cannot be read",
    "decoder_crashed": "files that crash or hang the decoder",
    "too_deep": "folders nested too deep to look into",
}
_STOPPED = {
    "too_many_entries": " The folder has more entries than are looked at; put the images in a folder of their own.",
    "deadline": " Counting ran out of time; put the images in a folder of their own.",
}


def why_not_counted(scan: Scan) -> str:
    """What was left out and why, with an example or two; empty when every file was counted."""
    if not scan.rejected:
        return _STOPPED.get(scan.stopped_early or "", "")
    parts = [
        f"{count} {_REASONS.get(reason, reason)}"
        for reason, count in sorted(scan.rejected.items(), key=lambda pair: -pair[1])
    ]
    examples = ", ".join(example.path for example in scan.examples[:3])
    shown = f" (for example {examples})" if examples else ""
    return f" Not counted: {'; '.join(parts)}{shown}.{_STOPPED.get(scan.stopped_early or '', '')}"


_ADVICE = {
    "flat": " {count} of your images have one colour only: JPEG decoding of real photos takes longer, so your own "
    "figures may look different with photos.",
    "one_picture": " {count} of your images look like one picture and differ only in quality or size: decoding many "
    "different photos takes other times, so your own figures may look different with them.",
}


def advice(scan: Scan) -> tuple[list[str], str]:
    """What most of the images have in common: flags for staff, one sentence for the learner; both may be empty."""
    flags = [flag for flag in _ADVICE if 2 * getattr(scan, flag) > scan.distinct]
    return flags, "".join(_ADVICE[flag].format(count=getattr(scan, flag)) for flag in flags[:1])
