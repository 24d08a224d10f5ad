package import CacheCore
import Synchronization

/// A wall clock that stands still until it is told to go on.
package final class ManualWallClock: WallClock {
    private let time: Mutex<Timestamp>

    package init(_ time: Timestamp = Timestamp(seconds: 1_780_000_000)) { self.time = Mutex(time) }

    package func now() -> Timestamp { time.withLock { $0 } }

    package func advance(by duration: Duration) { time.withLock { $0 = $0 + duration } }
}

/// Chance that can be repeated: SplitMix64 from a seed.
package final class SeededChance: Chance {
    private let state: Mutex<UInt64>

    package init(seed: UInt64 = 1) { state = Mutex(seed) }

    package func uniform() -> Double { Double(next() >> 11) * 0x1p-53 }

    package func identifier() -> String {
        AssetID(high: next(), low: next()).description
    }

    /// A number below `bound`.
    package func below(_ bound: Int64) -> Int64 { Int64(next() % UInt64(bound)) }

    private func next() -> UInt64 {
        state.withLock { state in
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }
}
