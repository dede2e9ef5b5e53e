"""Writes the seeds that fuzzers start from: `python -m tests.fuzz.planting`. Inputs that crashed are kept."""

import base64
import json
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grader_service.labs.specs import lab_text
from grader_service.model.discovery import LearnerException
from grader_service.model.place import Place
from sandbox.frames import encode
from tests.checks.claims.test_hostile import VALID
from tests.factories import a_batch, a_discovery, a_graph, a_loader, a_scan, an_evidence
from tests.fuzz import messages, stored
from tests.fuzz.readers import READERS, SEEDS
from tests.ingest.packing import code_cell, tar_bytes, tar_member, zip_bytes, zip_member

WHO = {"submission_id": "s:1", "lab": "dali-pipelines", "learner": "l", "cohort": "autumn"}
SOURCE = b"where_dali_wins = ['a']\n"


def main() -> None:
    """Every seed of every reader."""
    for name, seeds in _all().items():
        folder = SEEDS / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("seed-*"):
            old.unlink()
        for number, data in enumerate(seeds):
            (folder / f"seed-{number:02d}").write_bytes(data)
    assert _all().keys() <= READERS.keys()


def _all() -> dict[str, list[bytes]]:
    return {
        "frames": [encode({"kind": "started"}), encode({"kind": "x", "n": [1, 2.5, {"a": None}]}, b"blob") * 2],
        "discovery": [_json(messages) for messages in _discoveries()],
        "dialogue": [_json(messages) for messages in _dialogues()],
        "pixels": [struct.pack("6B", 47, 63, 95, 2, 0, real) * 2 + bytes(range(256)) for real in (0, 1)],
        "means": [struct.pack("<3f", *(n * 40.0 % 251, n * 77.0 % 249, n * 13.0 % 241)) for n in range(3)]
        + [b"".join(struct.pack("<3f", n % 256, n * 7 % 256, n * 31 % 256) for n in range(96))],
        "opener": [
            _json({"entry": "submission.py", "cells": None}),
            _json({"entry": "submission.ipynb", "cells": [[1, "x = 1"]]}),
            _json({"code": "archive.link", "feedback": "a is a link."}),
        ],
        "notebook": [_json(notebook) for notebook in _notebooks()],
        "zip": list(_zips()),
        "tar": list(_tars()),
        "envelope": [_json(envelope) for envelope in _envelopes()],
        "intake": [_json(message) for message in _messages()],
        "uri": [
            b"file://{sent}/submission.py",
            b"file://{sent}/folder",
            b"file://{sent}/submission.py/x",
            b"https://lms.example/artifacts/a.py",
            b"https://lms.example/artifacts/../b",
            b"https://lms.example@evil.example/artifacts/",
            b"http://[::1]/x",
            b"file://{sent}/%2e%2e/secret.py",
        ],
        "form": [
            b"q=learner&status=failed&cohort=autumn",
            b"csrf=x&reason=a%0D%0Ab&steps=baseline&steps=pipeline&x=%ff",
        ],
        "page": [_json(request) for request in _requests()],
        "evidence": [an_evidence().model_dump_json().encode()],
        "verdict": [_verdict()],
        "signature": [_verdict()],
        "judges": [_json(said) for said in _said()],
        "reflections": [
            b"ImageNet with few CPU cores: JPEG decoding starves the card.\nVideo on NVDEC\n\nBERT on tokenised text",
            "1. Großbilder\n2) e\u0301 \u200b64 GPUs at 1.5 kHz, 640x480 px\n\nCIFAR-10 in memory".encode(),
        ],
        "diagnosis": [_json(exception) for exception in _exceptions()],
        "graph": _graphs(),
        "lab_toml": [lab_text("dali-pipelines").content[:6000]],
        "lab_yaml": [
            b"id: x\ntitle: A lab\nsteps:\n- id: one\n  title: One\n  checks:\n  - {id: jpeg_dataset, points: 1.0}\n"
        ],
    }


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _discoveries() -> Iterator[list[Any]]:
    said = a_discovery().model_dump(mode="json")
    loader = a_loader().model_dump(mode="json")
    arm = [
        {"kind": "loader_ready", "loader": loader, "content": "kept", "queue_depth": 4, "shape": [32, 3, 224, 224]},
        {"kind": "mark"},
        {"kind": "window_done", "images": 64},
    ]
    yield [{"kind": "discovered", "discovery": said, "graph_sizes": []}, *arm]
    said["pipelines"][0]["graph"] = 0
    said |= {"ran": "raised", "versions": {"torch": "2.11.0"}, "notes": ["n"], "factories": ["build_dali_iterator"]}
    said["exception"] = _exceptions()[0]
    yield [
        {"kind": "discovered", "discovery": said, "graph_sizes": [5], "blob": 5},
        {"kind": "arm_problem", "text": "t"},
    ]
    yield [{"kind": "nonsense"}]


