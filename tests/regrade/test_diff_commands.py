"""`grader regrade diff|flakes` and `grader cohort` on a real database with batches that were really judged."""

import csv
import io
import json
import shlex
import zipfile

import pytest
from pyarrow import parquet

from grader_service.errors import UsageError
from grader_service.exports.gradescope import GradescopeResults
from grader_service.model.diff import Diff, Flakes, Kind
from grader_service.model.verdict import Status
from grader_service.store import regrades
from grader_service.store.engine import Store
from tests.command_line import invoked
from tests.regrade.deps import planned, rewrite, some_deps, undecided, worked_off
from tests.regrade.stored import LAB, changed_lab, fill

COUNT = 12
RATIOS = (2.0, 1.2, 0.9)
"""In turn: passes at either threshold, at the old one only, at none. A third each."""
THIRD = COUNT // 3


class Office:
    """A database, and what an operator types."""

    def __init__(self, url, folder):
        self.url = url
        self.folder = folder
        self.store = Store(url)
        self.store.migrate()
        self.deps = some_deps(self.store)
        self.batches = {}
        self.said = ""

    def type(self, *words, status=0):
        """Runs `grader …`, which must end with this status; returns what went to standard output."""
        env = {"GRADER_DATABASE_URL": self.url, "GRADER_STATE_DIR": str(self.folder), "COLUMNS": "120"}
        done = invoked(*(self.batches.get(word, str(word)) for word in words), status=status, **env)
        self.said = done.stderr
        return done.stdout

    def diff(self, *words, status=1):
        """The diff as a document."""
        return Diff.model_validate_json(self.type("regrade", "diff", *words, "--json", "-", status=status))


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """Twelve submissions, and batches of them: stricter, equal, waiting, repeated and noisy."""
    folder = tmp_path_factory.mktemp("office")
    made = Office(f"sqlite:///{folder}/grader.db", folder)
    fill(made.store, COUNT, ratios=RATIOS)
    made.batches["stricter"] = worked_off(made.deps, changed_lab(folder), cohorts=("autumn",))
    made.batches["equal"] = worked_off(made.deps)
    made.batches["repeated"] = worked_off(made.deps, repeats=2)
    made.batches["noisy"] = noisy = worked_off(made.deps, repeats=2)
    # On a noisy host the second repetition of three submissions might have come out so.
    others = [change.repeats[1] for change in regrades.changes(made.store, noisy)]
    rewrite(made.store, *(undecided(one, status=Status.INCONCLUSIVE) for one in others[:3]))
    made.batches["waiting"] = planned(made.deps, repeats=2).batch_id
    yield made
    made.store.close()


def test_diff_tells_what_changes(office):
    """The counts, the matrix, the check, its code, and each submission with its reason; something changes: 1."""
    shown = office.type("regrade", "diff", "stricter", status=1)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    for line in (
        "12 submissions, 4 would change",
        "4 newly failing",
        "8 unchanged",
        "before ↓ after → passed failed",
        "passed 4 4",
        "failed · 4",
        "throughput_ratio 4 66.7% of 12 33.3% of 12 passed → failed 4",
        "ratio.too_low 4 8",
    ):
        assert line in lines
    assert shown.count("throughput_ratio passed → failed (ratio.too_low), ratio 1.") == THIRD


def test_nothing_changes(office):
    """The same lab again says the same: 0."""
    shown = office.type("regrade", "diff", "equal")
    assert "12 submissions, 0 would change" in shown
    assert "newly" not in shown


def test_a_batch_that_is_not_finished_is_4(office):
    """Whatever changes among those that are done."""
    assert "12  without a new verdict yet" in office.type("regrade", "diff", "waiting", status=4)


def test_json_is_the_whole_diff(office):
    """Standard output holds it and nothing else; a file gets the same."""
    diff = office.diff("stricter")
    assert (diff.count(Kind.NEWLY_FAILING), diff.count(Kind.UNCHANGED), diff.count()) == (THIRD, 2 * THIRD, COUNT)
    assert {(item.old, item.new): item.submissions for item in diff.statuses} == {
        ("passed", "passed"): THIRD,
        ("passed", "failed"): THIRD,
        ("failed", "failed"): THIRD,
    }
    assert diff.batch.batch_id == office.batches["stricter"]
    assert diff.progress.done == COUNT
    path = office.folder / "diff.json"
    office.type("regrade", "diff", "stricter", "--json", path, status=1)
    assert Diff.model_validate_json(path.read_text()) == diff


