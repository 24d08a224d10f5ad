package import CacheCore
package import CacheSimulation

/// The results of replaying the service's own reads under other policies.
package struct SimulationResults: Sendable {
    /// The time that the reads cover; at most the requested window.
    package var window: Duration
    /// The number of replayed reads.
    package var reads: Int
    /// The share of the assets' chunks in the sample, from 0 to 1.
    package var sampleShare: Double
    package var simulations: [SimulationResult]
    /// The configured price of a gigabyte from the upstream; nil if none is set.
    package var pricePerGigabyte: Double?
}

/// The predicted miss ratio at capacities below and above the present one.
package struct PolicyCurve: Sendable {
    package var algorithm: EvictionAlgorithm
    package var capacityBytes: Int64
    package var window: Duration
    package var reads: Int
    package var points: [MissRatioCurve.Point]
}

/// Replays the recorded reads under other policies and capacities.
package struct PolicySimulator: Sendable {
    let space: SpaceReservations
    let traceRecorder: AccessTraceRecorder
    let configuration: CacheConfiguration
    let settings: LiveCacheSettings
    let wallClock: any WallClock

    /// The maximum number of replayed reads over all combinations; it takes a few seconds.
    private static let mostSteps = 4 << 20
    /// The points of the curve, as multiples of the present capacity.
    private static let multiples = [0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 4]

    /// Replays the reads within the window under every algorithm at every capacity, in bytes.
    package func simulations(
        of algorithms: [EvictionAlgorithm], at capacities: [Int64], within window: Duration
    ) async -> SimulationResults {
        let (now, usedShare) = (wallClock.now(), configuration.policy.settings.usedShare)
        let pairs = algorithms.flatMap { algorithm in capacities.map { (algorithm, $0) } }
        let price = settings.current.settings.pricePerGigabyte
        return await traceRecorder.play { trace in
            let trace = trace.sampled(atMost: Self.mostSteps / max(1, pairs.count))
            let covered = trace.covered(within: window, until: now)
            return SimulationResults(
                window: now.since(covered.start), reads: covered.reads, sampleShare: trace.share,
                simulations: pairs.map {
                    SimulationResult(
                        of: trace, since: covered.start, under: $0.0, capacityBytes: $0.1, usedShare: usedShare)
                }, pricePerGigabyte: price)
        }
    }

    /// The miss-ratio curve of the policy in force, from a tenth to four times its capacity. Without a capacity, the
    /// used bytes take its place, and at least the smallest capacity that a policy may have.
    package func policyCurve(within window: Duration) async -> PolicyCurve {
        let (now, policy) = (wallClock.now(), configuration.policy.settings)
        let capacity = policy.capacityBytes ?? max(PolicySettings.minCapacityBytes, space.with { $0.usedBytes })
        let capacities = Self.multiples.map { Int64(saturating: Double(capacity) * $0) }
        return await traceRecorder.play { trace in
            let covered = trace.covered(within: window, until: now)
            return PolicyCurve(
                algorithm: policy.algorithm, capacityBytes: capacity, window: now.since(covered.start),
                reads: covered.reads,
                points: MissRatioCurve.points(
                    of: trace, since: covered.start, under: policy.algorithm, capacities: capacities,
                    grid: SegmentGrid(capacity: policy.capacityBytes),
                    usedShare: policy.capacityBytes == nil ? 1 : policy.usedShare))
        }
    }
}

extension ReadTrace {
    /// The start of the reads within the window, and their number.
    fileprivate func covered(within window: Duration, until now: Timestamp) -> (start: Timestamp, reads: Int) {
        var (start, count) = (now, 0)
        for read in reads(since: now - window) {
            start = min(start, read.at)
            count += 1
        }
        return (start, count)
    }
}
