"""The checks that come with the grader keep what their authors are asked for."""

import pytest

from checks.authoring.target import find_targets
from grader_service.authoring.conformance import conform
from tests.checks.declared_codes import built_in

HOLDS = {"passed", "skipped", "advice"}


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize("name", sorted(one.check.id for one in built_in()))
def test_a_built_in_check_conforms(name):
    """Every property but two: their controls are cases of the corpus, their recorded results are golden pages."""
    report = conform(find_targets(name)[0], controls=False)
    assert {one.name: one.text for one in report.properties if one.status not in HOLDS} == {}
    assert {one.name for one in report.properties if one.status == "skipped"} <= {"observations", "version", "controls"}
