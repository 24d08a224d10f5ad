/// Permits that finished live transfers have returned and that prefetch may not use yet, by origin (anticipatory
/// scheduling).
struct ReservedSlots: Sendable {
    typealias Instant = ContinuousClock.Instant

    private var places: [String: [Instant]] = [:]
    /// Origins, ordered by the end of their oldest reservation.
    private var firsts = IndexedHeap<[String: Int], Instant>()
    /// The number of reserved permits of all origins.
    private(set) var count = 0

    /// The end of the oldest reservation; nil if there is none.
    var nextFree: Instant? { firsts.first?.rank }

    /// The number of reserved permits of the origin.
    func count(of origin: String) -> Int { places[origin]?.count ?? 0 }

    /// Adds a reservation; the newest reservation of an origin ends last.
    mutating func keep(of origin: String, until instant: Instant) {
        places[origin, default: []].append(instant)
        changed(origin, by: 1)
    }

    /// Ends the oldest reservation of the origin, if there is one.
    mutating func take(of origin: String) {
        guard places[origin] != nil else { return }
        places[origin]?.removeFirst()
        changed(origin, by: -1)
    }

    /// Ends the oldest reservation if it has expired at `now`, and returns its origin; nil if none has.
    mutating func takeFree(at now: Instant) -> String? {
        guard let first = firsts.first, first.rank <= now else { return nil }
        take(of: first.id)
        return first.id
    }

    /// Updates the count and the order of origins.
    private mutating func changed(_ origin: String, by change: Int) {
        count += change
        if let first = places[origin]?.first {
            firsts.set(origin, to: first)
        } else {
            firsts.remove(origin)
            places[origin] = nil
        }
    }
}