def _dialogues() -> Iterator[list[Any]]:
    graph, batch = a_graph().model_dump(mode="json"), a_batch().model_dump(mode="json")
    mark, done = {"kind": "mark"}, {"kind": "window_done", "images": 64}
    ready = {"kind": "ready", "versions": {"dali": "2.4.0"}}
    prepared = {
        "kind": "prepared", "graph": graph, "batch": batch, "batch_size": 32, "queue_depth": 2,
        "settings": {"num_threads": 2},
    }  # fmt: skip
    yield ["carry", ready, prepared, mark, done]
    yield ["carry", ready, {"kind": "refused", "problem": "operator_not_allowed", "text": "t"}]
    yield ["scan", ready, {"kind": "scanned", "scan": a_scan().model_dump(mode="json")}]
    probed = {"kind": "probed", "status": "ok", "text": "", "observations": VALID["data_sides"]}
    yield ["probe", probed]
    yield ["window", mark, done]
    yield ["delivery", {"kind": "images", "shape": [2, 4, 4, 3], "blob": 96}, {"kind": "delivered"}]
    yield ["delivery", {"kind": "images", "shape": [2, 3, 4, 4], "blob": 96}, {"kind": "arm_problem", "text": "t"}]
    found = {"samples": 48, "doubt": "", "alike": 48, "own": 48, "on_gpu": 47, "seconds": 1.5, "credits": {"turn": 0.5}}
    windows = {"windows": 192, "area": 0.4, "low": 0.8}
    plan = {"size": [224, 224], "steps": [], "turn": 0.5}
    yield ["experiment", {"kind": "experimented", "found": found | windows, "plan": plan}]
    yield ["experiment", {"kind": "experimented", "found": found | {"doubt": "It fails."}, "plan": plan}]
    dali = {
        "kind": "dali_ready",
        "type": "DALIGenericIterator",
        "shape": [32, 3, 224, 224],
        "dtype": "float32",
        "device": "cpu",
    }
    yield ["dali", dali]
    yield ["reference", {"kind": "prepared", "queue_depth": 4}, mark, done]


