"""What an archive may hold, and what every rejection tells the learner."""

import stat
import struct
import tarfile

import pytest

from grader_service.ingest.limits import IngestLimits
from tests.ingest.packing import SOURCE, pack, tar_bytes, tar_member, zip_bytes, zip_member

KINDS = pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
TRAVERSALS = [
    "../evil.py",
    "a/../../evil.py",
    "..",
    "a/..",
    "./../evil.py",
    "/etc/evil.py",
    "//evil.py",
    "..\\evil.py",
    "a\\..\\..\\evil.py",
    "a/..\\evil.py",
    "\\evil.py",
    "C:\\evil.py",
    "c:/evil.py",
    "c:evil.py",
    "\\\\server\\share\\evil.py",
    "//server/share/evil.py",
    "\\\\?\\C:\\evil.py",
    "__MACOSX/../../evil.py",  # names are checked before junk is thrown away
]


@KINDS
def test_files_arrive_unchanged(target, kind):
    """Regular files are written with their bytes, folders are made for them, and their paths come back sorted."""
    members = [("submission.py", SOURCE), ("data/b.bin", bytes(range(256)) * 300), ("data/a.txt", b"")]
    assert target.unpack(pack(kind, members), kind) == ["data/a.txt", "data/b.bin", "submission.py"]
    assert target.files() == {"submission.py": SOURCE, "data/b.bin": bytes(range(256)) * 300, "data/a.txt": b""}


@KINDS
@pytest.mark.parametrize(
    ("packed", "unpacked"),
    [
        (["lab/submission.py", "lab/data/a.txt", "lab/lab"], ["data/a.txt", "lab", "submission.py"]),
        (["a/b/submission.py"], ["b/submission.py"]),
        (["a/x.py", "y.txt"], ["a/x.py", "y.txt"]),
        (["./submission.py", "./a//./b.txt"], ["a/b.txt", "submission.py"]),
        (["n" * 240, "a/b/c/ü.py"], ["a/b/c/ü.py", "n" * 240]),
        (
            ["p/.unpacking/x.txt", "p/.unpacking-0/x.txt", "p/submission.py"],
            [".unpacking-0/x.txt", ".unpacking/x.txt", "submission.py"],
        ),
    ],
    ids=["enclosing-folder", "two-folders", "file-beside-folder", "dots-and-slashes", "longest-names", "our-own-names"],
)
def test_where_files_arrive(target, kind, packed, unpacked):
    """One enclosing folder is looked through, and `./a//b` is `a/b`; all other names stay, long ones and ours too."""
    assert target.unpack(pack(kind, [(name, SOURCE) for name in packed]), kind) == unpacked
    assert sorted(target.files()) == unpacked


def test_backslashes_are_folders(target):
    """Windows packers write them, also at the end of a folder's name."""
    assert target.unpack(zip_bytes([("lab\\", b""), ("lab\\data\\a.txt", b"1"), ("lab\\submission.py", SOURCE)])) == [
        "data/a.txt",
        "submission.py",
    ]


@KINDS
@pytest.mark.parametrize("name", TRAVERSALS)
def test_no_name_leads_out(target, kind, name):
    """However a path out of the folder is spelled, it is rejected and nothing is written outside."""
    code, feedback = target.rejection(pack(kind, [("submission.py", SOURCE), (name, b"evil")]), kind)
    assert code == "archive.traversal"
    assert "evil" in feedback or ".." in feedback
    assert "Pack the files with paths relative to your project folder" in feedback


@pytest.mark.parametrize("name", ["submission.py\0.txt", "\0hidden.py", "a\0/../../evil.py"])
def test_a_nul_byte_hides_no_name(target, name):
    """What stands behind a NUL byte is part of the name: a zip's reader would cut it off."""
    stand_in = name.replace("\0", "\x01")
    content = zip_bytes([(stand_in, SOURCE)]).replace(stand_in.encode(), name.encode())
    assert target.rejection(content)[0] in ("archive.bad_name", "archive.traversal")


def test_a_nul_byte_in_a_pax_name(target):
    """A PAX header can name a file with any character."""
    info = tarfile.TarInfo("plain.py")
    info.pax_headers = {"path": "a\0b.py"}
    assert target.rejection(tar_bytes([(info, b"")]), "tar")[0] == "archive.bad_name"


@pytest.mark.parametrize("name", ["a\nb.py", "\x1b[31mred.py", "a\rb", "tab\t.py", "del\x7f"])
def test_control_characters_are_no_names(target, name):
    """They are shown escaped, and say what to do."""
    code, feedback = target.rejection(zip_bytes([(name, SOURCE)]))
    assert code == "archive.bad_name"
    assert name not in feedback
    assert feedback.isprintable()
    assert "Rename the file" in feedback


