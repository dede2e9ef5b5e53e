"""Why rates and claims differ: each cause needs its own fact, and none of them decides anything."""

import json
from functools import partial
from types import SimpleNamespace

import pytest

from checks.observations.context import Context, context_of
from checks.throughput_ratio.causes import likely_causes
from checks.throughput_ratio.check import throughput_ratio
from grader_service.measure import baselines
from grader_service.measure.arms import LearnerArm, LoaderReady
from grader_service.measure.baselines import own_loader
from grader_service.measure.clean_room import Carried
from grader_service.measure.comparison import fair_settings
from grader_service.model.evidence import CleanRoom, OperatorFacts
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, ArmReport, ClaimBesideMeasurement, LoaderSettings
from tests.checks.judged import judged
from tests.factories import a_batch, a_discovery, a_graph, a_loader, a_measurement, a_pipeline, a_scan, an_evidence

judge = partial(judged, throughput_ratio)
SLOW = (0.8, 0.82, 0.79, 0.81)
NOISY = (1.0, 1.25, 1.05, 1.2, 1.1, 1.15, 1.02, 1.22, 1.08, 1.18, 1.0, 1.2)


def settings(workers, batch_size=32):
    return LoaderSettings(
        batch_size=batch_size, num_workers=workers, pin_memory=True, persistent_workers=True, prefetch_factor=2
    )


def arms(own=500.0, workers=2, best=505.0, notes=(), batch_size=32):
    def report(arm, rate, **more):
        return ArmReport(arm=arm, images_per_s=rate, low=rate, high=rate, **more)

    return (
        report(Arm.DALI, 1000.0),
        report(Arm.LEARNER, own, settings=settings(workers, batch_size) if own else None, notes=notes),
        report(Arm.FAIR, best, settings=settings(4)),
    )


def claims(dali=1000.0, pytorch=500.0):
    return (
        ClaimBesideMeasurement(name="pytorch_throughput", claimed=pytorch, measured=500.0),
        ClaimBesideMeasurement(name="dali_throughput", claimed=dali, measured=1000.0),
    )


long_run = partial(
    Context,
    dataset_images=6400,
    loader=a_loader(),
    loader_shape=(32, 3, 224, 224),
    graph=a_graph(),
    batch=a_batch(),
    dali_batch_size=32,
)
"""A submission about which there is nothing to say: many batches, a fair loader, a good graph."""


def causes(context, ratios=(1.9, 2.0, 2.1, 2.0), **changes):
    measurement = a_measurement(ratios, **changes)
    return likely_causes(measurement, measurement.decision, context)


def codes(context, **changes):
    return [cause.code for cause in causes(context, **changes)]


def graph_with(*operators, **changes):
    return a_graph(operators=tuple(OperatorFacts(name=name, device=device) for name, device in operators), **changes)


def test_a_good_submission_has_no_cause():
    """Passed, failed or undecided: without a telling fact nothing is said."""
    for ratios in ((1.9, 2.0, 2.1, 2.0), SLOW, NOISY):
        assert codes(long_run(), ratios=ratios) == []


def test_without_anything_else_only_arms_speak():
    """Evidence without loader, graph and scan gives no cause about them, whatever the claims say."""
    assert codes(Context(), ratios=SLOW, claims=claims(dali=1e9, pytorch=1e9)) == []


