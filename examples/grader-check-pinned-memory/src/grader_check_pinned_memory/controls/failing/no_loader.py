"""A dataset, and nothing that loads it."""

import torch
from torch.utils.data import TensorDataset

dataset = TensorDataset(torch.zeros(64, 3, 8, 8), torch.zeros(64, dtype=torch.int64))
