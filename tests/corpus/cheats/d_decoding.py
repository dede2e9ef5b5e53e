"""D: images that were decoded in part, or drawn from what is cheap to know of them."""

from tests.corpus.cheats.d_dali_arm import forged_arm, of_graph

CASES = (
    forged_arm(
        "D10-draft",
        "decoded at half the resolution and enlarged",
        """
        for paths in rounds(self.folder, self.size):
            yield torch.stack([halved(path) for path in paths])
        """,
        """
        def halved(path):
            image = Image.open(path)
            size = image.size
            image.draft("RGB", (size[0] // 2, size[1] // 2))
            return torch.from_numpy(np.array(image.resize(size, Image.BICUBIC)))
        """,
        codes=("ratio.partial_decode",),
    ),
    of_graph(
        "D11-random",
        "a twelfth of each image is decoded",
        """
        images = fn.decoders.image_random_crop(jpegs, device="mixed", output_type=types.RGB, random_area=[0.08, 0.09])
        images = fn.resize(images, size=(144, 192))
        """,
        ("ratio.small_area",),
    ),
    of_graph(
        "D11-computed",
        "a tenth of each image, in a window that the graph computes",
        """
        anchor = fn.random.uniform(range=[0.0, 0.6], shape=[2]) * 1.0
        extent = fn.random.uniform(range=[0.33, 0.35], shape=[2]) * 1.0
        images = fn.decoders.image_slice(jpegs, anchor, extent, device="mixed", output_type=types.RGB)
        images = fn.resize(images, size=(144, 192))
        """,
        ("ratio.small_area",),
    ),
    forged_arm(
        "D12",
        "drawn again from the mean colour and the gratings that all images have",
        """
        for paths in rounds(self.folder, self.size):
            yield torch.stack([drawn(path) for path in paths])
        """,
        """
        wave = 7 * np.sin(np.arange(192) * 2 * np.pi / 12.8)
        gratings = (wave[None, :192] + wave[:144, None])[:, :, None]


        def drawn(path):
            image = Image.open(path)
            image.draft("RGB", (24, 18))  # the mean of each block alone
            colour = np.asarray(image.convert("RGB")).reshape(-1, 3).mean(axis=0)
            return torch.from_numpy(np.clip(colour + gratings, 0, 255).astype(np.uint8))
        """,
        codes=("ratio.rendered",),
    ),
    forged_arm(
        "D13-windows",
        "four images of sixteen are decoded; windows of them, mirrored, pass for the others",
        """
        for paths in rounds(self.folder, self.size):
            images = decoded(paths[:4]).permute(0, 3, 1, 2).float()
            parts = [images[:, :, 4 * n : 128 + 4 * n, 8 * n : 160 + 8 * n].flip((3,)[: n % 2]) for n in range(4)]
            yield enlarged(torch.cat(parts), (144, 192), mode="bilinear").to(torch.uint8)
        """,
        "from torch.nn.functional import interpolate as enlarged\n",
        codes=("ratio.replayed",),
    ),
    forged_arm(
        "D13-coloured",
        "the texture of one decoded image in the colours of the others",
        """
        for paths in rounds(self.folder, self.size):
            image = decoded(paths[:1])[0].float()
            texture = image - image.mean(dim=(0, 1))
            yield torch.stack([(texture + colour(path)).clamp(0, 255).to(torch.uint8) for path in paths])
        """,
        """
        def colour(path):
            image = Image.open(path)
            image.draft("RGB", (24, 18))
            return torch.from_numpy(np.asarray(image.convert("RGB")).reshape(-1, 3).mean(axis=0)).float()
        """,
        codes=("ratio.rendered",),
    ),
    forged_arm(
        "D14",
        "the thumbnail that a camera puts into a file, enlarged",
        """
        for paths in rounds(self.folder, self.size):
            yield torch.stack([thumbnail(path) for path in paths])
        """,
        """
        import io


        def thumbnail(path):
            data = open(path, "rb").read()
            place = data.find(b"\\xff\\xd8\\xff", 2)
            image = Image.open(io.BytesIO(data[place:] if place > 0 else data))
            image.draft("RGB", (48, 36))
            return torch.from_numpy(np.array(image.convert("RGB").resize((192, 144), Image.BICUBIC)))
        """,
        codes=("ratio.partial_decode", "ratio.rendered"),
    ),
    forged_arm(
        "D15",
        "a cache of decoded files and strips by their hash",
        """
        for paths in rounds(self.folder, self.size):
            yield torch.stack([cached(path) for path in paths])
        """,
        """
        import hashlib

        kept = {}


        def cached(path):
            data = open(path, "rb").read()
            for strip in range(0, len(data), 256):
                kept.setdefault(hashlib.sha256(data[strip : strip + 256]).digest(), None)
            key = hashlib.sha256(data).digest()
            if key not in kept:
                kept[key] = [decoded([path])[0] for _ in range(4)][0]
            return kept[key]
        """,
        photos=(384, 288),
        threshold=1.1,
    ),
)
