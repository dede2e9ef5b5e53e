"""Mistakes with PyTorch's DataLoader."""


def items(*lines, then="next(iter(DataLoader(Items(), batch_size=4, num_workers=1)))"):
    """A data set of ten whose items are what these lines make, and a loader of it."""
    head = "class Items(Dataset):\n    def __len__(self):\n        return 10\n    def __getitem__(self, i):\n"
    return head + "".join(f"        {line}\n" for line in lines) + then


def loader(options, data="datasets.ImageFolder(dataset_dir)"):
    """A loader, by default of the folder of images."""
    return f"loader = DataLoader({data}, {options})\n"


def first_of(options, data="datasets.ImageFolder(dataset_dir)"):
    """The first batch of such a loader."""
    return loader(options, data) + "next(iter(loader))"


SNIPPETS = {
    "stack_sizes": first_of("batch_size=4", "datasets.ImageFolder(dataset_dir, transforms.ToTensor())"),
    "stack_sizes#2": first_of(
        "batch_size=4, num_workers=1", "datasets.ImageFolder(dataset_dir, transforms.ToTensor())"
    ),
    "collate_pictures": first_of("batch_size=4"),
    "grey_images": items(
        'image = transforms.ToTensor()(Image.open(f"data/grey/a/{i}.jpg"))',
        "return transforms.Normalize([0.5] * 3, [0.5] * 3)(image)",
        then="next(iter(DataLoader(Items(), batch_size=4)))",
    ),
    "worker_killed": items("os.kill(os.getpid(), 9)"),
    "worker_killed#3": items("os._exit(3)"),
    "worker_raised": items('raise KeyError("images")'),
    "unpicklable": """
data = datasets.ImageFolder(dataset_dir, lambda image: 1)
loader = DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context="spawn")
next(iter(loader))
""",
    "unpicklable#2": """
def make():
    class Local(Dataset):
        def __len__(self):
            return 10
        def __getitem__(self, i):
            return 1
    return Local()
next(iter(DataLoader(make(), batch_size=4, num_workers=1, multiprocessing_context="spawn")))
""",
    "main_guard": """
import multiprocessing as mp
mp.process.current_process()._inheriting = True
process = mp.get_context("spawn").Process(target=print)
process.start()
""",
    "prefetch_without_workers": loader("batch_size=4, num_workers=0, prefetch_factor=2"),
    "persistent_without_workers": loader("batch_size=4, num_workers=0, persistent_workers=True"),
    "sampler_and_shuffle": """
data = datasets.ImageFolder(dataset_dir)
DataLoader(data, batch_size=4, shuffle=True, sampler=torch.utils.data.SequentialSampler(data))
""",
    "no_class_folders": 'datasets.ImageFolder("data/flat")',
    "no_class_folders#2": 'datasets.ImageFolder("data/nothing")',
    "empty_class_folders": 'datasets.ImageFolder("data/no_images")',
    "image_folder_missing": 'datasets.ImageFolder("data/nowhere")',
    "empty_dataset": "DataLoader([], batch_size=4, shuffle=True)",
    "next_of_loader": "batch = next(DataLoader(datasets.ImageFolder(dataset_dir)))",
    "loader_subscripted": "batch = DataLoader(datasets.ImageFolder(dataset_dir))[0]",
    "old_iterator_next": "batch = iter(DataLoader(datasets.ImageFolder(dataset_dir))).next()",
    "batch_is_a_list#3": """
transform = transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])
loader = DataLoader(datasets.ImageFolder(dataset_dir, transform))
for batch in loader:
    batch.cuda()
""",
    "batch_is_a_list#4": """
transform = transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])
loader = DataLoader(datasets.ImageFolder(dataset_dir, transform))
size = next(iter(loader)).shape[0]
""",
    "dataset_incomplete": """
class Images(Dataset):
    def __getitem__(self, i):
        return 1
loader = DataLoader(Images(), batch_size=4, shuffle=True)
""",
    "dataset_incomplete#2": """
class Images(Dataset):
    def __len__(self):
        return 8
next(iter(DataLoader(Images(), batch_size=4)))
""",
    "worker_timeout": items(
        "time.sleep(1.5)", then="next(iter(DataLoader(Items(), batch_size=4, num_workers=1, timeout=1)))"
    ),
    "loader_argument": loader("batch_size=4, workers=4"),
    "loader_number": loader("batch_size=4, num_workers=-1"),
    "loader_number#2": loader("batch_size=0"),
    "random_crop_too_large": 'transforms.RandomCrop(224)(Image.new("RGB", (60, 50)))',
    "shared_memory": items(
        "os.kill(os.getpid(), 7)",
        then="batches = iter(DataLoader(Items(), batch_size=4, num_workers=1))\ntime.sleep(20)",
    ),
    "worker_killed#2": items(
        "os.kill(os.getpid(), 9)",
        then="batches = iter(DataLoader(Items(), batch_size=4, num_workers=1))\ntime.sleep(20)",
    ),
    "pil_truncated#3": first_of(
        "batch_size=2, num_workers=1", 'datasets.ImageFolder("data/cut", transforms.ToTensor())'
    ),
}