def test_names_that_are_not_unicode(target):
    """A tar may hold any bytes; what is no UTF-8 cannot be named in a verdict."""
    content = tar_bytes([("submission.py", SOURCE), ("caf#.txt", b"")], form=tarfile.USTAR_FORMAT)
    content = _with_checksums(content.replace(b"caf#", b"caf\xe9"))
    assert target.rejection(content, "tar")[0] == "archive.bad_name"


def _with_checksums(content):
    """The tar's header sums made right again after a change."""
    changed = bytearray(content)
    for start in range(0, len(content), 512):
        block = changed[start : start + 512]
        if block[257:262] == b"ustar":
            block[148:156] = b" " * 8
            changed[start + 148 : start + 156] = b"%06o\0 " % sum(block)
    return bytes(changed)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("n" * 241, "archive.bad_name"),
        ("ü" * 121, "archive.bad_name"),
        ("/".join(["d" * 200] * 4) + "/" + "f" * 230, "archive.bad_name"),
        ("a/b/c/d/e.py", "archive.too_deep"),
    ],
)
@KINDS
def test_long_and_deep_names(target, kind, name, code):
    """No name comes near what a file system takes; the message has the limit and is short itself."""
    limits = IngestLimits(depth=5 if code == "archive.bad_name" else 4)
    found, feedback = target.rejection(pack(kind, [("submission.py", SOURCE), (name, b"")]), kind, limits)
    assert found == code
    assert str({"archive.bad_name": limits.name_bytes, "archive.too_deep": limits.depth}[code]) in feedback
    assert len(feedback) < 300


@KINDS
@pytest.mark.parametrize(
    "name",
    ["mein Projekt/Übung 1.py", "数据/加载.py", "café/naïve.ipynb", "🚀 run.py", "a'b\"c$d`e;f&g.py", "-rf", "~"],
)
def test_odd_but_honest_names(target, kind, name):
    """Spaces, umlauts, CJK, emoji and shell signs are names like any other."""
    members = [("submission.py", SOURCE), (name, b"1")]
    assert target.unpack(pack(kind, members), kind) == sorted(["submission.py", name])
    assert target.files()[name] == b"1"


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_nothing_is_written_through_a_link(target, kind):
    """A link to a folder outside, then a file below it."""
    outside = str(target.root)
    if kind == "zip":
        content = zip_bytes([(zip_member("d", stat.S_IFLNK | 0o777), outside.encode()), ("d/sentinel.txt", b"evil")])
    else:
        content = tar_bytes([(tar_member("d", tarfile.SYMTYPE, outside), b""), ("d/sentinel.txt", b"evil")])
    assert target.rejection(content, kind)[0] == "archive.link"
    assert (target.root / "sentinel.txt").read_text() == "untouched"


NO_FILES = {
    "tar-symlink": tar_member("s", tarfile.SYMTYPE, "/etc/passwd"),
    "tar-inner-symlink": tar_member("s", tarfile.SYMTYPE, "submission.py"),
    "tar-hardlink": tar_member("s", tarfile.LNKTYPE, "/etc/passwd"),
    "zip-symlink": zip_member("s", stat.S_IFLNK | 0o777),
    "tar-fifo": tar_member("s", tarfile.FIFOTYPE),
    "tar-character-device": tar_member("s", tarfile.CHRTYPE),
    "tar-block-device": tar_member("s", tarfile.BLKTYPE),
    "zip-fifo": zip_member("s", stat.S_IFIFO | 0o644),
    "zip-socket": zip_member("s", stat.S_IFSOCK | 0o644),
    "zip-device": zip_member("s", stat.S_IFCHR | 0o644),
}


@pytest.mark.parametrize("name", NO_FILES)
def test_links_and_special_files_are_refused(target, name):
    """Symbolic and hard links, wherever they lead, devices, pipes and sockets."""
    kind = name.partition("-")[0]
    data = b"/etc/passwd" if name == "zip-symlink" else b""
    code, feedback = target.rejection(pack(kind, [(NO_FILES[name], data)]), kind)
    assert code == ("archive.link" if name.endswith("link") else "archive.special_file")
    assert "'s'" in feedback
    assert ("Pack the file itself" if name.endswith("link") else "Only files and folders") in feedback
    assert not target.files()


