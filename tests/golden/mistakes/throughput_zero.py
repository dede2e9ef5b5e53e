# dali lab
import os
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
pytorch_throughput = round((time.time() - start) / count)  # seconds per image
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
    "Galaxy classification from 424x424 JPEG cutouts, ten million of them, on a node with 6 cores per GPU: decoding is what the GPUs wait for.",
    "Meteor cameras that record H.264 all night; decoding the clips on the GPU leaves the CPU free for the tracker.",
    "Augmenting with rotations and crops of large sky photos, which is expensive in PIL and cheap on the GPU.",
]
where_dali_loses = [
    "Spectra stored as arrays of 4000 floats: no decoding, the DataLoader only copies memory.",
    "A simulation based model whose samples are generated on the GPU anyway, so there are no files to load at all.",
]
