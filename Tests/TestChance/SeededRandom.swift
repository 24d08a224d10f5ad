import Foundation

/// Random numbers that depend only on the seed (SplitMix64: Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators, 2014).
package struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    /// A generator for one test, with a fixed seed by default. `LARDER_TEST_SEED=random` selects a new seed, and a number
    /// selects the seed of an earlier run. The seed is printed, so that a failure can be reproduced.
    package static func announced(
        _ round: Int = 0, _ test: StaticString = #function
    ) -> (random: SeededRandom, seed: UInt64) {
        let asked = ProcessInfo.processInfo.environment["LARDER_TEST_SEED"] ?? ""
        var seed = UInt64(asked) ?? (asked == "random" ? .random(in: 0...UInt64.max) : 0xCBF2_9CE4_8422_2325)
        if asked.isEmpty {  // FNV-1a of the test's name
            for byte in "\(test)".utf8 { seed = (seed ^ UInt64(byte)) &* 0x0100_0000_01B3 }
        }
        if UInt64(asked) == nil { seed &+= UInt64(truncatingIfNeeded: round) }
        print("\(test): seed \(seed)")
        return (SeededRandom(seed: seed), seed)
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    /// Random bytes, in which the bits of `set` are 1. They are made in words, because a closure for each byte takes long
    /// without optimization.
    package mutating func bytes(_ count: Int, set: UInt8 = 0) -> [UInt8] {
        let mask = 0x0101_0101_0101_0101 &* UInt64(set)
        var words: [UInt64] = []
        words.reserveCapacity(count / 8 + 1)
        while words.count * 8 < count { words.append(next() | mask) }
        return words.withUnsafeBytes { Array($0.prefix(count)) }
    }
}
