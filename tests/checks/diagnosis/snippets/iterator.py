"""Mistakes with a DALI iterator and its batches."""

from tests.checks.diagnosis.snippets import built

_RAN = "pipe = good()\npipe.build()\nimages, labels = pipe.run()\n"


def with_iterator(*lines, of="good()", outputs='["data", "label"]', options='reader_name="Reader"'):
    """What goes wrong with an iterator, which is in order unless its parts say otherwise."""
    return "\n".join((f"dali_iter = DALIGenericIterator({of}, {outputs}, {options})", *lines))


SNIPPETS = {
    "epoch_over": with_iterator("for batch in dali_iter:", "    pass", "first_batch = next(dali_iter)"),
    "output_map_short": with_iterator("first_batch = next(dali_iter)", outputs='["data"]'),
    "output_map_long": with_iterator("first_batch = next(dali_iter)", outputs='["data", "label", "index"]'),
    "output_map_duplicate": with_iterator(outputs='["data", "data"]'),
    "output_map_missing": 'dali_iter = DALIGenericIterator(good(), reader_name="Reader")',
    "size_beside_reader_name": with_iterator(options='reader_name="Reader", size=100'),
    "size_zero": with_iterator(options="size=0"),
    "padded_beside_reader_name": with_iterator(options='reader_name="Reader", last_batch_padded=True'),
    "batch_sizes_of_pipelines": with_iterator(of="[good(), good(batch_size=8)]"),
    "auto_reset_value": with_iterator(options='reader_name="Reader", auto_reset="always"'),
    "last_batch_policy_type": with_iterator(options='reader_name="Reader", last_batch_policy="PARTIAL"'),
    "sizes_differ_in_batch": built(
        "return fn.decoders.image(jpegs), labels",
        reader='file_root=dataset_dir, name="Reader"',
        then=with_iterator(of="pipeline()"),
    ),
    "reader_name_unknown": with_iterator(options='reader_name="reader"'),
    "batch_is_a_list": with_iterator("first_batch = next(dali_iter)", "print(first_batch.shape)"),
    "batch_is_a_list#2": with_iterator("for batch in dali_iter:", '    images = batch["data"]'),
    "batch_is_a_dict": with_iterator("first_batch = next(dali_iter)[0]", "assert first_batch.is_cuda"),
    "batch_key#2": with_iterator("images = next(dali_iter)[0][0]"),
    "batch_not_a_pair": with_iterator("for images, labels in dali_iter:", "    pass"),
    "batch_not_a_pair#2": with_iterator("images, labels = next(dali_iter)"),
    "batch_key": with_iterator('first_batch = next(dali_iter)[0]["data"]', outputs='["images", "labels"]'),
    "list_into_model": with_iterator("model = nn.Conv2d(3, 8, 3)", "for batch in dali_iter:", "    model(batch)"),
    "function_into_iterator": with_iterator(of="good"),
    "iterator_subscripted": with_iterator("first_batch = dali_iter[0]"),
    "iterator_length_zero": """
dali_iter = DALIGenericIterator(good(), ["data", "label"])
seconds_per_batch = 1.0 / len(dali_iter)
""",
    "pipeline_iterated": """
pipe = good()
pipe.build()
for batch in pipe:
    pass
""",
    "tensor_list_used": _RAN + "first_batch = images.cuda()",
    "output_map_text": with_iterator("next(dali_iter)", outputs='"data"'),
    "as_cpu_renamed": _RAN + "print(images.asCPU())",
    "iterator_attribute": with_iterator("first_batch = iter(dali_iter).next_batch()"),
    "iterator_argument": with_iterator(options='reader_name="Reader", batch_size=32'),
    "classification_outputs": 'dali_iter = DALIClassificationIterator(good(), ["data", "label"], reader_name="Reader")',
    "iterator_argument#2": with_iterator(options='reader_name="Reader", drop_last=True'),
    "size_needed": 'dali_iter = DALIGenericIterator([good(), good()], ["data", "label"])',
    "epoch_over#2": """
batches = iter(DataLoader([1, 2]))
while True:
    batch = next(batches)
""",
    "no_data_in_pipeline": with_iterator(
        "next(dali_iter)",
        of="good(batch_size=64, num_shards=8)",
        options='reader_name="Reader", last_batch_policy=LastBatchPolicy.DROP',
    ),
    "variable_batch_size": """
@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pipeline():
    return fn.external_source(source=lambda: [np.zeros((2, 2))] * 3)
dali_iter = DALIGenericIterator(pipeline(), ["data"], size=12)
""",
    "tensor_indexed_by_text": with_iterator('first_batch = next(dali_iter)[0]["data"]', 'print(first_batch["label"])'),
    "size_called": with_iterator('count = next(dali_iter)[0]["data"].shape()'),
    "tensor_indexed_by_text#2": """
transform = transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])
for batch in DataLoader(datasets.ImageFolder(dataset_dir, transform)):
    images = batch[0]["data"]
""",
}
