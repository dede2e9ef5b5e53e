"""The guest package as it is delivered into a run."""

import stat
import subprocess
import sys
from importlib.util import cache_from_source

from sandbox.guest_code import GUEST_SOURCE, install_guest_code


def test_every_source_arrives_with_its_bytecode_and_nothing_else(tmp_path):
    """No notes, no bytecode of other times; under a name that no learner's module has."""
    folder = tmp_path / "code"
    install_guest_code(folder)
    sources = {f"grader_guest/{path.relative_to(GUEST_SOURCE)}": path for path in GUEST_SOURCE.rglob("*.py")}
    arrived = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert arrived == sources.keys() | {cache_from_source(name) for name in sources}
    assert "grader_guest/boot.py" in sources
    for name, source in sources.items():
        assert (folder / name).read_bytes() == source.read_bytes()


def imported(folder, *flags):
    """What a bare interpreter says of the guest's module, and of the code in it."""
    code = (
        f"import sys; sys.path.append({str(folder)!r})\n"
        "from grader_guest import delivery\n"
        "print(delivery.__file__, delivery.__loader__.get_code('grader_guest.delivery').co_filename)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-B", *flags, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.split(), done.stderr


def test_the_bytecode_is_used_and_names_the_file_where_it_lies(tmp_path):
    """A source that nobody could compile shows that it is not compiled again; tracebacks name the pod's own path."""
    folder = tmp_path / "code"
    install_guest_code(folder)
    source = folder / "grader_guest" / "delivery.py"
    source.write_text("this is no Python")
    assert imported(folder) == ([str(source)] * 2, "")


def test_a_pod_of_another_python_compiles_the_source(tmp_path):
    """Bytecode that is not its own is passed over, as is one without a source's name."""
    folder = tmp_path / "code"
    install_guest_code(folder)
    cache = folder / "grader_guest" / "__pycache__"
    for path in cache.iterdir():
        path.rename(cache / path.name.replace(sys.implementation.cache_tag, "cpython-27"))
    told, errors = imported(folder)
    assert (told[0], errors) == (str(folder / "grader_guest" / "delivery.py"), "")


def test_a_pods_uid_can_read_it(tmp_path, umask):
    """Whatever the umask is."""
    umask(0o077)
    install_guest_code(tmp_path / "code")
    for path in [tmp_path / "code", *(tmp_path / "code").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644)
