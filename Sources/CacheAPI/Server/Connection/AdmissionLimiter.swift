import CacheCore
import CacheEngine
import Synchronization

/// Admission control: a limited number of permits for concurrent work.
///
/// There is no queue. A request without a permit is rejected at once and counted. All state is in two relaxed atomic
/// counters, because no other memory depends on them.
final class AdmissionLimiter: Sendable {
    /// The right to do one unit of work; returned when its last reference is released.
    final class Permit: Sendable {
        private let places: AdmissionLimiter

        fileprivate init(in places: AdmissionLimiter) { self.places = places }

        deinit { places.count.subtract(1, ordering: .relaxed) }
    }

    /// The number of permits, evaluated for each use. A reduction does not end permits in use.
    private let most: @Sendable () -> Int
    /// Permits in use; above `limit` for a moment while ``take()`` fails.
    private let count = Atomic(0)
    /// Failed calls of ``take()`` since the start.
    private let refusals = Atomic(0)

    init(limit: @autoclosure @escaping @Sendable () -> Int) { most = limit }

    /// The number of permits.
    var limit: Int { most() }

    /// The current use, for statistics.
    var figures: AdmissionStats.Load {
        AdmissionStats.Load(
            active: count.load(ordering: .relaxed), limit: limit, refused: refusals.load(ordering: .relaxed))
    }

    /// Returns a permit. Returns nil and counts a rejection if all permits are in use.
    ///
    /// The counter is increased before it is compared, so that two concurrent calls cannot both get the last permit.
    func take() -> Permit? {
        guard count.add(1, ordering: .relaxed).newValue <= limit else {
            count.subtract(1, ordering: .relaxed)
            refusals.add(1, ordering: .relaxed)
            return nil
        }
        return Permit(in: self)
    }
}

/// The admission limits of the HTTP server.
struct AdmissionLimits: Sendable {
    /// Limits client connections.
    let connections: ConnectionPermits
    /// Limits content reads that need a wait.
    let reads: AdmissionLimiter
    /// Limits for each address of a client.
    let addresses: AddressLimiter

    /// The limit on connections is fixed: the listener's backlog and the open files depend on it.
    init(_ live: LiveAPISettings, clock: any Clock<Duration>) {
        connections = ConnectionPermits(limit: live.values.limits.maxConnections)
        reads = AdmissionLimiter(limit: live.values.limits.maxConcurrentReads)
        addresses = AddressLimiter(limits: { live.values.limits.perAddress }, uptime: clock.stopwatch())
    }

    /// The current use of both limits, for statistics.
    var figures: AdmissionStats {
        var figures = AdmissionStats()
        figures.connections = connections.figures
        figures.reads = reads.figures
        figures.addressesRefused = addresses.refused
        return figures
    }
}
