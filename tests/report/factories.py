"""Verdicts made by hand, from the plainest to the most hostile."""

import math
from datetime import UTC, datetime
from functools import partial

from grader_service.model.feedback import Advice, Feedback, NextStep, Severity
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import (
    Arm,
    ArmReport,
    Block,
    ClaimBesideMeasurement,
    ContentKind,
    ContentProof,
    Corroboration,
    Decision,
    GpuUse,
    GraphProof,
    HostBlock,
    HostEffect,
    Interval,
    KeptReference,
    LoaderSettings,
    Measurement,
    TierRefused,
    Window,
)
from grader_service.model.place import Place
from grader_service.model.run_report import RunEnding, RunException, RunReport
from grader_service.model.verdict import (
    CheckVerdict,
    Mode,
    Outcome,
    Provenance,
    Signature,
    Status,
    StepVerdict,
    Tier,
    Verdict,
)

SCRIPT = "<script>window.pwned=1</script>"
ATTRIBUTE = "\"'><img src=x onerror=window.pwned=1><svg onload=window.pwned=1>"
CLOSERS = "</title></style></pre></details></dd></svg>]]>--><iframe src=javascript:window.parent.pwned=1></iframe>"
TEMPLATE = "{{ 7*7 }}{% raw %}${7*7}{{ verdict.__class__ }}"
BIDI = "invoice\u202egpj.exe\u2066x\u2069\u200f"
CONTROL = "\x00\x1b[31mred\x07\x85"
LINK = "https://evil.example/steal?x=1 url(https://evil.example/a.css) @import 'https://evil.example'"
MATH = r"$\frac{1}{0}$ $unclosed \undefined{"
LONG = "W" * 180
HOSTILE = (SCRIPT, ATTRIBUTE, CLOSERS, TEMPLATE, BIDI, CONTROL, LINK, MATH, LONG)
ALL_HOSTILE = " ".join(HOSTILE)

RATES = {Arm.DALI: 820.0, Arm.LEARNER: 570.0, Arm.DECLARED: 600.0, Arm.FAIR: 640.0}
SETTINGS = LoaderSettings(batch_size=32, num_workers=2, pin_memory=True, persistent_workers=False, prefetch_factor=2)
PLAN = MeasurementPlan()


provenance = partial(
    Provenance,
    submission_sha256="ab" * 32,
    filename="submission.ipynb",
    entry_point="submission.ipynb",
    lab_version="1.0.0",
    grader_version="0.1.0",
    check_versions={"throughput_ratio": "1.0.0 (grader-service 0.1.0)"},
    sandbox="docker",
    isolated=True,
    image="grader-lab",
    image_digest=f"sha256:{'cd' * 32}",
    engine="docker 27.1",
    host={"cpu": "AMD EPYC 9654", "cores": 16, "memory_mib": 131072, "gpu_access": None},
    gpu={"model": "NVIDIA H200", "uuid": "GPU-1234", "driver": "570.86", "memory_mib": 143771},
    versions={"torch": "2.11.0", "torchvision": "0.26.0", "dali": "2.4.0"},
    seed="30a5c63f5584221617bb05df0b1998dd",
    timings_s={"unpack": 0.006, "learner": 61.5, "measure": 23.958, "tidy_up": 0.4},
)


def check(check_id="jpeg_dataset", step="baseline", outcome=Outcome.PASSED, **changes):
    earned = {Outcome.PASSED: 25.0, Outcome.FAILED: 0.0}
    return CheckVerdict(
        **{
            "id": check_id,
            "version": "1.0.0",
            "step": step,
            "outcome": outcome,
            "code": f"{check_id.split('_')[0]}.{outcome.value}",
            "score": earned.get(outcome),
            "max_score": 25.0,
            "feedback": f"What `{check_id}` saw, what it wanted, and what to do next.",
            "details": {"seen": 3, "names": ["a", "b"]},
        }
        | changes
    )


