"""The Python packages of test programs: each program with requirements runs in a virtual environment of its own."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

from .checks import ROOT
from .process import found


def packages(*names):
    """Installs missing Debian packages."""
    subprocess.run([ROOT / "scripts" / "apt", *names], check=True)


def has_module(name):
    return importlib.util.find_spec(name) is not None


def has_programs(*names):
    return all(map(found, names))


def enter(name, requirements, is_installing=True):
    """Continues this program with the Python of `.build / name`, which has the packages of the file `requirements`.

    Without `is_installing`, an absent environment is not made; then the result is False.
    """
    place, requirements = ROOT / ".build" / name, pathlib.Path(requirements)
    stamp, python = place / "requirements.txt", place / "bin" / "python"
    is_current = stamp.exists() and stamp.read_bytes() == requirements.read_bytes()
    if not is_current and is_installing:
        make(place, requirements)
        is_current = True
    if is_current and pathlib.Path(sys.prefix).resolve() != place.resolve():
        os.execv(python, [python, *sys.argv])
    return is_current


def make(place, requirements):
    if not has_module("ensurepip"):
        packages("python3", "python3-venv")
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    command = [place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements]
    subprocess.run(command, check=True)
    shutil.copy(requirements, place / "requirements.txt")
