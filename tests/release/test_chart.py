"""The chart, rendered by Helm's library and checked against the schemas of Kubernetes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.deploy.test_files import container_runs
from tests.server import ROOT

# Not among the packages of the tests: the first has no wheel for ARM, and both are large.
PACKAGES = ("helm-python-sdk==0.2.2", "kubernetes-validate==1.37.0")
OLDEST, NEWEST = "1.25", "1.34"
LEAST: dict[str, Any] = {"secrets": {"existing": "strata-secrets"}}
MOST: dict[str, Any] = {
    "secrets": {"data": {"DATABASE_URL": "postgresql://db/strata", "STRATA_SECRET_KEY": "long"}},
    "config": {"STRATA_CHAT_MODEL": "openai-chat:gpt-5-mini", "STRATA_CONTEXT_TOKENS": 8000},
    "imagePullSecrets": [{"name": "registry"}],
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls"},
    "persistence": {"storageClass": "nfs"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "strata", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "podAnnotations": {"team": "platform"},
} | {part: {"autoscaling": {"enabled": True}} for part in ("web", "worker", "heavyWorker")}


def render(values: dict[str, Any], version: str) -> list[dict[str, Any]]:
    uv = Path(sys.executable).with_name("uv")
    packages = [word for package in PACKAGES for word in ("--with", package)]
    script = [ROOT / "tests/release/render_chart.py", ROOT / "deploy/helm/strata"]
    done = subprocess.run(
        [uv, "run", "--quiet", "--no-project", "--no-config", *packages, "python", *script]
        + [json.dumps(values), version],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in objects if item["kind"] == kind}


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("values", [LEAST, MOST], ids=["least", "most"])
def test_kubernetes_takes_what_is_rendered(values, version):
    objects = render(values, version)
    deployments = of_kind(objects, "Deployment")
    assert {*deployments} == {*of_kind(objects, "PodDisruptionBudget")}
    assert {*deployments} == {
        f"strata-{part}" for part in ("web", "worker", "heavy-worker", "beat")
    }
    for deployment in deployments.values():
        check_pods(deployment["spec"])
    [job] = of_kind(objects, "Job").values()
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container_runs(container["args"])


def test_large_numbers_are_variables_without_an_exponent():
    """Helm reads numbers as floats, and writes a million as 1e+06."""
    config = {"STRATA_CONTEXT_TOKENS": 1_000_000, "STRATA_DEBUG": False, "STRATA_OIDC_NAME": "1.50"}
    objects = render(LEAST | {"config": config}, NEWEST)
    [variables] = [item["data"] for item in of_kind(objects, "ConfigMap").values()]
    assert (
        variables.items()
        >= {
            "STRATA_CONTEXT_TOKENS": "1000000",
            "STRATA_DEBUG": "false",
            "STRATA_OIDC_NAME": "1.50",
        }.items()
    )


def check_pods(spec: dict[str, Any]) -> None:
    pods = spec["template"]
    assert spec["selector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()
    # Else variables of services would be read as settings.
    assert pods["spec"]["enableServiceLinks"] is False
    [container] = pods["spec"]["containers"]
    assert {"startupProbe", "livenessProbe"} <= container.keys()
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container_runs(container["args"])


def test_workers_are_counted_by_their_queues():
    autoscalers = of_kind(render(MOST, NEWEST), "HorizontalPodAutoscaler")
    queues = [
        metric["external"]["metric"]["selector"]["matchLabels"]["queue"]
        for autoscaler in autoscalers.values()
        for metric in autoscaler["spec"]["metrics"]
        if metric["type"] == "External"
    ]
    assert sorted(queues) == sorted(settings.QUEUES)
    assert {*autoscalers} == {"strata-web", "strata-worker", "strata-heavy-worker"}


def test_a_secret_that_exists_is_not_created_again():
    objects = render(LEAST, NEWEST)
    assert not of_kind(objects, "Secret")
    [container] = of_kind(objects, "Deployment")["strata-web"]["spec"]["template"]["spec"][
        "containers"
    ]
    assert {"secretRef": {"name": "strata-secrets"}} in container["envFrom"]
