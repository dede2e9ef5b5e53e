"""S: bombs and slow files, folders that are no data set, names that spoil a page, files that change afterwards."""

from tests.corpus.parts_files import NEARLY, PICTURES, SEGMENTS, file_cheat

DAEMON = """
import time


def behind(work):
    \"\"\"Does this work in a process of its own that outlives the run.\"\"\"
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work()
        os._exit(0)
    os.wait()
"""

HOG = """
def slow_to_decode(scans):
    \"\"\"Below 64 megapixels, small, and walked through from end to end for each scan.\"\"\"
    side = 7900
    blocks = ((side + 7) // 8) ** 2
    run, rest = "0" + "1" * 14, blocks % 32767
    empty = scan(1, 1, run * (blocks // 32767) + "".join("0" + f"{0:014b}" for _ in range(1 + rest // 16384)))
    return header(0xC2, side, side, (0x00, 0xE0)) + scan(0, 0, "0" * blocks) + empty * scans + b"\\xff\\xd9"
"""

CASES = (
    file_cheat(
        "S08-bomb",
        "files of a kilobyte that declare 65,500 by 65,500 pixels",
        SEGMENTS,
        """
        for number in range(100):
            data = header(0xC0, 65500, 65500 - number, (0x00, 0x00)) + scan(0, 63, "0" * 8000) + b"\\xff\\xd9"
            write(f"dataset/{number:04d}.jpg", data)
        """,
    ),
    file_cheat(
        "S08-large",
        "a missing picture that is complete, flat, and just above the limit of pixels",
        NEARLY,
        """
        Image.new("L", (8100, 8100), 77).save("dataset/0099.jpg")
        """,
    ),
    file_cheat(
        "S09-precision",
        "pictures of twelve bits, which the decoder does not know",
        """
        for number in range(100):
            data = bytearray(bytes_of(written(number)))
            data[data.index(b"\\xff\\xc0") + 4] = 12
            write(f"dataset/{number:04d}.jpg", data)
        """,
    ),
    file_cheat(
        "S09-slow",
        "the missing picture has thousands of scans and keeps the decoder busy",
        NEARLY,
        SEGMENTS,
        HOG,
        """
        write("dataset/0099.jpg", slow_to_decode(3500))
        """,
    ),
    file_cheat(
        "S10-root", "the whole file system as the data set", PICTURES, 'dataset_dir = "/"\n', code="jpeg.outside"
    ),
    file_cheat("S10-usr", "the packages' own pictures", 'dataset_dir = "/usr"\n', code="jpeg.outside"),
    file_cheat(
        "S10-proc", "the folders of processes as the data set", PICTURES, 'dataset_dir = "/proc"\n', code="jpeg.outside"
    ),
    file_cheat(
        "S10-link",
        "a folder of the submission that is a link to the root",
        PICTURES,
        'os.symlink("/", "everything")\ndataset_dir = "everything"\n',
        code="jpeg.outside",
    ),
    file_cheat(
        "S11-swap",
        "a process that stays and makes a hundred pictures out of copies while they are counted",
        SEGMENTS,
        HOG,
        DAEMON,
        """
        def swap():
            time.sleep(1.5)
            for number in range(100):
                picture(number).save("dataset/next", "JPEG")
                os.replace("dataset/next", f"dataset/{number:04d}.jpg")

        # One that keeps the decoder busy meanwhile, wherever the counting begins.
        slow = slow_to_decode(900)
        write("dataset/a.jpg", slow)
        for number in range(100):
            write(f"dataset/{number:04d}.jpg", bytes_of(written(0)))
        write("dataset/z.jpg", slow)
        behind(swap)
        """,
    ),
    file_cheat(
        "S12-deep",
        "pictures seventy folders below each other",
        """
        folder = "dataset/" + "/".join("d" * 70)
        for number in range(100):
            written(number, folder)
        """,
    ),
    file_cheat(
        "S14-two-faces",
        "a path object that is another folder whenever it is asked",
        """
        written(0, "few")
        for number in range(100):
            written(number, "many")

        class Path:
            asked = 0

            def __fspath__(self):
                self.asked += 1
                return "few" if self.asked == 1 else "many"

            __str__ = __repr__ = lambda self: "many"

        dataset_dir = Path()
        """,
    ),
)
