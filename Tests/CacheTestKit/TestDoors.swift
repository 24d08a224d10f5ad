package import CacheCore
import Synchronization
import TestChance

/// A wall clock that stands still until it is told to go on.
package final class ManualWallClock: WallClock {
    private let time: Mutex<Timestamp>

    package init(_ time: Timestamp = Timestamp(seconds: 1_780_000_000)) { self.time = Mutex(time) }

    package func now() -> Timestamp { time.withLock { $0 } }

    package func advance(by duration: Duration) { time.withLock { $0 = $0 + duration } }
}

/// Chance that can be repeated.
package final class SeededChance: Chance {
    private let random: Mutex<SeededRandom>

    package init(seed: UInt64 = 1) { random = Mutex(SeededRandom(seed: seed)) }

    package func uniform() -> Double { Double(next() >> 11) * 0x1p-53 }

    package func identifier() -> String {
        AssetID(high: next(), low: next()).description
    }

    /// A number below `bound`.
    package func below(_ bound: Int64) -> Int64 { Int64(next() % UInt64(bound)) }

    private func next() -> UInt64 { random.withLock { $0.next() } }
}
