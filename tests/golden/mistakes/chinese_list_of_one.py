# DALI 实验
import os, time
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from nvidia.dali import fn, types, pipeline_def
from nvidia.dali.plugin.pytorch import DALIGenericIterator

# 第一步：生成 128 张图片，测量 PyTorch 的速度
dataset_dir = "图片"
rng = np.random.default_rng(3)
for i in range(128):
    folder = os.path.join(dataset_dir, f"类别{i % 2}")
    os.makedirs(folder, exist_ok=True)
    noise = rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)
    Image.fromarray(noise).resize((320, 240)).save(os.path.join(folder, f"{i}.jpg"))

transform = transforms.Compose([
    transforms.RandomResizedCrop(224),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
])
loader = DataLoader(datasets.ImageFolder(dataset_dir, transform), batch_size=16, shuffle=True, num_workers=2,
                    pin_memory=True, persistent_workers=True)


def images_per_second(batches, count):
    n = 0
    start = time.perf_counter()
    for batch in batches:
        n += count(batch)
    torch.cuda.synchronize()
    return n / (time.perf_counter() - start)


images_per_second(loader, lambda b: b[0].cuda().size(0))  # 预热
pytorch_throughput = images_per_second(loader, lambda b: b[0].cuda().size(0))
print("PyTorch 每秒图片数:", pytorch_throughput)



# 第二步：DALI 流水线
@pipeline_def(batch_size=16, num_threads=2, device_id=0)
def train_pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, random_shuffle=True, name="Reader")
    images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB)
    images = fn.random_resized_crop(images, size=(224, 224))
    images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW",
                                      mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375],
                                      mirror=fn.random.coin_flip())
    return images, labels


dali_iter = DALIGenericIterator(train_pipeline(), ["data", "label"], reader_name="Reader", auto_reset=True)
first_batch = next(dali_iter)[0]["data"]


# 第三步：比较
images_per_second(dali_iter, lambda b: b[0]["data"].size(0))
dali_throughput = images_per_second(dali_iter, lambda b: b[0]["data"].size(0))
print("DALI 每秒图片数:", dali_throughput)


# 第四步：什么时候值得用 DALI
where_dali_wins = [
    "在 CPU 核心很少的服务器上用 ImageNet 的 JPEG 图片训练 ResNet-50，CPU 解码太慢，GPU 一直在等待数据；视频动作识别也是这样，压缩的 H.264 视频由 NVDEC 在 GPU 上解码。",
]
where_dali_loses = [
    "已经分词的文本不需要解码，数据加载不是瓶颈。",
    "小型表格数据全部在内存里，没有图像需要解码。",
]
