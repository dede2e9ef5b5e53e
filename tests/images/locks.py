"""Small lock files, cut out of this project's own."""

from pathlib import Path

LOCK = Path(__file__).parents[2] / "images" / "lock" / "dev.txt"


def cut_out(names, into):
    """Writes the entries of these packages, with their hashes, as a lock file."""
    wanted, taken = False, []
    for line in LOCK.read_text().splitlines():
        if line and not line[0].isspace() and not line.startswith("#"):
            wanted = line.split("==")[0] in names
            if wanted:
                taken.append(line.split(" ;")[0].rstrip(" \\") + " \\")
        elif wanted and line.strip().startswith("--hash"):
            taken.append(line)
    into.write_text("\n".join(taken) + "\n")
    assert into.read_text().count("==") == len(names)
    return into


def version_of(name):
    """The locked version of a package."""
    line = next(line for line in LOCK.read_text().splitlines() if line.startswith(f"{name}=="))
    return line.split("==")[1].split()[0]