CACHED = ("reader file_root replaced by 160 held-out images", "decoder cache of decode removed")
CLAMPED = ("num_threads 64 clamped to 8, the cores of every arm",)
CASES = {
    "decoder_cache": (
        long_run(graph=a_graph(changed=CACHED)),
        {"claims": claims(dali=5000.0)},
        [],
    ),
    "epoch_in_queue": (
        long_run(dataset_images=128),
        {"claims": claims(dali=5000.0)},
        [long_run(dataset_images=32 * 16), long_run(dataset_images=0)],
    ),
    "threads_clamped": (
        long_run(graph=a_graph(changed=CLAMPED)),
        {"claims": claims(dali=2000.0)},
        [],
    ),
    "no_warm_up": (
        long_run(dataset_images=320),
        {"claims": claims(dali=300.0)},
        [],
    ),
    "padding_counted": (
        long_run(dataset_images=100, dali_batch_size=64, last_batch="FILL"),
        {"claims": claims(dali=1280.0)},
        [
            long_run(dataset_images=128, dali_batch_size=64, last_batch="FILL"),
            *(long_run(dataset_images=100, dali_batch_size=64, last_batch=word) for word in ("PARTIAL", "DROP", "")),
            {"claims": claims(dali=9000.0)},
        ],
    ),
    "epoch_in_loader_queue": (
        long_run(dataset_images=128),
        {"claims": claims(pytorch=2000.0)},
        [
            long_run(dataset_images=32 * 5),
            long_run(dataset_images=128, loader=a_loader(num_workers=0, prefetch_factor=None)),
        ],
    ),
    "no_synchronize": (
        long_run(),
        {"claims": claims(pytorch=2000.0)},
        [{"claims": claims(pytorch=2000.0), "device": "cpu"}],
    ),
    "workers_start": (
        long_run(dataset_images=128, loader=a_loader(persistent_workers=False)),
        {"claims": claims(pytorch=100.0)},
        [
            long_run(dataset_images=128),
            long_run(dataset_images=128, loader=a_loader(persistent_workers=False, num_workers=0)),
        ],
    ),
    "baseline_without_files": (
        long_run(loader_shape=(32, 10)),
        {},
        [
            long_run(loader_shape=(32, 3 * 224 * 224)),
            long_run(loader_shape=(3, 224, 224)),
            long_run(loader_shape=(4, 8, 3, 112, 112)),
            long_run(loader_shape=None, loader=a_loader(dataset_type="MyImages")),
        ],
    ),
    "no_workers": (
        long_run(),
        {"arms": arms(own=100.0, workers=0)},
        [{"arms": arms(own=500.0, workers=0)}, {"arms": arms(own=100.0, workers=2)}],
    ),
    "few_workers": (
        long_run(),
        {"arms": arms(own=100.0, workers=1)},
        [{"arms": arms(own=100.0, workers=4)}, {"arms": arms(own=480.0, workers=1)}],
    ),
    "few_images": (
        long_run(),
        {"arms": arms(own=100.0, workers=4, batch_size=1)},
        [{"arms": arms(own=100.0, workers=4)}, {"arms": arms(own=100.0, workers=1, batch_size=1)}],
    ),
    "slow_items": (
        long_run(),
        {"arms": arms(own=100.0, workers=4)},
        [{"arms": arms(own=100.0, workers=1)}, {"arms": arms(own=400.0, workers=4)}, {"arms": arms(own=None)}],
    ),
    "decoder_on_cpu": (
        long_run(graph=a_graph(decoder_devices=("cpu",))),
        {"ratios": SLOW},
        [long_run(graph=a_graph(decoder_devices=("mixed", "cpu"))), long_run(graph=a_graph(decoder_devices=()))],
    ),
    "cpu_after_decode": (
        long_run(graph=graph_with(("decoders__Image", "mixed"), ("Resize", "cpu"))),
        {"ratios": SLOW},
        [long_run(graph=graph_with(("decoders__Image", "mixed"), ("Resize", "gpu")))],
    ),
    "one_thread": (
        long_run(graph=a_graph(declared_threads=1)),
        {"ratios": SLOW},
        [long_run(graph=a_graph(declared_threads=2))],
    ),
    "two_resizes": (
        long_run(graph=graph_with(("decoders__Image", "mixed"), ("Resize", "gpu"), ("RandomResizedCrop", "gpu"))),
        {"ratios": NOISY},
        [
            long_run(graph=graph_with(("RandomResizedCrop", "gpu"), ("Resize", "gpu"))),
            long_run(graph=graph_with(("RandomResizedCrop", "gpu"))),
        ],
    ),
    "no_overlap": (
        long_run(graph=a_graph(declared_prefetch=1)),
        {"ratios": SLOW},
        [long_run(graph=a_graph(declared_prefetch=2))],
    ),
    "small_batches": (
        long_run(graph=a_graph(declared_batch_size=16)),
        {"ratios": SLOW},
        [],
    ),
    "unequal_output": (
        long_run(loader_shape=(32, 3, 64, 64)),
        {},
        [long_run(loader_shape=(64, 224, 224, 3)), long_run(loader_shape=None)],
    ),
}
"""Per cause: context and measurement that have its fact, then other contexts or measurements that have it not."""


@pytest.mark.parametrize("code", CASES)
def test_a_cause_is_named_where_its_fact_is(code):
    """Each cause is found, once, with words for the learner and the fact for staff."""
    context, changes, _ = CASES[code]
    [cause] = [cause for cause in causes(context, **changes) if cause.code == code]
    assert cause.text.endswith(".")
    assert cause.action.endswith(".")
    assert cause.fact


