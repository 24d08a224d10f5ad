#!/usr/bin/env python3
"""Checks an image archive and runs its program as its user, on a read-only root file system.

    image.py --image .build/dist/larder-image.tar.gz

Root only. The commands run in mount and network namespaces of their own, with the environment of the image.
"""

import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import checks  # noqa: E402

MAX_BYTES = 120_000_000
FILES = ["etc/ssl/certs/ca-certificates.crt", "usr/share/zoneinfo/Europe/Berlin", "usr/share/doc/larder/sbom.cdx.json"]
USER = 10001


def unpack(archive, directory):
    """Unpacks the layers into `directory`; returns the configuration of the image."""
    with tarfile.open(archive) as outer:
        member = lambda name: outer.extractfile(outer.getmember(name))  # noqa: E731
        manifest = json.load(member("manifest.json"))[0]
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=member(layer)) as inner:
                inner.extractall(directory, filter="fully_trusted")
        return json.load(member(manifest["Config"]))["config"]


def serve(root, config):
    """Starts the program as the image says, waits for its health check and stops it; returns the output."""
    command = " ".join(config["Entrypoint"] + config["Cmd"])
    health = " ".join(config["Healthcheck"]["Test"][1:])
    script = f"""
        ip link set lo up
        mount --bind {root} {root} && mount -t proc proc {root}/proc && mount --rbind /dev {root}/dev
        mount -t tmpfs -o uid={USER},mode=750 store {root}/var/lib/larder
        mount -o remount,bind,ro {root}
        cd {root}/var/lib/larder
        chroot --userspec={USER}:{USER} {root} {command} & service=$!
        for attempt in $(seq 100); do
            chroot --userspec={USER}:{USER} {root} {health} 2>/dev/null && break
            kill -0 $service || exit 1
            sleep 0.1
        done
        chroot --userspec={USER}:{USER} {root} {health} && echo healthy
        chroot --userspec={USER}:{USER} {root} larder doctor || test $? = 1
        chroot --userspec={USER}:{USER} {root} bash -c 'echo x > /x' 2>&1 | grep -o 'Read-only file system'
        kill $service && wait $service && echo ended
    """
    variables = dict(each.split("=", 1) for each in config["Env"])
    environment = {**variables, "PATH": variables["PATH"] + ":/usr/sbin:/sbin", "LARDER_TOKEN": "0123456789abcdef0123456789abcdef"}
    shown = subprocess.run(
        ["unshare", "--mount", "--net", "bash", "-uc", script], env=environment, text=True, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    return shown.stdout


def main():
    parser = checks.arguments(__doc__, brief=None)
    parser.add_argument("--image", required=True, type=pathlib.Path)
    options = parser.parse_args()
    if os.geteuid():
        raise SystemExit("A chroot needs root.")
    check = checks.Checks("image")
    size = options.image.stat().st_size
    check(size <= MAX_BYTES, f"the image has {size / 1e6:.1f} MB of at most {MAX_BYTES / 1e6:.0f} MB")
    with tempfile.TemporaryDirectory(prefix="larder-image.") as root:
        config = unpack(options.image, root)
        os.chmod(root, 0o755)
        check(config["User"] == f"{USER}:{USER}", "the user is not root", config)
        check("org.opencontainers.image.version" in config["Labels"], "the labels of OCI", config)
        check(config["Volumes"] == {"/var/lib/larder": {}}, "the volume", config)
        for name in FILES:
            check(pathlib.Path(root, name).exists(), f"the file {name}")
        shown = serve(root, config)
        check("healthy" in shown, "the service is healthy on a read-only root", shown)
        check("Read-only file system" in shown, "the root file system is read-only", shown)
        check("\n0 errors, " in shown, "larder doctor finds no error", shown)
        check("ended" in shown, "the service ends after SIGTERM", shown)
    sys.exit(check.finish())


if __name__ == "__main__":
    main()
