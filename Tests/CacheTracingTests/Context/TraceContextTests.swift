import CacheCore
import CacheTracing
import Testing

/// The example of W3C Trace Context §3.2.3.
private let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
private let span = "00f067aa0ba902b7"

@Suite struct TraceContextTests {
    @Test(
        "A valid traceparent is parsed, and sent in version 00 with the known flags",
        arguments: [
            ("00-\(trace)-\(span)-01", "01"), ("00-\(trace)-\(span)-00", "00"), ("00-\(trace)-\(span)-03", "03"),
            ("00-\(trace)-\(span)-ff", "03"), ("00-\(trace)-\(span)-fc", "00"), ("00-\(trace)-\(span)-09", "01"),
            ("01-\(trace)-\(span)-01", "01"), ("01-\(trace)-\(span)-03", "01"), ("cc-\(trace)-\(span)-01-future", "01"),
            ("fe-\(trace)-\(span)-00-", "00"),
        ])
    func parses(field: String, flags: String) throws {
        let context = try #require(TraceContext(traceparent: [field]))

        #expect(context.traceID.description == trace)
        #expect(context.spanID.description == span)
        #expect(context.isRemote)
        #expect(context.isSampled == (flags == "01" || flags == "03"))
        #expect(context.traceparent == "00-\(trace)-\(span)-\(flags)")
    }

    @Test(
        "An invalid traceparent is rejected",
        arguments: [
            "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-", "00-\(trace)-\(span)-1", "00-\(trace)-\(span)-0g",
            "00-\(trace)-\(span)-01-", "00-\(trace)-\(span)-01-future", "00-\(trace)-\(span)-010",
            "ff-\(trace)-\(span)-01", "ff-\(trace)-\(span)-01-future", "cc-\(trace)-\(span)-01.future",
            "cc-\(trace)-\(span)-0", "0-\(trace)-\(span)-01", "0x-\(trace)-\(span)-01", "FE-\(trace)-\(span)-01",
            "00-\(String(repeating: "0", count: 32))-\(span)-01", "00-\(trace)-\(String(repeating: "0", count: 16))-01",
            "00-\(trace.uppercased())-\(span)-01", "00-\(trace)-\(span.uppercased())-01", "00-\(trace)-\(span)-0A",
            "00-\(trace.dropLast())-\(span)-01", "00-\(trace)0-\(span)-01", "00-\(trace.dropLast())g-\(span)-01",
            "00_\(trace)-\(span)-01", "00-\(trace)_\(span)-01", "00-\(trace)-\(span)_01", " 00-\(trace)-\(span)-01",
            "00-\(trace.dropLast())é-\(span)-01",
        ])
    func rejects(field: String) {
        #expect(TraceContext(traceparent: [field]) == nil)
    }

    @Test("Without exactly one traceparent the trace is restarted")
    func needsOneField() {
        let field = "00-\(trace)-\(span)-01"

        #expect(TraceContext(traceparent: []) == nil)
        #expect(TraceContext(traceparent: [field, field]) == nil)
    }

    @Test("An invalid tracestate does not affect the traceparent")
    func keepsTheParent() throws {
        let context = try #require(
            TraceContext(traceparent: ["00-\(trace)-\(span)-01"], tracestate: ["=invalid", "a=1"]))

        #expect(context.tracestate == nil)
    }

    @Test("Identifiers need the exact number of lower-case digits, and one that is not zero")
    func parsesIdentifiers() {
        #expect(TraceID(trace)?.description == trace)
        #expect(SpanID(span)?.description == span)
        #expect(SpanID("0000000000000001")?.bits == 1)
        for text in ["", String(trace.dropLast()), trace + "0", String(repeating: "0", count: 32)] {
            #expect(TraceID(text) == nil)
        }
        for text in ["", String(span.dropLast()), span + "0", String(repeating: "0", count: 16), "+0f067aa0ba902b7"] {
            #expect(SpanID(text) == nil)
        }
    }
}
