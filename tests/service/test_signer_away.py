"""Verdicts are signed in another process. While it is away they wait, at no learner's cost, and it is said why."""

from dataclasses import replace

import pytest

from grader_service.regrade.bulk import judge_chunk
from grader_service.service.judge import JudgeDeps, judge_next
from grader_service.service.readiness import judging_requirements, problems
from grader_service.signer.asking import SocketSigner
from grader_service.signer.signatures import Signer, SignerAway, signed_by
from grader_service.store import workers
from grader_service.store.regrade_tables import RegradeItemRow
from tests.regrade.deps import counts, judge_all, read, some_deps, started, state
from tests.regrade.stored import fill
from tests.service.faults import explained
from tests.signer.process import a_signer
from tests.waiting import wait_for


@pytest.mark.integration
@pytest.mark.slow
def test_a_verdict_waits_for_the_signer(service, tmp_path):
    """A submission is taken in and run; its verdict comes when the signer does, and again after it was away."""
    socket = str(tmp_path / "socket")
    judge = service.judge(GRADER_SIGNER=socket)
    service.runner()
    submission_id, task_id = service.post()
    assert service.await_state(submission_id, "judge_queued") == "judge_queued"

    def said():
        found = [one for one in workers.workers(service.store) if one.role == workers.JUDGE]
        return found and found[0].state == "not_ready" and found[0].reason

    assert f"signer: the signer does not answer at {socket}" in wait_for(said, 20)
    health = service.command("doctor", "--service", GRADER_SIGNER=socket)
    assert health.returncode == 1
    with a_signer(tmp_path):
        first = service.result(task_id)
    other_id, other_task = service.post()
    assert service.await_state(other_id, "judge_queued") == "judge_queued"
    with a_signer(tmp_path):
        second = service.result(other_task)
        wait_for(lambda: not said(), 20)
    assert signed_by(first) == signed_by(second) is not None
    assert [run["attempts"] for one in (submission_id, other_id) for run in service.runs(one)] == [0, 0]
    assert all("failed_by_us" not in explained(service, one) for one in (submission_id, other_id))
    assert judge.process.poll() is None


class Leaving(Signer):
    """Signs so many documents, and is gone then."""

    def __init__(self, folder, most):
        self._signer = Signer.from_folder(folder)
        self._left = most

    def signature(self, canonical):
        self._left -= 1
        if self._left < 0:
            raise SignerAway("it is gone")
        return self._signer.signature(canonical)

    def keys(self):
        return self._signer.keys()


def test_nothing_is_claimed_while_nobody_signs(local, tmp_path):
    """And a run that was claimed before goes back uncounted."""
    submission_id = local.submit()
    local.run_all(local.deps())
    before = local.run(submission_id)
    away = SocketSigner(tmp_path / "socket")
    assert problems(judging_requirements(tmp_path, local.store, away))["signer"].startswith(
        "the signer does not answer"
    )
    assert judge_next(JudgeDeps(local.store, local.registry, away, "judge")) is None
    assert local.run(submission_id) == before
    assert judge_next(JudgeDeps(local.store, local.registry, Leaving(tmp_path, 0), "judge")) is None
    after = local.run(submission_id)
    assert (after.state, after.attempts) == (before.state, before.attempts)
    assert "given_back" in [kind for kind, _ in local.events(submission_id)]
    assert local.judge().status == "passed"


def test_items_of_a_batch_wait_for_the_signer(local, tmp_path):
    """Those that are signed are kept, and the others go back uncounted."""
    fill(local.store, 3)
    deps = some_deps(local.store)
    batch_id = started(deps)
    away = SocketSigner(tmp_path / "socket")
    with pytest.raises(SignerAway):
        judge_chunk(replace(deps, signer=away))
    assert counts(deps, batch_id) == {"waiting": 3}
    assert judge_chunk(replace(deps, signer=Leaving(tmp_path, 1))) == 1
    assert counts(deps, batch_id) == {"done": 1, "waiting": 2}
    assert {row.attempts for row in read(local.store, RegradeItemRow.attempts)} == {0}
    judge_all(deps)
    assert state(deps, batch_id) == "finished"
