"""The patches of `deploy/kubernetes-mig`, applied as RFC 6902 says, and what comes of them."""

import copy

import kubernetes_validate
import yaml

from tests.deploy.manifests import ROOT, the
from tests.kubernetes_api.objects import VERSION

FOLDER = ROOT / "deploy" / "kubernetes-mig"
OVERLAY = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
PROFILE = "nvidia.com/mig-1g.18gb"


def place(document, path):
    """The mapping that a JSON pointer ends in, and the last name; every step before it must be there."""
    *steps, last = (step.replace("~1", "/").replace("~0", "~") for step in path.removeprefix("/").split("/"))
    for step in steps:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document, last


def patched(kind, name):
    """The one object of this name, with the overlay's patches."""
    found = copy.deepcopy(the(kind, name))
    for patch in OVERLAY["patches"]:
        if patch["target"] == {"kind": kind, "name": name}:
            for step in yaml.safe_load(patch["patch"]):
                target, last = place(found, step["path"])
                if step["op"] == "remove":
                    del target[last]
                else:
                    assert step["op"] == "add"
                    target[last] = step["value"]
    kubernetes_validate.validate(found, VERSION, strict=True)
    return found


def test_it_stands_on_the_other_manifests():
    """On all of them; kustomize lets no folder stand on one that contains it."""
    (base,) = OVERLAY["resources"]
    assert (FOLDER / base).resolve() == ROOT / "deploy" / "kubernetes"
    assert {(patch["target"]["kind"], patch["target"]["name"]) for patch in OVERLAY["patches"]} == {
        ("Deployment", "runner"),
        ("ResourceQuota", "sandbox"),
    }


def test_a_runner_asks_for_one_instance_and_for_no_gpu():
    """Whatever else it asks for stays."""
    runners = the("Deployment", "runner"), patched("Deployment", "runner")
    was, now = (one["spec"]["template"]["spec"]["containers"][0]["resources"] for one in runners)
    for part in ("requests", "limits"):
        kept = {name: value for name, value in was[part].items() if name != "nvidia.com/gpu"}
        assert now[part] == kept | {PROFILE: "1"}


def test_pods_ask_for_neither():
    """The runner holds the instance that they get."""
    hard = patched("ResourceQuota", "sandbox")["spec"]["hard"]
    assert hard["requests.nvidia.com/gpu"] == hard[f"requests.{PROFILE}"] == "0"
