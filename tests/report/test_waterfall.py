"""The stages of a run as a waterfall: each bar behind those before it, and their sum."""

import re

from grader_service.report.audience import Audience
from grader_service.report.html import render_report
from tests.report import factories


def bars(page: str) -> list[tuple[float, float]]:
    """(where it begins, how long it is) of each bar, in percent."""
    table = page[page.index('<table class="stages">') :]
    found = re.findall(r'<rect x="([\d.]+)" width="([\d.]+)"', table[: table.index("</table>")])
    return [(float(begins), float(share)) for begins, share in found]


def test_each_stage_begins_where_the_last_ended():
    """In the order of the run, on the scale of the whole."""
    timings = {"unpack": 1.0, "learner": 5.0, "measure": 4.0}
    verdict = factories.verdict(provenance=factories.provenance(timings_s=timings))
    page = render_report(verdict, Audience.STAFF)
    assert bars(page) == [(0.0, 10.0), (10.0, 50.0), (60.0, 40.0)]
    assert "All of it" in page


def test_a_stage_of_no_time_can_be_seen():
    """A bar is never without width, and nothing that was recorded breaks the page."""
    timings = {"unpack": 0.0, "learner": 9.0, "measure": -1.0}
    verdict = factories.verdict(provenance=factories.provenance(timings_s=timings))
    assert [share for _, share in bars(render_report(verdict, Audience.STAFF))] == [0.3, 100.0, 0.3]
