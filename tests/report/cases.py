"""Verdicts of every kind that a page or an export shows, by name."""

import math
from functools import partial

from grader_service.model.feedback import Advice, Feedback
from grader_service.model.measurement import Arm, HostBlock, HostEffect, KeptReference, TierRefused
from grader_service.model.run_report import RunEnding
from grader_service.model.verdict import Mode, Outcome, Provenance, Status, Tier
from tests.report.factories import (
    PLAN,
    SETTINGS,
    arm,
    block,
    check,
    content,
    corroboration,
    decision,
    graph_proof,
    measurement,
    parts,
    place,
    provenance,
    step,
    stopped_run,
    told_check,
    unreached,
    verdict,
)
from tests.report.hostile import hostile

rehearsed = partial(
    verdict, mode=Mode.REHEARSAL, measurement=measurement(device="cpu"), provenance=provenance(gpu=None)
)


def without_run(status, code, feedback):
    kept = {"submission_sha256", "filename", "lab_version", "grader_version", "sandbox", "isolated"}
    return verdict(
        status=status,
        code=code,
        feedback=feedback,
        score=None,
        steps=(),
        checks=(),
        measurement=None,
        signature=None,
        provenance=Provenance(**provenance().model_dump(include=kept)),
    )


rejected = partial(
    without_run, Status.REJECTED, "archive.too_large", "The archive unpacks to 3 GiB; at most 1 GiB is taken."
)
our_error = partial(
    without_run, Status.ERROR, "grader.failed", "The grader itself failed, so this attempt does not count."
)


def not_passed(outcome, code, measured, tier=Tier.GRAPH, **details):
    """The second of two steps, which judges the measurement, did not pass."""
    judged = check("throughput_ratio", "benchmark", outcome, tier=tier, code=code, details=details)
    return verdict(
        status=Status(outcome.value),
        code=code,
        feedback=judged.feedback,
        score=None if judged.score is None else 25.0,
        steps=(step("baseline"), step("benchmark", outcome, judged.score)),
        checks=(check(), judged),
        measurement=measured,
    )


def unverified():
    """Nothing measured: the graph could not be carried."""
    made = not_passed(Outcome.UNVERIFIED, "ratio.not_carried", None, Tier.CLAIMS)
    return made.model_copy(update={"feedback": f"1 of 2 checks passed. Step benchmark: {made.feedback}"})


one_block = partial(
    verdict, measurement=measurement((1.25,), decision=None, problem="The graph stopped: out of memory in fn.resize.")
)
no_blocks = partial(verdict, measurement=measurement((), decision=None, arms=(), problem="The graph did not start."))


def kept_reference():
    """A ratio beyond the two-block bound, held against a reference that was timed before the run."""
    rates = {Arm.DALI: 8200.0, Arm.LEARNER: 450.0}
    known = KeptReference(images_per_s=1000.0, settings=SETTINGS, windows=3, age_s=240.0)
    note = "not timed in this run: the fastest of 3 windows on this host, 4 min before"
    fair = arm(Arm.FAIR, images_per_s=1000.0, low=1000.0, high=1000.0, notes=(note,))
    return verdict(
        measurement=measurement(
            blocks=tuple(block(index, 9.0, rates, baseline=Arm.FAIR) for index in range(2)),
            arms=(arm(Arm.DALI), arm(Arm.LEARNER), fair),
            decision=decision(9.0, 8.0, 10.0, blocks_used=2, look=1),
            kept_reference=known,
        )
    )


def lost_arm():
    """The learner's DataLoader ended after two blocks; the fair reference was never there."""
    rates = {Arm.DALI: 8200.0, Arm.LEARNER: 57.0, Arm.DECLARED: 61.0}
    rest = {Arm.DALI: 8100.0, Arm.DECLARED: 60.0}
    blocks = [block(index, 130.0, rates, baseline=Arm.DECLARED) for index in range(2)]
    blocks += [block(index, 131.0, rest, baseline=Arm.DECLARED) for index in range(2, 4)]
    lost = arm(
        Arm.LEARNER,
        images_per_s=None,
        low=None,
        high=None,
        notes=("not timed to the end: its pod ended: out of memory",),
    )
    return verdict(
        measurement=measurement(
            blocks=tuple(blocks),
            arms=(arm(Arm.DALI), lost, arm(Arm.DECLARED)),
            decision=decision(130.5, 129.0, 132.0, blocks_used=4, look=1),
        )
    )