@pytest.mark.parametrize(
    ("code", "context", "changes"),
    [
        (code, other, changes) if isinstance(other, Context) else (code, context, other)
        for code, (context, changes, others) in CASES.items()
        for other in (*others, {}, long_run())
        if other not in (context, changes)
    ],
)
def test_a_cause_is_not_named_without_its_fact(code, context, changes):
    """The same submission with the fact changed, or with either half of it alone, does not have this cause."""
    assert code not in codes(context, **changes)


def test_facts_are_quoted_in_numbers():
    """The lab's own case: 100 images in batches of 32 are four batches, three of them ready before the clock starts."""
    [cause, *_] = causes(long_run(dataset_images=100), claims=claims(dali=4000.0))
    assert cause.text == "Your epoch has 4 batches, and up to 3 of them are decoded before your clock starts."
    assert cause.fact == "prefetch_queue_depth 2 and the first batch, 4 batches per epoch"


def test_what_holds_a_graph_back_is_what_to_do_next_and_all_causes_are_on_record():
    """The first of many troubles is the action, four more are advice; staff see all."""
    graph = a_graph(decoder_devices=("cpu",), declared_threads=1, declared_prefetch=1, declared_batch_size=8)
    room = CleanRoom(pipeline="dali_iter", graph=graph, batch=a_batch(low=-2.0, high=1111.0))
    slow = a_measurement(SLOW, arms=arms(own=100.0, workers=0))
    result = judge(an_evidence(clean_room=room, measurement=slow))
    found = result.details["causes"]
    assert [cause["code"] for cause in found[:3]] == ["decoder_on_cpu", "one_thread", "no_overlap"]
    assert {cause["code"] for cause in found[3:]} == {"small_batches", "no_workers"}
    assert result.parts.next.text == found[0]["action"]
    assert found[0]["text"] in result.parts.seen
    assert [one.code for one in result.parts.advice][:3] == [f"advice.{cause['code']}" for cause in found[1:4]]
    assert len(result.parts.advice) <= 6


def test_a_graph_without_a_telling_fact_gets_the_general_advice():
    """What is known to help any graph is said where nothing better is known."""
    assert judge(an_evidence(measurement=a_measurement(SLOW))).parts.next.text.startswith("Decode with device='mixed'")


def test_a_cause_takes_the_place_of_the_general_explanation():
    """A claim is explained once: by its cause when there is one, else by what is usual."""
    exaggerated = a_measurement(claims=claims(dali=9000.0))
    particular = [one.code for one in judge(an_evidence(measurement=exaggerated)).parts.advice]
    assert "advice.epoch_in_queue" in particular
    assert "advice.dali_throughput_off" not in particular
    usual = judge(an_evidence(measurement=exaggerated, scan=a_scan(distinct=6400))).parts.advice
    [claim] = [one for one in usual if one.code == "advice.dali_throughput_off"]
    assert "9,000" in claim.text
    assert "Time a hundred batches" in claim.next


@pytest.mark.parametrize("ratios", [(1.9, 2.0, 2.1, 2.0), SLOW, NOISY])
def test_a_loader_over_numbers_is_advice_first_of_all(ratios):
    """Told and on record whatever the outcome, which stays what it is."""
    numbers = a_discovery(loaders=(a_loader(dataset_type="TensorDataset"),))
    plain, told = (
        judge(an_evidence(discovery=discovery, measurement=a_measurement(ratios)))
        for discovery in (a_discovery(), numbers)
    )
    assert (told.outcome, told.code) == (plain.outcome, plain.code)
    assert told.details["causes"][0]["code"] == "baseline_without_files"
    assert told.feedback.count("is a TensorDataset, which reads no JPEG files") == 1


def test_causes_never_change_an_outcome():
    """With and without context the same blocks have the same outcome and code."""
    for ratios in ((1.9, 2.0, 2.1, 2.0), SLOW, NOISY):
        observation = throughput_ratio.observe(an_evidence(measurement=a_measurement(ratios)))
        bare = observation.model_copy(update={"context": Context()})
        results = [throughput_ratio.decide(given, throughput_ratio.params_model()) for given in (observation, bare)]
        assert len({(result.outcome, result.code, result.score) for result in results}) == 1


def test_observations_from_before_can_still_be_judged():
    """A stored observation in which nothing is said of the context is read and judged."""
    stored = throughput_ratio.observe(an_evidence()).model_dump(mode="json") | {"context": {}}
    observation = throughput_ratio.observation_model.model_validate_json(json.dumps(stored))
    assert throughput_ratio.decide(observation, throughput_ratio.params_model()).code == "ratio.ok"


