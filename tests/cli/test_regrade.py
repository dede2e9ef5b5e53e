"""`grader regrade` as an operator types it: under whose name, why, and what it says of what failed through us."""

import getpass
import json

import pytest

from grader_service.errors import ConfigurationError, UsageError
from grader_service.model.regrade import BatchState
from grader_service.retry_policy import RetryPolicy
from grader_service.store import regrades
from grader_service.store.engine import Store
from grader_service.store.regrade_tables import RegradeItemRow
from grader_service.store.regrades import MOST_SHOWN
from tests.command_line import typed
from tests.regrade.deps import overwrite, some_deps, started, worked_off
from tests.regrade.stored import fill

COUNT = 6
LONGEST = 'why "so", \u00fc ' * 40
"""More than a reason may have; its beginning is one of the longest, of characters that JSON escapes."""


class Shell:
    """A database, and what an operator types in front of it."""

    def __init__(self, folder):
        self.folder = folder
        self.url = f"sqlite:///{folder}/grader.db"
        self.store = Store(self.url)
        self.store.migrate()
        fill(self.store, COUNT)
        self.deps = some_deps(self.store, retry=RetryPolicy(max_attempts=1, delay_s=0.0))

    def type(self, *words, **environment):
        """Runs `grader regrade …`, which must succeed; returns what it printed, line by line."""
        env = {"GRADER_DATABASE_URL": self.url, "GRADER_STATE_DIR": str(self.folder)}
        return typed("regrade", *words, **env, **environment)

    def happened(self, batch_id):
        """The last event of a batch."""
        return regrades.events(self.store, batch_id)[-1]


@pytest.fixture
def shell(tmp_path):
    """A few graded submissions."""
    made = Shell(tmp_path)
    yield made
    made.store.close()


@pytest.mark.parametrize(
    ("make", "action", "event", "field"),
    [
        (started, "pause", "regrade_paused", "note"),
        (started, "cancel", "regrade_cancelled", "reason"),
        (started, "discard", "regrade_discarded", "reason"),
        (worked_off, "apply", "regrade_applied", "reason"),
    ],
)
def test_every_action_takes_a_reason(shell, make, action, event, field):
    """It is kept with the event, and `show` tells all of it; one that is too long is refused and nothing is done."""
    batch_id, reason = make(shell.deps), LONGEST[:200].strip()
    before = regrades.batch(shell.store, batch_id).state
    with pytest.raises(UsageError, match="at most 200 characters"):
        shell.type(action, batch_id, "--reason", LONGEST)
    assert regrades.batch(shell.store, batch_id).state is before
    shell.type(action, batch_id, "-m", reason)
    done = shell.happened(batch_id)
    assert (done.kind, done.detail[field]) == (event, reason)
    (line,) = [line for line in shell.type("show", batch_id) if event in line]
    assert json.dumps(reason, ensure_ascii=False) in line


def test_a_revert_has_its_own_reason(shell):
    """And the one of the apply before it stays; what nobody explained has no empty field."""
    batch_id = worked_off(shell.deps)
    shell.type("apply", batch_id, "-m", "the course decided so")
    shell.type("revert", batch_id, "-m", "the wrong day", "--notify", "none")
    shell.type("apply", batch_id)
    shown = [line.partition("{")[2] for line in shell.type("show", batch_id) if "reason" in line and "notify" in line]
    assert [line.partition('", "notify"')[0] for line in shown] == [
        '"reason": "the course decided so',
        '"reason": "the wrong day',
    ]
    assert shell.happened(batch_id).detail["reason"] == ""


@pytest.mark.parametrize(
    ("value", "actor"),
    [
        ("ann", "operator:ann"),
        (" Zo\u00eb\nB. ", "operator:Zo\u00eb B."),
        ("a\u202eb", "operator:a\ufffdb"),
        ("", f"operator:{getpass.getuser()}"),
        (" ", f"operator:{getpass.getuser()}"),
    ],
)
def test_the_operator_is_who_the_environment_says(shell, value, actor):
    """Where all share a user, that name tells nobody from another; without the variable it is better than none."""
    batch_id = started(shell.deps)
    shell.type("pause", batch_id, GRADER_OPERATOR=value)
    assert shell.happened(batch_id).actor == actor


def test_a_name_is_short(shell):
    """The variable is named where it is not."""
    batch_id = started(shell.deps)
    with pytest.raises(ConfigurationError, match=r"GRADER_OPERATOR.*at most 60"):
        shell.type("pause", batch_id, GRADER_OPERATOR="x" * 61)
    assert regrades.batch(shell.store, batch_id).state is BatchState.RUNNING


def test_show_names_every_repetition_that_needs_attention(shell):
    """With its number and its failure, in text and as JSON; a batch of one repetition numbers none."""
    several, one = worked_off(shell.deps, repeats=3), worked_off(shell.deps)
    dead_letter_run(shell.store, several, RegradeItemRow.repetition == 2)
    dead_letter_run(shell.store, one, RegradeItemRow.repetition == 1)
    lines = [line for line in shell.type("show", several) if line.startswith("needs attention")]
    assert len(lines) == COUNT
    assert lines[0].endswith("repetition 2 of 3: the pod died")
    document = json.loads("\n".join(shell.type("show", several, "--json")))
    assert [item["repetition"] for item in document["needs_attention"]] == [2] * COUNT
    assert {item["error"] for item in document["needs_attention"]} == {"the pod died"}
    lines = [line for line in shell.type("show", one) if line.startswith("needs attention")]
    assert len(lines) == COUNT
    assert "repetition" not in lines[0]


def test_show_names_a_bounded_number(shell):
    """And says how many more there are."""
    batch_id = worked_off(shell.deps, repeats=10)
    dead_letter_run(shell.store, batch_id)
    lines = shell.type("show", batch_id)
    assert sum(line.startswith("needs attention") for line in lines) == MOST_SHOWN
    assert lines[-1] == f"\u2026 and {10 * COUNT - MOST_SHOWN} more that need attention"


def dead_letter_run(store, batch_id, *which):
    """Items of a batch fail through us."""
    values = {"state": "needs_attention", "verdict_id": None, "last_error": "the pod died"}
    overwrite(store, RegradeItemRow, RegradeItemRow.batch_id == batch_id, *which, **values)
