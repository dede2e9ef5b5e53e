"""A folder for state: whose it must be, and the command that is told where it is not."""

import contextlib
import os
import stat
import subprocess

import pytest

from grader_service.errors import ConfigurationError
from grader_service.host.sandboxes import open_runner
from grader_service.settings import Settings
from grader_service.state_folder import misfit, require_own
from sandbox.run_folder import OwnedFolder
from tests.conftest import missing

SERVICE = 10001


@pytest.fixture
def place(state_dir):
    """A folder that everybody may look into."""
    state_dir.chmod(0o755)
    return state_dir


@pytest.fixture
def made(place):
    """A state folder in which this user has had a run."""
    folder = OwnedFolder(place / "state", "run-1")
    folder.create()
    folder.remove()
    return place / "state"


@pytest.fixture
def root():
    """Only root has two users."""
    if os.geteuid() != 0:
        missing("only root may give files away")


def as_service(path):
    """What the service's user is told: in a child, since an interpreter of root's may not be there for others."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setresgid(SERVICE, SERVICE, SERVICE)
            os.setresuid(SERVICE, SERVICE, SERVICE)
            os.write(writer, str(misfit(path)).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as told:
        return told.read()


def test_ones_own_folder_fits(made, place):
    """Also one that is not there yet; nothing is made by looking."""
    assert misfit(made) is None
    assert misfit(place / "not" / "there") is None
    assert not (place / "not").exists()
    require_own(made)


def test_what_is_no_folder(tmp_path):
    """Is said before anything is opened in it."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="is no folder; remove it, or name another"):
        open_runner("process", "image", Settings(state_dir=tmp_path / "file"), None)


@pytest.mark.usefixtures("root")
class TestTwoUsers:
    """Root's command line and the service's uid 10001."""

    def test_what_root_left_is_refused_to_the_service(self, made):
        """Though the folder itself was given to it: the lock of runs is still root's."""
        os.chown(made, SERVICE, SERVICE)
        told = as_service(made)
        assert f"{made}/runs belongs to root (uid 0) and this process runs as " in told
        assert f"`chown -R {SERVICE}:{SERVICE} {made}` as root mends it" in told
        subprocess.run(["chown", "-R", f"{SERVICE}:{SERVICE}", str(made)], check=True)
        assert as_service(made) == "None"

    def test_what_the_service_keeps_is_refused_to_root(self, made):
        """Root could write there, and the service could open nothing of it; its own folder below stays its own."""
        service = made / "service"
        service.mkdir()
        for path in (made, made / "runs", made / "runs.lock", service):
            os.chown(path, SERVICE, SERVICE)
        told = misfit(made)
        assert told.startswith(f"{made} belongs to ")
        command = f"chown 0:0 {made} {made}/runs {made}/runs.lock"
        assert f"`{command}`" in told
        subprocess.run(command.split(), check=True)
        assert misfit(made) is None
        assert service.stat().st_uid == SERVICE

    def test_a_folder_that_cannot_be_made(self, place):
        """The command that makes it."""
        told = as_service(place / "state")
        assert f"`install -d -o {SERVICE} -g {SERVICE} -m 750 {place}/state` as root makes it" in told

    def test_a_folder_of_ones_own_that_is_closed(self, made):
        """Needs no other owner."""
        subprocess.run(["chown", "-R", f"{SERVICE}:{SERVICE}", str(made)], check=True)
        made.chmod(stat.S_IRUSR | stat.S_IXUSR)
        assert f"`chmod -R u+rwX {made}`" in as_service(made)
