"""Files that cannot be decoded, places that cannot be written, memory that is not there."""

from tests.checks.diagnosis.snippets import ran
from tests.checks.diagnosis.snippets.dataloader import first_of


def decoded(folder, decoder="decoders.image"):
    """A graph that decodes the files of a folder."""
    decoding = f'images = fn.{decoder}(jpegs, device="cpu")'
    return ran(decoding, "return fn.resize(images, size=(32, 32)), labels", reader=f'file_root="data/{folder}"')


SNIPPETS = {
    "dali_decode": decoded("text"),
    "dali_decode#2": decoded("cut"),
    "file_not_readable#2": decoded("empty"),
    "dali_decode#4": decoded("text", "decoders.image_random_crop"),
    "pil_unidentified": 'Image.open("data/text/a/0.jpg")',
    "pil_truncated": 'Image.open("data/cut/a/0.jpg").load()',
    "pil_truncated#2": first_of("batch_size=2", 'datasets.ImageFolder("data/cut", transforms.ToTensor())'),
    "pil_mode": 'Image.new("RGBA", (8, 8)).save("a.jpg")',
    "array_to_image": "Image.fromarray(np.random.rand(8, 8, 3))",
    "host_memory": "torch.empty(1 << 60, dtype=torch.uint8)",
    "host_memory#2": "np.empty((1 << 46,), dtype=np.uint8)",
    "open_files": """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
files = [open("data/flat/0.jpg") for _ in range(100)]
""",
    "disk_full": """
with open("/dev/full", "w") as file:
    file.write("x")
""",
    "not_writable": 'open("/sys/kernel/made", "w")',
    "no_network": """
import urllib.request
urllib.request.urlopen("http://images.invalid/a.jpg")
""",
    "no_network#2": """
datasets.CIFAR10.url = "http://images.invalid/cifar.tar.gz"
datasets.CIFAR10("cifar", download=True)
""",
    "folder_missing": 'Image.open("data/images/class_0/gone.jpg")',
    "folder_missing#2": 'os.listdir("/data/images")',
    "folder_exists": 'os.makedirs("data/images")',
    "torchvision_decode": """
from torchvision.io import read_image
read_image("data/text/a/0.jpg")
""",
    "threads": """
import resource, threading
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
threading.stack_size(1 << 30)
threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
""",
    "byte_overflow": "pixels = np.array([300, 20, 10], dtype=np.uint8)",
    "numpy_alias": "pixels = np.zeros((8, 8, 3), dtype=np.float)",
    "pillow_name": 'Image.new("RGB", (8, 8)).resize((4, 4), Image.ANTIALIAS)',
    "asks_for_input": 'choice = input("Which folder? ")',
}