NOTE = "{name}: held-out images exchanged, batch [32, 3, 96, 96]"


def test_the_loader_that_was_timed_is_the_one_that_is_explained():
    """Of several loaders the note at the arm names the one, and the shape that it delivered."""
    loaders = (a_loader(name="validation", num_workers=0), a_loader(name="train: the loader", num_workers=3))
    measurement = a_measurement(arms=arms(notes=(NOTE.format(name="train: the loader"),)))
    evidence = an_evidence(discovery=a_discovery(loaders=loaders), measurement=measurement)
    context = context_of(evidence)
    assert context.loader is not None
    assert (context.loader.name, context.loader_shape) == ("train: the loader", (32, 3, 96, 96))
    assert context.dataset_images == 160
    assert "unequal_output" in [cause.code for cause in likely_causes(measurement, measurement.decision, context)]


@pytest.mark.parametrize(
    "note",
    ["could not be re-measured: no loader", "batch [32, 3]", "x: held-out images exchanged, batch [32, -3]", "a" * 200],
)
def test_other_notes_say_nothing_of_a_shape(note):
    """Without its own note a loader has no shape; with several loaders none is chosen."""
    measurement = a_measurement(arms=arms(notes=(note,)))
    two = a_discovery(loaders=(a_loader(name="a"), a_loader(name="b")))
    context = context_of(an_evidence(discovery=two, measurement=measurement))
    assert (context.loader, context.loader_shape) == (None, None)


def test_what_is_missing_from_the_evidence_is_missing_from_the_context():
    """No scan, no clean room, no graph: counts are 0, the rest is absent."""
    context = context_of(an_evidence(scan=None, clean_room=None, discovery=a_discovery(loaders=())))
    assert context == Context()
    assert context.epoch_batches(32) == 0
    assert Context(dataset_images=100).epoch_batches(None) == 0
    lengths = context_of(an_evidence(scan=None))
    assert lengths.dataset_images == 160


def test_the_policy_is_that_of_the_pipeline_that_was_timed():
    """Another pipeline's iterator says nothing about it."""
    measurement = a_measurement()
    pipelines = (a_pipeline(name="val_iter", last_batch="FILL"), a_pipeline(last_batch="PARTIAL"))
    for found, policy in ((pipelines, "PARTIAL"), (pipelines[:1], "")):
        evidence = an_evidence(discovery=a_discovery(pipelines=found), measurement=measurement)
        assert context_of(evidence).last_batch == policy


def test_the_note_is_read_as_a_run_writes_it(monkeypatch):
    """What a run notes at the learner's arm gives back the loader's name and its shape."""
    ready = LoaderReady(
        kind="loader_ready", loader=a_loader(), content="exchanged", queue_depth=4, shape=(32, 3, 48, 64)
    )
    pod = SimpleNamespace(resume=lambda: None, pause=lambda: None)
    monkeypatch.setattr(baselines.arms, "prepare_learner_arm", lambda *_: LearnerArm(pod, ready))
    carried = Carried(facts=CleanRoom(pipeline="p"), arm=None, plan={}, batch_size=32, settings={})
    fair = fair_settings(MeasurementPlan(), 2, 32)
    found = own_loader(pod, a_discovery(), carried, shards_path="", fair=fair)
    measurement = a_measurement(arms=arms(notes=tuple(found.notes[Arm.LEARNER])))
    context = context_of(an_evidence(measurement=measurement))
    assert context.loader_shape == (32, 3, 48, 64)
    assert context.loader == a_loader()


def test_silent_mistakes_in_the_learners_own_measurement_are_advice():
    """At most two, whatever the outcome, which they never change."""
    same = (
        ClaimBesideMeasurement(name="pytorch_throughput", claimed=500.0, measured=500.0),
        ClaimBesideMeasurement(name="dali_throughput", claimed=500.0, measured=500.0),
    )
    for ratios, outcome in ((SLOW, "failed"), ((1.9, 2.0, 2.1, 2.0), "passed")):
        result = judge(an_evidence(measurement=a_measurement(ratios, claims=same)))
        assert result.outcome == outcome
        codes_of = [one.code for one in result.parts.advice]
        assert "advice.one_figure_twice" in codes_of
        assert result.details["silent"] == [code for code in codes_of if code in result.details["silent"]]
        assert len(result.details["silent"]) <= 2
