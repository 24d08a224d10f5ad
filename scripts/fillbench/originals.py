"""The test files that upstreams serve, and the comparison of received bytes with them."""

import ctypes
import mmap
import os
import random

PERIOD = 1_000_003  # a prime, so that no two aligned blocks are equal
SPRINKLE = 4096
LIBRARY = ctypes.CDLL(None)
LIBRARY.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class Original:
    """A test file in the media directory. `path` is its path at the upstream."""

    def __init__(self, media, path, length):
        self.path, self.length = path, length
        self.file = media / path.lstrip("/")
        self.map = self.address = None

    def make_dense(self, seed):
        """Writes the file with random bytes."""
        block = random.Random(seed).randbytes(PERIOD)
        with open(self.file, "wb") as file:
            for _ in range(self.length // PERIOD):
                file.write(block)
            file.write(block[: self.length % PERIOD])
        return self

    def make_sparse(self, seed, dense=0, step=1 << 20):
        """Writes random bytes up to `dense`, then holes with 4 KiB of random bytes every `step` bytes."""
        chance = random.Random(seed)
        block = chance.randbytes(PERIOD)
        with open(self.file, "wb") as file:
            file.truncate(self.length)
            for offset in range(0, min(dense, self.length), PERIOD):
                os.pwrite(file.fileno(), block[: dense - offset], offset)
            for offset in range(dense, self.length, step):
                first = chance.randrange(PERIOD - SPRINKLE)
                piece = offset.to_bytes(8, "big") + block[first : first + SPRINKLE - 8]
                os.pwrite(file.fileno(), piece[: self.length - offset], offset)
        return self

    def matches(self, offset, buffer_address, count):
        """Whether the `count` bytes at the address equal those of the file from `offset`."""
        if self.map is None:
            with open(self.file, "rb") as file:
                self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)  # ctypes requires a writable view
            self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        if offset + count > self.length:
            return False
        return LIBRARY.memcmp(self.address + offset, buffer_address, count) == 0
