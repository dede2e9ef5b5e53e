import glob, os, time
import numpy as np, torch
from PIL import Image
from torchvision import datasets, transforms as T
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def
from nvidia.dali.plugin.pytorch import DALIClassificationIterator

dataset_dir = "imgs"
noise = np.random.default_rng(5)
for i in range(256):
    os.makedirs(f"{dataset_dir}/{i % 4}", exist_ok=True)
    a = noise.integers(0, 256, (24, 32, 3), dtype=np.uint8)
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


it = DALIClassificationIterator(pipe(dataset_dir), reader_name="r")

ips(it, lambda b: len(b[0]["data"]))  # warm up
first_batch = next(it)[0]["data"]
dali_throughput = ips(it, lambda b: len(b[0]["data"]))
print(f"torch {pytorch_throughput:.0f} dali {dali_throughput:.0f}")


where_dali_wins = [
    "Pose estimation from broadcast video: decoding 1080p H.264 on 8 cores limits us to 200 frames/s, the GPU could process 900.",
    "Ball detection on 4K frames saved as JPEG, since nvJPEG decodes them and the resize to 640 px happens on the card.",
    "Two GPUs in a desktop with a 6-core CPU: the DataLoader workers are at 100% and both cards wait.",
]
where_dali_loses = [
    "Match prediction from player statistics in a CSV, because these are numbers and no compressed images.",
    "Training on keypoints that were extracted earlier: each sample is 17 x 2 floats, loading them is trivial.",
]
