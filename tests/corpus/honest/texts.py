"""Reflections in every shape and language: K49 to K52."""

from tests.corpus.case import Honest
from tests.corpus.parts import DATASET, LOADER, SLOW, SLOW_GRAPH, joined
from tests.corpus.parts_honest import honest

ITEMS = """
wins = [
    "Training ResNet-18 on 10 million JPEGs with two GPUs and six CPU cores: the DataLoader cannot decode fast enough",
    "Satellite imagery in 4K JPEG tiles with rotation, crop and colour jitter, all of which the GPU does in passing",
    "Sport video analysis, where thousands of compressed clips have to be decoded into frames before sampling",
]
loses = [
    "Sentiment analysis on tokenised reviews: text is tiny and there is no image to decode for the GPU",
    "Click-through prediction from parquet tables; the columns are numeric and already in memory",
]
"""

SHAPES = {
    "list": ("lists of strings", "where_dali_wins, where_dali_loses = list(wins), list(loses)"),
    "tuple": ("tuples", "where_dali_wins, where_dali_loses = tuple(wins), tuple(loses)"),
    "set": ("sets", "where_dali_wins, where_dali_loses = set(wins), frozenset(loses)"),
    "dict": (
        "a dict from name to text",
        """
where_dali_wins = {
    "few CPU cores": wins[0],
    "satellite": wins[1],
    "video": wins[2],
}
where_dali_loses = dict(zip(("nlp", "tabular"), loses))
""",
    ),
    "records": (
        "dicts with scenario and reason",
        """
where_dali_wins = [{"scenario": w.split(":")[0].split(",")[0], "why": w} for w in wins]
where_dali_loses = [{"scenario": l.split(":")[0].split(";")[0], "why": l} for l in loses]
""",
    ),
    "dataclasses": (
        "dataclasses",
        """
from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    workload: str
    because: str


where_dali_wins = [
    Scenario("ImageNet training with ResNet-50", "JPEG decoding on the CPU starves the GPU"),
    Scenario("Video action recognition", "frames of compressed clips are decoded by NVDEC, not by the host"),
    Scenario("Dermatology photos of 20 megapixels", "one decode costs the CPU longer than the training step"),
]
where_dali_loses = [
    Scenario("GPT fine-tuning", "token ids come from a memory map, so there is nothing to decode"),
    Scenario("Fraud detection on tables", "rows are numbers that already fit into memory"),
]
""",
    ),
    "markdown": (
        "one text with markdown bullets",
        '''
where_dali_wins = """
## Where DALI wins
- **JPEG classification on a cloud VM** with 4 vCPUs per V100: decoding on the CPU is the bottleneck.
- **Detection on 4K camera frames**: large images, heavy resizing and
  augmentation that the GPU does faster than Pillow.
- **Video**: H.264 clips are decoded on the GPU instead of with ffmpeg on the host.
"""
where_dali_loses = """
1. Text (BERT, tokenised): the loader only reads integers, nothing has to be decoded.
2. Small tabular data in RAM - the GPU computes, the loader never waits.
"""
''',
    ),
    "numbered": (
        "numbered lines that were joined",
        """
where_dali_wins = "\\n".join(f"{i}. {w}" for i, w in enumerate(wins, 1))
where_dali_loses = "\\n".join(f"{i}) {l}" for i, l in enumerate(loses, 1))
""",
    ),
    "dedented": (
        "a triple-quoted text with paragraphs",
        '''
where_dali_wins = """Training an image classifier from JPEG files on a node with few CPU cores per GPU,
because the decode moves to the GPU.

Video models: clips are compressed, and the hardware decoder turns them into
frames without touching the CPU.

Microscopy with images of 100 megapixels, where resizing and cropping on the CPU
takes seconds for each image."""
where_dali_loses = """Language models read tokenised text, which needs no decoding at all.

Time series from sensors are a few floats per step and are stored uncompressed in memory."""
''',
    ),
}

LANGUAGES = {
    "german": (
        "auf Deutsch",
        """
where_dali_wins = [
    "Bildklassifikation mit ImageNet auf einem Server mit wenigen CPU-Kernen: Das Dekodieren der JPEG-Dateien "
    "bremst die GPU aus, DALI verlagert es auf die GPU.",
    "Videoanalyse: Komprimierte H.264-Clips werden von NVDEC dekodiert, die CPU bleibt frei.",
    "Starke Augmentierung großer Fotos (Drehen, Zuschneiden, Farbe), die auf der CPU zu lange dauert.",
]
where_dali_loses = [
    "Sprachmodelle mit bereits tokenisiertem Text: Es gibt kein Bild zu dekodieren, der Loader ist nicht der Engpass.",
    "Kleine Tabellendaten, die vollständig in den Arbeitsspeicher passen und nur aus Zahlen bestehen.",
]
""",
    ),
    "french": (
        "en français",
        """
where_dali_wins = [
    "Entraînement de ResNet-50 sur des millions d'images JPEG avec peu de cœurs : le CPU décode trop lentement.",
    "Vidéo : les clips compressés en H.264 sont décodés par NVDEC et le processeur reste libre.",
    "Imagerie satellite de très haute résolution, où le redimensionnement et le recadrage sur le CPU sont trop lents.",
]
where_dali_loses = [
    "Modèles de langue sur du texte déjà tokenisé : il n'y a aucune image à décoder.",
    "Données tabulaires de quelques colonnes qui tiennent en mémoire vive : le chargement n'est pas le goulot.",
]
""",
    ),
    "spanish": (
        "en español",
        """
where_dali_wins = [
    "Clasificación de imágenes JPEG grandes con pocos núcleos: la CPU no decodifica a tiempo y la GPU espera.",
    "Análisis de vídeo comprimido: los fotogramas se decodifican en la GPU con NVDEC.",
    "Aumento de datos pesado (recortes, rotaciones, color) que en la CPU tarda más que el paso de entrenamiento.",
]
where_dali_loses = [
    "Texto ya tokenizado para BERT: no hay imágenes que decodificar y los datos son enteros pequeños.",
    "Datos tabulares que caben en memoria: el cargador no es el cuello de botella.",
]
""",
    ),
    "chinese": (
        "用中文",
        """
where_dali_wins = [
    "在 CPU 核心很少的云服务器上用 ImageNet 的 JPEG 图片训练 ResNet-50：CPU 解码太慢，GPU 一直在等待数据。",
    "视频动作识别：压缩的 H.264 视频由 NVDEC 在 GPU 上解码，CPU 不再是瓶颈。",
    "高分辨率遥感图像需要大量裁剪、旋转和颜色增强，这些在 GPU 上完成更快。",
]
where_dali_loses = [
    "已经分词的文本数据训练 BERT：没有图像需要解码，数据加载不是瓶颈。",
    "小型表格数据全部放在内存里，只有数字，DALI 没有什么可以加速。",
]
""",
    ),
}

