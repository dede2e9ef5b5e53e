"""B: a baseline held back, so that a slow pipeline looks fast beside it."""

from tests.corpus.case import Cheat
from tests.corpus.parts import DATASET, SLOW_GRAPH, TRANSFORMS, joined
from tests.corpus.parts_forgeries import timed_cheat


def held_back(id_: str, title: str, loader: str, *, pipeline: str = SLOW_GRAPH) -> Cheat:
    """A slow graph beside a loader that is slower still."""
    return timed_cheat(id_, title, joined(DATASET, TRANSFORMS, loader, "pytorch_throughput = 1.0", pipeline))


CASES = (
    held_back(
        "B01",
        "sleeps for every image",
        """
        import time


        class Sleeper(datasets.ImageFolder):
            def __getitem__(self, index):
                time.sleep(0.1)
                return super().__getitem__(index)


        loader = torch.utils.data.DataLoader(Sleeper(dataset_dir, shape), batch_size=4)
        """,
    ),
    held_back(
        "B02",
        "no workers against sixteen threads",
        """
        loader = torch.utils.data.DataLoader(datasets.ImageFolder(dataset_dir, shape), batch_size=16, num_workers=0)
        """,
        pipeline=SLOW_GRAPH.replace("num_threads=1", "num_threads=16"),
    ),
    held_back(
        "B03",
        "four workers that are started anew for every small batch",
        """
        class OneBatch(torch.utils.data.Sampler):
            def __iter__(self):
                yield random.sample(range(100), 4)

            def __len__(self):
                return 1


        images = datasets.ImageFolder(dataset_dir, shape)
        options = {"num_workers": 4, "persistent_workers": False, "pin_memory": False}
        loader = torch.utils.data.DataLoader(images, batch_sampler=OneBatch(), **options)
        """,
    ),
    held_back(
        "B04",
        "large outputs and colour changes on the loader's side only",
        """
        steps = [transforms.Resize((1280, 1280)), transforms.ColorJitter(0.2, 0.2, 0.2, 0.1), transforms.ToTensor()]
        larger = datasets.ImageFolder(dataset_dir, transforms.Compose(steps))
        loader = torch.utils.data.DataLoader(larger, batch_size=4)
        """,
    ),
    held_back(
        "B05",
        "large PNG copies for the loader",
        """
        os.makedirs("copies/c0")
        for number in range(4):
            copy = Image.open(f"dataset/c{number % 2}/{number:04d}.jpg").resize((2400, 1800), Image.BICUBIC)
            copy.save(f"copies/c0/{number}.png", compress_level=1)
        loader = torch.utils.data.DataLoader(datasets.ImageFolder("copies", shape), batch_size=4)
        """,
    ),
    held_back(
        "B06",
        "eight children that burn processor time beside the loader",
        """
        for _ in range(8):
            if os.fork() == 0:
                while True:
                    pass
        larger = transforms.Compose([transforms.Resize((384, 384)), transforms.ToTensor()])
        loader = torch.utils.data.DataLoader(datasets.ImageFolder(dataset_dir, larger), batch_size=4)
        """,
    ),
    held_back(
        "B07",
        "the device is kept busy while batches are on their way to it",
        """
        hog = torch.rand(1200, 1200, device="cuda")


        def busy(samples):
            for _ in range(8):
                hog @ hog
            return torch.utils.data.default_collate(samples)


        loader = torch.utils.data.DataLoader(datasets.ImageFolder(dataset_dir, shape), batch_size=4, collate_fn=busy)
        """,
    ),
    held_back(
        "B08",
        "one core, one thread and the lowest place in the queue for it",
        """
        torch.set_num_threads(1)
        os.environ["OMP_NUM_THREADS"] = "1"
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        for _ in range(3):  # who stands before it
            if os.fork() == 0:
                while True:
                    pass
        os.nice(10)
        loader = torch.utils.data.DataLoader(datasets.ImageFolder(dataset_dir, shape), batch_size=4)
        """,
    ),
    held_back(
        "B09",
        "an image library that looks at every pixel in Python",
        """
        def through_python(image):
            small = [tuple(min(255, int(part ** 1.0)) for part in pixel) for pixel in image.getdata()]
            made = Image.new("RGB", image.size)
            made.putdata(small)
            return made


        steps = transforms.Compose([transforms.Lambda(through_python), shape])
        loader = torch.utils.data.DataLoader(datasets.ImageFolder(dataset_dir, steps), batch_size=4)
        """,
    ),
    held_back(
        "B10",
        "files are dropped from the cache and read in single bytes",
        """
        class Cold(datasets.ImageFolder):
            def __getitem__(self, index):
                path, label = self.samples[index]
                file = os.open(path, os.O_RDONLY)
                size = os.fstat(file).st_size
                for _ in range(5):
                    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                    for place in random.sample(range(size), size):
                        os.pread(file, 1, place)
                os.close(file)
                return super().__getitem__(index)


        loader = torch.utils.data.DataLoader(Cold(dataset_dir, shape), batch_size=4)
        """,
    ),
    held_back(
        "B11",
        "thirty-two images are decoded, and one is counted",
        """
        def one(samples):
            return torch.utils.data.default_collate(samples[:1])


        loader = torch.utils.data.DataLoader(datasets.ImageFolder(dataset_dir, shape), batch_size=32, collate_fn=one)
        """,
    ),
    held_back(
        "B12",
        "the loader gives up when it is timed",
        """
        class Quitter(datasets.ImageFolder):
            def __getitem__(self, index):
                raise RuntimeError("not today")


        loader = torch.utils.data.DataLoader(Quitter(dataset_dir, shape), batch_size=16)
        """,
    ),
)
