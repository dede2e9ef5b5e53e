"""The corpus itself: every attack has a case or a reason, every case proves what it says, every switch still fits."""

import pytest

from checks.registry import Registry
from grader_service.errors import SandboxUnavailable
from grader_service.labs.catalogue import load_lab
from tests.corpus import catalogue, defences, matrix, table
from tests.corpus.case import NOT_REACHED, SUBMISSION, Cheat, Honest, Observed, Procedure
from tests.corpus.quick import quick
from tests.corpus.result import Finding, Result, play
from tests.corpus.world import LAB


class Played:
    """A world that answers what it is told to."""

    def __init__(self, observed=None, left=()):
        self.observed, self.left = observed, list(left)

    def observe(self, case):
        """The answer that was given beforehand."""
        if isinstance(self.observed, Exception):
            raise self.observed
        return self.observed

    def leftovers(self):
        """What was said to be left."""
        return self.left


def cheat(**changes):
    """A cheat of which nothing is run."""
    given = {"id": "V01", "title": "t", "content": "", "steps": (), "target": "ratio", "codes": ("ratio.too_low",)}
    return Cheat(**{**given, **changes})


@pytest.mark.parametrize(
    ("observed", "left", "finding"),
    [
        (Observed("failed", "ratio.too_low"), (), Finding.RIGHT),
        (Observed("passed", "ratio.ok"), (), Finding.FALSE_ACCEPT),
        (Observed("passed", "ratio.too_low"), (), Finding.FALSE_ACCEPT),
        (Observed("unverified", "ratio.not_seen"), (), Finding.FALSE_ACCEPT),
        (Observed("failed", "ratio.no_pipeline"), (), Finding.OTHER_REASON),
        (Observed("error", "grade.sandbox"), (), Finding.HARNESS_ERROR),
        (RuntimeError("broken case"), (), Finding.HARNESS_ERROR),
        (Observed("failed", "ratio.too_low"), ("container x",), Finding.LEAK),
        (Observed("passed", "ratio.ok"), ("container x",), Finding.FALSE_ACCEPT),
    ],
)
def test_what_a_result_means(observed, left, finding):
    """A pass is a false accept; the wrong reason, our failure and what is left behind are findings of their own."""
    assert play(cheat(), Played(observed, left)).finding is finding


def test_a_verdict_after_its_deadline_is_late():
    """However right it is."""
    assert play(cheat(deadline_s=-1.0), Played(Observed("failed", "ratio.too_low"))).finding is Finding.LATE


def test_a_cheat_may_not_cost_what_is_honest_beside_it():
    """`others` names the codes that other checks must give."""
    case = cheat(others={"reflections": ("reflections.ok",)})
    right = Observed("failed", "ratio.too_low", others={"reflections": "reflections.ok"})
    wrong = Observed("failed", "ratio.too_low", others={"reflections": "reflections.missing"})
    assert play(case, Played(right)).finding is Finding.RIGHT
    assert play(case, Played(wrong)).finding is Finding.FALSE_REJECT


def test_a_failure_of_ours_is_played_again_and_told(tmp_path):
    """As the service tries again; a second failure stays one, and what a learner's code did is never played twice."""

    class Falters(Played):
        plays = 0

        def observe(self, case):
            self.plays += 1
            if self.plays == 1:
                raise SandboxUnavailable("the engine was away")
            return super().observe(case)

    found = play(cheat(), Falters(Observed("failed", "ratio.too_low")))
    assert found.finding is Finding.RIGHT
    assert "the engine was away" in found.again
    matrix.write([found], tmp_path, seconds=1.0, lanes=1, whole=False)
    assert "1 were played again" in (tmp_path / "matrix.md").read_text()
    assert "the engine was away" in (tmp_path / "matrix.md").read_text()
    assert "the engine was away" in (tmp_path / "matrix.html").read_text()
    assert play(cheat(), Played(SandboxUnavailable("gone for good"))).finding is Finding.HARNESS_ERROR
    wrong = play(cheat(), Played(Observed("passed", "ratio.ok")))
    assert (wrong.finding, wrong.again) == (Finding.FALSE_ACCEPT, "")


