"""Reference implementation of S3-FIFO (Yang et al., SOSP 2023) for pieces of equal size: the hit ratio of a trace."""

import collections

TOUCH_SECONDS = 300
PROMOTION_READS = 2


class Cache:
    """A small and a main FIFO queue with read counters, and a ghost queue of evicted pieces."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.small, self.main = collections.OrderedDict(), collections.OrderedDict()
        self.ghosts = collections.OrderedDict()
        self.touched = {}
        self.has_evicted = False
        self.reads = self.hits = 0

    def read(self, piece, now):
        self.reads += 1
        for queue in (self.small, self.main):
            if piece in queue:
                self.hits += 1
                if now - self.touched.get(piece, now - TOUCH_SECONDS) >= TOUCH_SECONDS:
                    self.touched[piece] = now
                    queue[piece] = min(3, queue[piece] + 1)
                return
        is_back = self.ghosts.pop(piece, None) is not None
        while len(self.small) + len(self.main) >= self.capacity:
            self.evict()
        is_warming_up = not self.has_evicted and len(self.small) >= self.capacity / 10
        (self.main if is_back or is_warming_up else self.small)[piece] = 0

    def evict(self):
        """Evicts, promotes or reinserts one piece."""
        self.has_evicted = True
        if not self.small or len(self.main) > self.capacity - self.capacity / 10:
            piece, reads = self.main.popitem(last=False)
            if reads > 0:
                self.main[piece] = reads - 1
            else:
                self.touched.pop(piece, None)
            return
        piece, reads = self.small.popitem(last=False)
        if reads >= PROMOTION_READS:
            self.main[piece] = 0
            return
        self.touched.pop(piece, None)
        self.ghosts[piece] = True
        while len(self.ghosts) > self.capacity * 0.9:
            self.ghosts.popitem(last=False)


def hit_ratio(reads, capacity):
    """The hit ratio of `reads`, pairs of time and piece in order of time; `capacity` is a number of pieces."""
    cache = Cache(capacity)
    for now, piece in reads:
        cache.read(piece, now)
    return cache.hits / max(1, cache.reads)
