"""Each alert fires in the case that it is for, with figures of a real store, and in no other; it ends with the case."""

import shutil
import subprocess

import pytest
import yaml
from sqlalchemy import delete

from grader_service.store import dead_letters, devices, workers
from grader_service.store.engine import Store
from grader_service.store.retention_tables import BackupRow
from tests.conftest import missing
from tests.monitoring.scrapes import (
    JUDGE,
    REGRADE,
    RUNNERS,
    a_service,
    dead_letter_run,
    fail_a_chore,
    leave_to_a_person,
    leave_unread,
    post,
    scraped,
    silence,
    wait_long,
)
from tests.monitoring.test_files import FOLDER, RULES
from tests.store.aged import age
from tests.store.factories import a_submission, accept

pytestmark = pytest.mark.integration

WELL, ILL = 20, 40
"""Minutes for which all is well, then something is not, before all is well again."""
TARGET = {"job": "grader", "instance": "metrics:9464", "cluster": "ours"}
"""Labels that a Prometheus adds; the last one stands for those that its owner does."""


@pytest.fixture(scope="session")
def promtool():
    """Prometheus' own tool for files of rules."""
    return shutil.which("promtool") or missing("promtool is not installed (apt-get install prometheus)")


def checked(*command):
    """What a command of promtool says; it must succeed."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def series(well, ill):
    """Series of both, one after the other, in promtool's notation."""
    phases = [{key(sample): sample.value for sample in samples} for samples in (well, ill, well)]
    for name in sorted(set().union(*phases)):
        values = []
        for phase, minutes in zip(phases, (WELL, ILL, WELL), strict=True):
            gone = f"stale _x{minutes - 1}"
            values.append(f"{phase[name]:.3f}+0x{minutes - 1}" if name in phase else gone)
        yield {"series": name, "values": " ".join(values)}


def key(sample):
    """As Prometheus stores it: what a target says of itself under a name that is taken comes second."""
    labels = {(f"exported_{name}" if name in TARGET else name): value for name, value in sample.labels.items()}
    inside = ",".join(f'{name}="{value}"' for name, value in sorted((labels | TARGET).items()))
    return f"{sample.name}{{{inside}}}"


def fires(promtool, folder, well, ill, expected):
    """Whether exactly these fire while something is not well, by name and number, and none before and after."""
    asked = 'count by (alertname) (ALERTS{alertstate="firing"})'

    def told(minute, numbers):
        samples = [{"labels": f'{{alertname="{name}"}}', "value": number} for name, number in numbers.items()]
        return {"expr": asked, "eval_time": f"{minute}m", "exp_samples": samples}

    test = {
        "interval": "1m",
        "input_series": list(series(well, ill)),
        "promql_expr_test": [told(WELL - 1, {}), told(WELL + ILL - 1, expected), told(WELL + ILL + 1, {})],
    }
    file = folder / "alerts-test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FOLDER / "alerts.yaml")], "tests": [test]}))
    checked(promtool, "test", "rules", str(file))


def nobody_asks(_store, _folder):
    """Nothing is scraped."""
    return []


def database_away(_store, folder):
    """What is scraped then."""
    away = Store(f"sqlite:///{folder}/never-migrated.db")
    found = scraped(away)
    away.close()
    return found


def no_judge(store, _folder):
    """The only one was stopped."""
    workers.forget(store, JUDGE)


def no_runner(store, _folder):
    """Both were stopped, and somebody hands in."""
    for identity in RUNNERS:
        workers.forget(store, identity)
    accept(store, a_submission(3, learner="c"))


def quarantined(store, _folder):
    """One of two GPUs; its runner says so as well."""
    devices.quarantine(store, "GPU-2", "Xid 79", "steward")
    workers.say(store, RUNNERS[1], ("device: GPU-2 is quarantined",))


def quarantined_and_stopped(store, _folder):
    """Somebody has to look at it all the same."""
    devices.quarantine(store, "GPU-2", "Xid 79", "steward")
    workers.forget(store, RUNNERS[1])


def killed(store, _folder):
    """The runner of one of two GPUs."""
    silence(store, RUNNERS[1])


def cannot_begin(store, _folder):
    """A runner before its device was ever seen."""
    workers.say(store, workers.Identity(workers.RUN, "new", "GPU-9"), ("run space: no lab image",))


def regrade_broken(store, _folder):
    """It cannot do its work."""
    workers.say(store, REGRADE, ("database: no",))


def chore_fails(store, folder):
    """Of a judge, for two minutes by now."""
    fail_a_chore(store, folder, 0, 60, 120)


def disk_full(store, _folder):
    """Of one worker."""
    workers.say(store, JUDGE, (), {"broker": 0.2, "results": 0.2}, {"state": 0.5, "artifacts": 0.95})


