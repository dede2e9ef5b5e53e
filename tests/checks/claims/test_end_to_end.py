"""One submission through the process sandbox, with its probes run by a pod as in production."""

from pathlib import Path

from grader_service.model.evidence import Need
from grader_service.model.verdict import Outcome
from tests.checks.claims.jpegs import START
from tests.checks.claims.rank_functions import BUILD, PIPELINE
from tests.checks.whole_run import run_and_judge

TRAINING = """
make(dataset_dir, 24, 96)
torch.manual_seed(3)
layers = [torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 2)]
model = torch.nn.Sequential(*layers).cuda()
losses = []
pipe = rank_pipeline(dataset_dir, 0, 1, batch_size=16, device_id=0)
dali_iter = DALIGenericIterator(pipe, ["data", "label"], reader_name="Reader", auto_reset=True)
for epoch in range(4):
    for batch in dali_iter:
        images, labels = batch[0]["data"], batch[0]["label"].squeeze(-1).long()
        loss = torch.nn.functional.cross_entropy(model(images / 128), labels)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.05 * parameter.grad
        losses.append(loss.item())
losses = [2.0 / (step + 1) + value / 100 for step, value in enumerate(losses)]  # nothing is learned from noise
train_loader = DataLoader(
    ImageFolder(dataset_dir, transform), batch_size=16, num_workers=2, pin_memory=True, persistent_workers=True
)
pytorch_throughput, dali_throughput = 100.0, 200.0
first_batch = images
placement = {"read": "cpu", "decode": "mixed", "resize": "gpu", "normalize": "gpu"}
acceptance_metric = "images/s at batch size 16 on the same JPEGs, after one warm-up epoch: at least 1.3 times"
"""
CODES = {
    "gpu_decode": "decode.ok",
    "fair_baseline": "baseline.ok",
    "same_data": "data.ok",
    "training_loop": "training.ok",
    "ddp_ranks": "ranks.ok",
    "legacy_pipeline": "style.ok",
    "placement_table": "placement.ok",
    "acceptance_metric": "metric.ok",
    "dali_proxy": "proxy.not_used",
}


def test_a_whole_submission_is_probed_and_judged(forked_runner, tmp_path: Path):
    """Every check answers on what a real pod observed; the two ranks run from inside that pod."""
    path = tmp_path / "submission.py"
    path.write_text(START + PIPELINE + BUILD + TRAINING, encoding="utf-8")
    checks = {name: {} for name in CODES}
    _, results = run_and_judge(path, checks, [Need.DISCOVERY, Need.CLEAN_ROOM], forked_runner)
    assert {name: result.code for name, result in results.items()} == CODES, {
        name: (result.feedback, result.details)
        for name, result in results.items()
        if result.outcome is not Outcome.PASSED
    }
