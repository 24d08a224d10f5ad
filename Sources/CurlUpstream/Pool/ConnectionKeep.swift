/// How many connections a worker keeps: as many as it had use for at once in the last minute or two, within bounds.
///
/// libcurl closes the oldest idle one whenever there are more in all than it may keep; under that number none is closed
/// that the next window could have used.
struct ConnectionKeep {
    typealias Instant = ContinuousClock.Instant

    /// What is kept without any need shown.
    static let least = 64
    private static let period = Duration.seconds(60)

    private let most: Int
    private var present = 0
    private var previous = 0
    private var since: Instant
    private var told = 0

    init(most: Int, at now: Instant) {
        self.most = most
        since = now
    }

    /// With `running` transfers; answers how many to keep, where that has changed.
    mutating func change(running: Int, at now: Instant) -> Int? {
        if since.duration(to: now) >= Self.period {
            previous = since.duration(to: now) < Self.period * 2 ? present : running
            present = running
            since = now
        }
        present = max(present, running)
        // A quarter more, so that a few that hosts have closed, or that go to other hosts, push none out.
        let need = max(present, previous)
        let keep = min(most, max(Self.least, need + need / 4))
        guard keep != told else { return nil }
        told = keep
        return keep
    }
}
