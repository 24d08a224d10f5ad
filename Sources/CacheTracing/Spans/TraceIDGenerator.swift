import CacheCore
import Synchronization

/// Creates identifiers, and decides about new traces without the cost of a whole identifier.
///
/// Spans, and the 56 bits of a trace that decide in `TraceIdRatioBased`, come from a generator of one atomic addition
/// (SplitMix64: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, 2014) with a random start. The other
/// bits of a trace come from the random source.
final class TraceIDGenerator: Sendable {
    private let random: any RandomSource
    private let state: Atomic<UInt64>

    init(random: any RandomSource) {
        self.random = random
        state = Atomic(Self.words(random).low)
    }

    /// The identifier of a new trace with a randomness from `threshold` on; nil if the trace is not recorded.
    func sampledTrace(threshold: UInt64) -> TraceID? {
        guard threshold <= TraceSampler.randomnessMask else { return nil }
        let randomness = next() & TraceSampler.randomnessMask
        guard randomness >= threshold else { return nil }
        let words = Self.words(random)
        return TraceID(high: words.high, low: words.low & ~TraceSampler.randomnessMask | randomness)
    }

    /// The identifier of a new trace without a decision of a sampler.
    func trace() -> TraceID {
        let words = Self.words(random)
        return TraceID(high: words.high, low: words.low) ?? trace()
    }

    /// The identifier of a new span.
    func span() -> SpanID { SpanID(next()) ?? span() }

    /// The next 64 bits of the generator.
    private func next() -> UInt64 {
        var word = state.wrappingAdd(0x9E37_79B9_7F4A_7C15, ordering: .relaxed).newValue
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    /// 128 random bits.
    private static func words(_ random: any RandomSource) -> (high: UInt64, low: UInt64) {
        let digits = random.identifier().utf8
        return (HexDigits.parse(digits.prefix(16)) ?? 0, HexDigits.parse(digits.suffix(16)) ?? 0)
    }
}
