"""A lab whose steps or checks stand in another order says the same."""

from grader_service.labs.specs import lab_text
from grader_service.store import regrade_apply, regrades
from tests.regrade.deps import COUNT, diff, worked_off
from tests.regrade.stored import LAB


def steps_reversed(text):
    """The lab with its last step first."""
    head, *steps, tail = text.split("[[steps]]")
    last, limits, rest = tail.partition("[limits]")
    steps = [step.rstrip() + "\n\n" for step in (*steps, last)]
    return "[[steps]]".join((head, *steps[::-1])) + limits + rest


def test_nobody_is_told_of_another_order(deps, tmp_path):
    """Nothing changes, and nobody who waits gets an equal verdict."""
    reordered = tmp_path / "reordered.toml"
    reordered.write_text(steps_reversed(lab_text(LAB).content.decode()))
    batch_id = worked_off(deps, reordered)
    changes = regrades.changes(deps.store, batch_id)
    assert any([check.id for check in c.old.checks] != [check.id for check in c.new.checks] for c in changes)
    found = diff(deps, batch_id)
    assert (found.changed, found.compared) == (0, COUNT)
    done = regrade_apply.apply(deps.store, batch_id, "ann")
    assert (done.in_force, done.notified) == (COUNT, 0)
