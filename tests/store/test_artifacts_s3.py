"""Artifacts in S3-compatible storage, as in production: a real S3 server of the test's own, over HTTP."""

import hashlib
import socket
import subprocess
import sys
import time

import boto3
import pytest
import s3fs

from grader_service.errors import InfrastructureError, SubmissionRejected
from grader_service.store import artifacts
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.away import SourceSilent
from tests.services.kept_port import kept_port
from tests.waiting import wait_for

DATA = b"print('hello')\n" * 1000
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture(scope="module")
def server():
    """An S3 server on a port of its own; yields its address."""
    with kept_port() as port:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with socket.socket() as probe:
            wait_for(lambda: process.poll() is not None or probe.connect_ex(("127.0.0.1", port)) == 0, 30)
        assert process.poll() is None, "the S3 server ended"
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        process.wait(60)


@pytest.fixture
def client(server, monkeypatch):
    """Settings as a deployment gives them, and a client with a bucket."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    made = boto3.client("s3")
    made.create_bucket(Bucket="grader")
    made.create_bucket(Bucket="platform")
    return made


def test_bytes_come_back_as_they_went_in(client, tmp_path):
    """Under their digest, once, checked when they are read."""
    store = ArtifactStore("s3://grader/artifacts")
    assert store.put(DATA) == DIGEST
    assert store.put(DATA) == DIGEST
    store.copy_to(DIGEST, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == DATA
    keys = [item["Key"] for item in client.list_objects_v2(Bucket="grader")["Contents"]]
    assert keys == [f"artifacts/{DIGEST[:2]}/{DIGEST}"]
    assert (
        "-" not in client.head_object(Bucket="grader", Key=keys[0])["ETag"]
    )  # in one request, not as one of several parts
    client.put_object(Bucket="grader", Key=keys[0], Body=b"changed")
    with pytest.raises(InfrastructureError, match="damaged"):
        store.copy_to(DIGEST, tmp_path / "again")


def test_what_comes_again_is_young_again(client, monkeypatch):
    """Written anew from what is there, by the piece, so that nobody collects it before its row is there."""
    store = ArtifactStore("s3://grader/renewed")
    key = f"renewed/{DIGEST[:2]}/{DIGEST}"
    client.put_object(Bucket="grader", Key=key, Body=DATA)
    before = client.head_object(Bucket="grader", Key=key)["LastModified"]
    monkeypatch.setattr(artifacts, "_CHUNK", 1000)
    assert store.put(DATA) == DIGEST
    assert client.head_object(Bucket="grader", Key=key)["LastModified"] == before
    monkeypatch.setattr(artifacts, "FRESH_S", -3600.0)
    time.sleep(1.1)  # its times have seconds
    assert store.fetch(store.uri_of(DIGEST), DIGEST) == len(DATA)
    assert client.head_object(Bucket="grader", Key=key)["LastModified"] > before
    assert client.get_object(Bucket="grader", Key=key)["Body"].read() == DATA


def test_a_platforms_bucket_is_a_source(client):
    """When the operator names it; other buckets are not read, and what lies there must be what was announced."""
    store = ArtifactStore("s3://grader/fetched", sources=("s3://platform/",))
    client.put_object(Bucket="platform", Key="a/s.py", Body=DATA)
    assert store.fetch("s3://platform/a/s.py", DIGEST) == len(DATA)
    assert store.has(DIGEST)
    refused = (
        ("grader/artifacts/x", "source_not_allowed"),
        ("platform/a/s.py", "digest_mismatch"),
        ("platform/nothing.py", "not_found"),
    )
    before = client.list_objects_v2(Bucket="grader", Prefix="fetched/")["KeyCount"]
    for place, code in refused:
        with pytest.raises(SubmissionRejected) as refusal:
            store.fetch(f"s3://{place}", "0" * 64)
        assert refusal.value.code == f"artifact.{code}", place
    assert client.list_objects_v2(Bucket="grader", Prefix="fetched/")["KeyCount"] == before == 1
    assert "Uploads" not in client.list_multipart_uploads(Bucket="grader")


def test_storage_that_is_away_is_our_failure(client, monkeypatch, tmp_path):
    """The message comes again; nobody is told that the submission is at fault. A source of S3 is left alone then."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    store = ArtifactStore("s3://grader/elsewhere")
    with pytest.raises(InfrastructureError):
        store.put(b"other")
    with pytest.raises(SourceSilent):
        ArtifactStore(f"file://{tmp_path}", ("s3://platform/",)).fetch("s3://platform/a/s.py", DIGEST)
