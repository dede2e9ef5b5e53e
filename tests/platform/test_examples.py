"""The example platforms, in three languages, against the service: what docs/platforms.md promises."""

import json
import os
import subprocess
import sys

import pytest
import rfc8785

from grader_service import verdicts
from grader_service.model.verdict import Provenance
from grader_service.signing import Signer
from tests.platform.platforms import PLATFORMS, node_platform, php_platform, python_platform  # noqa: F401 - fixtures
from tests.service.conftest import graded  # noqa: F401 - a fixture
from tests.service.harness import QUICK
from tests.waiting import wait_for

pytestmark = pytest.mark.integration
CHECKERS = {
    "node": (
        *("node", "--input-type=module", "-e"),
        "import { readFileSync } from 'node:fs'; import { canonical, checkSignature } from './signature.js';"
        "const verdict = JSON.parse(readFileSync(0, 'utf8')); checkSignature(verdict, process.argv.slice(1));"
        "process.stdout.write(canonical(verdict));",
    ),
    "php": (
        *("php", "-r"),
        "require 'signature.php'; $verdict = json_decode(stream_get_contents(STDIN));"
        "check_signature($verdict, array_slice($argv, 1)); echo canonical($verdict);",
    ),
}
ODD = {
    "numbers": [
        *(0.0, -0.0, 1.0, -2.5, 0.1, 100.0, 1e-6, 1e-7, 1.5e-9, 5e-324, 1e20, 1e21, 1.25e25, 1.7976931348623157e308),
        *(333333333.33333329, 123456789012345680000.0, -9007199254740991, 10),
    ],
    "texts": '/ \u2028 \x7f \x01 \x1f \b\t\n\f\r " \\ ü 漢 \U0001f600',
    "names": {"10": 1, "9": 2, "": 3, "ä": 4, "\ue000": 5, "\U0001f600": 6, "a\nb": 7},
    "empty": [{}, [], None, True],
}


@pytest.fixture(params=["python", "node", "php"])
def platform(request):
    """Each in turn."""
    return request.getfixturevalue(f"{request.param}_platform")


@pytest.fixture
def key(graded):  # noqa: F811 - the fixture
    """The service's public key."""
    return Signer.from_folder(graded.state_dir / "keys").public_key


def test_a_platform_posts_and_reads_its_verdict(platform, graded, key, tmp_path, request):  # noqa: F811
    """As a result or as a message, with a signature that holds; asked again, it has the same, and knows other keys."""
    (tmp_path / "submission.py").write_text(QUICK)
    submission_id = f"{request.node.callspec.id}:1"
    posted = (str(tmp_path / "submission.py"), submission_id, "reflection")
    verdict = platform.grade(graded.redis.url, key, *posted)
    assert graded.one_verdict(submission_id) == verdict
    assert (verdict["learner"], verdict["cohort"]) == ("u-17", "2026-fall")
    stranger = platform.run(graded.redis.url, "0" * 64, *posted)
    assert stranger.returncode != 0
    assert "sign" in stranger.stderr
    assert stranger.stdout == ""
    assert graded.one_verdict(submission_id) == verdict


def test_a_platform_with_celery_is_told_by_a_task(graded, key, tmp_path):  # noqa: F811
    """Its worker stores the verdict that comes to its queue."""
    (tmp_path / "submission.py").write_text(QUICK)
    program = PLATFORMS / "celery_platform.py"
    environment = {**os.environ, "GRADER_REDIS_URL": graded.redis.url, "GRADER_PUBLIC_KEYS": key}
    environment["PYTHONPATH"] = os.pathsep.join([str(PLATFORMS), os.environ.get("PYTHONPATH", "")])
    worker = [sys.executable, "-m", "celery", "-A", "celery_platform", "worker", "-Q", "lab-platform", "-P", "solo"]
    with (tmp_path / "worker.log").open("wb") as log:
        listening = subprocess.Popen(worker, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        subprocess.run(
            [sys.executable, program, "submission.py", "celery:1", "reflection"],
            cwd=tmp_path, env=environment, check=True, timeout=60,
        )  # fmt: skip
        stored = tmp_path / "verdicts" / "celery:1.json"
        wait_for(lambda: stored.exists() or listening.poll() is not None, 60)
        assert json.loads(stored.read_text()) == graded.one_verdict("celery:1"), (tmp_path / "worker.log").read_text()
    finally:
        listening.kill()
        listening.wait()


@pytest.mark.parametrize("language", CHECKERS)
@pytest.mark.usefixtures("php_platform")
def test_signatures_hold_in_every_language(language, tmp_path):
    """Whatever numbers, texts and names a verdict holds; one that was changed by a digit is refused."""
    signer = Signer.from_folder(tmp_path)
    verdict = verdicts.refused("s:1", "lab", "archive.link", "no")
    verdict = verdict.model_copy(update={"provenance": Provenance(grader_version="1", host=ODD)})
    document = signer.sign(verdict).model_dump(mode="json")

    def checked(document):
        return subprocess.run(
            [*CHECKERS[language], signer.public_key],
            cwd=PLATFORMS / language, input=json.dumps(document).encode(), check=False, capture_output=True, timeout=60,
        )  # fmt: skip

    done = checked(document)
    assert (done.returncode, done.stdout) == (0, rfc8785.dumps(document)), done.stderr.decode()
    changed = checked({**document, "score": 100.0})
    assert changed.returncode != 0
    assert b"does not hold" in changed.stderr + changed.stdout
