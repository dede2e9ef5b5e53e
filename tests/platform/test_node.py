"""Any language with a Celery client can be a platform: here JavaScript, with a client from npm."""

from tests.platform.node_platform import node_platform  # noqa: F401 - a fixture
from tests.service.conftest import service  # noqa: F401 - a fixture


def test_a_node_platform_posts_and_reads_its_verdict(node_platform, service):  # noqa: F811 - the fixtures
    """Celery protocol 2 from JavaScript: the task's result and the message to `reply_to` hold the same verdict."""
    service.judge()
    service.runner()
    message = service.message("node:1", reply_to={"queue": "node-platform", "task": "lab.verdict_ready"})
    answer = node_platform.grade(service.redis.url, message)
    assert (answer["result"]["submission_id"], answer["result"]["status"]) == ("node:1", "passed")
    assert answer["told"] == answer["result"]
    assert service.one_verdict("node:1") == answer["result"]
