"""The Kubernetes runner shows every behaviour of `tests.sandbox.conformance`."""

from tests.sandbox.test_conformance import EVERY


@EVERY
def test_kubernetes_runner(kubernetes_runner, behaviour):
    """Its Jobs are run as containers by the node of a fake cluster."""
    behaviour.check(kubernetes_runner)
