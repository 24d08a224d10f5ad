import CacheTestKit
import CacheTracing
import Testing
import TestChance

private func parent(_ randomness: UInt64, isSampled: Bool) throws -> TraceContext {
    TraceContext(
        traceID: try #require(TraceID(high: 1, low: randomness)), spanID: try #require(SpanID(1)),
        flags: isSampled ? [.sampled] : [], isRemote: true)
}

@Suite struct TraceSamplerTests {
    @Test(
        "The last 7 bytes of the trace identifier decide, by the rejection threshold",
        arguments: [
            (0.5, 0x7F_FFFF_FFFF_FFFF, false), (0.5, 0x80_0000_0000_0000, true), (0.5, 0xFF80_0000_0000_0000, true),
            (0.5, 0xFF7F_FFFF_FFFF_FFFF, false), (0.25, 0xBF_FFFF_FFFF_FFFF, false), (0.25, 0xC0_0000_0000_0000, true),
            (1, 0, true), (0, 0xFF_FFFF_FFFF_FFFF, false), (-1, 0xFF_FFFF_FFFF_FFFF, false), (2, 0, true),
        ] as [(Double, UInt64, Bool)])
    func decidesByRandomness(ratio: Double, randomness: UInt64, isRecorded: Bool) throws {
        let tracer = TestTracer(TraceSampler(ratio: ratio, isParentBased: false)).tracer

        let span = tracer.span("test", .server, parent: try? parent(randomness, isSampled: !isRecorded))

        #expect((span != nil) == isRecorded)
    }

    @Test("The decision of a parent has precedence over the ratio", arguments: [0.0, 0.5, 1])
    func followsTheParent(ratio: Double) throws {
        let tracer = TestTracer(TraceSampler(ratio: ratio)).tracer

        #expect(tracer.span("test", .server, parent: try? parent(0, isSampled: true)) != nil)
        #expect(tracer.span("test", .server, parent: try? parent(.max, isSampled: false)) == nil)
    }

    @Test(
        "Of new traces the ratio is recorded, and their identifiers pass the same sampler", arguments: [0.01, 0.3, 0.9])
    func recordsTheRatio(ratio: Double) {
        let (_, seed) = SeededRandom.announced()
        let sampler = TraceSampler(ratio: ratio)
        let tracer = TestTracer(sampler, seed: seed).tracer

        var recorded = 0
        for _ in 0..<20_000 {
            guard let span = tracer.span("test", .server) else { continue }
            recorded += 1
            let randomness = span.context.traceID.low & 0xFF_FFFF_FFFF_FFFF
            #expect(Double(randomness) >= (1 - ratio) * 0x1p56 - 1, "seed \(seed)")
        }

        #expect(abs(Double(recorded) / 20_000 - ratio) < 0.02, "seed \(seed)")
    }

    @Test("A ratio of 0 records no new trace, and a sampler that is always off disables the tracer")
    func recordsNothing() {
        let parentBased = TestTracer(TraceSampler(ratio: 0)).tracer
        let off = TestTracer(TraceSampler(ratio: 0, isParentBased: false)).tracer

        #expect(parentBased.isEnabled)
        #expect((0..<1000).allSatisfy { _ in parentBased.span("test", .server) == nil })
        #expect(!off.isEnabled)
        #expect(off.span("test", .server, parent: try? parent(.max, isSampled: true)) == nil)
    }
}
