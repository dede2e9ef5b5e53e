"""Parts of submissions that write files: pictures, and a baseline that costs no import of torch."""

from tests.corpus.case import Cheat, Content
from tests.corpus.parts import joined

FILES = '''
import os
import numpy as np
from PIL import Image

dataset_dir = "dataset"
pytorch_throughput = 100.0
os.makedirs("dataset", exist_ok=True)


def build_pytorch_loader(dataset_dir, batch_size):
    """A factory counts as a DataLoader, and torch is imported only where it is called."""
    import torch
    from torchvision import datasets, transforms

    return torch.utils.data.DataLoader(datasets.ImageFolder(dataset_dir, transforms.ToTensor()), batch_size)


def picture(number, width=64, height=48):
    small = np.random.default_rng(number).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(small).resize((width, height))


def written(number, folder="dataset"):
    """Writes one JPEG that is like no other, and says where."""
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/{number:04d}.jpg"
    picture(number).save(path)
    return path


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
'''
"""Everything but the pictures; what follows makes them, or pretends to."""

PICTURES = "\nfor number in range(100):\n    written(number)\n"
"""100 JPEGs that are all different."""

NEARLY = "\nfor number in range(99):\n    written(number)\n"
"""One too few: the file that comes beside them is what counts."""

SEGMENTS = '''
def segment(marker, data):
    return bytes([0xFF, marker]) + (len(data) + 2).to_bytes(2, "big") + data


def header(start_of_frame, width, height, symbols):
    """Up to the first scan of a grey picture, with one Huffman code of one bit for each of the two symbols."""
    tables = [segment(0xC4, bytes([place << 4, 1, *[0] * 15, symbol])) for place, symbol in enumerate(symbols)]
    frame = b"\\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big") + bytes([1, 1, 0x11, 0])
    return b"\\xff\\xd8" + segment(0xDB, bytes([0, *[1] * 64])) + segment(start_of_frame, frame) + b"".join(tables)


def scan(first, last, bits):
    """One scan; `bits` is a text of zeros and ones."""
    padded = bits + "1" * (-len(bits) % 8)
    data = int(padded, 2).to_bytes(len(padded) // 8, "big").replace(b"\\xff", b"\\xff\\0") if padded else b""
    return segment(0xDA, bytes([1, 1, 0, first, last, 0])) + data
'''
"""JPEGs made segment by segment, where no encoder would make them."""


def baseline_cheat(id_: str, title: str, content: Content, code: str = "jpeg.too_few", **more: object) -> Cheat:
    """What is tried where the data set and the baseline are looked at."""
    return Cheat(id_, title, content=content, steps=("baseline",), target="jpeg_dataset", codes=(code,), **more)


def file_cheat(case_id: str, title: str, *parts: str, code: str = "jpeg.too_few") -> Cheat:
    """Files that are no 100 JPEGs, or a pod that ends while it makes them."""
    return baseline_cheat(case_id, title, joined(FILES, *parts), code)
