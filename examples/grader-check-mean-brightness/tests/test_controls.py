"""The control submissions of the check."""

from grader_service.authoring.pytest_plugin import judged_controls

from grader_check_mean_brightness.check import mean_brightness


@judged_controls(mean_brightness)
def test_control_submissions(judged_control):
    """Each is run in a sandbox and comes out as `controls.toml` says."""
    assert judged_control.problem == ""
