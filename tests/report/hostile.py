"""A verdict with attacks in every field that takes text."""

from grader_service.model.feedback import Advice, Feedback, NextStep
from grader_service.model.measurement import Arm, ClaimBesideMeasurement, TierRefused
from grader_service.model.run_report import RunException
from grader_service.model.verdict import Outcome, Status
from tests.report.factories import (
    arm,
    block,
    check,
    content,
    corroboration,
    graph_proof,
    measurement,
    place,
    provenance,
    step,
    stopped_run,
    verdict,
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
