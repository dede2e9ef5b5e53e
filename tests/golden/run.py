"""Grades the mistakes for real, as rehearsals in forked pods, and keeps evidence and pages.

python -m tests.golden.run [NAME…]            # runs these, or all: about ten seconds each
python -m tests.golden.run --missing          # those of which nothing is kept
python -m tests.golden.run --pages [NAME…]    # runs nothing: makes the pages anew from the kept evidence

What a learner must not see, or what came out otherwise than `mistakes.toml` says, is told; then the exit status is 1.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Mapping

from grader_service.service.local import Graded
from tests.corpus.world import World, opened_world
from tests.golden.catalogue import KEPT, Mistake, chosen
from tests.golden.pages import facts, kept_page, page_of, wanted, write_texts
from tests.golden.rules import broken, page_words
from tests.golden.trimming import MachineNamed, trimmed

LIMITS: Mapping[str, object] = {"learner_timeout_s": 90.0, "learner_stall_s": 30.0}
"""Of every run that its mistake does not change."""
PLAN: Mapping[str, object] = {"block_s": 0.25, "looks": (4, 6), "extension_blocks": 0, "alpha_pass": 0.04}
"""Short, and strict enough that no ratio passes whose interval reaches down to the threshold."""


def main() -> int:
    """Runs, keeps and tells."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.run")
    parser.add_argument("names", nargs="*", metavar="NAME", help="Those that stand in mistakes.toml; all if none.")
    parser.add_argument("--missing", action="store_true", help="Only those of which nothing is kept.")
    parser.add_argument("--pages", action="store_true", help="Only make the pages anew from the kept evidence.")
    options = parser.parse_args()
    try:
        mistakes = chosen(options.names)
    except ValueError as error:
        parser.error(str(error))
    if options.missing:
        mistakes = [mistake for mistake in mistakes if not mistake.evidence.exists()]
    KEPT.mkdir(exist_ok=True)
    if options.pages:
        return _tell({mistake.name: _paged(mistake) for mistake in mistakes})
    found = {}
    with opened_world("forked") as world:
        for number, mistake in enumerate(mistakes, 1):
            started = time.monotonic()
            found[mistake.name] = _kept(mistake, world)
            took = time.monotonic() - started
            print(
                f"[{number}/{len(mistakes)}] {mistake.name} {took:.1f} s, {len(found[mistake.name])} to mend",
                flush=True,
            )
    return _tell(found)


def run(mistake: Mistake, world: World) -> Graded:
    """Grades one as it was handed in, with short limits."""
    lab = world.lab(limits={**LIMITS, **mistake.limits}, plan=PLAN)
    try:
        return world.grade(lambda: mistake.submission, filename=mistake.filename, lab=lab)
    finally:
        for left in mistake.leaves:
            shutil.rmtree(left, ignore_errors=True)


def _kept(mistake: Mistake, world: World) -> list[str]:
    """Runs one and keeps it; what is wrong with it."""
    graded = run(mistake, world)
    if graded.failure is not None:
        return [f"the grader failed: {graded.failure}"]
    document: dict[str, object]
    if graded.evidence is None:
        document = {"rejected": {"code": graded.verdict.code, "feedback": graded.verdict.feedback}}
    else:
        raw = page_of(graded.verdict)
        named = [line.text for line in (*raw.lines, *raw.report) if str(world.folder) in line.text]
        if named:
            return [f"the page names a folder of ours: {text}" for text in named]
        try:
            document = {"evidence": trimmed(graded.evidence, world.folder)}
        except MachineNamed as error:
            return [f"not kept: {error}"]
    mistake.evidence.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    kept_page.cache_clear()
    return _paged(mistake)


def _paged(mistake: Mistake) -> list[str]:
    """Makes both texts anew; what is wrong with them."""
    page = kept_page(mistake.name)
    write_texts(mistake, page)
    came, right = facts(page.verdict), wanted(mistake)
    wrong = [] if came == right else [f"came out as {came}, wanted {right}"]
    return [*wrong, *broken(mistake, page)]


def _tell(found: Mapping[str, list[str]]) -> int:
    for name, problems in found.items():
        for problem in problems:
            print(f"{name}: {problem}", file=sys.stderr)
    kept = [page_words(kept_page(mistake.name)) for mistake in chosen([]) if mistake.evidence.exists()]
    if kept:
        print(f"{len(kept)} pages, median {sorted(kept)[len(kept) // 2]} words, longest {max(kept)}")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