def _notebooks() -> Iterator[dict[str, Any]]:
    cells = ["%%time\nx = 1\n", "!ls\n%matplotlib inline", "pip install torch", "def f(:\n", "", "x = ?\nprint?"]
    made = [code_cell(text.splitlines(keepends=True), number) for number, text in enumerate(cells)]
    yield {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"language": "python"}}, "cells": made}
    made = [code_cell(text) | {"input": text, "language": "python", "collapsed": False} for text in cells]
    yield {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": "n"}, "worksheets": [{"cells": made}]}


def _zips() -> Iterator[bytes]:
    yield zip_bytes([("submission.py", SOURCE), ("data/", b""), ("data/a.txt", b"a" * 3000)])
    yield zip_bytes([("top/submission.py", SOURCE), ("top/__MACOSX/x", b""), ("top/B.txt", b"b")], method=0)
    yield zip_bytes([("../x", b"x"), (zip_member("link", 0o120777), b"/etc/passwd"), ("submission.PY", SOURCE)])


def _tars() -> Iterator[bytes]:
    members = [("submission.py", SOURCE), (tar_member("data", b"5"), b""), ("data/é" + "n" * 80, b"a")]
    for form in (0, 1, 2):  # ustar, GNU, pax
        yield tar_bytes(members, form=form)
    yield tar_bytes(members, packed=True)
    yield tar_bytes([(tar_member("link", b"2", "/etc"), b""), ("link/passwd", b"x"), ("submission.py", SOURCE)])


def _messages() -> Iterator[dict[str, Any]]:
    inline = base64.b64encode(SOURCE).decode()
    yield {**WHO, "submitted_at": "2026-09-01T10:00:00Z", "artifact": {"filename": "submission.py", "inline": inline},
           "reply_to": {"queue": "lab-platform", "task": "lab.verdict_ready"}, "steps": ["reflection"]}  # fmt: skip
    artifact = {"filename": "a.zip", "uri": "https://lms.example/artifacts/x/../y", "sha256": messages.DIGEST}
    yield {**WHO, "submission_id": "s:2", "artifact": artifact}
    yield {**WHO, "submission_id": "s:3", "artifact": {**artifact, "uri": "file://{sent}/submission.py"}}


def _envelopes() -> Iterator[dict[str, Any]]:
    for message in _messages():
        body = [[], {"submission": message}, {"callbacks": None}]
        for carried, encoding in ((body, None), (base64.b64encode(_json(body)).decode(), "base64")):
            yield {
                "body": carried, "content-encoding": "utf-8", "content-type": "application/json",
                "headers": {"task": "grader.grade", "id": "0" * 36, "lang": "py", "compression": None},
                "properties": {"correlation_id": "0" * 36, "body_encoding": encoding, "priority": 0},
            }  # fmt: skip


def _requests() -> Iterator[dict[str, Any]]:
    for path, query in (
        ("/", ""), ("/submissions", "q=learner&status=failed&cohort=autumn&before=2026-01-01"), ("/cohorts", ""),
        ("/submissions/{id}", ""), ("/cohorts/report", "cohort=autumn&lab=dali-pipelines"), ("/live/queue", ""),
        ("/batches/new", "cohorts=autumn&since=2026-01-01&until=2026-09-01T00:00&statuses=failed&limit=5"),
        ("/login", "next=/"), ("/audit", "before=5&kind=verdict"), ("/api/queue", ""), ("/batches", ""),
        ("/api/batches/{batch}", ""), ("/api/batches/{batch}/diff", ""), ("/batches/{batch}", ""),
        ("/batches/{batch}/changes", "kind=newly_failing&after=5&check=x"), ("/batches/{batch}/diff", ""),
        ("/batches/{batch}/do/cancel", ""), ("/batches/{batch}/report", ""), ("/verdicts/{verdict}", ""),
        ("/verdicts/{verdict}/json", ""), ("/verdicts/{verdict}/report", ""), ("/static/x/web.css", ""),
    ):  # fmt: skip
        yield {"method": "GET", "path": path, "query": query, "headers": [["accept", "*/*"]], "form": ""}
    plan = "cohorts=autumn&reason=a&what=judge&repetitions=1&since=&until=&checks=&confirmed=yes"
    for path, form in (
        ("/batches/new", plan),
        ("/batches/{batch}/do/apply", "typed=x&confirmed=yes&notify=all"),
        ("/login", "token=x&name=n"),
    ):
        yield {"method": "POST", "path": path, "query": "", "headers": [["content-length", "9"]], "form": form}


def _verdict() -> bytes:
    made = stored.judged(an_evidence().model_dump_json().encode())
    return messages._place().deps.signer.sign(made).model_dump_json().encode()


def _said() -> Iterator[dict[str, Any]]:
    registry = stored.registry()
    observed = {**_observed(), **VALID}
    base = an_evidence().model_dump(mode="json")
    for check_id in registry.ids():
        probes = registry.load(check_id).check.probes
        yield {
            "check": check_id, "discovery": base["discovery"], "scan": base["scan"], "clean_room": base["clean_room"],
            "probes": {probe: observed[probe] for probe in probes if probe in observed},
        }  # fmt: skip


def _exceptions() -> list[dict[str, Any]]:
    place = Place(file="submission.py", line=3, source="images = fn.decoders.image(jpegs)", function="pipe")
    texts = [
        ("RuntimeError", 'Critical error in pipeline:\nError in thread 0: [/opt/dali/x.cc:12] Assert on "a" failed: b'),
        ("ModuleNotFoundError", "No module named 'nvidia'"),
        ("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 1.0 GiB total)"),
        ("TypeError", "'NoneType' object is not subscriptable\n\nCurrent pipeline object is no longer valid."),
    ]
    return [
        LearnerException(type=kind, message=text, place=place, frames=(place,)).model_dump(mode="json")
        for kind, text in texts
    ]


def _observed() -> dict[str, Any]:
    """What probes of graphs say of a real pipeline; needs DALI."""
    from tests.checks.graphs.graphs import Workshop
    from tests.checks.graphs.test_hostile_evidence import SOURCE as PIPELINES

    workshop = Workshop()
    try:
        probes = (
            "constant_colours",
            "torchvision_agreement",
            "epoch_order",
            "epoch_order_claims",
            "augmentation",
            "label_match",
        )
        found = {probe: workshop.ask(PIPELINES, probe, {})["answer"] for probe in probes}
        return {probe: answer["observations"] for probe, answer in found.items() if answer["status"] == "ok"}
    finally:
        workshop.close()


def _graphs() -> list[bytes]:
    """Serialized pipelines; needs DALI."""
    import subprocess
    import sys

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "tests.measure.graphs", folder], check=True)
        return [path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.stat().st_size < 12_000]


if __name__ == "__main__":
    main()
