/// Places that transfers have given back and that are not for everybody yet, by origin.
struct KeptPlaces: Sendable {
    typealias Instant = ContinuousClock.Instant

    private var places: [String: [Instant]] = [:]
    /// Origins by when the first of their places is free for all.
    private var firsts = IndexedHeap<String, Instant>()
    private(set) var count = 0

    /// When the next one is free for all.
    var nextFree: Instant? { firsts.first?.rank }

    func count(of origin: String) -> Int { places[origin]?.count ?? 0 }

    /// Of an origin's places the one kept last is free last.
    mutating func keep(of origin: String, until instant: Instant) {
        places[origin, default: []].append(instant)
        changed(origin, by: 1)
    }

    /// The one that has been kept longest is kept no more, where there is one.
    mutating func take(of origin: String) {
        guard places[origin] != nil else { return }
        places[origin]?.removeFirst()
        changed(origin, by: -1)
    }

    /// Takes one that is free for all by now; answers whose it was.
    mutating func takeFree(at now: Instant) -> String? {
        guard let first = firsts.first, first.rank <= now else { return nil }
        take(of: first.id)
        return first.id
    }

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
