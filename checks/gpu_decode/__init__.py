"""The check `gpu_decode`."""