def redis_full(store, _folder):
    """One of both."""
    workers.say(store, JUDGE, (), {"broker": 0.2, "results": 0.85}, {"state": 0.5})


def unread(store, _folder):
    """Two platforms read nothing."""
    leave_unread(store, "inbox", 3)
    leave_unread(store, "other")


def undelivered(store, _folder):
    """Beside one that is unread."""
    leave_unread(store, "inbox")
    post(store, None, task_id="t")


def dead_letter(store, _folder):
    """Nobody can read it."""
    dead_letters.keep(store, b"what", "live", None, "the message is not JSON")


def needs_attention(store, _folder):
    """A run that failed through us too often."""
    dead_letter_run(store)


def waits(store, _folder):
    """A learner, for an hour."""
    wait_long(store)


def preflight_waits(store, _folder):
    """A learner who asked what is there, for an hour."""
    wait_long(store, "preflight")


def review_waits(store, _folder):
    """For a person, for more than a day."""
    leave_to_a_person(store, 25)


def backup_old(store, _folder):
    """The newest was begun two days ago."""
    age(store, BackupRow, "begun_at", 2)


def no_backup(store, _folder):
    """There is none, though all else is well."""
    with store.transaction() as connection:
        connection.execute(delete(BackupRow))


CASES = [
    (nobody_asks, {"GraderMetricsAbsent": 1}),
    (database_away, {"GraderStoreDown": 1}),
    (no_judge, {"GraderNoJudge": 1}),
    (no_runner, {"GraderNoRunner": 1}),
    (quarantined, {"GraderDeviceOut": 1}),
    (quarantined_and_stopped, {"GraderDeviceOut": 1}),
    (killed, {"GraderDeviceOut": 1}),
    (cannot_begin, {"GraderDeviceOut": 1}),
    (regrade_broken, {"GraderWorkerNotReady": 1}),
    (chore_fails, {"GraderChoreFailing": 1}),
    (disk_full, {"GraderDiskNearlyFull": 1}),
    (redis_full, {"GraderRedisNearlyFull": 1}),
    (unread, {"GraderAnswersUnread": 2}),
    (undelivered, {"GraderAnswersUnread": 1, "GraderAnswersUndelivered": 1}),
    (needs_attention, {"GraderRunsNeedAttention": 1}),
    (waits, {"GraderLearnersWait": 1}),
    (preflight_waits, {"GraderLearnersWait": 1}),
    (review_waits, {"GraderReviewsWait": 1}),
    (dead_letter, {"GraderDeadLetters": 1}),
    (backup_old, {"GraderBackupOld": 1}),
    (no_backup, {"GraderBackupOld": 1}),
]


@pytest.mark.parametrize(("case", "expected"), CASES, ids=[case.__name__ for case, _ in CASES])
def test_an_alert_fires_in_its_case(promtool, store, tmp_path, case, expected):
    """And no other does."""
    a_service(store)
    well = scraped(store)
    ill = case(store, tmp_path)
    fires(promtool, tmp_path, well, scraped(store) if ill is None else ill, expected)


def drained(store, _folder):
    """An operator took a GPU out, and its runner with it, however that ended."""
    devices.set_state(store, "GPU-2", devices.DRAINING, "new driver", "ann")
    silence(store, RUNNERS[1])


def ended(store, _folder):
    """A runner as it should, and both with nothing to run."""
    for identity in RUNNERS:
        workers.forget(store, identity)


def once(store, folder):
    """A chore failed in a bad moment."""
    fail_a_chore(store, folder, 0)


def mended(store, folder):
    """A chore that works again."""
    sweeper = fail_a_chore(store, folder, 0, 60, 120)
    for _ in range(2):  # the word comes first in a round
        sweeper.once()


def busy(store, _folder):
    """Learners hand in, one has just been answered."""
    for number in range(10, 20):
        accept(store, a_submission(number, learner=f"l{number}"))


def left_to_a_person(store, _folder):
    """An hour ago; it may take a day."""
    leave_to_a_person(store, 1)


@pytest.mark.parametrize("case", [drained, ended, once, mended, busy, left_to_a_person], ids=lambda case: case.__name__)
def test_none_fires_where_all_is_as_it_should_be(promtool, store, tmp_path, case):
    """However long it stays so."""
    a_service(store)
    well = scraped(store)
    case(store, tmp_path)
    fires(promtool, tmp_path, well, scraped(store), {})


def test_every_alert_has_a_case():
    """One that was never seen firing is none."""
    assert {name for _, expected in CASES for name in expected} == {rule["alert"] for rule in RULES}


def test_promtool_takes_the_rules(promtool):
    """Expressions and texts."""
    assert f"SUCCESS: {len(RULES)} rules found" in checked(promtool, "check", "rules", str(FOLDER / "alerts.yaml"))