place = partial(
    Place,
    file="s.ipynb",
    line=2,
    cell=3,
    source="x = y",
    context=("import os", "x = y", "print('<i>')"),
    context_from=1,
)
PRINTED = "epoch 1 of 3\n</pre> <b>loss 0.7</b>"
stopped_run = partial(
    RunReport,
    state=RunEnding.RAISED,
    code="run.raised",
    outcome="Your code stopped at cell 3, line 2 (NameError): `y` was never set.",
    place=place(),
    exception=RunException(type="NameError", message="name 'y' is not defined"),
    cause="`y` was never set.",
    remedy="Set `y` in a cell above.",
    output_tail=PRINTED,
    traceback="Traceback (most recent call last):\n  Cell 3, line 2\n    x = y\nNameError: name 'y' is not defined",
    seconds=3.5,
    limit_s=900.0,
)
"""A run that ended in its third cell."""
parts = partial(
    Feedback,
    outcome="`dataset_dir` is not defined.",
    seen="There is `data_root`, a folder with 128 JPEGs: you may mean that.",
    wanted="It should hold the folder with your <JPEG> files.",
    next=NextStep(text="Add this line:", code="dataset_dir = data_root", place=place()),
    advice=(
        Advice(code="advice.loud", text="Images are not normalised.", next="Divide by 255.", place=place()),
        Advice(code="advice.soft", severity=Severity.NOTE, text="A batch of 24 is odd."),
    ),
    numbers={"images": 128},
)
"""Every part that feedback can have."""


def told_check(*names, **changes):
    """A check that failed and says so in parts."""
    said = parts()
    return check(*names, **{"outcome": Outcome.FAILED, "parts": said, "feedback": said.text} | changes)


def unreached(check_id="jpeg_dataset", step_id="baseline", **changes):
    """A check that could not look because the run ended before."""
    said = Feedback(outcome="Not reached.")
    given = {"code": "run.not_reached", "score": 0.0, "parts": said, "feedback": said.text, "details": {}}
    return check(check_id, step_id, Outcome.SKIPPED, **given | changes)


def step(step_id="baseline", outcome=Outcome.PASSED, score=25.0):
    return StepVerdict(id=step_id, outcome=outcome, score=score, max_score=25.0)


def block(index=0, ratio=1.4, rates=None, **changes):
    rates = RATES if rates is None else rates
    order = tuple(rates) if index % 2 == 0 else tuple(rates)[::-1]
    windows = tuple(Window(arm=arm, images=round(rates[arm]), seconds=round(rates[arm]) / rates[arm]) for arm in order)
    return Block(
        **{"index": index, "order": order, "windows": windows, "log_ratio": math.log(ratio), "baseline": Arm.LEARNER}
        | changes
    )


def decision(ratio=1.39, low=1.32, high=1.46, outcome="passed", **changes):
    return Decision(
        **{
            "outcome": outcome,
            "threshold": 1.1,
            "ratio": ratio,
            "interval": Interval(low=low, high=high, confidence=0.95),
            "blocks_used": 6,
            "look": 2,
            "rule": "group-sequential t-test on ln(ratio) per block",
        }
        | changes
    )


def arm(which, **changes):
    rate = RATES[which]
    return ArmReport(
        **{
            "arm": which,
            "images_per_s": rate,
            "low": rate * 0.95,
            "high": rate * 1.04,
            "settings": None if which is Arm.DALI else SETTINGS,
        }
        | changes
    )


def measurement(ratios=(1.30, 1.41, 1.48, 1.40, 1.34, 1.40), **changes):
    return Measurement(
        **{
            "device": "cuda",
            "plan": PLAN,
            "images": 160,
            "image_sizes": "500-500 × 375-375 px",
            "arms": tuple(arm(which) for which in Arm),
            "blocks": tuple(block(index, ratio) for index, ratio in enumerate(ratios)),
            "decision": decision(blocks_used=len(ratios)),
            "dali_settings": {"batch_size": 32, "num_threads": 2, "prefetch_queue_depth": [2, 2]},
            "claims": (ClaimBesideMeasurement(name="dali_throughput", claimed=9000.0, measured=820.0),),
            "measured_s": 23.9,
        }
        | changes
    )


verdict = partial(
    Verdict,
    verdict_id="1df2cd055cce491a933aabe4d1d28a34",
    submission_id="platform:4711",
    run_id="1a9bc8bc98cf94220958eb77180f8bc0",
    lab="dali-pipelines",
    learner="learner-17",
    cohort="2026-fall",
    mode=Mode.OFFICIAL,
    status=Status.PASSED,
    code="grade.passed",
    feedback="Every step passed.",
    score=50.0,
    max_score=50.0,
    created_at=datetime(2026, 11, 21, 3, 39, 48, tzinfo=UTC),
    steps=(step("baseline"), step("benchmark")),
    checks=(check(), check("throughput_ratio", "benchmark", tier=Tier.GRAPH)),
    measurement=measurement(),
    provenance=provenance(),
    signature=Signature(key_id="6b36f696cfb5fcab", public_key="c4" * 32, value="23" * 64),
)
"""An official pass of two steps, with a measurement and a signature."""


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
    """A glaring ratio, held against a reference that was timed before the run."""
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