@pytest.mark.parametrize(
    ("words", "status", "count"),
    [
        ("--changed", 1, THIRD),
        ("--check throughput_ratio --from passed --to failed", 1, THIRD),
        ("--check throughput_ratio --from failed", 0, THIRD),
        ("--check reflections --changed", 0, 0),
        ("--step benchmark --to failed", 1, 2 * THIRD),
        ("--step reflection --changed", 0, 0),
        ("--step reflection --check reflections --changed", 0, 0),
        ("--learner nobody", 0, 0),
        ("--learner learner-0", 1, 3),
        ("--kind unchanged", 0, 2 * THIRD),
        ("--code ratio.too_low", 1, 2 * THIRD),
    ],
)
def test_filters_narrow_the_figures_and_the_answer(office, words, status, count):
    """The exit code is about what was chosen."""
    assert office.diff("stricter", *words.split(), status=status).count() == count


EXPORT = "cohort export autumn -o - --format"
SLIPS = {
    "batch": ("regrade diff nowhere", "there is no batch"),
    "check": (
        "regrade diff stricter --check throughput-ratio",
        "its checks are cuda_batch, jpeg_dataset, reflections, through",
    ),
    "id": ("regrade diff stricter --check 'not an id'", "--check does not take 'not an id'"),
    "step": (
        "regrade diff stricter --step bencmark",
        "no step bencmark; its steps are baseline, benchmark, pipeline, reflection",
    ),
    "step-changed": ("regrade diff stricter --step bencmark --changed", "no step bencmark"),
    "step-of-check": (
        "regrade diff stricter --step baseline --check throughput_ratio",
        "not in the step baseline; it is in benchm",
    ),
    "step-waiting": ("regrade diff waiting --step bencmark", "no step bencmark"),
    "outputs": ("regrade diff stricter --json - --csv -", "name a file for one of them"),
    "place": ("regrade diff stricter --csv /absent/rows.csv", "cannot be written"),
    "no-repetitions": ("regrade flakes stricter", "--repeat 2 or more"),
    "cohort": ("cohort export spring -o - --format csv", "there is no submission of cohort 'spring'"),
    "outcome": (f"{EXPORT} csv --check reflections=good", "ID=OUTCOME"),
    "time": (f"{EXPORT} csv --since yesterday", "2026-09-21"),
    "stdout": (f"{EXPORT} parquet", "name a file"),
    "rehearsal": (f"{EXPORT} csv --allow-rehearsal", "gradescope"),
    "report": ("cohort report spring -o -", "there is no submission of cohort 'spring'"),
}
"""What was typed, and what is said of it."""


@pytest.mark.parametrize(("words", "message"), SLIPS.values(), ids=SLIPS)
def test_slips_are_told(office, words, message):
    """In a sentence that says what to do; a slip never looks like a batch that changes nothing."""
    with pytest.raises(UsageError, match=message):
        office.type(*shlex.split(words))


def test_rows_and_page_of_a_diff(office):
    """A row for each chosen submission as CSV and Parquet, and the page; the figures are shown all the same."""
    paths = [office.folder / name for name in ("rows.csv", "rows.parquet", "page.html")]
    options = [str(word) for pair in zip(("--csv", "--parquet", "--report"), paths, strict=True) for word in pair]
    assert "4 newly failing" in " ".join(
        office.type("regrade", "diff", "stricter", "--changed", *options, status=1).split()
    )
    rows = list(csv.DictReader(io.StringIO(paths[0].read_text(), newline="")))
    assert [(row["kind"], row["old_status"], row["new_status"]) for row in rows] == [
        ("newly_failing", "passed", "failed")
    ] * THIRD
    assert parquet.read_table(paths[1]).column("submission_id").to_pylist() == [row["submission_id"] for row in rows]
    assert "<!doctype html>" in paths[2].read_text()[:100].lower()


def test_csv_alone_on_standard_output(office):
    """What goes to standard output is the table and nothing else."""
    rows = list(csv.reader(io.StringIO(office.type("regrade", "diff", "stricter", "--csv", "-", status=1))))
    assert len(rows) == COUNT + 1
    assert {len(row) for row in rows} == {len(rows[0])}


