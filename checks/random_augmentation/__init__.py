"""The check `random_augmentation`."""