DETAILS = """
where_dali_wins = [
    "ResNet-50/ImageNet (1.28M JPEGs, ~110 KB each): PIL decodes ~250 img/s/core, so 8 cores give 2k img/s while an "
    "A100 trains at 2.5k img/s -> decode on the GPU, see https://docs.nvidia.com/deeplearning/dali/",
    "`fn.readers.video` + NVDEC for 1080p clips: decoding 30 fps x 64 clips on the CPU is hopeless",
    "8 GPUs / 32 vCPUs (p3.16xlarge): 4 cores per GPU cannot `RandomResizedCrop` 3000x2000 px photos fast enough",
]
where_dali_loses = [
    "`AutoTokenizer` output saved as .npy: int32[512] per sample = 2 KB, zero decode cost, GPU util is 98% anyway",
    "CIFAR-10 (32x32 px, 180 MB in total) lives in VRAM as one uint8 tensor; x[idx] takes 20 us, no loader needed",
]
"""

SHORT = """
where_dali_wins = [
    "JPEG training where few CPU cores starve the GPU",
    "H.264 video: decode frames on NVDEC instead of CPU",
    "Heavy augmentation of large photos moves to the GPU",
]
where_dali_loses = [
    "Tokenised text for BERT: no images to decode",
    "Small numeric tables that already fit in memory",
]
"""

SHARED = """
where_dali_wins = [
    "Decode is the bottleneck when ImageNet JPEGs are read on a VM with 4 cores: GPU decode doubles my throughput.",
    "Decode of 4K drone photos costs the CPU 120 ms each; the GPU decodes and resizes them together.",
    "Decode of video: H.264 frames are decoded by NVDEC, so the CPU decode threads are free for the sampler.",
]
where_dali_loses = [
    "Nothing to decode: BERT reads token ids that were prepared before.",
    "Nothing to decode: tabular features are floats that sit in RAM, and the model is the bottleneck.",
]
"""

LOSS = """
where_dali_wins = [
    "JPEG folders with photos of several megapixels and few CPU cores per GPU, where decoding starves the training.",
    "Long compressed videos, because frames are decoded on the GPU and the CPU only hands over packets.",
    "Several GPUs in one host share its cores; with DALI each GPU decodes its own images.",
]
where_dali_loses = [
    OWN,
    "Text classification on token ids: no compressed media, nothing to decode, the GPU is the bottleneck.",
]
"""
"""`OWN` is what the learner's own lab showed."""


def slow_and_said(id_: str, title: str, own: str) -> Honest:
    """A slow pipeline, and reflections that say so."""
    slow = SLOW_GRAPH.replace("dali_throughput = 500.0", "dali_throughput = 40.0")
    told = LOSS.replace("OWN", own)
    ratio = {"throughput_ratio": SLOW}
    return honest(id_, title, DATASET, LOADER, slow, told, codes=ratio, threshold=1.1)


CASES = (
    *(
        honest(f"K49-{name}", f"reflections as {title}", ITEMS, code, steps=("reflection",))
        for name, (title, code) in SHAPES.items()
    ),
    *(
        honest(f"K50-{name}", f"reflections {title}", text, steps=("reflection",))
        for name, (title, text) in LANGUAGES.items()
    ),
    honest("K50-figures-code-links", "reflections with figures, code and a link", DETAILS, steps=("reflection",)),
    honest("K50-short", "short and exact, eight words or so", SHORT, steps=("reflection",)),
    honest(
        "K51-shared-words",
        "every win begins with the same word",
        joined(DATASET, LOADER, SHARED),
        steps=("baseline", "reflection"),
    ),
    slow_and_said(
        "K52-honest-loss",
        "a slow pipeline, said to be slow: the ratio is missed and nothing else is",
        '"My own lab: small 192x144 images decode so quickly on the CPU that DALI brought nothing; with my two '
        'enormous "\n    "blurs I measured only 0.4x of the plain DataLoader, and I would not use it here."',
    ),
    slow_and_said(
        "K52-short-loss",
        "the same in one dry sentence",
        '"Tiny 192x144 images with enormous blurs: my DALI pipeline was slower than the DataLoader (0.4x)."',
    ),
)
