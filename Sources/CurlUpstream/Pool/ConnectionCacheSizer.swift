/// Sets the connection cache size of a worker to its peak concurrency of the last one to two minutes, within bounds.
///
/// libcurl closes the oldest idle connection if a worker has more connections than its cache size. With this size it
/// closes none that a burst like the last one would reuse.
struct ConnectionCacheSizer {
    /// Cache size in connections without any load.
    static let least = 64
    /// Length of a measurement window.
    private static let period = Duration.seconds(60)

    /// Upper bound in connections.
    private let most: Int
    /// Peak concurrency of the current window, and of the window before it.
    private var present = 0
    private var previous = 0
    /// Start of the current window.
    private var since: Instant
    /// The size that the worker applied last; 0 before the first.
    private var told = 0

    init(most: Int, at now: Instant) {
        self.most = most
        since = now
    }

    /// Records that `running` transfers are in progress. Returns the new cache size if it has changed, else nil.
    mutating func change(running: Int, at now: Instant) -> Int? {
        if since.duration(to: now) >= Self.period {
            // After an idle period of two windows or more, the old peak is not a prediction any more.
            previous = since.duration(to: now) < Self.period * 2 ? present : running
            present = running
            since = now
        }
        present = max(present, running)
        // 25 % more than the peak: connections that upstreams have closed, or that lead to other hosts, evict no useful
        // one.
        let need = max(present, previous)
        let keep = min(most, max(Self.least, need + need / 4))
        guard keep != told else { return nil }
        told = keep
        return keep
    }
}
