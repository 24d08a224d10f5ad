#!/usr/bin/env python3
"""Renders the Helm chart offline, validates each resource, and compares deploy/kubernetes.yaml with the chart.

    run.py --larder .build/debug/larder
    run.py --update

The program checks the rendered configuration. `--update` writes deploy/kubernetes.yaml.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import checks, venv  # noqa: E402

ROOT = checks.ROOT
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
        raise checks.Broken(f"larder config ended with {shown.returncode}:\n{shown.stderr}")


def main():
    parser = checks.arguments(__doc__)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    manifest = HEADING + "".join(f"---\n{document}" for document in rendered({}))
    if options.update:
        MANIFEST.write_text(manifest)
        return 0
    program, results = checks.program_of(parser, options), checks.Checks("kubernetes")
    for name, values in VARIANTS.items():
        with results.part(name) as part:
            resources = [yaml.safe_load(document) for document in rendered(values)]
            for resource in resources:
                validate(part, resource)
            check_configuration(program, resources)
            part.note(", ".join(sorted(each["kind"] for each in resources)))
    same = MANIFEST.read_text() == manifest
    results.check(same, "deploy/kubernetes.yaml differs from the chart; run Tests/Kubernetes/run.py --update.")
    return results.finish()


def validate(part, resource):
    name = f"{resource['kind']} {resource['metadata']['name']}"
    if resource["apiVersion"].startswith("monitoring.coreos.com/"):
        jsonschema.validate(resource, json.loads((HERE / "podmonitor.schema.json").read_text()))
        part.check(True, name)
        return
    for version in VERSIONS:
        kubernetes_validate.validate(resource, version, strict=True)
        part.check(True, f"{name} in {version}")


if __name__ == "__main__":
    if not venv.enter("kubernetes", HERE / "requirements.txt", "--brief" not in sys.argv):
        checks.skip_all("kubernetes", "install its tools with: make kubernetes")
    import helm_python
    import jsonschema
    import kubernetes_validate
    import yaml

    sys.exit(main())