def test_every_attack_and_every_honest_kind_is_there():
    """Each of the 180 attacks has a case or a reason why not, never both; each of the 60 honest kinds has a case."""
    covered = {case.attack for case in catalogue.cases()}
    reasons = set(catalogue.absent())
    assert covered | reasons == set(catalogue.kinds())
    assert covered & reasons == set()
    assert not any(reason.startswith("K") for reason in reasons)
    assert sum(not isinstance(case, Honest) for case in catalogue.cases()) >= 150


@pytest.mark.parametrize("case", catalogue.cases(), ids=lambda case: case.id)
def test_cases_name_what_exists(case):
    """Target and codes are those of checks of the case's steps; no cheat counts a pass among its right answers."""
    assert case.codes or isinstance(case, Honest)
    if isinstance(case, Procedure):
        return
    registry = Registry()
    lab = load_lab(LAB, registry)
    checks = {
        check.id: {*registry.load(check.id).check.codes, NOT_REACHED}
        for step in lab.selected(case.steps)
        for check in step.checks
    }
    if isinstance(case, Cheat):
        assert case.target == SUBMISSION or case.target in checks
        assert not any(code.endswith(".ok") or code == "grade.passed" for code in case.codes)
        assert set(case.others) <= set(checks) - {case.target}
        wanted = {**case.others, **({case.target: case.codes} if case.target != SUBMISSION else {})}
    else:
        assert set(case.codes) <= set(checks)
        wanted = case.codes
    assert all(set(codes) <= checks[check] for check, codes in wanted.items() if check != SUBMISSION)


def test_the_quick_part_has_something_of_every_family_and_every_defence():
    """What every change must pass."""
    chosen = {case.id for case in quick()}
    assert {case[0] for case in chosen} == {*catalogue.FAMILIES}
    assert all(chosen & set(defence.cases) for defence in defences.defences())
    assert len(chosen) < len(catalogue.cases()) / 2


@pytest.mark.parametrize("defence", defences.defences(), ids=lambda defence: defence.id)
def test_switches_fit_the_source(defence):
    """Each text stands once where it is said to, what replaces it compiles, and its cases exist."""
    for path, text in defences.switched_off(defence, defences.ROOT).items():
        assert text != path.read_text()
        if path.suffix == ".py":
            compile(text, str(path), "exec")
    known = {case.id for case in catalogue.cases()}
    assert set(defence.cases) <= known


def test_a_switch_that_no_longer_fits_is_an_error(tmp_path):
    """A defence that was rewritten must not look as if it had been switched off."""
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n")
    for edit in ({"file": "a.py", "find": "x = 1"}, {"file": "a.py", "find": "y"}, {"file": "b.py", "find": "y"}):
        defence = defences.Defence.model_validate(
            {"id": "d", "title": "t", "edits": [{**edit, "replace": ""}], "cases": ["V01"]}
        )
        with pytest.raises(defences.StaleDefence):
            defences.switched_off(defence, tmp_path)


def test_the_matrix_says_everything(tmp_path):
    """Counts, families and each case; what a cheat left in a text stays text."""
    results = [
        Result(
            "V01", "cheat", "a literal", "ratio", "ratio.too_low", "failed", "ratio.too_low", Finding.RIGHT, "", 1.0
        ),
        Result("R01", "cheat", "<b>|x", "r", "r.x", "passed", "r.ok", Finding.FALSE_ACCEPT, "<script>", 1.0),
    ]
    matrix.write(results, tmp_path, seconds=2.0, lanes=2, whole=False)
    text, page = (tmp_path / "matrix.md").read_text(), (tmp_path / "matrix.html").read_text()
    assert "1 false accepts, 0 false rejects" in text
    assert "| V forged variables | 10 | 1 |" in text
    assert r"<b>\|x" in text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert (tmp_path / "results.json").is_file()


def test_the_page_is_that_of_the_corpus():
    """`make pages` writes it."""
    written = (defences.ROOT / "docs" / "corpus.md").read_text()
    assert written == table.page(), "docs/corpus.md is old: make pages"
