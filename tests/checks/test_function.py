"""A check as a function: identity, evidence, parameters, codes and worth, as its signature and docstring say."""

from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from checks.api import (
    Batch,
    Dataset,
    Discovery,
    FromProbe,
    Graph,
    GraphProbe,
    Loaders,
    Measurement,
    Observation,
    Result,
    Run,
    check,
    failed,
    passed,
    probe,
)
from checks.function import FunctionCheck, told_arguments
from checks.registry import LoadedCheck
from grader_service.model.evidence import Ending, Need, ProbeSite
from grader_service.model.verdict import NOT_REACHED, Outcome, Tier
from tests.factories import a_clean_room, a_discovery, a_loader, an_evidence, ended


@check(version="1.2.3")
def workers(loaders: Loaders, *, least: Annotated[int, Field(ge=1)] = 2, name: str | None = None) -> Result:
    """The DataLoader has workers.

    Points: all or nothing.
    Cannot detect: idle ones.

    Args:
        least: processes
            of the loader.
        name: of the loader that is meant.
    """
    if not loaders:
        return failed("none", "No DataLoader was found.", next="Make one.")
    count = next((one.num_workers for one in loaders if name in (None, one.name)), 0)
    if count < least:
        return failed("few", f"It has {count} workers.", next="Raise it:", write=f"num_workers={least}")
    return passed(f"It has {count} workers.")


class Seen(Observation):
    count: Annotated[int, Field(ge=0, le=100)]


@probe(version="1.0.0")
def looks(context: GraphProbe) -> Seen:
    return Seen(count=len(context.graphs))


@check(version="1.0.0", title="Counts", word="count")
def counts(seen: Seen, batch: Batch, measurement: Measurement | None, *, most: int = 3) -> Result:
    """Looks at three kinds of evidence."""
    if seen.count > most:
        return failed("many", "There are many.")
    return passed(f"{batch.shape} {measurement is None}")


@check(version="1.0.0")
def a_check_with_a_name_of_several_words(loaders: Loaders) -> Result:
    """Has long codes."""
    return passed(f"{loaders}") if loaders else failed("a_reason_that_would_be_fine_behind_a_shorter_word", "None.")


def answer(one, evidence, **params):
    """As the grader asks."""
    return one.answer(evidence, LoadedCheck(one, "tests", "1").parse_params(params)).result


def test_a_function_says_who_it_is():
    """Name, docstring and decorator."""
    assert (workers.id, workers.word, workers.version) == ("workers", "workers", "1.2.3")
    assert workers.title == "The DataLoader has workers"
    assert (counts.title, counts.word) == ("Counts", "count")
    assert "Cannot detect: idle ones." in workers.about
    assert isinstance(workers, FunctionCheck)


def test_needs_and_probes_follow_from_the_arguments():
    """A run collects what they ask for."""
    assert workers.needs == {Need.DISCOVERY}
    assert counts.needs == {Need.DISCOVERY, Need.CLEAN_ROOM, Need.MEASUREMENT}
    assert (workers.probes, counts.probes) == ((), ("looks",))
    assert counts.own_probes["looks"].site is ProbeSite.GRAPH


def test_codes_are_those_of_its_results_and_of_its_arguments():
    """With what the learner reads as their meaning."""
    assert workers.codes == {
        "workers.none": "no DataLoader was found",
        "workers.few": "it has … workers",
        "workers.ok": "it has … workers",
    }
    assert counts.codes["count.many"] == "there are many"
    assert counts.codes["count.graph_failed"].startswith("unverified: ")


def test_a_code_that_no_verdict_can_carry_is_told_before_it_is_answered():
    """The suite asks for all codes; the first word counts."""

    with pytest.raises(TypeError, match=r"behind_a_shorter_word' cannot stand in a verdict; expected .* at most 80"):
        assert a_check_with_a_name_of_several_words.codes


def test_it_judges_what_came():
    """With its whole code, and worth what the evidence is."""
    evidence = an_evidence(discovery=a_discovery(loaders=(a_loader(num_workers=2),)))
    assert answer(workers, evidence).code == "workers.ok"
    assert answer(workers, evidence).tier is Tier.CLAIMS
    few = answer(workers, evidence, least=3)
    assert (few.code, few.parts.next.code) == ("workers.few", "num_workers=3")
    assert answer(workers, an_evidence(discovery=a_discovery(loaders=()))).code == "workers.none"


def test_what_the_code_did_not_get_to_is_not_reached():
    """Before the author's function is asked."""
    for evidence in (an_evidence(discovery=None), an_evidence(discovery=a_discovery(loaders=(), ran="raised"))):
        assert answer(workers, evidence).code == NOT_REACHED


def test_the_weakest_evidence_says_what_a_result_is_worth():
    """A graph that we ran beside claims is a claim."""

    @check(version="1.0.0")
    def both(graph: Graph, loaders: Loaders) -> Result:
        """Looks at both."""
        return passed(f"{len(graph.operators)} {len(loaders)}")

    @check(version="1.0.0")
    def facts(graph: Graph, run: Run) -> Result:
        """Looks at facts."""
        return passed(f"{len(graph.operators)} {run.device}")

    assert answer(both, an_evidence()).tier is Tier.CLAIMS
    assert answer(facts, an_evidence()).tier is Tier.GRAPH


