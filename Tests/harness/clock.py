"""A wall clock for processes that a test sets."""

import mmap
import pathlib
import struct
import subprocess
import time

from harness.process import clean_environment


class Clock:
    """The wall clock of a service, moved by the library `clock.c`. Its other clocks are not changed."""

    def __init__(self, directory, at):
        library, file = directory / "clock.so", directory / "clock"
        source = pathlib.Path(__file__).with_name("clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True, timeout=60)
        file.write_bytes(bytes(8))
        with open(file, "r+b") as shared:
            self.memory = mmap.mmap(shared.fileno(), 8)
        self.environment = {**clean_environment(), "LD_PRELOAD": str(library.resolve()), "CLOCK_FILE": str(file.resolve())}
        self.set(at)

    def set(self, at):
        """The clock shows `at` now."""
        self.offset = at - time.time()
        self.memory[:] = struct.pack("d", self.offset)

    def now(self):
        return time.time() + self.offset
