"""What each service does with each table, as `GRANT` has it; `store.roles` gives these rights and takes away others.

Where a service changes rows, its columns are named. Who locks rows (`FOR UPDATE`, `FOR SHARE`) needs the right to
change one of their columns: the one that matters least, where it changes none. Workers of the version before work
beside those of this one: what they need stays for one version longer.
"""

from collections.abc import Mapping

from grader_service.store import regrade_tables, retention_tables, review_tables  # noqa: F401 - their tables are ours, too
from grader_service.store.tables import Base

Rights = Mapping[str, str]
"""Table to what may be done with it; nothing where it is not named."""

_READ = "select"
_ADD = "select, insert"
_VERSION: Rights = {"alembic_version": _READ, "compatibility": _READ}
_WORKER: Rights = {
    **_VERSION,
    "worker": "select, insert, delete, update (ready, reason, host, labs_left, memory, disk, chores, seen_at)",
    "event": _ADD,
}
"""Of all who say whether they can work."""
_LEASE = (
    "state, fence, lease_owner, lease_until, attempts, not_before, last_error, failed_host, failed_device, "
    "published_at, started_at, finished_at, held_s"
)
"""Of a run, also where its lease was another worker's and ended."""
_CHARGE = "select, insert, update (virtual_start, virtual_finish)"
_DEVICE_STATE = "state, reason, fence, canary_from, canary_tries, canary_failed"
_ITEM_DONE = "verdict_id, changed, finished_at"

JUDGE: Rights = {
    **_WORKER,
    # Takes submissions in, judges, answers.
    "submission": "select, insert, delete, update (artifact_removed_at)",
    "run": f"select, insert, delete, update ({_LEASE})",
    "verdict": "select, insert, delete, update (current)",
    "review_case": "select, insert, delete",
    "review_decision": "select, delete",
    "second_opinion": "select, insert, delete",
    "waiter": "select, insert, delete",
    "outbox": "select, insert, delete, update (verdict_id, attempts, not_before, delivered_at, last_error, task_id, "
    "unread, journaled)",
    "dead_letter": "select, insert, delete, update (came_at)",
    "device": _READ,
    "share": _CHARGE,
    "regrade_item": f"select, delete, update (state, run_id, gpu_s, last_error, {_ITEM_DONE})",
    # Removes what is old enough, and everything about a learner.
    "evidence": "select, delete, update (document, removed_at)",
    "evidence_blob": "select, delete",
    "blob": "select, insert, delete, update (size_bytes)",
    "event": "select, insert, delete, update (submission_id, detail)",
    "figures": "select, update (last_event, document)",
    "regrade_batch": "select, update (selection)",
    "erasure": "select, insert, update (removed, note)",
    # Operators may make one in its container.
    "backup": _ADD,
}
RUNNER: Rights = {
    **_WORKER,
    # In events stand outcomes of checks, and what was refused whom; the id of a new one comes back.
    "event": "insert, select (id)",
    "submission": _READ,
    "run": f"select, update ({_LEASE}, held_until, turn, virtual_start)",
    # What was graded before, and not what was said of it.
    "verdict": "select (verdict_id, run_id, current, status, code)",
    "evidence": _ADD,
    "evidence_blob": _ADD,
    "blob": "select, insert, update (size_bytes)",
    "device": f"select, insert, update (host, model, seen_at, {_DEVICE_STATE})",
    "share": _CHARGE,
    "regrade_batch": "select, update (note)",
    "regrade_item": "select, update (state, run_id, gpu_s, last_error)",
}
REGRADE: Rights = {
    **_WORKER,
    "submission": _READ,
    "run": "select, insert, update (state, finished_at)",
    "verdict": _ADD,
    "review_case": _ADD,
    "review_decision": _READ,
    "second_opinion": _ADD,
    "evidence": _READ,
    "blob": _READ,
    "device": _READ,
    "regrade_batch": "select, update (state, note, finished_at)",
    "regrade_item": "select, update (state, run_id, lease_owner, lease_until, attempts, not_before, last_error, "
    f"{_ITEM_DONE})",
}
OPERATOR: Rights = {
    **_VERSION,
    "event": _ADD,
    "submission": "select, update (artifact_removed_at)",
    "run": f"select, update ({_LEASE}, held_until, turn, cancelled)",
    "verdict": "select, update (current)",
    "review_case": _READ,
    "review_decision": _ADD,
    "waiter": _READ,
    "outbox": "select, insert, update (verdict_id, journaled)",
    "evidence": _READ,
    "blob": "select, insert, update (size_bytes)",
    "dead_letter": "select, delete",
    "device": f"select, update ({_DEVICE_STATE})",
    "share": "select, insert, update (weight, virtual_start, virtual_finish)",
    "worker": _READ,
    "backup": _READ,
    "regrade_batch": "select, insert, update (state, note, gpu_budget_s, started_at, finished_at, applied_at)",
    "regrade_item": "select, insert, update (state, level, reason, run_id, gpu_s, lease_owner, lease_until, attempts, "
    f"not_before, last_error, applied, {_ITEM_DONE})",
}
"""Of commands in an operator's shell, and of forms of the admin page."""
WEB: Rights = {
    **_VERSION,
    **dict.fromkeys(
        (
            "backup", "blob", "device", "event", "outbox", "regrade_batch", "regrade_item", "review_case",
            "review_decision", "run", "share", "submission", "verdict", "waiter", "worker",
        ),
        _READ,
    ),
    # Whether it is there, and nothing that a run found.
    "evidence": "select (run_id, removed_at)",
}  # fmt: skip
METRICS: Rights = {
    **dict.fromkeys(("backup", "device", "event", "figures", "regrade_batch", "regrade_item", "run", "worker"), _READ),
    "verdict": "select (verdict_id, current, needs_review)",
    "review_case": "select (verdict_id, submission_id, subject, opened_at)",
    "review_decision": "select (submission_id, subject)",
    # How many there are, and nothing that platforms sent or get.
    "outbox": "select (delivered_at, unread, reply_queue)",
    "dead_letter": "select (id)",
}
BACKUP: Rights = {**dict.fromkeys(Base.metadata.tables, _READ), **_VERSION, "backup": _ADD}

RIGHTS: Mapping[str, Rights] = {
    "judge": JUDGE,
    "runner": RUNNER,
    "regrade": REGRADE,
    "operator": OPERATOR,
    "web": WEB,
    "metrics": METRICS,
    "backup": BACKUP,
}
"""Role to its rights."""