def spoiled():
    """Two spoiled blocks, one of them far off, one valid block after the decision; near the threshold."""
    blocks = [block(index, ratio) for index, ratio in enumerate((1.09, 1.12, 1.08, 1.11, 1.10, 1.11, 1.2))]
    blocks[1] = block(1, 9.5, spoiled="another process used the GPU")
    blocks[3] = block(3, 1.11, spoiled="the clock was stepped")
    return not_passed(
        Outcome.INCONCLUSIVE,
        "ratio.inconclusive",
        measurement(blocks=tuple(blocks), decision=decision(blocks_used=2)),
        decision=decision(1.0997, 1.06, 1.14, "inconclusive", blocks_used=4).model_dump(mode="json"),
    )


REFUSED_GRAPH = TierRefused(tier="A", problem="operator_not_allowed", text="`python_function` cannot be carried.")


def proven():
    """Tier C, third attempt, on a weak host, with discarded blocks and everything else that a measurement can hold."""
    ratios = (1.05, 1.09, 1.12, 1.08, 1.11, 1.06, 1.04, 1.1, 1.07, 1.09, 1.05, 1.12, 1.08, 1.06, 1.1, 1.07, 1.09, 1.1)
    blocks = [block(index, ratio) for index, ratio in enumerate(ratios)]
    blocks[4] = block(4, 1.9, spoiled="a process that is not of this run used the GPU")
    blocks[9] = block(9, 0.4, spoiled="the GPU's clocks were held down: hardware slowdown")
    found = decision(
        1.078, 1.062, 1.095, "inconclusive", blocks_used=16, look=5, attempt=3, reason="host_cannot_show_effect"
    )
    nothing_new = TierRefused(
        tier="B",
        problem="nothing_new",
        text="After the images had been exchanged the iterator delivered 512 images in one window and none was new.",
    )
    host = HostEffect(
        ratio=1.18,
        blocks=tuple(HostBlock(dali=own, pytorch=500.0) for own in (585.0, 595.0, 570.0, 600.0)),
    )
    made = not_passed(
        Outcome.INCONCLUSIVE,
        "ratio.host_cannot_show_effect",
        measurement(
            blocks=tuple(blocks),
            plan=PLAN.model_copy(update={"declared_floor": 0.8, "fair_floor": 0.7}),
            decision=found,
            tier="C",
            refused=(REFUSED_GRAPH, nothing_new),
            content=content(),
            corroboration=corroboration(),
            attempt=3,
            host=host,
            unsteady=None,
        ),
        Tier.COLD_PROOF,
        decision=found.model_dump(mode="json"),
    )
    timings = {"proof": 61.2, "host": 4.5, "content": 1.25}
    return made.model_copy(update={"provenance": provenance(timings_s=timings)})


def replayed():
    """Tier B: fast, but most of the images had come before."""
    return not_passed(
        Outcome.FAILED,
        "ratio.replayed",
        measurement(
            tier="B",
            refused=(REFUSED_GRAPH,),
            content=content(problem="replayed", distinct=640, repeated=11648, stale=0, note=""),
        ),
        Tier.PROOF,
        content={"delivered": 12288},
    )


def tried_out():
    """Tier A: the graph was tried out on other pictures, and timed."""
    return verdict(measurement=measurement(graph=graph_proof()), provenance=provenance(timings_s={"experiments": 2.5}))


