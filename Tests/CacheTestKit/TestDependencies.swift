package import CacheCore
import Synchronization
import TestChance

/// Wall clock that advances only on `advance(by:)`.
package final class ManualWallClock: WallClock {
    private let time: Mutex<Timestamp>

    package init(_ time: Timestamp = Timestamp(seconds: 1_780_000_000)) { self.time = Mutex(time) }

    package func now() -> Timestamp { time.withLock { $0 } }

    package func advance(by duration: Duration) { time.withLock { $0 = $0 + duration } }
}

/// Seeded random source: equal seeds give equal sequences.
package final class SeededChance: RandomSource {
    private let random: Mutex<SeededRandom>

    package init(seed: UInt64 = 1) { random = Mutex(SeededRandom(seed: seed)) }

    package func uniform() -> Double { Double(next() >> 11) * 0x1p-53 }

    package func identifier() -> String {
        AssetID(high: next(), low: next()).description
    }

    /// A random number below `bound`.
    package func below(_ bound: Int64) -> Int64 { Int64(next() % UInt64(bound)) }

    private func next() -> UInt64 { random.withLock { $0.next() } }
}
