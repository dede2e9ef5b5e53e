"""`docs/seccomp.md`, made of the list itself: `python -m tests.sandbox.seccomp_page` writes it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sandbox import seccomp

PAGE = Path(__file__).resolve().parents[2] / "docs" / "seccomp.md"
HEAD = """\
# System calls of a pod

Made from `sandbox/seccomp.py` by `python -m tests.sandbox.seccomp_page`; a test keeps the two alike.

Every Docker pod, whatever runs in it, gets a list of the system calls that it may make. A call that is not on it
fails with EPERM; one that is newer than the list fails with ENOSYS, so that libraries fall back. Only native calls of
x86-64 and AArch64 exist: a 32-bit call ends the process that makes it. Names that an engine's libseccomp does not
know are left out, which refuses them. `python -m sandbox.seccomp` prints the profile for other uses, such as another
engine's own default.

The list is the second wall, not the first: a pod has no capabilities, no network and no privileges to gain. What it
adds is that bugs in rarely used parts of the kernel cannot be reached from learner code.
`tests/sandbox/test_seccomp.py` makes every refused call on a real kernel, and runs torch with its workers,
torchvision, DALI, Matplotlib and gloo behind the list.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, "## Allowed\n", *_table(seccomp.ALLOWED), "\n## Refused, and why\n", *_refused()]) + "\n"


def _table(groups: Sequence[seccomp.Group]) -> Iterator[str]:
    yield "| what | why | calls |"
    yield "| --- | --- | --- |"
    for group in groups:
        note = " (only with the arguments that the list names)" if group.when else ""
        note = " (answered with ENOSYS)" if group.error else note
        yield f"| {group.title} | {group.reason} | {' '.join(f'`{name}`' for name in group.names)}{note} |"


def _refused() -> Iterator[str]:
    yield "Whatever is not listed above is refused; these are what one might look for."
    yield ""
    yield from _table(seccomp.REFUSED)


if __name__ == "__main__":
    PAGE.write_text(page())