def test_a_part_that_may_be_missing_is_none():
    """With `| None` the function is asked all the same."""

    @check(version="1.0.0")
    def timed(measurement: Measurement | None) -> Result:
        """Is asked without a measurement."""
        return passed(str(measurement))

    assert answer(timed, an_evidence(measurement=None)).feedback == "None"
    assert timed.needs == {Need.DISCOVERY, Need.MEASUREMENT}


def test_a_graph_that_did_not_come_is_answered_for_the_author():
    """As every built-in check does."""

    @check(version="1.0.0")
    def gpu(graph: Graph) -> Result:
        """Looks at the graph."""
        return passed(str(graph))

    room = a_clean_room(graph=None, batch=None, problem="no_reader")
    assert answer(gpu, an_evidence(clean_room=room)).code == "gpu.not_carried"
    assert answer(gpu, an_evidence(discovery=a_discovery(pipelines=()))).code == "gpu.no_pipeline"
    assert {"gpu.not_carried", "gpu.no_pipeline"} <= set(gpu.codes)


def test_the_dataset_is_our_inventory():
    """A fact."""

    @check(version="1.0.0")
    def many(dataset: Dataset, *, least: int = 100) -> Result:
        """There are many images."""
        return passed("Many.") if dataset.distinct >= least else failed("few", "Few.")

    assert answer(many, an_evidence()).outcome is Outcome.PASSED
    assert many.needs == {Need.DISCOVERY, Need.SCAN}
    assert answer(many, an_evidence(scan=None)).code == "many.not_scanned"


def test_observations_are_stored_and_read_again():
    """A cohort is judged again from them."""
    seen = workers.observe(an_evidence())
    again = workers.observation_model.model_validate_json(seen.model_dump_json())
    assert workers.decide(again, workers.params_model()) == answer(workers, an_evidence())


@pytest.mark.parametrize("value", [True, 2.5, "2", 0, None])
def test_parameters_are_strict(value):
    """`true` is no number."""
    with pytest.raises(ValidationError, match="least"):
        LoadedCheck(workers, "tests", "1").parse_params({"least": value})


def test_parameters_are_described_by_the_docstring():
    """Where the page of checks and the editor's schema find it."""
    fields = workers.params_model.model_fields
    assert fields["least"].description == "processes of the loader."
    assert fields["name"].description == "of the loader that is meant."
    assert told_arguments("Says nothing.") == {}


def test_it_is_called_like_any_function():
    """In an author's own tests."""
    assert workers((a_loader(num_workers=0),), least=1).code == "few"
    assert looks.function.__name__ == "looks"


def test_names_are_said_by_a_function_of_the_parameters():
    """For handouts and preflights."""

    @check(version="1.0.0", names=lambda name: {name: "a list of losses"})
    def curve(discovery: Discovery, *, name: str = "losses") -> Result:
        """Losses are there."""
        return passed("Yes.") if name in discovery.defined else failed("none", "No.")

    assert curve.names(curve.params_model(name="loss")) == {"loss": "a list of losses"}
    assert workers.names(workers.params_model()) == {}


def test_an_installed_probe_is_named():
    """Where several checks share one."""

    @check(version="1.0.0")
    def shared(seen: Annotated[Seen, FromProbe("order")]) -> Result:
        """Reads what another file observed."""
        return passed(str(seen.count))

    assert (shared.probes, dict(shared.own_probes)) == (("order",), {})


def _two_kinds(either: Loaders | Graph | None) -> Result:
    """One of them would be taken silently."""


class Twice(Observation):
    count: int


@probe(version="1.0.0")
def once(context: GraphProbe) -> Twice:
    return Twice(count=1)


@probe(version="1.0.0")
def again(context: GraphProbe) -> Twice:
    return Twice(count=2)


def _two_probes(seen: Twice) -> Result:
    """Nobody knows which is meant."""


def _untyped(loaders) -> Result:
    """No type."""


def _no_evidence(loaders: int) -> Result:
    """No evidence."""


def _no_result(loaders: Loaders) -> bool:
    """No result."""


def _defaulted(loaders: Loaders = ()) -> Result:
    """Evidence has no default."""


def _all_of_them(*loaders: Loaders) -> Result:
    """Too many."""


def _bad_default(loaders: Loaders, *, least: Annotated[int, Field(ge=1)] = 0) -> Result:
    """Zero is not allowed."""


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (_untyped, "the argument loaders has no type"),
        (_no_evidence, "has the type int, which is no evidence"),
        (_no_result, "expects `-> Result`"),
        (_defaulted, "is neither evidence"),
        (_all_of_them, "is neither evidence"),
        (_two_kinds, "the argument either may be one of 2 kinds of evidence; expected one kind"),
        (_two_probes, "may come from once or again, which all return Twice; expected one probe for each class"),
        (_bad_default, "a default is not what its type allows: least"),
    ],
)
def test_what_is_no_check_is_refused_at_once(function, text):
    """With what was expected."""
    with pytest.raises(TypeError, match=text):
        check(version="1.0.0")(function)


@pytest.mark.parametrize("ending", Ending)
def test_no_ending_makes_it_raise(ending):
    """It always answers."""
    assert isinstance(answer(workers, ended(ending)), Result)
    assert isinstance(answer(counts, ended(ending)), Result)