content = partial(
    ContentProof,
    delivered=12288,
    identified=12288,
    distinct=12160,
    stale=96,
    repeated=32,
    audited=64,
    failed_audits=1,
    texture=0.973,
    area=0.4912,
    expected_area=0.5034,
    low=0.875,
    expected_low=0.892,
    kind=ContentKind.FULL,
    note="64 full; texture 0.94 to 1.00, worst block 0.81",
)


graph_proof = partial(
    GraphProof,
    samples=64,
    alike=64,
    own=63,
    on_gpu=64,
    windows=192,
    area=0.5034,
    standard_area=0.5121,
    low=0.7344,
    standard_low=0.7512,
    scant=0.0156,
    credits={"colour": 1.0, "turn": 0.5},
    seconds=2.25,
)


corroboration = partial(
    Corroboration,
    uses=(
        GpuUse(arm=Arm.DALI, samples=61, sm_percent=28.6, jpg_percent=57.2, memory_mib=3120.4, processes=3),
        GpuUse(arm=Arm.LEARNER, samples=58, sm_percent=0.42, jpg_percent=0.0, memory_mib=3118.0, processes=3),
        GpuUse(arm=Arm.DECLARED, samples=60, sm_percent=0.5, memory_mib=3118.0, processes=3),
        GpuUse(arm=Arm.FAIR, samples=0),
    ),
    flags=(
        "the GPU was busy (31 % SM) in the windows of reference_fair, which only copies batches to it",
        "in a block: Xid 43, which a program caused",
    ),
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


def hostile(texts=HOSTILE):
    """Attacks, or other texts in their place, in every field that takes text, many as long as the models allow."""
    short = [text[:200] for text in texts]
    together = " ".join(texts)
    long = (together * 20)[:8192]
    details = {text: [text, {text: text}] for text in texts} | {"bulk": [together] * 50, "decision": {"a": texts[0]}}
    marked = {short[0][:40]: together, short[4]: short[4], short[8]: short[8]}
    line = place(file=short[0], source=short[1], function=short[2], context=tuple(short[:3]))
    said = Feedback(
        outcome=together[:1000],
        seen=long,
        wanted=short[2],
        next=NextStep(text=short[3], code=long, place=line),
        advice=tuple(Advice(code="a.b", text=text, next=text, place=line) for text in short),
    )
    checks = tuple(
        check(
            f"check_{number}",
            "benchmark",
            Outcome.FAILED,
            feedback=long,
            parts=said if number == 1 else None,
            details=details,
            version=text,
        )
        for number, text in enumerate(short)
    )
    run = stopped_run(
        outcome=short[1],
        place=line,
        exception=RunException(type=short[0], message=long),
        cause=short[2],
        cause_place=line,
        remedy=short[3],
        output_tail=long,
        traceback=long,
    )
    blocks = tuple(block(number, spoiled=text) for number, text in enumerate(short))
    return verdict(
        submission_id="x" * 128,
        learner=short[1],
        cohort=short[4],
        status=Status.FAILED,
        code="ratio.too_low",
        feedback=long,
        score=0.0,
        lab_title=short[5],
        run=run,
        steps=(step("y" * 128), step("benchmark", Outcome.FAILED, 0.0)),
        checks=checks,
        measurement=measurement(
            blocks=(*blocks, block(len(blocks)), block(len(blocks) + 1)),
            decision=None,
            problem=long,
            image_sizes=short[2],
            arms=(arm(Arm.DALI, notes=tuple(short)), arm(Arm.LEARNER, notes=tuple(short))),
            dali_settings=marked,
            claims=tuple(ClaimBesideMeasurement(name=text, claimed=-1e300, measured=None) for text in short),
            tier="B",
            refused=(
                *(TierRefused(tier="A", problem=text, text=text) for text in short),
                TierRefused(tier="B", problem=short[0], text=long[1:]),
            ),
            content=content(problem=short[0], note=long),
            graph=graph_proof(problem=short[0], note=long, credits=dict.fromkeys(texts, 0.5)),
            corroboration=corroboration(flags=(*short, long)),
            attempt=2**40,
            unsteady=long,
        ),
        provenance=provenance(
            filename=short[0],
            entry_point=short[2],
            sandbox=short[3],
            engine=short[6],
            image=short[7],
            host=marked,
            gpu=marked,
            versions={key: value[:500] for key, value in marked.items()},
            check_versions={short[0]: short[0]},
            timings_s={short[0]: 1.0, short[8]: 2.0},
        ),
    )


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
