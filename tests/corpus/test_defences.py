"""Each defence switched off: what it stops passes then, or it is no defence."""

import pytest

from tests.corpus import defences

pytestmark = [pytest.mark.slow, pytest.mark.integration]


@pytest.mark.usefixtures("lab_image")
@pytest.mark.parametrize("defence", defences.defences(), ids=lambda defence: defence.id)
def test_without(defence):
    """Each of its cases passes in a build without it."""
    defences.play_without(defence)
