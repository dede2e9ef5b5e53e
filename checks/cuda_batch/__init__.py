"""The check `cuda_batch`."""
