package import CacheCore

/// What the service's own reads would have come to under other policies.
package struct PolicyTrials: Sendable {
    /// The time that the reads cover; at most what was asked for.
    package var window: Duration
    /// Reads that were played, and the share of the assets' chunks that they are a sample of.
    package var reads: Int
    package var sampleShare: Double
    package var trials: [PolicyTrial]
    package var pricePerGigabyte: Double?
}

/// What would be missed at other capacities than the present one.
package struct PolicyCurve: Sendable {
    package var algorithm: EvictionAlgorithm
    package var capacityBytes: Int64
    package var window: Duration
    package var reads: Int
    package var points: [MissRatioCurve.Point]
}

extension AssetCache {
    /// Reads that are played in all, over all combinations: a few seconds' work.
    private static let mostSteps = 4 << 20
    private static let multiples = [0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 4]

    /// Plays what was read within the window against every algorithm at every capacity.
    package func trials(
        of algorithms: [EvictionAlgorithm], at capacities: [Int64], within window: Duration
    ) async -> PolicyTrials {
        let (now, usedShare) = (now, policy().settings.usedShare)
        let pairs = algorithms.flatMap { algorithm in capacities.map { (algorithm, $0) } }
        let price = settings.pricePerGigabyte
        return await context.readLog.play { trace in
            let trace = trace.sampled(atMost: Self.mostSteps / max(1, pairs.count))
            let covered = trace.covered(within: window, until: now)
            return PolicyTrials(
                window: now.since(covered.start), reads: covered.reads, sampleShare: trace.share,
                trials: pairs.map {
                    PolicyTrial(
                        of: trace, since: covered.start, under: $0.0, capacityBytes: $0.1, usedShare: usedShare)
                }, pricePerGigabyte: price)
        }
    }

    /// The curve of the policy in force, from a tenth to four times its capacity; without one, of what is used now.
    package func policyCurve(within window: Duration) async -> PolicyCurve {
        let (now, policy) = (now, policy().settings)
        let capacity = policy.capacityBytes ?? max(1, context.space.with { $0.usedBytes })
        let capacities = Self.multiples.map { Int64(saturating: Double(capacity) * $0) }
        return await context.readLog.play { trace in
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
    /// Where the reads within the window begin, and how many they are.
    fileprivate func covered(within window: Duration, until now: Timestamp) -> (start: Timestamp, reads: Int) {
        var (start, count) = (now, 0)
        for read in reads(since: now - window) {
            start = min(start, read.at)
            count += 1
        }
        return (start, count)
    }
}