def independent():
    """A graph whose images do not depend on the files, so that it was not timed."""
    note = "When the files showed other pictures, 64 of 64 images stayed exactly as they were."
    found = {"stayed": 64, "own": 0, "on_gpu": None, "windows": 0, "credits": {}}
    proof = graph_proof(**found, area=1.0, low=1.0, problem="independent", note=note)
    seen = measurement(
        (), decision=None, arms=(), claims=(), problem=note, images=0, image_sizes="", graph=proof, measured_s=0.0
    )
    return not_passed(Outcome.FAILED, "ratio.independent", seen, graph=proof.model_dump(mode="json"))


def nothing_timed():
    """No tier could be had: the graph was refused, and there is no factory."""
    text = "No function `build_dali_iterator(dataset_dir, batch_size)` is defined."
    refused = (REFUSED_GRAPH, *(TierRefused(tier=tier, problem="no_factory", text=text) for tier in ("B", "C")))
    return unverified().model_copy(
        update={
            "measurement": measurement(
                (), decision=None, arms=(), claims=(), problem=text, refused=refused, tier="C", images=0, image_sizes=""
            )
        }
    )


def unsteady():
    """The host spoiled all blocks but one."""
    blocks = [block(index, 1.4, spoiled="the host slept") for index in range(12)]
    return not_passed(
        Outcome.INCONCLUSIVE,
        "ratio.host_unsteady",
        measurement(
            blocks=(*blocks, block(12, 1.4)),
            decision=None,
            unsteady="12 of 13 blocks were discarded: the host slept (12 blocks)",
        ),
    )


def stopped():
    """The code stopped before anything was there, with titles as a lab gives them."""
    run = stopped_run()
    steps = (step("baseline", Outcome.FAILED, 0.0), step("benchmark", Outcome.FAILED, 0.0))
    return verdict(
        status=Status.FAILED,
        code=run.code,
        feedback=f"{run.outcome} {run.remedy}\n0 of 2 checks passed.\nNot reached: baseline, benchmark.",
        score=0.0,
        lab_title="Pipelines on a GPU",
        steps=tuple(one.model_copy(update={"title": f"The {one.id}"}) for one in steps),
        run=run,
        checks=(unreached(), unreached("throughput_ratio", "benchmark")),
        measurement=None,
    )


def told():
    """A run to the end, a pass with advice, and a failure in every part."""
    advised = Feedback(
        outcome="128 distinct JPEG files decode.", seen="A DataLoader is there.", advice=parts().advice[:1]
    )
    loud = Advice(code="advice.small", text="Images are small.", next="Enlarge them.", place=place())
    said = parts(advice=(loud, parts().advice[1]))
    passed = told_check(outcome=Outcome.PASSED, score=25.0, parts=advised, feedback=advised.text)
    failed = told_check("cuda_batch", "benchmark", parts=said, feedback=said.text)
    return verdict(
        status=Status.FAILED,
        code=failed.code,
        feedback=f"1 of 2 checks passed.\nStep benchmark: {failed.feedback}",
        score=25.0,
        steps=(step("baseline"), step("benchmark", Outcome.FAILED, 0.0)),
        run=stopped_run(state=RunEnding.COMPLETED, code="run.completed", outcome="Your code ran to its end in 12 s."),
        checks=(passed, failed),
        measurement=None,
    )


many_blocks = partial(verdict, measurement=measurement(tuple(1.2 + 0.2 * math.sin(index) for index in range(500))))


CASES = {
    "official": verdict,
    "rehearsed": rehearsed,
    "rejected": rejected,
    "our_error": our_error,
    "unverified": unverified,
    "one_block": one_block,
    "no_blocks": no_blocks,
    "kept_reference": kept_reference,
    "lost_arm": lost_arm,
    "spoiled": spoiled,
    "many_blocks": many_blocks,
    "proven": proven,
    "replayed": replayed,
    "tried_out": tried_out,
    "independent": independent,
    "nothing_timed": nothing_timed,
    "unsteady": unsteady,
    "stopped": stopped,
    "told": told,
    "hostile": hostile,
}
