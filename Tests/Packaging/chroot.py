#!/usr/bin/env python3
"""Installs a Debian package in a chroot: start, upgrade over an existing store, refused downgrade, removal and purge.

    chroot.py --package larder_0.1.0-1_amd64.deb --base DIRECTORY

The base is a directory of debootstrap; the test works on a copy. Root only. Commands of the chroot run in a mount
namespace, and the service in a network namespace with nothing but loopback.
"""

import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests"))

from harness import checks  # noqa: E402

CONFIGURATION = "/etc/larder/larder.yaml"
STORE = "/var/lib/larder"
ORIGIN = """
origins:
  media:
    baseURL: http://127.0.0.1:9071
    allowPrivateAddresses: true
    freshness: 1d
"""


class Machine:
    """A copy of the base system, in which commands run."""

    def __init__(self, base, directory):
        self.root = directory / "root"
        subprocess.run(["cp", "--archive", "--reflink=auto", base, self.root], check=True)
        self.check = checks.Checks("chroot")

    def path(self, absolute):
        return self.root / absolute.lstrip("/")

    def command(self, line, *, isolated=False):
        mounts = f"mount -t proc proc {self.root}/proc && mount --rbind /dev {self.root}/dev"
        network = "ip link set lo up && " if isolated else ""
        options = ["--mount", "--net"] if isolated else ["--mount"]
        upstream = f"(exec python3 -B {ROOT}/scripts/files.py >/dev/null 2>&1) & trap 'kill %1' EXIT; " if isolated else ""
        script = f"{network}{mounts} && {{ {upstream}chroot {self.root} bash -euc {shell_word(line)}; }}"
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        return subprocess.run(
            ["unshare", *options, "bash", "-c", script], env=environment, text=True, capture_output=True, timeout=600)

    def run(self, line, **options):
        result = self.command(line, **options)
        if result.returncode:
            raise SystemExit(f"{line}\nended with {result.returncode}:\n{result.stdout}{result.stderr}")
        return result.stdout

    def install(self, package):
        shutil.copy(package, self.root)
        # Recommended packages are not needed.
        return self.run(f"apt-get install --yes --no-install-recommends /{package.name}")


def shell_word(text):
    return "'" + text.replace("'", "'\\''") + "'"


def service(work):
    """A shell program that starts the service as the unit does, runs `work` and stops the service."""
    return f"""
        install -d -m 700 -o larder /run/credentials && install -m 400 -o larder /etc/larder/token /run/credentials/token
        export LARDER_TOKEN_FILE=/run/credentials/token
        setpriv --reuid=larder --regid=larder --clear-groups larder serve --config {CONFIGURATION} >/tmp/log 2>&1 &
        service=$!
        until larder healthcheck --config {CONFIGURATION} 2>/dev/null; do kill -0 $service || {{ cat /tmp/log; exit 1; }}; sleep 0.1; done
        {work}
        kill $service; wait $service
    """


def get(path):
    """A shell command that prints the status and `Cache-Status` of a read, and the sum of the bytes."""
    return f"""exec 3<>/dev/tcp/127.0.0.1/8080
        printf 'GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\nRange: bytes=0-99999\\r\\nConnection: close\\r\\n\\r\\n' >&3
        cat <&3 | grep -a -i -e ^HTTP -e ^cache-status"""


def newer(package, directory):
    """The same package with a higher version, and another comment in the configuration that it contains."""
    tree = directory / "newer"
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace("\nVersion: ", "\nVersion: 1:"))
    conffile = tree / CONFIGURATION.lstrip("/")
    conffile.write_text(conffile.read_text() + "# of the newer version\n")
    result = directory / "larder_newer.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, result], check=True, capture_output=True)
    return result


def lifecycle(machine, package, directory):
    machine.install(package)
    machine.check(machine.run("id -un larder").strip() == "larder", "the system user exists")
    machine.check(machine.run(f"stat -c '%U %a' {STORE}").strip() == "larder 700", "the store is private to the user")
    machine.check(machine.run("stat -c '%U %a' /etc/larder/token").strip() == "root 600", "the token is private to root")
    machine.check("/usr/share/man/man1/larder-serve.1.gz" in machine.run("dpkg -L larder"), "man pages are installed")

    configuration = machine.path(CONFIGURATION)
    configuration.write_text(configuration.read_text() + ORIGIN)
    shown = machine.run(service(get("/o/media/film.mp4") + "; larder doctor --config " + CONFIGURATION + " || test $? = 1"), isolated=True)
    machine.check("206" in shown and "fwd=miss" in shown, "the service reads through the cache", shown)
    machine.check("\n0 errors, " in shown, "larder doctor finds no error beside the service", shown)

    token = machine.path("/etc/larder/token").read_text()
    machine.run("apt-get install --yes --no-install-recommends --option Dpkg::Options::=--force-confold /larder_newer.deb")
    machine.check("1:" in machine.run("dpkg-query -W -f '${Version}' larder"), "the package is upgraded")
    machine.check("origins:" in configuration.read_text(), "the upgrade keeps the changed configuration")
    machine.check(machine.path("/etc/larder/token").read_text() == token, "the upgrade keeps the token")
    shown = machine.run(service(get("/o/media/film.mp4")), isolated=True)
    machine.check("hit" in shown, "the store survives the upgrade", shown)

    with sqlite3.connect(machine.path(STORE) / "catalog.sqlite") as catalog:
        catalog.execute("INSERT INTO grdb_migrations (identifier) VALUES ('v999')")
    catalog.close()
    result = machine.command(service("true"), isolated=True)
    machine.check("was written by a newer version of Larder" in result.stdout, "an older program refuses a newer store", result.stdout)

    machine.run("apt-get remove --yes larder")
    machine.check(not machine.path("/usr/bin/larder").exists(), "the removal deletes the program")
    machine.check((machine.path(STORE) / "catalog.sqlite").exists() and configuration.exists(), "the removal keeps store and configuration")
    machine.run("apt-get purge --yes larder")
    machine.check(not machine.path(STORE).exists(), "the purge deletes the store")
    machine.check(not machine.path("/etc/larder").exists(), "the purge deletes configuration and token")


def main():
    parser = checks.arguments(__doc__, brief=None)
    parser.add_argument("--package", required=True, type=pathlib.Path)
    parser.add_argument("--base", required=True, type=pathlib.Path)
    options = parser.parse_args()
    if os.geteuid():
        raise SystemExit("A chroot needs root.")
    directory = checks.directory("chroot")
    directory.chmod(0o755)
    machine = Machine(options.base, directory)
    shutil.copy(newer(options.package, directory), machine.root)
    lifecycle(machine, options.package, directory)
    sys.exit(machine.check.finish())


if __name__ == "__main__":
    main()
