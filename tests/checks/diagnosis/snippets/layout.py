"""Tensors of the wrong type, layout or place."""

SNIPPETS = {
    "channels_last": "nn.Conv2d(3, 64, 7)(torch.zeros(2, 32, 32, 3))",
    "channel_count": "nn.Conv2d(3, 64, 7)(torch.zeros(2, 1, 32, 32))",
    "bytes_into_model": "nn.Conv2d(3, 8, 3)(torch.zeros(2, 3, 32, 32, dtype=torch.uint8))",
    "two_float_types": "nn.Conv2d(3, 8, 3)(torch.zeros(2, 3, 32, 32, dtype=torch.float16))",
    "two_float_types#2": "nn.Linear(4, 2)(torch.zeros(2, 4, dtype=torch.float64))",
    "two_devices": 'nn.Linear(4, 2).to("meta")(torch.zeros(2, 4))',
    "two_devices#2": 'torch.zeros(2, device="meta") + torch.zeros(2)',
    "labels_two_dimensions": "F.cross_entropy(torch.zeros(4, 2), torch.zeros(4, 1, dtype=torch.long))",
    "labels_int32": "F.cross_entropy(torch.zeros(4, 2), torch.zeros(4, dtype=torch.int32))",
    "label_out_of_range": "F.cross_entropy(torch.zeros(4, 2), torch.full((4,), 5))",
    "linear_shapes": "nn.Linear(10, 2)(torch.zeros(4, 3, 32, 32).flatten(1))",
    "loss_batch_sizes": "F.cross_entropy(torch.zeros(4, 2), torch.zeros(3, dtype=torch.long))",
    "mean_of_bytes": "torch.zeros(4, 3, dtype=torch.uint8).mean()",
    "broadcast": "(torch.zeros(2, 32, 32, 3) - torch.zeros(3, 1, 1)) / torch.ones(1, 3, 1, 1)",
    "normalize_bytes": "transforms.Normalize([0.5] * 3, [0.5] * 3)(torch.zeros(3, 8, 8, dtype=torch.uint8))",
    "transform_wants_tensor": """
transforms.Compose([transforms.Normalize([0.5] * 3, [0.5] * 3)])(Image.new("RGB", (8, 8)))
""",
    "transform_wants_picture": """
transforms.Compose([transforms.ToTensor(), transforms.ToTensor()])(Image.new("RGB", (8, 8)))
""",
    "four_dimensions_wanted": "nn.BatchNorm2d(3)(torch.zeros(3, 32, 32))",
    "view_not_contiguous": "torch.zeros(2, 3, 8, 8).permute(0, 2, 3, 1).view(2, -1)",
    "numpy_needs_grad": "nn.Linear(2, 2)(torch.zeros(1, 2)).numpy()",
    "loss_without_gradient": "F.cross_entropy(torch.zeros(4, 2), torch.zeros(4, dtype=torch.long)).backward()",
    "inplace_on_leaf": """
weight = nn.Parameter(torch.zeros(2))
weight += 1
""",
}
