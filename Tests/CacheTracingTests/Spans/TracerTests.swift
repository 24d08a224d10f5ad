import CacheTestKit
import CacheTracing
import Testing

private func context(_ number: UInt64, isSampled: Bool = true) throws -> TraceContext {
    TraceContext(
        traceID: try #require(TraceID(high: number, low: number)), spanID: try #require(SpanID(number)),
        flags: isSampled ? [.sampled] : [])
}

@Suite struct TracerTests {
    @Test("A disabled tracer records nothing and does not evaluate the parent")
    func isDisabled() {
        var evaluations = 0
        func parent() -> TraceContext? {
            evaluations += 1
            return nil
        }

        #expect(Tracer.disabled.span("test", .server, parent: parent()) == nil)
        #expect(Tracer.disabled.unsampledContext(parent: parent()) == nil)
        #expect(evaluations == 0)
    }

    @Test("A span with a remote parent continues its trace and keeps its trace state")
    func continuesTheTrace() async throws {
        let test = TestTracer()
        let field = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        let parent = try #require(TraceContext(traceparent: [field], tracestate: ["rojo=1"]))

        let span = try #require(test.tracer.span("GET /o/{origin}/{path}", .server, parent: parent))

        #expect(span.context.traceID == parent.traceID)
        #expect(span.context.spanID != parent.spanID)
        #expect(span.context.flags == .sampled)
        #expect(span.context.tracestate == "rojo=1")
        #expect(!span.context.isRemote)
    }

    @Test("A new trace has random identifiers and says so")
    func startsATrace() throws {
        let test = TestTracer()

        let one = try #require(test.tracer.span("one", .server))
        let other = try #require(test.tracer.span("other", .server))

        #expect(one.context.flags == [.sampled, .random])
        #expect(one.context.traceID != other.context.traceID)
        #expect(one.context.spanID != other.context.spanID)
        #expect(one.context.tracestate == nil)
    }

    @Test("A span without parent is recorded if a linked span is recorded")
    func followsItsLinks() throws {
        let test = TestTracer(TraceSampler(ratio: 0))

        let fill = test.tracer.span("fill", .client, links: [try context(1, isSampled: false), try context(2)])

        #expect(fill != nil)
        #expect(fill?.context.traceID != (try context(2)).traceID)
        #expect(test.tracer.span("fill", .client, links: [try context(1, isSampled: false)]) == nil)
    }

    @Test("A child belongs to the trace of its parent")
    func startsAChild() throws {
        let test = TestTracer(TraceSampler(ratio: 0))
        let span = try #require(test.tracer.span("job", .internal, parent: try? context(1)))

        let child = span.child("job.item", .internal)

        #expect(child.context.traceID == span.context.traceID)
        #expect(child.context.spanID != span.context.spanID)
    }

    @Test("The context of work that is not recorded has no sampled flag")
    func propagatesTheDecision() throws {
        let test = TestTracer(TraceSampler(ratio: 0))
        let parent = try context(1, isSampled: false)

        let continued = try #require(test.tracer.unsampledContext(parent: parent))
        let new = try #require(test.tracer.unsampledContext())

        #expect(continued.traceID == parent.traceID && continued.spanID != parent.spanID && !continued.isSampled)
        #expect(new.traceID != parent.traceID && !new.isSampled)
    }
}
