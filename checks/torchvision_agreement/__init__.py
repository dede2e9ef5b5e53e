"""The check `torchvision_agreement`."""