@KINDS
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("submission.py", "submission.py"),
        ("submission.py", "Submission.PY"),
        ("data/é.txt", "data/e\u0301.txt"),
        ("straße.txt", "STRASSE.txt"),
        ("a/ﬁle", "A/FILE"),
        ("x.py", "./x.py"),
        ("x/y", "x\\y"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name(target, kind, first, second):
    """First wins or last wins would let a reviewer and the run see different files; both names are told."""
    code, feedback = target.rejection(pack(kind, [(first, b"1"), (second, b"2")]), kind)
    assert code == "archive.duplicate_member"
    assert "Keep one of them" in feedback
    assert first.encode("ascii", "backslashreplace").decode().replace("\\", "\\\\") in feedback


@KINDS
@pytest.mark.parametrize(
    "names", [("a", "a/b"), ("a/b", "a"), ("A", "a/b"), ("a/b", "A"), ("a/b/c", "a/B"), ("a/", "a"), ("a", "a/")]
)
def test_a_file_where_a_folder_is(target, kind, names):
    """One name cannot be both, in any order or case."""
    members = []
    for name in names:
        folder = tar_member(name.rstrip("/"), tarfile.DIRTYPE)
        members.append((name if kind == "zip" or not name.endswith("/") else folder, b""))
    code, feedback = target.rejection(pack(kind, members), kind)
    assert code == "archive.duplicate_member"
    assert "both a file and a folder" in feedback


@KINDS
def test_folders_may_be_listed_twice(target, kind):
    """Packers list a folder before its files, and some list it again."""
    folder = "a/" if kind == "zip" else tar_member("a", tarfile.DIRTYPE)
    content = pack(kind, [(folder, b""), ("a/x.py", b"1"), ("b.txt", b"")])
    assert target.unpack(content, kind) == ["a/x.py", "b.txt"]


@pytest.mark.parametrize("flags", [0x1, 0x40, 0x41], ids=["password", "strong", "both"])
def test_encrypted_members(target, flags):
    """A password is told from a broken file, without asking for one."""
    content = bytearray(zip_bytes([("submission.py", SOURCE)]))
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 8 : directory + 10] = struct.pack("<H", flags)
    code, feedback = target.rejection(bytes(content))
    assert code == "archive.encrypted"
    assert "submission.py" in feedback
    assert "without a password" in feedback


@KINDS
@pytest.mark.parametrize(
    "junk",
    [
        "__MACOSX/._submission.py",
        "._submission.py",
        ".git/config",
        ".ipynb_checkpoints/submission-checkpoint.ipynb",
        "__pycache__/submission.cpython-311.pyc",
        "module.pyc",
        "MODULE.PYO",
        ".DS_Store",
        "data/Thumbs.db",
        "desktop.ini",
        ".venv/lib/site.py",
    ],
)
def test_junk_is_left_out(target, kind, junk):
    """What editors, file managers and Python leave behind never arrives, and does not hide the enclosing folder."""
    members = [("project/submission.py", SOURCE), (junk, b"junk"), (f"project/{junk}", b"junk")]
    assert target.unpack(pack(kind, members), kind) == ["submission.py"]
    assert target.files() == {"submission.py": SOURCE}


@KINDS
def test_junk_is_known_by_its_whole_name(target, kind):
    """A name that only ends like junk is the learner's."""
    names = ["mythumbs.db", "x.git", "pyc", "my_desktop.ini", "a._b"]
    assert target.unpack(pack(kind, [(name, b"1") for name in names]), kind) == sorted(names)


def _with_mode(kind, mode):
    """A member from 1980 or the future, with this mode and a stranger's ids where its archive has them."""
    if kind == "zip":
        info = zip_member("submission.py", stat.S_IFREG | mode)
        info.date_time = (1980, 1, 1, 0, 0, 0)
        return info
    info = tarfile.TarInfo("submission.py")
    info.mode, info.mtime, info.uid, info.gid = mode, 4_200_000_000, 1234, 1234
    return info


@KINDS
def test_modes_times_and_owners_are_not_kept(target, kind):
    """No set-id bit, no write bit for others, no file from 1980 or the future."""
    target.unpack(pack(kind, [(_with_mode(kind, 0o6777), SOURCE)]), kind)
    status = (target.into / "submission.py").stat()
    assert status.st_mode & 0o7111 == 0
    assert status.st_uid != 1234
    assert 1_000_000_000 < status.st_mtime < 4_100_000_000


@KINDS
def test_archives_inside_stay_packed(target, kind):
    """An inner archive is a file, whatever it holds."""
    inner = pack("tar", [("../evil.py", b"evil")])
    assert target.unpack(pack(kind, [("submission.py", SOURCE), ("data.tar", inner)]), kind) == [
        "data.tar",
        "submission.py",
    ]
    assert target.files()["data.tar"] == inner


@KINDS
def test_an_empty_archive_unpacks_to_nothing(target, kind):
    """Which is for the entry point's rule to complain about."""
    assert target.unpack(pack(kind, []), kind) == []
    assert list(target.into.iterdir()) == []


def test_a_negative_size_in_a_tar(target):
    """Sizes in base 256 can be negative; reading backwards is refused."""
    info = tarfile.TarInfo("submission.py")
    content = bytearray(tar_bytes([(info, SOURCE), ("b.py", SOURCE)], form=tarfile.GNU_FORMAT))
    content[124:136] = b"\xff" * 10 + b"\xfc\x00"
    assert target.rejection(_with_checksums(bytes(content)), "tar")[0] == "archive.unreadable"
