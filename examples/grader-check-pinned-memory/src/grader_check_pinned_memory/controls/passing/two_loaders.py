"""A slow loader to compare with stands first; the tuned one comes after it."""

import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.zeros(64, 3, 8, 8), torch.zeros(64, dtype=torch.int64))
slow = DataLoader(dataset, batch_size=16)
tuned = DataLoader(dataset, batch_size=16, num_workers=3, pin_memory=True)
