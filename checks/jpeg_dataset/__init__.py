"""The check `jpeg_dataset`."""
