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
KEY = "fleet-key-" + "k" * 32
VARIANTS = {
    "defaults": {},
    "everything": {
        "replicas": 3, "token": {"value": "secret"}, "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "storage": {"className": "fast"}, "nodeSelector": {"disk": "nvme"},
        "tolerations": [{"key": "media", "operator": "Exists"}],
        "config": {"origins": {"media": {"baseURL": "https://media.example.com"}}},
    },
    "no policy": {"networkPolicy": {"enabled": False}},
    "fleet": {"replicas": 3, "fleet": {"enabled": True}},
    "fleet key": {
        "replicas": 2, "fleet": {"enabled": True, "key": KEY, "leaveTimeoutSeconds": 600},
        "config": {"fleet": {"timeout": "80ms"}},
        "networkPolicy": {"from": [{"podSelector": {"matchLabels": {"app": "player"}}}]},
    },
    "fleet briefly": {
        "fleet": {"enabled": True, "existingSecret": "nodes", "leaveTimeoutSeconds": 0},
        "config": {"fleet": {"peers": ["http://10.0.0.9:8080"]}}, "networkPolicy": {"enabled": False},
    },
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


def resources_of(values):
    return [yaml.safe_load(document) for document in rendered(values)]


def found(resources, kind, name="larder"):
    """The resource of this kind and name; None without one."""
    return next((each for each in resources if each["kind"] == kind and each["metadata"]["name"] == name), None)


def container_of(resources):
    """The description of the pods, their container, and its variables."""
    pods = found(resources, "StatefulSet")["spec"]["template"]["spec"]
    container = pods["containers"][0]
    return pods, container, {each["name"]: each["value"] for each in container["env"]}


def check_configuration(program, resources):
    """The configuration of the ConfigMap is valid with the variables of the container. Returns the settings in force."""
    _, _, variables = container_of(resources)
    with tempfile.TemporaryDirectory() as directory:
        file, token, key = (pathlib.Path(directory, name) for name in ("larder.yaml", "token", "key"))
        file.write_text(found(resources, "ConfigMap")["data"]["larder.yaml"])
        token.write_text("secret\n")
        key.write_text(f"{KEY}\n")
        variables |= {"LARDER_CONFIG": str(file), "LARDER_TOKEN_FILE": str(token)}
        if "LARDER_FLEET_KEY_FILE" in variables:
            variables["LARDER_FLEET_KEY_FILE"] = str(key)
        shown = subprocess.run([program, "config"], env={**os.environ, **variables}, capture_output=True, text=True)
    if shown.returncode or shown.stderr:
        raise checks.Broken(f"larder config ended with {shown.returncode}:\n{shown.stderr}")
    return yaml.safe_load(shown.stdout)


def check_grace(part, resources):
    """Kubernetes waits longer than the service may take to end."""
    pods, _, variables = container_of(resources)
    delays = [variables[f"LARDER_{name}"] for name in ("LIMITS_SHUTDOWN_DELAY", "LIMITS_DRAIN_TIMEOUT")]
    delay, drain, leave = (int(text.removesuffix("s")) for text in (*delays, variables.get("LARDER_FLEET_LEAVE_TIMEOUT", "0s")))
    part.equal(pods["terminationGracePeriodSeconds"], max(delay, leave) + drain + 10, "the grace period")


def check_fleet(part, values, resources, settings):
    """The replicas know and prove each other if, and only if, `fleet.enabled` is true."""
    _, container, variables = container_of(resources)
    service, policy = found(resources, "Service", "larder-headless"), found(resources, "NetworkPolicy")
    given, own = values.get("fleet", {}), values.get("config", {}).get("fleet", {})
    is_enabled = given.get("enabled", False)
    replicas = range(values.get("replicas", 1)) if is_enabled else ()
    # A pod of a StatefulSet is found as POD.SERVICE only if the set names the service.
    part.equal(found(resources, "StatefulSet")["spec"]["serviceName"], "larder-headless", "the service of the pods")
    urls = [f"http://larder-{number}.larder-headless:{service['spec']['ports'][0]['port']}" for number in replicas]
    part.equal(settings["fleet"]["peers"], own.get("peers", urls), "fleet.peers")
    part.equal(service["spec"].get("publishNotReadyAddresses", False), is_enabled, "the names of replicas that are not ready")
    secret = "larder-fleet" if "key" in given else given.get("existingSecret", "larder-fleet")
    part.equal(bool(found(resources, "Secret", "larder-fleet")), "key" in given, "the presence of a Secret with the key")
    part.equal(key_source(resources), (secret, "key") if is_enabled else None, "the Secret and the member with the key")
    if "key" in given:
        part.equal(found(resources, "Secret", secret)["stringData"], {"key": KEY}, "the content of the Secret")
    leave = f"{given.get('leaveTimeoutSeconds', 60)}s" if is_enabled else None
    part.equal(variables.get("LARDER_FLEET_LEAVE_TIMEOUT"), leave, "fleet.leaveTimeout")
    for name, value in own.items():
        part.equal(settings["fleet"][name], value, f"fleet.{name} of the configuration")
    if policy:
        selector = found(resources, "StatefulSet")["spec"]["selector"]
        for direction, side in (("ingress", "from"), ("egress", "to")):
            rule = {side: [{"podSelector": selector}], "ports": [{"port": container["ports"][0]["name"]}]}
            part.equal(rule in policy["spec"][direction], is_enabled, f"the rule of the NetworkPolicy for {direction}")


def key_source(resources):
    """The names of the Secret and of its member that the service reads as `fleet.keyFile`; None without a key."""
    pods, container, variables = container_of(resources)
    file = variables.get("LARDER_FLEET_KEY_FILE")
    if file is None:
        return None
    folder, _, member = file.rpartition("/")
    volume = next((each["name"] for each in container["volumeMounts"] if each["mountPath"] == folder), None)
    return next((each["secret"]["secretName"] for each in pods["volumes"] if each["name"] == volume), None), member


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
            resources = resources_of(values)
            for resource in resources:
                validate(part, resource)
            settings = check_configuration(program, resources)
            check_grace(part, resources)
            check_fleet(part, values, resources, settings)
            part.note(", ".join(sorted(each["kind"] for each in resources)))
    with results.part("scaling") as part:
        sets = [found(resources_of({"replicas": count, "fleet": {"enabled": True}}), "StatefulSet") for count in (3, 4)]
        part.equal(sets[1]["spec"]["template"], sets[0]["spec"]["template"], "the description of pods with a further replica")
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
