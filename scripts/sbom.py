"""Prints the software bill of materials of a program as CycloneDX JSON: sbom.py PROGRAM

Lists the Swift packages with the versions of Package.resolved, and the shared libraries that the program names.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def packages(resolved):
    """The Swift packages that are linked into the program."""
    for pin in resolved["pins"]:
        state = pin["state"]
        version = state.get("version") or state["revision"]
        path = re.sub(r"^https://|\.git$", "", pin["location"])
        yield {
            "type": "library", "bom-ref": f"pkg:swift/{path}@{version}", "name": pin["identity"], "version": version,
            "purl": f"pkg:swift/{path}@{version}",
            "externalReferences": [{"type": "vcs", "url": pin["location"], "comment": f"commit {state['revision']}"}],
        }  # fmt: skip


def libraries(program):
    """The shared libraries that the program names."""
    dynamic = subprocess.check_output(["readelf", "--dynamic", program], text=True)
    for name in sorted(re.findall(r"NEEDED.*\[(.+)\]", dynamic)):
        yield {"type": "library", "bom-ref": name, "name": name, "properties": [{"name": "linkage", "value": "dynamic"}]}


def main():
    program = sys.argv[1]
    version = json.loads(subprocess.check_output([program, "version", "--json"]))["version"]
    resolved = json.loads((ROOT / "Package.resolved").read_text())
    compiler = subprocess.run(["swift", "--version"], capture_output=True, text=True).stdout.splitlines()[:1]
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "component": {
                "type": "application", "bom-ref": "larder", "name": "larder", "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "properties": [{"name": "compiler", "value": line} for line in compiler],
            },
        },
        "components": [*packages(resolved), *libraries(program)],
    }  # fmt: skip
    document["dependencies"] = [{"ref": "larder", "dependsOn": [each["bom-ref"] for each in document["components"]]}]
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
