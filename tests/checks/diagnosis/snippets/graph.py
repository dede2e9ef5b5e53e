"""Mistakes in a pipeline's definition."""

from tests.checks.diagnosis.snippets import DECODED, OPTIONS, built, ran
from tests.checks.diagnosis.snippets.iterator import with_iterator

_CLASS = """
class Simple(Pipeline):
    def __init__(self, batch_size, num_threads):
        super().__init__(batch_size, num_threads, device_id=None)
        self.input = ops.readers.File(file_root=dataset_dir)
"""


def _debugged(then):
    """A pipeline in debug mode, and what is done with it."""
    graph = built(
        "return jpegs, labels",
        options=OPTIONS + ", debug=True",
        reader='file_root=dataset_dir, name="Reader"',
        then=then,
    )
    return f"from nvidia.dali.pipeline.experimental import pipeline_def\n{graph}"


SNIPPETS = {
    "num_threads_missing": built("return jpegs, labels", options="batch_size=4, device_id=None"),
    "num_threads_zero": "good(num_threads=0).build()",
    "batch_size_missing": built("return jpegs, labels", options="num_threads=2, device_id=None"),
    "batch_size_missing#2": "good(batch_size=0).build()",
    "file_root_missing": built("return jpegs, labels", reader='name="Reader"'),
    "no_files_found": """
dataset_dir = "data/flat"
good().build()
""",
    "path_not_found": """
dataset_dir = "data/nowhere"
good().build()
""",
    "file_not_readable": ran("return jpegs, labels", reader='files=["data/images/gone.jpg"] * 8'),
    "shard_id_too_large": "good(shard_id=2, num_shards=2).build()",
    "more_shards_than_files": "good(shard_id=0, num_shards=1000).build()",
    "illegal_output": built('return jpegs, "labels"'),
    "illegal_output#2": built('return {"images": jpegs, "labels": labels}'),
    "no_outputs": built(DECODED, then='DALIGenericIterator(pipeline(), ["data", "label"])'),
    "nested_output": built("return [jpegs, labels], labels"),
    "python_if_on_data": built("if labels > 0:", "    jpegs = jpegs", "return jpegs, labels"),
    "unexpected_argument": built("return jpegs, labels", reader="file_root=dataset_dir, shuffle=True"),
    "unexpected_argument#2": built(DECODED, 'return fn.crop_mirror_normalize(images, layout="CHW"), labels'),
    "nested_output#2": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs = fn.readers.file(file_root=dataset_dir)
    return fn.decoders.image(jpegs)
pipeline().build()
""",
    "wrong_number_of_inputs": built("return fn.decoders.image(), labels"),
    "wrong_number_of_inputs#2": built("images = fn.decoders.image(jpegs, labels)", "return images, labels"),
    "wrong_number_of_inputs#3": built(DECODED, "return fn.resize(images, 224, 224), labels"),
    "named_argument_on_gpu": built(
        DECODED, "flip = fn.random.coin_flip(probability=0.5).gpu()", "return fn.flip(images, horizontal=flip), labels"
    ),
    "gpu_to_cpu": built(
        'images = fn.decoders.image(jpegs, device="mixed").cpu()',
        "return images, labels",
        options=OPTIONS + ", exec_dynamic=False",
    ),
    "names_not_unique": built(
        'images = fn.decoders.image(jpegs, name="Reader")',
        "return images, labels",
        reader='file_root=dataset_dir, name="Reader"',
    ),
    "unknown_pipeline_argument": "good(batchsize=32).build()",
    "unknown_pipeline_argument#2": built("return jpegs, labels", options="batch_size=4, threads=2, device_id=None"),
    "debug_argument": built("return jpegs, labels", options=OPTIONS + ", debug=True"),
    "debug_pipeline": _debugged('DALIGenericIterator(pipeline(), ["data", "label"], reader_name="Reader")'),
    "debug_pipeline#2": _debugged('DALIGenericIterator(pipeline(), ["data", "label"])'),
    "debug_pipeline#3": _debugged("pipeline().serialize()"),
    "pipeline_driven_twice": "pipe = good()\n" + with_iterator("images, labels = pipe.run()", of="pipe"),
    "decoder_on_gpu": built('images = fn.decoders.image(jpegs, device="gpu")', "return images, labels"),
    "input_on_wrong_device": built('images = fn.decoders.image(jpegs.gpu(), device="mixed")', "return images, labels"),
    "resize_without_size": ran(DECODED, "return fn.resize(images), labels"),
    "crop_out_of_bounds": ran(DECODED, "return fn.crop_mirror_normalize(images, crop=(224, 224)), labels"),
    "mean_length": ran(DECODED, "return fn.crop_mirror_normalize(images, mean=[0.485, 0.456], std=[0.2, 0.2]), labels"),
    "argument_missing": built(DECODED, "return fn.random_resized_crop(images), labels"),
    "not_decoded": ran("images = fn.resize(jpegs, size=(32, 32))", "return images, labels"),
    "not_decoded#2": ran("images = fn.crop_mirror_normalize(jpegs, crop=(32, 32))", "return images, labels"),
    "enum_as_text": built('images = fn.decoders.image(jpegs, output_type="RGB")', "return images, labels"),
    "enum_as_text#2": built(DECODED, 'return fn.crop_mirror_normalize(images, dtype="float"), labels'),
    "foreign_dtype": built(DECODED, "return fn.crop_mirror_normalize(images, dtype=torch.float32), labels"),
    "foreign_dtype#2": built(DECODED, "return fn.crop_mirror_normalize(images, dtype=np.float32), labels"),
    "torch_in_graph": built("images = transforms.Resize((32, 32))(fn.decoders.image(jpegs))", "return images, labels"),
    "torch_in_graph#2": built(DECODED, "return torch.stack([images]), labels"),
    "torch_in_graph#3": built(DECODED, "return images.float() / 255, labels"),
    "bad_layout": ran(DECODED, 'return fn.crop_mirror_normalize(images, output_layout="NCHW"), labels'),
    "pipeline_by_position": "pipe = good(4, 1, 0)",
    "build_result_used": """
pipe = good().build()
pipe.run()
""",
    "decorator_missing": """
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    return jpegs, labels
pipe = pipeline()
pipe.build()
""",
    "loop_over_data": built("images = [fn.decoders.image(jpeg) for jpeg in jpegs]", "return images, labels"),
    "no_outputs#2": _CLASS + "Simple(4, 1).build()",
    "no_outputs#3": """
pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
with pipe:
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
pipe.build()
pipe.run()
""",
    "variadic_arguments": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline(**options):
    jpegs, labels = fn.readers.file(file_root=dataset_dir, **options)
    return jpegs, labels
pipeline()
""",
    "no_current_pipeline": "fn.python_function(function=print)",
    "input_is_no_data": built('return fn.resize((jpegs, "a"), size=(32, 32)), labels'),
    "input_is_no_data#2": built('return fn.decoders.image("data/images/class_0/0.jpg"), labels'),
    "not_decoded#3": ran("return fn.resize(labels, size=(32, 32)), labels"),
    "wrong_dimensions": ran(
        "images = fn.reductions.sum(fn.decoders.image(jpegs), axes=2)",
        "return fn.crop_mirror_normalize(images, crop=(8, 8)), labels",
    ),
    "operator_stopped": ran("return fn.reshape(fn.decoders.image(jpegs), shape=[7]), labels"),
    "no_files_found#2": built(
        "if fn.random.coin_flip() > 0:",
        "    jpegs = jpegs",
        "return jpegs, labels",
        options=OPTIONS + ", enable_conditionals=True",
        reader='file_root="data/flat"',
    ),
    "no_files_found#3": """
def read(root):
    return fn.readers.file(
        file_root=root,
        name="Reader",
    )
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = read("data/flat")
    return jpegs, labels
pipeline().build()
""",
    "no_files_found#4": 'dataset_dir = "data/flat"\n'
    + _CLASS
    + "    def define_graph(self):\n        return self.input()\nSimple(4, 1).build()",
    "python_if_on_data#2": "from nvidia.dali.auto_aug import trivial_augment\n"
    + built(DECODED, "return trivial_augment.trivial_augment_wide(images), labels"),
}
