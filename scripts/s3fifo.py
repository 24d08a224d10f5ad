"""S3-FIFO over pieces of one size, as plain as can be: what a store of so many pieces would have found of a list of reads."""

import collections

TOUCH_SECONDS = 300
PROMOTION_READS = 2


class Cache:
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
    """Of reads, as pairs of a time and a piece, in order."""
    cache = Cache(capacity)
    for now, piece in reads:
        cache.read(piece, now)
    return cache.hits / max(1, cache.reads)
