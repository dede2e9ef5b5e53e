"""What delivered images showed, and refused tiers, in words."""

import re
from importlib.resources import files

import pytest

from grader_service.model.measurement import ContentKind, TierRefused
from grader_service.report import delivered
from tests.report.factories import content, graph_proof


def _facts(**changes):
    return dict(delivered.findings(content(**changes)))


def test_findings_tell_counts_and_texture():
    """Numbers with their meaning, shares as per cent."""
    facts = _facts()
    assert facts["Images looked at"] == "12,288"
    assert facts["Different images"] == "12,160"
    assert facts["From before, not counted"] == "96"
    assert facts["Came too soon again"] == "32"
    assert facts["Compared with our decode"] == "64, 1 of them failed"
    assert facts["What they are"] == "decoded at full resolution"
    assert facts["Finest texture"].startswith("0.97 ")
    assert facts["Visible part of each file"] == "49.1%"
    assert facts["The same, expected"] == "50.3%"
    assert facts["Parts that reach the lowest third"] == "87.5% (expected: 89.2%)"


def test_findings_leave_out_what_is_unknown():
    """No audit, no texture and no area are not shown as zeros."""
    unknown = dict.fromkeys(("texture", "area", "expected_area", "low", "expected_low"))
    facts = _facts(stale=0, repeated=0, audited=0, failed_audits=0, **unknown)
    assert list(facts) == [
        "Images looked at",
        "Images of this run",
        "Different images",
        "Compared with our decode",
        "What they are",
    ]
    assert facts["Compared with our decode"] == "none"


def test_every_kind_has_words():
    """No kind of content is without a meaning, and no two have the same."""
    assert set(delivered.KIND_MEANING) == set(ContentKind)
    assert len(set(delivered.KIND_MEANING.values())) == len(ContentKind)


def test_every_problem_that_the_grader_names_has_words():
    """Each word that the proof returns as a problem has a sentence of its own."""
    held_out, measure = files("grader_service.held_out"), files("grader_service.measure")
    lines = [line for half in (held_out, measure) for line in (half / "proof.py").read_text().splitlines()]
    told = [line for line in lines if re.search(r"\b(?:return|problem =) ", line)]
    named = {word for line in told for word in re.findall(r'"([a-z_]+)"(?!:)', line)}
    named |= set(
        re.findall(r'"([a-z_]+)"', re.search(r"^Problem = .*", (held_out / "identity.py").read_text(), re.MULTILINE)[0])
    )
    assert {"replayed", "stale", "not_audited", "partial_decode", "not_comparable", "no_colour"} <= named
    assert named <= set(delivered._PROBLEM_MEANING)


def test_every_problem_of_a_graph_has_words():
    """Each word that the acceptance table returns has a sentence of its own."""
    text = (files("grader_service.measure") / "acceptance.py").read_text()
    named = set(re.findall(r'return "([a-z_]+)"', text))
    assert {"not_examined", "independent", "unlike", "unclear", "lesser"} == named
    assert named == set(delivered._GRAPH_PROBLEM_MEANING)
    assert len({delivered.graph_problem(word) for word in [*named, "<b>"]}) == len(named) + 1


def test_graph_findings_tell_counts_and_shares():
    """What followed the files, what was decoded beside the standard job, and what the references did."""
    assert dict(delivered.graph_findings(graph_proof())) == {
        "Images tried": "64",
        "Follow their own file": "63 of 64",
        "Equal on lossless copies of the files": "64 of 64",
        "On the GPU like on the CPU": "64 of 64",
        "Decoded of each file": "50.3% on average (the standard random crop shows 51.2%)",
        "Windows that reach the lowest third of the rows": "73.4% (of the standard ones 75.1%)",
        "Images of which less than a sixteenth is decoded": "1.56%",
        "The references did as well": "colour changes of 100% of the images and rotation of 50% of the images",
        "Trying it out took": "2.2 s",
    }


def test_graph_findings_of_whole_files():
    """In a rehearsal, without windows: neither a GPU nor rows are shown, and nothing more was to be done."""
    facts = dict(delivered.graph_findings(graph_proof(on_gpu=None, windows=0, credits={})))
    assert facts["Decoded of each file"] == "all of it (the standard random crop shows 51.2%)"
    assert facts["The references did as well"] == "no rotation, colour changes or blurring: none were seen"
    assert not {"On the GPU like on the CPU", "Windows that reach the lowest third of the rows"} & set(facts)


def test_graph_findings_of_a_graph_that_was_not_timed():
    """The references did nothing beside it, and what was not found out has no numbers."""
    facts = dict(delivered.graph_findings(graph_proof(problem="lesser", credits={"blur": 0.3})))
    assert facts["Augmentation seen"] == "blurring of 30% of the images"
    assert "The references did as well" not in facts
    assert "Augmentation seen" not in dict(delivered.graph_findings(graph_proof(problem="unlike", credits={})))
    assert "Decoded of each file" not in dict(delivered.graph_findings(graph_proof(problem="independent", windows=0)))
    assert delivered.graph_findings(graph_proof(problem="not_examined")) == ()


@pytest.mark.parametrize("code", ["", "new_word", "<b>"])
def test_unknown_problem_is_told_in_general(code):
    """A problem that is newer than the report still says that the images do not count, and never shows the word."""
    assert delivered.problem(code) == "The images could not be taken for decoded images of this run."


def test_refusals_with_one_reason_are_one():
    """Neighbours that were refused for the same reason are told once, others one by one."""
    first = TierRefused(tier="A", problem="not_serializable", text="")
    later = [TierRefused(tier=tier, problem="no_factory", text="Nothing to call.") for tier in ("B", "C")]
    graph, code = delivered.refusals([first, *later])
    assert (graph.tiers, graph.reason, graph.problem) == ("A", "No reason was given.", "not_serializable")
    assert (code.tiers, code.reason, code.problem) == ("B and C", "Nothing to call.", "no_factory")
    assert "clean room" in graph.tried
    assert "started anew" in code.tried
    assert delivered.refusals([]) == ()
