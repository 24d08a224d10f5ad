import CacheEngine
import Synchronization

/// Places for what is going on at once; whoever finds none is turned away.
final class Places: Sendable {
    /// One that is taken, until nobody holds it any more.
    final class Place: Sendable {
        private let places: Places

        fileprivate init(in places: Places) { self.places = places }

        deinit { places.count.subtract(1, ordering: .relaxed) }
    }

    let limit: Int
    private let count = Atomic(0)
    private let refusals = Atomic(0)

    init(limit: Int) { self.limit = limit }

    var figures: CounterFigures.Places {
        CounterFigures.Places(
            active: count.load(ordering: .relaxed), limit: limit, refused: refusals.load(ordering: .relaxed))
    }

    /// Nil where all are taken.
    func take() -> Place? {
        guard count.add(1, ordering: .relaxed).newValue <= limit else {
            count.subtract(1, ordering: .relaxed)
            refusals.add(1, ordering: .relaxed)
            return nil
        }
        return Place(in: self)
    }
}

/// What the counter takes on at once.
struct CounterLoad: Sendable {
    /// Connections of clients.
    let connections: ConnectionPermits
    /// Reads of content that are not answered on the event loop.
    let reads: Places

    init(_ limits: APISettings.Limits) {
        connections = ConnectionPermits(limit: limits.connections)
        reads = Places(limit: limits.reads)
    }

    var figures: CounterFigures {
        var figures = CounterFigures()
        figures.connections = connections.figures
        figures.reads = reads.figures
        return figures
    }
}