def test_flakes_of_a_noisy_batch(office):
    """Three of twelve vary, in the ratio: 1; the interval is beside the rate."""
    shown = " ".join(office.type("regrade", "flakes", "noisy", status=1).split())
    assert "3 of 12 submissions vary over 2 repetitions" in shown
    assert "throughput_ratio 3 of 12 25% 8.89% to 53.2% 0 inconclusive 3" in shown
    ledger = Flakes.model_validate_json(office.type("regrade", "flakes", "noisy", "--json", status=1))
    assert (ledger.repeats, ledger.submissions, ledger.varying) == (2, COUNT, 3)
    assert {item.check for item in ledger.unsteady} == {None, "throughput_ratio"}
    assert "regrade flakes" in office.type("regrade", "diff", "noisy")


def test_judging_the_same_evidence_twice_is_steady(office):
    """No check of ours varies on it: 0."""
    ledger = Flakes.model_validate_json(office.type("regrade", "flakes", "repeated", "--json"))
    assert (ledger.varying, ledger.unsteady) == (0, ())
    assert {spread.value: spread.highest for spread in ledger.spreads}["ratio"] == 0


def test_flakes_of_a_batch_that_is_not_finished_are_4(office):
    """Nothing varies so far, and that says nothing."""
    assert "0 of 0 submissions vary" in office.type("regrade", "flakes", "waiting", status=4)


def test_cohorts_are_listed(office):
    """With their submissions and those that passed."""
    (found,) = json.loads(office.type("cohort", "list", "--json"))
    assert (found["cohort"], found["lab"], found["submissions"], found["passed"]) == ("autumn", LAB, COUNT, 2 * THIRD)
    assert "autumn" in office.type("cohort", "list")


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("", COUNT),
        ("--status failed", THIRD),
        ("--status failed --status passed", COUNT),
        ("--check throughput_ratio=passed", 2 * THIRD),
        ("--check throughput_ratio=passed --check throughput_ratio=failed", COUNT),
        ("--check reflections", COUNT),
        ("--lab another", 0),
        ("--since 2001-01-01", COUNT),
        ("--since 2999-01-01T00:00Z", 0),
    ],
)
def test_a_cohort_is_exported(office, words, count):
    """What is in force, narrowed by the filters."""
    lines = office.type(*f"{EXPORT} jsonl {words}".split()).splitlines()
    assert len({json.loads(line)["submission_id"] for line in lines}) == len(lines) == count


def test_every_format_of_a_cohort(office):
    """Each holds every submission."""
    path = office.folder / "cohort"
    office.type("cohort", "export", "autumn", "--format", "csv", "-o", path)
    assert len(list(csv.DictReader(io.StringIO(path.read_text(), newline="")))) == COUNT
    office.type("cohort", "export", "autumn", "--format", "json", "-o", path)
    assert len(json.loads(path.read_text())) == COUNT
    office.type("cohort", "export", "autumn", "--format", "parquet", "-o", path)
    assert parquet.read_table(path).num_rows == COUNT
    office.type("cohort", "export", "autumn", "--format", "gradescope", "-o", path)
    with zipfile.ZipFile(path) as bundle:
        names = [name for name in bundle.namelist() if name.endswith("/results.json")]
        scores = [GradescopeResults.model_validate_json(bundle.read(name)).score for name in names]
    assert sorted(scores) == [75.0] * THIRD + [100.0] * 2 * THIRD


def test_a_cohort_has_a_page(office):
    """It goes where it is told, whole."""
    page = office.type("cohort", "report", "autumn", "-o", "-")
    assert page.lower().startswith("<!doctype html>")
    assert "autumn" in page


def test_options_that_fit_nobody_are_told_of(office):
    """On standard error, as the exit code says only that nothing changes."""
    office.type("regrade", "diff", "stricter", "--learner", "nobody")
    assert "no submission of the batch matches these options" in office.said


def test_the_same_on_postgresql(postgres_url, tmp_path):
    """Exact figures there too, and the same rows."""
    made = Office(postgres_url, tmp_path)
    fill(made.store, 6, ratios=RATIOS)
    made.batches["stricter"] = worked_off(made.deps, changed_lab(tmp_path))
    diff = made.diff("stricter")
    assert (diff.count(Kind.NEWLY_FAILING), diff.count(Kind.UNCHANGED)) == (2, 4)
    rows = list(csv.DictReader(io.StringIO(made.type(*f"{EXPORT} csv".split()))))
    assert sorted(row["status"] for row in rows) == ["failed"] * 2 + ["passed"] * 4
    made.store.close()
