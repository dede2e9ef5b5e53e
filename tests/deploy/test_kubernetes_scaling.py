"""Who starts and ends runners and judges: KEDA's objects and the queries that they ask."""

from contextlib import closing

import pytest
from sqlalchemy import text

from grader_service.store import devices, leases, results, workers
from grader_service.store.engine import Store
from tests.deploy.manifests import SECRETS, names, of_kind
from tests.store.factories import a_submission, accept


class TestScaling:
    """KEDA's queries, run as they stand on a real PostgreSQL: a cluster has no other database."""

    @pytest.fixture
    def store_url(self, postgres_url):
        return postgres_url

    @staticmethod
    def value(store, target):
        """What the query says that scales this Deployment, in the role that asks it."""
        (trigger,) = next(
            one["spec"]["triggers"]
            for one in of_kind("ScaledObject")
            if one["spec"]["scaleTargetRef"]["name"] == target
        )
        url = store.engine.url.set(username=trigger["metadata"]["userName"])
        with closing(Store(url.render_as_string())) as opened, opened.transaction() as connection:
            return connection.execute(text(trigger["metadata"]["query"])).scalar_one()

    def test_runners(self, store):
        """Waiting and running count, several of one learner as one, and those without a learner each."""
        assert self.value(store, "runner") == 0
        accept(store, a_submission(1, learner="ann"))
        accept(store, a_submission(2, learner="ann", sha="1"))
        assert self.value(store, "runner") == 1
        accept(store, a_submission(3, learner="bob", sha="2"))
        accept(store, a_submission(4, learner=None, sha="3"))
        accept(store, a_submission(5, learner=None, sha="4"))
        assert self.value(store, "runner") == 4
        assert leases.claim(store, "run", "runner", 60) is not None
        assert self.value(store, "runner") == 4

    def test_a_runner_whose_device_is_out_of_service_is_not_counted_on(self, store):
        """Nor one that cannot grade: beside it, there is one for each learner; a device unseen lately has no runner."""
        for device in ("GPU-ready", "GPU-faulty", "GPU-gone", "GPU-unfit"):
            devices.see(store, device, "node", "H100")
            workers.say(store, workers.Identity(workers.RUN, "node", device), ["x"] if device == "GPU-unfit" else [])
        devices.quarantine(store, "GPU-faulty", "Xid 48", "test")
        devices.set_state(store, "GPU-gone", devices.DRAINING, None, "test")
        with store.transaction() as connection:
            connection.execute(text("update device set seen_at = seen_at - 3600 where device_id = 'GPU-gone'"))
        assert self.value(store, "runner") == 0  # nobody waits, so that nobody is needed
        accept(store, a_submission(1, learner="ann"))
        assert self.value(store, "runner") == 3

    def test_judges(self, store):
        """What was run and is not judged."""
        accept(store, a_submission(1))
        assert self.value(store, "judge") == 0
        claim = leases.claim(store, "run", "runner", 60)
        assert results.store_evidence(store, claim, "evidence", b"{}", {})
        assert (self.value(store, "runner"), self.value(store, "judge")) == (0, 1)
        assert leases.claim(store, "judge", "judge", 60) is not None
        assert self.value(store, "judge") == 1

    def test_what_is_scaled_exists(self):
        """In the same namespace, with the Secret's key; a judge is always there."""
        for one in of_kind("ScaledObject"):
            namespace = one["metadata"]["namespace"]
            assert one["spec"]["scaleTargetRef"]["name"] in names("Deployment", namespace)
            (trigger,) = one["spec"]["triggers"]
            assert trigger["authenticationRef"]["name"] in names("TriggerAuthentication", namespace)
            assert (one["spec"]["minReplicaCount"] > 0) == (one["metadata"]["name"] == "judge")
        for one in of_kind("TriggerAuthentication"):
            for reference in one["spec"]["secretTargetRef"]:
                assert reference["key"] in SECRETS[reference["name"]]
