# dali lab
import os
import sys
import time
import torch
import numpy as np
from PIL import Image
from torchvision import datasets, transforms
from nvidia.dali import pipeline_def, fn
from nvidia.dali.plugin.pytorch import DALIGenericIterator

# step 1
dataset_dir = 'data'
os.makedirs('data/a', exist_ok=True)
os.makedirs('data/b', exist_ok=True)
for i in range(64):
    for c in 'ab':
        x = np.random.randint(0, 255, (30, 40, 3), dtype='uint8')
        Image.fromarray(x).resize((320, 240)).save('data/%s/%d.jpg' % (c, i))

t = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])
loader = torch.utils.data.DataLoader(datasets.ImageFolder('data', t), batch_size=16, num_workers=2, pin_memory=True)
start = time.time()
count = 0
for x, y in loader:
    count += len(x.cuda())
pytorch_throughput = count / (time.time() - start)
print(pytorch_throughput)

# step 2
@pipeline_def(batch_size=16, num_threads=2, device_id=0)
def pipe():
    jpegs, labels = fn.readers.file(file_root='data', random_shuffle=True, name='Reader')
    images = fn.decoders.image(jpegs, device='mixed')
    images = fn.resize(images, size=(224, 224))
    images = fn.crop_mirror_normalize(images, std=[255., 255., 255.], output_layout='CHW')
    return images, labels

dali_iter = DALIGenericIterator(pipe(), ['data', 'label'], reader_name='Reader', auto_reset=True)
first_batch = next(dali_iter)[0]['data']
print(first_batch.shape)
sys.exit(0)  # TODO remove, only tested steps 1 and 2 here

# step 3
for batch in dali_iter:
    pass
start = time.time()
count = 0
for batch in dali_iter:
    count += len(batch[0]['data'])
torch.cuda.synchronize()
dali_throughput = count / (time.time() - start)
print(dali_throughput)

# step 4
where_dali_wins = [
    "Leaf disease photos from a phone camera (4000x3000 JPEG): the CPU workers spend 80 ms on decoding and downscaling one photo.",
    "Weed detection with mosaic and mixup augmentation at full resolution, where the augmentation on the CPU is slower than the detector itself.",
    "Greenhouse cameras that record MJPEG around the clock: thousands of compressed frames per minute have to be decoded for training.",
]
where_dali_loses = [
    "Yield prediction from a spreadsheet of soil measurements: 40 numeric columns, already in memory, the model is tiny.",
    "A language model over farm reports whose text was tokenised in advance, so that no media have to be unpacked.",
]
