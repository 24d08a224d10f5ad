/// Sampling decision for new spans (OpenTelemetry specification, trace SDK, "Sampling").
package struct TraceSampler: Hashable, Sendable {
    /// The bits of a trace identifier that decide: the last 7 bytes.
    static let randomnessMask: UInt64 = 1 << 56 - 1

    /// Whether the decision of a parent is adopted (`ParentBased`).
    package var isParentBased: Bool
    /// The share of traces that are recorded, in 0...1 (`TraceIdRatioBased`).
    package let ratio: Double
    /// A trace is recorded if its randomness is not below the threshold (OpenTelemetry specification, "TraceState:
    /// Probability Sampling", rejection threshold). 2^56 rejects all traces.
    let threshold: UInt64

    /// `ratio` is clamped to 0...1.
    package init(ratio: Double, isParentBased: Bool = true) {
        self.ratio = min(max(ratio, 0), 1)
        self.isParentBased = isParentBased
        threshold = UInt64(((1 - self.ratio) * 0x1p56).rounded())
    }

    /// Whether the sampler records no span at all.
    package var isAlwaysOff: Bool { !isParentBased && threshold > Self.randomnessMask }

    /// Whether a trace with this identifier is recorded if it has no parent.
    func records(_ trace: TraceID) -> Bool { trace.randomness >= threshold }
}
