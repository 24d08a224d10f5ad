import CacheTracing
import Testing

@Suite struct OTLPEncoderTests {
    private func context(_ number: UInt64, state: String = "", isRemote: Bool = false) throws -> TraceContext {
        TraceContext(
            traceID: try #require(TraceID(high: 0xABCD, low: number)), spanID: try #require(SpanID(number)),
            flags: .sampled, state: TraceState(fields: [state]), isRemote: isRemote)
    }

    private func encode(_ spans: [SpanRecord]) -> String {
        let resource: [SpanRecord.Attribute] = [
            .init("service.name", "larder"), .init("service.version", "1.2.3"), .init("host.name", "cache \"1\""),
        ]
        return String(decoding: OTLPEncoder(resource: resource, scopeVersion: "1.2.3").encode(spans), as: UTF8.self)
    }

    @Test("A span with all members is encoded as the OTLP JSON mapping says")
    func encodesAllMembers() throws {
        let parent = SpanLink(try context(0x10, isRemote: true))
        var span = SpanRecord(
            name: "GET /o/{origin}/{path}", kind: .server, context: try context(0xF1, state: "rojo=1"), parent: parent,
            start: 1_780_000_000_000_000_000)
        span.end = UInt64.max
        span.set("larder.result", "hit")
        span.set("larder.bytes.cache", .integer(.max))
        span.set("ratio", .double(0.5))
        span.set("infinite", .double(-.infinity))
        span.set("joined", true)
        span.set("tags", .strings(["a", "b\n"]))
        span.link(SpanLink(try context(0x20)))
        span.status = .error("The upstream \"x\" failed.")

        #expect(
            encode([span])
                == #"{"resourceSpans":[{"resource":{"attributes":["#
                + #"{"key":"service.name","value":{"stringValue":"larder"}},"#
                + #"{"key":"service.version","value":{"stringValue":"1.2.3"}},"#
                + #"{"key":"host.name","value":{"stringValue":"cache \"1\""}}]},"#
                + #""scopeSpans":[{"scope":{"name":"larder","version":"1.2.3"},"spans":[{"#
                + #""traceId":"000000000000abcd00000000000000f1","spanId":"00000000000000f1","traceState":"rojo=1","#
                + #""parentSpanId":"0000000000000010","flags":769,"name":"GET /o/{origin}/{path}","kind":2,"#
                + #""startTimeUnixNano":"1780000000000000000","endTimeUnixNano":"18446744073709551615","#
                + #""attributes":[{"key":"larder.result","value":{"stringValue":"hit"}},"#
                + #"{"key":"larder.bytes.cache","value":{"intValue":"9223372036854775807"}},"#
                + #"{"key":"ratio","value":{"doubleValue":0.5}},"#
                + #"{"key":"infinite","value":{"doubleValue":"-Infinity"}},"#
                + #"{"key":"joined","value":{"boolValue":true}},"#
                + #"{"key":"tags","value":{"arrayValue":{"values":[{"stringValue":"a"},{"stringValue":"b\n"}]}}}],"#
                + #""links":[{"traceId":"000000000000abcd0000000000000020","spanId":"0000000000000020","flags":257}],"#
                + #""status":{"message":"The upstream \"x\" failed.","code":2}}]}]}]}"#)
    }

    @Test("A span without parent, attributes, links and status has no such members")
    func encodesTheMinimum() throws {
        let spans = [SpanKind.client, .internal].map { kind in
            SpanRecord(name: "fill", kind: kind, context: try? context(1), parent: nil, start: 5)
        }

        #expect(
            encode(spans.compactMap(\.self)).contains(
                #""spans":[{"traceId":"000000000000abcd0000000000000001","spanId":"0000000000000001","flags":257,"#
                    + #""name":"fill","kind":3,"startTimeUnixNano":"5","endTimeUnixNano":"5"},"#
                    + #"{"traceId":"000000000000abcd0000000000000001","spanId":"0000000000000001","flags":257,"#
                    + #""name":"fill","kind":1,"startTimeUnixNano":"5","endTimeUnixNano":"5"}]"#))
    }
}

extension SpanRecord {
    /// Nil without a context.
    fileprivate init?(name: String, kind: SpanKind, context: TraceContext?, parent: SpanLink?, start: UInt64) {
        guard let context else { return nil }
        self.init(name: name, kind: kind, context: context, parent: parent, start: start)
    }
}
