"""Mistakes in a pipeline's definition."""

SNIPPETS = {
    "num_threads_missing": """
@pipeline_def(batch_size=4, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    return jpegs, labels
pipeline().build()
""",
    "num_threads_zero": """
good(num_threads=0).build()
""",
    "batch_size_missing": """
@pipeline_def(num_threads=2, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    return jpegs, labels
pipeline().build()
""",
    "batch_size_missing#2": """
good(batch_size=0).build()
""",
    "file_root_missing": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(name="Reader")
    return jpegs, labels
pipeline().build()
""",
    "no_files_found": """
dataset_dir = "data/flat"
good().build()
""",
    "path_not_found": """
dataset_dir = "data/nowhere"
good().build()
""",
    "file_not_readable": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(files=["data/images/gone.jpg"] * 8)
    return jpegs, labels
pipe = pipeline()
pipe.build()
pipe.run()
""",
    "shard_id_too_large": """
good(shard_id=2, num_shards=2).build()
""",
    "more_shards_than_files": """
good(shard_id=0, num_shards=1000).build()
""",
    "illegal_output": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    return jpegs, "labels"
pipeline().build()
""",
    "illegal_output#2": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    return {"images": jpegs, "labels": labels}
pipeline().build()
""",
    "no_outputs": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
DALIGenericIterator(pipeline(), ["data", "label"])
""",
    "nested_output": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    return [jpegs, labels], labels
pipeline().build()
""",
    "python_if_on_data": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    if labels > 0:
        jpegs = jpegs
    return jpegs, labels
pipeline().build()
""",
    "unexpected_argument": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, shuffle=True)
    return jpegs, labels
pipeline().build()
""",
    "unexpected_argument#2": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return fn.crop_mirror_normalize(images, layout="CHW"), labels
pipeline().build()
""",
    "nested_output#2": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs = fn.readers.file(file_root=dataset_dir)
    return fn.decoders.image(jpegs)
pipeline().build()
""",
    "wrong_number_of_inputs": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    return fn.decoders.image(), labels
pipeline().build()
""",
    "wrong_number_of_inputs#2": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs, labels)
    return images, labels
pipeline().build()
""",
    "wrong_number_of_inputs#3": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return fn.resize(images, 224, 224), labels
pipeline().build()
""",
    "named_argument_on_gpu": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    flip = fn.random.coin_flip(probability=0.5).gpu()
    return fn.flip(images, horizontal=flip), labels
pipeline().build()
""",
    "gpu_to_cpu": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None, exec_dynamic=False)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs, device="mixed").cpu()
    return images, labels
pipeline().build()
""",
    "names_not_unique": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir, name="Reader")
    images = fn.decoders.image(jpegs, name="Reader")
    return images, labels
pipeline().build()
""",
    "unknown_pipeline_argument": """
good(batchsize=32).build()
""",
    "unknown_pipeline_argument#2": """
@pipeline_def(batch_size=4, threads=2, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    return jpegs, labels
pipeline().build()
""",
    "pipeline_driven_twice": """
pipe = good()
dali_iter = DALIGenericIterator(pipe, ["data", "label"], reader_name="Reader")
images, labels = pipe.run()
""",
    "decoder_on_gpu": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs, device="gpu")
    return images, labels
pipeline().build()
""",
    "input_on_wrong_device": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs.gpu(), device="mixed")
    return images, labels
pipeline().build()
""",
    "resize_without_size": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return fn.resize(images), labels
pipe = pipeline()
pipe.build()
pipe.run()
""",
    "crop_out_of_bounds": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return fn.crop_mirror_normalize(images, crop=(224, 224)), labels
pipe = pipeline()
pipe.build()
pipe.run()
""",
    "mean_length": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return fn.crop_mirror_normalize(images, mean=[0.485, 0.456], std=[0.2, 0.2]), labels
pipe = pipeline()
pipe.build()
pipe.run()
""",
    "argument_missing": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return fn.random_resized_crop(images), labels
pipeline().build()
""",
    "not_decoded": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.resize(jpegs, size=(32, 32))
    return images, labels
pipe = pipeline()
pipe.build()
pipe.run()
""",
    "not_decoded#2": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.crop_mirror_normalize(jpegs, crop=(32, 32))
    return images, labels
pipe = pipeline()
pipe.build()
pipe.run()
""",
    "enum_as_text": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs, output_type="RGB")
    return images, labels
pipeline().build()
""",
    "enum_as_text#2": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return fn.crop_mirror_normalize(images, dtype="float"), labels
pipeline().build()
""",
    "foreign_dtype": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return fn.crop_mirror_normalize(images, dtype=torch.float32), labels
pipeline().build()
""",
    "foreign_dtype#2": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return fn.crop_mirror_normalize(images, dtype=np.float32), labels
pipeline().build()
""",
    "torch_in_graph": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = transforms.Resize((32, 32))(fn.decoders.image(jpegs))
    return images, labels
pipeline().build()
""",
    "torch_in_graph#2": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return torch.stack([images]), labels
pipeline().build()
""",
    "torch_in_graph#3": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return images.float() / 255, labels
pipeline().build()
""",
    "bad_layout": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return fn.crop_mirror_normalize(images, output_layout="NCHW"), labels
pipe = pipeline()
pipe.build()
pipe.run()
""",
    "pipeline_by_position": """
pipe = good(4, 1, 0)
""",
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
    "loop_over_data": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = [fn.decoders.image(jpeg) for jpeg in jpegs]
    return images, labels
pipeline().build()
""",
    "no_outputs#2": """
class Simple(Pipeline):
    def __init__(self, batch_size, num_threads):
        super().__init__(batch_size, num_threads, device_id=None)
        self.input = ops.readers.File(file_root=dataset_dir)
pipe = Simple(4, 1)
pipe.build()
""",
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
    "no_current_pipeline": """
fn.python_function(function=print)
""",
    "input_is_no_data": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    return fn.resize((jpegs, "a"), size=(32, 32)), labels
pipeline().build()
""",
    "input_is_no_data#2": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    return fn.decoders.image("data/images/class_0/0.jpg"), labels
pipeline().build()
""",
    "not_decoded#3": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    return fn.resize(labels, size=(32, 32)), labels
pipe = pipeline()
pipe.run()
""",
    "wrong_dimensions": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.reductions.sum(fn.decoders.image(jpegs), axes=2)
    return fn.crop_mirror_normalize(images, crop=(8, 8)), labels
pipe = pipeline()
pipe.run()
""",
    "operator_stopped": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    return fn.reshape(fn.decoders.image(jpegs), shape=[7]), labels
pipe = pipeline()
pipe.run()
""",
    "no_files_found#2": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None, enable_conditionals=True)
def pipeline():
    jpegs, labels = fn.readers.file(file_root="data/flat")
    if fn.random.coin_flip() > 0:
        jpegs = jpegs
    return jpegs, labels
pipeline().build()
""",
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
    "no_files_found#4": """
class Simple(Pipeline):
    def __init__(self, batch_size, num_threads):
        super().__init__(batch_size, num_threads, device_id=None)
        self.input = ops.readers.File(file_root="data/flat")
    def define_graph(self):
        return self.input()
Simple(4, 1).build()
""",
    "python_if_on_data#2": """
from nvidia.dali.auto_aug import trivial_augment
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=dataset_dir)
    images = fn.decoders.image(jpegs)
    return trivial_augment.trivial_augment_wide(images), labels
pipeline().build()
""",
}
