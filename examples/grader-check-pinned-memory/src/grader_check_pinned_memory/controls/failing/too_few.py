"""A DataLoader with pinned memory and one worker."""

import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.zeros(64, 3, 8, 8), torch.zeros(64, dtype=torch.int64))
loader = DataLoader(dataset, batch_size=16, num_workers=1, pin_memory=True)
