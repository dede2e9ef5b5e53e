"""The Kubernetes runner shows every behaviour of `sandbox.conformance`."""

import pytest

from sandbox.conformance import BEHAVIOURS


@pytest.mark.integration
@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour.name)
def test_kubernetes_runner(kubernetes_runner, behaviour):
    """Its Jobs are run as containers by the node of a fake cluster."""
    behaviour.check(kubernetes_runner)
