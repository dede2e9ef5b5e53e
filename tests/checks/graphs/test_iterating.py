"""The iterator that is counted by hand delivers what DALI's own does, for every policy and kind of reader."""

import itertools

from checks.observations.iterating import Reader, Settings, epochs

BATCH = 4
EPOCHS = 3
REAL = """
import glob, itertools
paths = sorted(glob.glob(dataset_dir + "/**/*.jpg", recursive=True))

@pipeline_def(num_threads=1, device_id=None, seed=7, batch_size=4)
def numbered(files, options):
    jpegs, labels = fn.readers.file(files=paths[:files], labels=list(range(files)), name="Reader", **options)
    return fn.decoders.image(jpegs), labels

def stream(files, options):
    pipe = numbered(files, options)
    return [[int(x) for x in pipe.run()[1].as_array().ravel()] for _ in range(40)]

def delivered(files, options, settings):
    loop = DALIGenericIterator(numbered(files, options), ["data", "label"], auto_reset=True, **settings)
    return [[int(x) for batch in loop for x in batch[0]["label"].ravel()] for _ in range(3)]

POLICIES = {"FILL": LastBatchPolicy.FILL, "PARTIAL": LastBatchPolicy.PARTIAL, "DROP": LastBatchPolicy.DROP}
result = []
for files, pad, policy in itertools.product((8, 9, 10), (False, True), POLICIES):
    for shards, shard, stick in ((1, 0, False), (2, 0, False), (2, 1, False), (2, 1, True), (3, 1, False)):
        if files // shards < 3 or (files, shards) == (10, 3):
            continue
        options = dict(pad_last_batch=pad, shard_id=shard, num_shards=shards, stick_to_shard=stick, random_shuffle=True)
        case = [files, shards, shard, pad, stick, policy]
        try:
            by_reader = delivered(files, options, dict(reader_name="Reader", last_batch_policy=POLICIES[policy]))
        except RuntimeError:
            continue  # PARTIAL of a shard that is smaller than a batch: DALI refuses it
        result.append(case + [True, False, stream(files, options), by_reader])
    for padded in (False, True):
        options = dict(pad_last_batch=pad, random_shuffle=True)
        settings = dict(size=files, last_batch_padded=padded, last_batch_policy=POLICIES[policy])
        case = [files, 1, 0, pad, False, policy, False, padded]
        result.append(case + [stream(files, options), delivered(files, options, settings)])
"""


def test_against_the_real_iterator(workshop):
    """Three epochs of every combination of policy, padding, shards and rotation are the same, image by image."""
    cases = workshop.result(REAL)
    different = []
    for files, shards, shard, pad, stick, policy, by_reader, padded, stream, real in cases:
        settings = Settings(policy, by_reader, padded)
        counted = epochs(stream, BATCH, settings, Reader(files, shards, shard, pad, stick), EPOCHS)
        if counted != real:
            different.append((files, shards, shard, pad, stick, policy, by_reader, padded, real, counted, stream[:6]))
    assert not different, different[:3]
    assert len(cases) > 80
    assert {case[5] for case in cases} == {"FILL", "PARTIAL", "DROP"}


def test_the_table_of_the_documentation():
    """Seven samples in batches of two, as DALI documents them: what each policy delivers with and without padding."""
    plain, padded = [[1, 2], [3, 4], [5, 6], [7, 1]], [[1, 2], [3, 4], [5, 6], [7, 7]]
    wanted = {
        ("FILL", False): [1, 2, 3, 4, 5, 6, 7, 1],
        ("FILL", True): [1, 2, 3, 4, 5, 6, 7, 7],
        ("PARTIAL", False): [1, 2, 3, 4, 5, 6, 7],
        ("PARTIAL", True): [1, 2, 3, 4, 5, 6, 7],
        ("DROP", False): [1, 2, 3, 4, 5, 6],
        ("DROP", True): [1, 2, 3, 4, 5, 6],
    }
    for (policy, pad), numbers in wanted.items():
        reader = Reader(7, 1, 0, pad, stick=False)
        found = epochs(padded if pad else plain, 2, Settings(policy, by_reader=True, padded_claim=False), reader, 1)
        assert found == [numbers], (policy, pad)


def test_a_short_stream_gives_fewer_epochs():
    """An epoch that the stream does not hold to its end is not invented."""
    stream = [[0, 1], [2, 3]]
    for policy, by_reader in itertools.product(("FILL", "PARTIAL", "DROP"), (True, False)):
        settings = Settings(policy, by_reader, padded_claim=False)
        assert epochs(stream, 2, settings, Reader(9, 1, 0, padded=False, stick=False), 2) == []
