import glob, os
import numpy as np, torch
from PIL import Image
from torchvision import datasets, transforms as T
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def
from nvidia.dali.plugin.pytorch import DALIClassificationIterator

dataset_dir = "imgs"
rng = np.random.default_rng(5)
for i in range(256):
    os.makedirs(f"{dataset_dir}/{i % 4}", exist_ok=True)
    a = rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)
    Image.fromarray(a).resize((320, 240), Image.BILINEAR).save(f"{dataset_dir}/{i % 4}/{i}.jpeg", quality=88)
print(len(glob.glob(f"{dataset_dir}/*/*.jpeg")), "files")


mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
tf = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(mean, std)])
loader = torch.utils.data.DataLoader(datasets.ImageFolder(dataset_dir, tf), 32, shuffle=True, num_workers=2,
                                     pin_memory=True, persistent_workers=True)


def ips(it, size):
    n, t = 0, time.perf_counter()
    for b in it:
        n += size(b)
    torch.cuda.synchronize()
    return n / (time.perf_counter() - t)


ips(loader, lambda b: len(b[0].cuda()))
pytorch_throughput = ips(loader, lambda b: len(b[0].cuda()))



@pipeline_def(batch_size=32, num_threads=2, device_id=0)
def pipe(root):
    jpg, lab = fn.readers.file(file_root=root, random_shuffle=True, name="r")
    img = fn.decoders.image_random_crop(jpg, device="mixed", output_type=types.RGB)
    img = fn.resize(img, size=(224, 224))
    img = fn.crop_mirror_normalize(img, mirror=fn.random.coin_flip(), output_layout="CHW",
                                   mean=[255 * m for m in mean], std=[255 * s for s in std])
    return img, lab


it = DALIClassificationIterator(pipe(dataset_dir), reader_name="r", auto_reset=True)
first_batch = next(it)[0]["data"]

ips(it, lambda b: len(b[0]["data"]))
dali_throughput = ips(it, lambda b: len(b[0]["data"]))
print(f"torch {pytorch_throughput:.0f} dali {dali_throughput:.0f}")


where_dali_wins = [
    "ImageNet JPEGs, 2 vCPUs per GPU: CPU decode starves the GPU",
    "4K video clips: decode on NVDEC instead of ffmpeg on the host",
    "aerial photos of 100 MP with heavy resize and crop on the CPU",
]
where_dali_loses = [
    "token ids from a memmap: nothing to decode",
    "tabular rows that sit in RAM as floats, loader never waits",
]
