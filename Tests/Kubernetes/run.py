#!/usr/bin/env python3
"""Renders the Helm chart offline, validates each resource, and compares deploy/kubernetes.yaml with the chart.

    run.py --larder .build/debug/larder
    run.py --update

The program checks the rendered configuration. `--update` writes deploy/kubernetes.yaml.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import helm_python
import jsonschema
import kubernetes_validate
import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MANIFEST = ROOT / "deploy" / "kubernetes.yaml"
HEADING = "# The resources of deploy/chart with its default values. First create the token:\n#   kubectl create secret generic larder-token --from-literal=token=$(openssl rand -hex 32)\n"
VERSIONS = ["1.29", "1.37"]
VARIANTS = {
    "defaults": {},
    "everything": {
        "replicas": 3, "token": {"value": "secret"}, "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "storage": {"className": "fast"}, "nodeSelector": {"disk": "nvme"},
        "tolerations": [{"key": "media", "operator": "Exists"}],
        "config": {"origins": {"media": {"baseURL": "https://media.example.com"}}},
    },
    "no policy": {"networkPolicy": {"enabled": False}},
}  # fmt: skip


def rendered(values):
    """The documents of the chart as text, sorted by their template."""
    chart = helm_python.Chart.load(ROOT / "deploy" / "chart")
    texts = chart.render(values, name="larder", namespace="default")
    documents = []
    for name in sorted(texts):
        if name.endswith(".yaml"):
            documents += [part.strip("\n") + "\n" for part in texts[name].split("\n---\n") if part.strip()]
    return documents


def check_configuration(program, resources):
    """The configuration of the ConfigMap is valid with the variables of the container."""
    config = next(each for each in resources if each["kind"] == "ConfigMap")["data"]["larder.yaml"]
    container = next(each for each in resources if each["kind"] == "StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    with tempfile.TemporaryDirectory() as directory:
        file, token = pathlib.Path(directory, "larder.yaml"), pathlib.Path(directory, "token")
        file.write_text(config)
        token.write_text("secret\n")
        variables = {each["name"]: each["value"] for each in container["env"]}
        variables |= {"LARDER_CONFIG": str(file), "LARDER_TOKEN_FILE": str(token)}
        shown = subprocess.run([program, "config"], env={**os.environ, **variables}, capture_output=True, text=True)
    if shown.returncode or shown.stderr:
        raise SystemExit(f"larder config ended with {shown.returncode}:\n{shown.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--larder")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    manifest = HEADING + "".join(f"---\n{document}" for document in rendered({}))
    if options.update:
        MANIFEST.write_text(manifest)
    checks = 0
    for name, values in VARIANTS.items():
        resources = [yaml.safe_load(document) for document in rendered(values)]
        for resource in resources:
            if resource["apiVersion"].startswith("monitoring.coreos.com/"):
                jsonschema.validate(resource, json.loads((HERE / "podmonitor.schema.json").read_text()))
                checks += 1
                continue
            for version in VERSIONS:
                kubernetes_validate.validate(resource, version, strict=True)
                checks += 1
        if options.larder:
            check_configuration(options.larder, resources)
        print(f"  {name}: {', '.join(sorted(each['kind'] for each in resources))}")
    if MANIFEST.read_text() != manifest:
        sys.exit("deploy/kubernetes.yaml differs from the chart; run Tests/Kubernetes/run.py --update.")
    print(f"kubernetes: {checks} passed, 0 failed")


if __name__ == "__main__":
    main()
