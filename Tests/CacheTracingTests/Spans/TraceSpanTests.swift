import CacheCore
import CacheTestKit
import CacheTracing
import Testing

@Suite struct TraceSpanTests {
    /// Exports the spans that ended so far and returns them.
    static func exported(_ test: TestTracer) async throws -> [JSON] {
        let receiver = ScriptedReceiver(.status(200))
        let exporter = try #require(try test.exporter(to: receiver))
        exporter.stop()
        await exporter.run()
        return try receiver.requests.flatMap { try JSONParser.parse($0.body).spans }
    }

    @Test("Start and end are nanoseconds since 1970, measured by the monotonic clock")
    func measuresTime() async throws {
        let test = TestTracer()
        test.clock.advance(by: .nanoseconds(250))
        let first = test.tracer.span("first", .internal)
        test.clock.advance(by: .nanoseconds(1500))
        first?.end()
        test.tracer.span("second", .internal)?.end()

        let spans = try await Self.exported(test)

        #expect(spans[0]["startTimeUnixNano"] == "1780000000000000000")
        #expect(spans[0]["endTimeUnixNano"] == "1780000000000001500")
        #expect(spans[1]["startTimeUnixNano"] == "1780000000000001500")
    }

    @Test("After the wall clock was set, new spans have the new time and open ones keep their duration")
    func followsTheWallClock() async throws {
        let test = TestTracer()
        let open = test.tracer.span("open", .internal)
        test.wallClock.advance(by: .seconds(-3600))
        test.clock.advance(by: .milliseconds(2))
        open?.end()
        test.tracer.span("new", .internal)?.end()

        let spans = try await Self.exported(test)

        #expect(spans[0]["endTimeUnixNano"] == "1780000000002000000")
        #expect(spans[1]["startTimeUnixNano"] == "1779996400000000000")
    }

    @Test("A span ends once, and changes after its end have no effect")
    func endsOnce() async throws {
        let test = TestTracer()
        let span = test.tracer.span("once", .internal)
        span?.end()
        span?.set("late", "value")
        span?.rename("late")
        span?.end()

        let spans = try await Self.exported(test)

        #expect(spans.count == 1)
        #expect(spans[0]["name"] == "once")
        #expect(spans[0]["attributes"] == nil)
    }

    @Test("A span ends with its last reference")
    func endsWithItsReference() async throws {
        let test = TestTracer()
        _ = test.tracer.span("forgotten", .internal)

        #expect(try await Self.exported(test).count == 1)
    }

    @Test("A second value of an attribute replaces the first")
    func replacesAttributes() async throws {
        let test = TestTracer()
        let span = test.tracer.span("test", .internal)
        span?.set("key", "first")
        span?.set("key", 2)
        span?.end()

        #expect(try await Self.exported(test)[0]["attributes"] == [["key": "key", "value": ["intValue": "2"]]])
    }

    @Test("128 links are kept, further ones are counted, and a repeated link has no effect")
    func limitsLinks() async throws {
        let test = TestTracer()
        let span = try #require(test.tracer.span("fill", .client))
        for number in 1...200 {
            let reader = TraceContext(
                traceID: try #require(TraceID(high: 1, low: UInt64(number))),
                spanID: try #require(SpanID(UInt64(number))), flags: .sampled)
            span.link(reader)
            span.link(reader)
        }
        span.end()

        let exported = try await Self.exported(test)[0]

        guard case .array(let links)? = exported["links"] else { return #expect(Bool(false), "links are missing") }
        #expect(links.count == 128)
        #expect(exported["droppedLinksCount"] == 72)
        #expect(links[0]["spanId"] == "0000000000000001")
    }

    @Test("32 attributes with texts of 1,024 characters are kept, and the rest is dropped")
    func limitsAttributes() async throws {
        let test = TestTracer()
        let span = test.tracer.span("test", .internal)
        for number in 0..<40 { span?.set("key\(number)", String(repeating: "é", count: 2000)) }
        span?.end()

        let exported = try await Self.exported(test)[0]

        guard case .array(let attributes)? = exported["attributes"],
            case .string(let text)? = attributes[0]["value"]?["stringValue"]
        else { return #expect(Bool(false), "attributes are missing") }
        #expect(attributes.count == 32)
        #expect(exported["droppedAttributesCount"] == 8)
        #expect(text.count == 1024)
    }

    @Test("The queue keeps the newest 2,048 spans and counts the dropped ones")
    func boundsTheQueue() async throws {
        let test = TestTracer()
        test.endSpans(2050)

        let spans = try await Self.exported(test)

        #expect(spans.count == 2048)
        #expect(spans.first?["name"] == "span2")
        #expect(spans.last?["name"] == "span2049")
        #expect(test.tracer.dropped == 2)
    }
}
