import CacheCore
import Synchronization

/// The points of assets that jobs wait for. Readers report the bytes that they got.
final class ReadPoints: Sendable {
    /// The point of one job.
    struct Watch: Hashable, Sendable {
        let job: String
        let asset: AssetID
        let percent: Double
    }

    /// Whether there are points: reads look only at this.
    private let isActive = Atomic(false)
    /// Guards the progress towards each point.
    private let points = OrderedMutex<[AssetID: [Watch: ReadPoint]]>(.leaf, [:])
    /// The jobs whose point was passed.
    let passed: AsyncStream<String>
    private let pass: AsyncStream<String>.Continuation

    init() { (passed, pass) = AsyncStream.makeStream() }

    /// Replaces the points; the progress towards those that stay is kept.
    func watch(_ watches: [Watch]) {
        guard !watches.isEmpty || isActive.load(ordering: .relaxed) else { return }
        points.withLock { points in
            let present = points
            points = [:]
            for watch in watches {
                points[watch.asset, default: [:]][watch] =
                    present[watch.asset]?[watch] ?? ReadPoint(percent: watch.percent)
            }
        }
        isActive.store(!watches.isEmpty, ordering: .relaxed)
    }

    /// A reader got a range of an asset.
    func note(_ range: @autoclosure () -> ByteRange?, of asset: AssetID, length: @autoclosure () -> Int64?) {
        guard isActive.load(ordering: .relaxed), let range = range(), !range.isEmpty, let length = length() else {
            return
        }
        let jobs = points.withLock { points in
            guard let watches = points[asset] else { return [String]() }
            let passed = watches.keys.filter { points[asset]?[$0]?.note(range, length: length) == true }
            // Reported once: the job looks for its reader again if it could not be changed.
            for watch in passed { points[asset]?[watch] = nil }
            return passed.map(\.job)
        }
        for job in jobs { pass.yield(job) }
    }
}
