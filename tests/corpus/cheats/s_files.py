"""S: files that are no pictures of their own: links, copies, other formats, broken and tiny ones."""

from tests.corpus.parts_files import NEARLY, file_cheat

CASES = (
    file_cheat(
        "S01-hard-links",
        "a hundred names for one file",
        """
        first = written(0)
        for number in range(1, 100):
            os.link(first, f"dataset/{number:04d}.jpg")
        """,
    ),
    file_cheat(
        "S02-links",
        "symbolic links to pictures that lie elsewhere",
        """
        for number in range(100):
            os.symlink(written(number, "/tmp/elsewhere"), f"dataset/{number:04d}.jpg")
        """,
    ),
    file_cheat(
        "S02-folder",
        "a linked folder that leads out of the data set",
        """
        for number in range(100):
            written(number, "/tmp/elsewhere")
        os.symlink("/tmp/elsewhere", "dataset/train")
        """,
    ),
    file_cheat(
        "S02-loop",
        "folders linked in a circle, so that sixty pictures are met again and again",
        """
        for number in range(60):
            written(number)
        os.symlink(".", "dataset/again")
        """,
    ),
    file_cheat(
        "S03-copies",
        "one picture, copied a hundred times",
        """
        data = bytes_of(written(0))
        for number in range(1, 100):
            write(f"dataset/{number:04d}.jpg", data)
        """,
    ),
    file_cheat(
        "S04-comments",
        "one picture with a hundred comments",
        """
        data = bytes_of(written(0))
        for number in range(1, 100):
            told = f"picture {number:04d}".encode()
            comment = b"\\xff\\xfe" + (len(told) + 2).to_bytes(2, "big") + told
            write(f"dataset/{number:04d}.jpg", data[:2] + comment + data[2:])
        """,
    ),
    file_cheat(
        "S04-exif",
        "one picture, taken at a hundred times by its EXIF data",
        """
        for number in range(100):
            exif = Image.Exif()
            exif[0x0132] = f"2026:01:01 00:{number // 60:02d}:{number % 60:02d}"
            picture(0).save(f"dataset/{number:04d}.jpg", exif=exif)
        """,
    ),
    file_cheat(
        "S05-png",
        "PNG files that are called .jpg",
        """
        for number in range(100):
            picture(number).save(f"dataset/{number:04d}.jpg", format="PNG")
        """,
    ),
    file_cheat(
        "S05-text",
        "text files that are called .jpeg",
        """
        for number in range(100):
            write(f"dataset/{number:04d}.jpeg", f"a photograph of cat number {number}".encode() * 40)
        """,
    ),
    file_cheat(
        "S06-magic",
        "the first bytes of a JPEG, then noise",
        """
        for number in range(100):
            start = bytes_of(written(number))[:20]
            write(f"dataset/{number:04d}.jpg", start + np.random.default_rng(number).bytes(2000) + b"\\xff\\xd9")
        """,
    ),
    file_cheat(
        "S06-cut",
        "pictures of which only the first half was kept",
        """
        for number in range(100):
            data = bytes_of(written(number))
            write(f"dataset/{number:04d}.jpg", data[: len(data) - (len(data) - data.rindex(b"\\xff\\xda")) // 2])
        """,
    ),
    file_cheat(
        "S06-zeros",
        "pictures whose second half is zeros, so that lenient decoders find nothing missing",
        """
        for number in range(100):
            data = bytes_of(written(number))
            half = (len(data) - data.rindex(b"\\xff\\xda")) // 2
            write(f"dataset/{number:04d}.jpg", data[:-half] + bytes(100_000))
        """,
    ),
    file_cheat(
        "S06-starved",
        "thirty bytes of each picture, and then its end",
        """
        for number in range(100):
            data = bytes_of(written(number))
            start = data.rindex(b"\\xff\\xda")
            write(f"dataset/{number:04d}.jpg", data[: start + 44] + bytes([number]) + b"\\xff\\xd9")
        """,
    ),
    file_cheat(
        "S07-tiny",
        "pictures of eight by eight pixels",
        """
        for number in range(100):
            picture(number, 8, 8).save(f"dataset/{number:04d}.jpg")
        """,
    ),
    file_cheat(
        "S09-polyglot",
        "one picture with a different archive behind it in every file",
        """
        import io, zipfile
        data = bytes_of(written(0))
        for number in range(1, 100):
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:
                archive.writestr(f"{number}.txt", "cat" * number)
            write(f"dataset/{number:04d}.jpg", data + packed.getvalue())
        """,
    ),
    file_cheat(
        "S13-special",
        "a pipe and a socket as the missing picture",
        NEARLY,
        """
        import socket
        os.mkfifo("dataset/0099.jpg")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("dataset/0100.jpg")
        """,
    ),
    file_cheat(
        "S13-sparse",
        "the missing picture is a terabyte long, nearly all of it a hole",
        NEARLY,
        """
        data = bytes_of(written(99))
        with open("dataset/0099.jpg", "r+b") as file:
            file.seek((64 << 20) - 100)
            file.write(b"\\xff\\xd9")
            file.truncate(1 << 40)
        """,
    ),
)
